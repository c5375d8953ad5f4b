// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/nn/lowering_internal.h"

namespace plimsoll::nn {

/// Adds to the gradient of a layer's output.
void Lowering::AddGradient(LayerIndex index, Value gradient) {
  State& of = state(index);
  if (!of.needs_gradient) return;
  if (of.gradient == Tape::kNone) {
    of.gradient = gradient;
    return;
  }
  const Tensor tensor = Output(index);
  of.gradient =
      tape_.Emit(OpKind::kAdd, {}, OriginOf(index), {{of.gradient, tensor}, {gradient, tensor}},
                 {{tensor, Role::kGradient, 0}})[0];
}

void Lowering::AddParameterGradient(LayerIndex index, std::size_t which, Value gradient) {
  const ParameterIndex parameter = layer(index).parameters[which];
  const auto p = static_cast<std::size_t>(parameter);
  if (parameter_gradients_[p] == Tape::kNone) {
    parameter_gradients_[p] = gradient;
    return;
  }
  const Tensor tensor{network_.parameters[p].shape};
  parameter_gradients_[p] = tape_.Emit(OpKind::kAdd, {}, OriginOf(index),
                                       {{parameter_gradients_[p], tensor}, {gradient, tensor}},
                                       {{tensor, Role::kParameterGradient, 0, parameter}})[0];
}

Lowering::Result Lowering::ParameterGradient(LayerIndex index, std::size_t which) const {
  const ParameterIndex parameter = layer(index).parameters[which];
  return {{network_.parameters[static_cast<std::size_t>(parameter)].shape},
          Role::kParameterGradient,
          -1,
          parameter};
}

/// Convolutions and linear layers: weights first, so that x can go before dx is made.
void Lowering::BackwardWeighted(LayerIndex index, OpKind weights, OpKind data) {
  std::vector<Result> results;
  for (std::size_t i = 0; i < layer(index).parameters.size(); ++i) {
    results.push_back(ParameterGradient(index, i));
  }
  const std::vector<Value> values = tape_.Emit(weights, layer(index).attributes, OriginOf(index),
                                               {ReadInput(index), ReadGradient(index)}, results);
  for (std::size_t i = 0; i < values.size(); ++i) AddParameterGradient(index, i, values[i]);
  const LayerIndex x = layer(index).inputs[0];
  if (!state(x).needs_gradient) return;
  AddGradient(x, tape_.Emit(data, layer(index).attributes, OriginOf(index),
                            {ReadGradient(index), ReadParameter(index, 0)},
                            {{Output(x), Role::kGradient}})[0]);
}

void Lowering::BackwardNorm(LayerIndex index, OpKind kind) {
  const std::vector<Value> values =
      tape_.Emit(kind, layer(index).attributes, OriginOf(index),
                 {ReadInput(index), ReadGradient(index), ReadParameter(index, 0),
                  ReadSaved(index, 0), ReadSaved(index, 1)},
                 {{Output(index), Role::kGradient, 1},
                  ParameterGradient(index, 0),
                  ParameterGradient(index, 1)});
  AddParameterGradient(index, 0, values[1]);
  AddParameterGradient(index, 1, values[2]);
  AddGradient(layer(index).inputs[0], values[0]);
}

/// One op from dy and `reads` to dx, which may take the block of read `dy`, if it is not negative.
void Lowering::BackwardPointwise(LayerIndex index, OpKind kind, std::vector<Operand> reads,
                                 int dy) {
  const LayerIndex x = layer(index).inputs[0];
  if (!state(x).needs_gradient) return;
  AddGradient(x, tape_.Emit(kind, layer(index).attributes, OriginOf(index), std::move(reads),
                            {{Output(x), Role::kGradient, dy}})[0]);
}

void Lowering::BackwardAdd(LayerIndex index) {
  const Value gradient = state(index).gradient;
  AddGradient(layer(index).inputs[0], gradient);
  AddGradient(layer(index).inputs[1], gradient);
}

void Lowering::BackwardConcat(LayerIndex index) {
  Attributes attributes;
  for (const LayerIndex input : layer(index).inputs) {
    if (state(input).needs_gradient) {
      AddGradient(input, tape_.Emit(OpKind::kSlice, attributes, OriginOf(index),
                                    {ReadGradient(index)}, {{Output(input), Role::kGradient}})[0]);
    }
    attributes.offset += layer(input).shape.back();
  }
}

void Lowering::BackwardLstm(LayerIndex index) {
  std::vector<Result> results = {{Output(layer(index).inputs[0]), Role::kGradient}};
  for (std::size_t i = 0; i < 3; ++i) results.push_back(ParameterGradient(index, i));
  const std::vector<Value> values =
      tape_.Emit(OpKind::kLstmBackward, layer(index).attributes, OriginOf(index),
                 {ReadInput(index), ReadParameter(index, 0), ReadParameter(index, 1), Read(index),
                  ReadSaved(index, 0), ReadSaved(index, 1), ReadGradient(index)},
                 results);
  for (std::size_t i = 0; i < 3; ++i) AddParameterGradient(index, i, values[i + 1]);
  AddGradient(layer(index).inputs[0], values[0]);
}

void Lowering::BackwardLoss(LayerIndex index) {
  const LayerIndex logits = layer(index).inputs[0];
  if (!state(logits).needs_gradient) return;
  const Tensor tensor = Output(logits);
  Tensor labels = tensor;
  labels.type = ElementType::kInt;
  labels.shape.pop_back();
  AddGradient(logits, tape_.Emit(OpKind::kSoftmaxLossBackward, {}, OriginOf(index),
                                 {{state(index).output, tensor}, {labels_, labels}},
                                 {{tensor, Role::kGradient, 0}})[0]);
}

void Lowering::BackwardPool(LayerIndex index) {
  switch (layer(index).kind) {
    case LayerKind::kMaxPool:
      return BackwardPointwise(index, OpKind::kMaxPoolBackward,
                               {ReadGradient(index), ReadSaved(index, 0)}, -1);
    case LayerKind::kAveragePool:
      return BackwardPointwise(index, OpKind::kAveragePoolBackward, {ReadGradient(index)}, -1);
    default:
      return BackwardPointwise(index, OpKind::kGlobalPoolBackward, {ReadGradient(index)}, -1);
  }
}

void Lowering::Backward(LayerIndex index) {
  const Layer& of = layer(index);
  const State& at = state(index);
  if (at.output == Tape::kNone || !at.needs_gradient) return;
  if (of.kind == LayerKind::kSoftmaxLoss) return BackwardLoss(index);
  const bool is_fused = at.fusion.norm >= 0;
  if (at.gradient != Tape::kNone) {  // Somebody uses it.
    if (PassesThrough(of)) return AddGradient(of.inputs[0], at.gradient);
    if (is_fused) {
      BackwardFusion(index);
    } else {
      BackwardUsed(index);
    }
  }
  for (const ParameterIndex parameter : (is_fused ? layer(at.fusion.norm) : of).parameters) {
    if (network_.parameters[static_cast<std::size_t>(parameter)].trained) {
      FinishParameter(parameter);
    }
  }
}

void Lowering::BackwardUsed(LayerIndex index) {
  const Layer& of = layer(index);
  const State& at = state(index);
  switch (of.kind) {
    case LayerKind::kConv:
      BackwardWeighted(index, OpKind::kConvBackwardWeights, OpKind::kConvBackwardData);
      break;
    case LayerKind::kTransposedConv:
      BackwardWeighted(index, OpKind::kTransposedConvBackwardWeights,
                       OpKind::kTransposedConvBackwardData);
      break;
    case LayerKind::kLinear:
      BackwardWeighted(index, OpKind::kLinearBackwardWeights, OpKind::kLinearBackwardData);
      break;
    case LayerKind::kBatchNorm:
      BackwardNorm(index, OpKind::kBatchNormBackward);
      break;
    case LayerKind::kLayerNorm:
      BackwardNorm(index, OpKind::kLayerNormBackward);
      break;
    case LayerKind::kLrn:
      BackwardPointwise(index, OpKind::kLrnBackward, {ReadInput(index), ReadGradient(index)}, -1);
      break;
    case LayerKind::kRelu:
      BackwardPointwise(index, OpKind::kReluBackward, {ReadGradient(index), ReadSaved(index, 0)},
                        0);
      break;
    case LayerKind::kGelu:
      BackwardPointwise(index, OpKind::kGeluBackward, {ReadInput(index), ReadGradient(index)}, 1);
      break;
    case LayerKind::kTanh:
      BackwardPointwise(index, OpKind::kTanhBackward, {Read(index), ReadGradient(index)}, 1);
      break;
    case LayerKind::kSigmoid:
      BackwardPointwise(index, OpKind::kSigmoidBackward, {Read(index), ReadGradient(index)}, 1);
      break;
    case LayerKind::kMaxPool:
    case LayerKind::kAveragePool:
    case LayerKind::kGlobalPool:
      BackwardPool(index);
      break;
    case LayerKind::kAdd:
      BackwardAdd(index);
      break;
    case LayerKind::kConcat:
      BackwardConcat(index);
      break;
    case LayerKind::kDropout:
      BackwardPointwise(index, OpKind::kDropoutBackward, {ReadGradient(index), ReadSaved(index, 0)},
                        0);
      break;
    case LayerKind::kEmbedding:
      AddParameterGradient(
          index, 0,
          tape_.Emit(OpKind::kEmbeddingBackward, {}, OriginOf(index),
                     {ReadInput(index), ReadGradient(index)}, {ParameterGradient(index, 0)})[0]);
      break;
    case LayerKind::kAddPositions:
      AddParameterGradient(index, 0,
                           tape_.Emit(OpKind::kAddRowsBackward, {}, OriginOf(index),
                                      {ReadGradient(index)}, {ParameterGradient(index, 0)})[0]);
      AddGradient(of.inputs[0], at.gradient);
      break;
    case LayerKind::kAttention:
      BackwardPointwise(index, OpKind::kAttentionBackward,
                        {ReadInput(index), Read(index), ReadGradient(index), ReadSaved(index, 0)},
                        -1);
      break;
    case LayerKind::kLstm:
      BackwardLstm(index);
      break;
    default:
      PLIMSOLL_CHECK(false, of.name);
  }
}

}  // namespace plimsoll::nn
