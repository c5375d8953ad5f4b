// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/nn/lowering_internal.h"

namespace plimsoll::nn {

Lowering::Operand Lowering::ReadParameter(LayerIndex index, std::size_t which) const {
  const auto p = static_cast<std::size_t>(layer(index).parameters[which]);
  return {parameters_[p], {network_.parameters[p].shape}};
}

/// Emits the op of a layer: its first result is the layer's output, the rest is kept.
void Lowering::Emit(LayerIndex index, OpKind kind, const Attributes& attributes,
                    std::vector<Operand> reads, std::vector<Result> results) {
  const std::vector<Value> values =
      tape_.Emit(kind, attributes, OriginOf(index), std::move(reads), results);
  State& of = state(index);
  of.output = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    of.saved.push_back(values[i]);
    of.saved_types.push_back(std::move(results[i].tensor));
  }
}

/// One that reads its inputs, then its parameters.
void Lowering::Simple(LayerIndex index, OpKind kind, bool in_place, std::vector<Result> saved) {
  std::vector<Operand> reads;
  for (std::size_t i = 0; i < layer(index).inputs.size(); ++i) reads.push_back(ReadInput(index, i));
  for (std::size_t i = 0; i < layer(index).parameters.size(); ++i) {
    reads.push_back(ReadParameter(index, i));
  }
  std::vector<Result> results = {{Output(index), Role::kActivation, in_place ? 0 : -1}};
  for (Result& result : saved) results.push_back(std::move(result));
  Emit(index, kind, layer(index).attributes, std::move(reads), std::move(results));
}

void Lowering::ForwardBatchNorm(LayerIndex index) {
  if (!options_.train) return Simple(index, OpKind::kBatchNormInference, /*in_place=*/true);
  if (library_.fuses_batch_norm()) {
    std::vector<Operand> reads = EmitStatistics(index, index);
    return Emit(index, OpKind::kBatchNormNormalize, layer(index).attributes, std::move(reads),
                {{Output(index), Role::kActivation}});
  }
  const Tensor channels{{layer(index).shape.back()}};
  Simple(index, OpKind::kBatchNormForward, /*in_place=*/false,
         {{channels, Role::kSaved},
          {channels, Role::kSaved},
          {channels, Role::kStatistics, 3},
          {channels, Role::kStatistics, 4}});
}

/// The first half of a batch norm. What it makes is kept for the backward pass of layer `index`.
/// Returns what the second half reads.
std::vector<Lowering::Operand> Lowering::EmitStatistics(LayerIndex norm, LayerIndex index) {
  const Tensor channels{{layer(norm).shape.back()}};
  const std::vector<Value> values =
      tape_.Emit(OpKind::kBatchNormStatistics, layer(norm).attributes, OriginOf(index),
                 {ReadInput(norm), ReadParameter(norm, 2), ReadParameter(norm, 3)},
                 {{channels, Role::kSaved},
                  {channels, Role::kSaved},
                  {channels, Role::kStatistics, 1},
                  {channels, Role::kStatistics, 2}});
  State& of = state(index);
  of.saved.assign(values.begin(), values.begin() + 2);
  of.saved_types.assign(2, channels);
  return {ReadInput(norm), ReadParameter(norm, 0), ReadParameter(norm, 1), ReadSaved(index, 0),
          ReadSaved(index, 1)};
}

void Lowering::ForwardMaxPool(LayerIndex index) {
  std::vector<Result> saved;
  if (state(index).needs_gradient) {
    saved.push_back({{Output(index).shape, ElementType::kByte}, Role::kSaved});
  }
  Simple(index, OpKind::kMaxPoolForward, /*in_place=*/false, std::move(saved));
}

void Lowering::ForwardLoss(LayerIndex index) {
  const Operand logits = ReadInput(index);
  Tensor labels = logits.tensor;
  labels.type = ElementType::kInt;
  labels.shape.pop_back();
  const Tensor scalar{{1}};
  if (!options_.train) {
    correct_ = tape_.Emit(OpKind::kCountCorrect, {}, OriginOf(index), {logits, {labels_, labels}},
                          {{scalar, Role::kResult}})[0];
  }
  const std::vector<Value> values =
      tape_.Emit(OpKind::kSoftmaxLossForward, {}, OriginOf(index), {logits, {labels_, labels}},
                 {{logits.tensor, Role::kActivation, 0}, {scalar, Role::kResult}});
  state(index).output = values[0];
  loss_ = values[1];
}

void Lowering::Forward(LayerIndex index) {
  const Layer& of = layer(index);
  if (IsLeftOut(of)) return;
  if (PassesThrough(of)) {
    state(index).output = state(of.inputs[0]).output;
    return;
  }
  if (state(index).is_absorbed) return;
  if (state(index).fusion.norm >= 0) return ForwardFusion(index);
  const bool keeps = state(index).needs_gradient;
  const Tensor mask{Output(index).shape, ElementType::kBit};
  switch (of.kind) {
    case LayerKind::kConv:
      return Simple(index, OpKind::kConvForward, false);
    case LayerKind::kTransposedConv:
      return Simple(index, OpKind::kTransposedConvForward, false);
    case LayerKind::kLinear:
      return Simple(index, OpKind::kLinearForward, false);
    case LayerKind::kBatchNorm:
      return ForwardBatchNorm(index);
    case LayerKind::kLayerNorm: {
      Tensor rows{Output(index).shape};
      rows.shape.pop_back();
      return Simple(index, OpKind::kLayerNormForward, false,
                    {{rows, Role::kSaved}, {rows, Role::kSaved}});
    }
    case LayerKind::kLrn:
      return Simple(index, OpKind::kLrnForward, false);
    case LayerKind::kRelu:
      return Simple(index, OpKind::kReluForward, true,
                    keeps ? std::vector<Result>{{mask, Role::kSaved}} : std::vector<Result>{});
    case LayerKind::kGelu:
      return Simple(index, OpKind::kGeluForward, false);
    case LayerKind::kTanh:
      return Simple(index, OpKind::kTanhForward, true);
    case LayerKind::kSigmoid:
      return Simple(index, OpKind::kSigmoidForward, true);
    case LayerKind::kMaxPool:
      return ForwardMaxPool(index);
    case LayerKind::kAveragePool:
      return Simple(index, OpKind::kAveragePoolForward, false);
    case LayerKind::kGlobalPool:
      return Simple(index, OpKind::kGlobalPoolForward, false);
    case LayerKind::kAdd: {
      Attributes attributes = of.attributes;
      if (of.joins >= 0 && !options_.train) {
        attributes.scale = network_.branches[static_cast<std::size_t>(of.joins)].survival;
      }
      state(index).output = tape_.Emit(OpKind::kAdd, attributes, OriginOf(index),
                                       {ReadInput(index), ReadInput(index, 1)},
                                       {{Output(index), Role::kActivation, 0}})[0];
      return;
    }
    case LayerKind::kConcat:
      return Simple(index, OpKind::kConcat, false);
    case LayerKind::kDropout:
      return Simple(index, OpKind::kDropoutForward, true, {{mask, Role::kSaved}});
    case LayerKind::kEmbedding:
      return Simple(index, OpKind::kEmbeddingForward, false);
    case LayerKind::kAddPositions:
      return Simple(index, OpKind::kAddRowsForward, true);
    case LayerKind::kAttention: {
      std::vector<Result> saved;
      const Tensor out = Output(index);
      if (keeps)
        saved.push_back({{{out.shape[0], of.attributes.heads, out.shape[1]}}, Role::kSaved});
      return Simple(index, OpKind::kAttentionForward, false, std::move(saved));
    }
    case LayerKind::kLstm: {
      const Tensor out = Output(index);
      Tensor gates = out;
      gates.shape.back() *= 4;
      std::vector<Result> saved;
      if (keeps) saved = {{gates, Role::kSaved}, {out, Role::kSaved}};
      return Simple(index, OpKind::kLstmForward, false, std::move(saved));
    }
    case LayerKind::kSoftmaxLoss:
      return ForwardLoss(index);
    case LayerKind::kInput:
    case LayerKind::kReshape:
      break;
  }
  PLIMSOLL_CHECK(false, of.name);
}

}  // namespace plimsoll::nn
