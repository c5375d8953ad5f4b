// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/nn/lowering.h"
#include "plimsoll/nn/tape_internal.h"

namespace plimsoll::nn {

/// Walks a network forward, backward and over its parameters, and leaves ops on a tape.
class Lowering {
 public:
  Lowering(const Network& network, const LoweringOptions& options);

  Program Run(KernelLibrary* library);

 private:
  using Value = Tape::Value;
  using Operand = Tape::Operand;
  using Result = Tape::Result;

  /// What the forward pass keeps for the backward pass of a layer.
  struct State {
    Value output = Tape::kNone;       ///< None if the layer is left out.
    bool needs_gradient = false;      ///< Whether a parameter comes before it.
    Value gradient = Tape::kNone;     ///< Of the output: the sum so far.
    std::vector<Value> saved;         ///< Masks, indices, statistics, in the order of writes.
    std::vector<Tensor> saved_types;  ///< Of those.
  };

  // Forward.
  void DeclarePersistent();
  void FindGradients();
  bool IsLeftOut(const Layer& layer) const;
  bool PassesThrough(const Layer& layer) const;
  void Forward(LayerIndex index);
  void Simple(LayerIndex index, OpKind kind, bool in_place, std::vector<Result> saved = {});
  void ForwardBatchNorm(LayerIndex index);
  void ForwardMaxPool(LayerIndex index);
  void ForwardLoss(LayerIndex index);
  void Emit(LayerIndex index, OpKind kind, std::vector<Operand> reads, std::vector<Result> results);

  // Backward.
  void Backward(LayerIndex index);
  void BackwardUsed(LayerIndex index);
  void BackwardWeighted(LayerIndex index, OpKind weights, OpKind data);
  void BackwardNorm(LayerIndex index, OpKind kind);
  void BackwardPointwise(LayerIndex index, OpKind kind, std::vector<Operand> reads, int dy);
  void BackwardPool(LayerIndex index);
  void BackwardAdd(LayerIndex index);
  void BackwardConcat(LayerIndex index);
  void BackwardLstm(LayerIndex index);
  void BackwardLoss(LayerIndex index);
  void AddGradient(LayerIndex index, Value gradient);
  void AddParameterGradient(LayerIndex index, std::size_t which, Value gradient);
  void FinishParameter(ParameterIndex parameter);
  void Update(ParameterIndex parameter);

  const Layer& layer(LayerIndex index) const {
    return network_.layers[static_cast<std::size_t>(index)];
  }
  State& state(LayerIndex index) { return states_[static_cast<std::size_t>(index)]; }
  Tensor Output(LayerIndex index) const { return OutputTensor(layer(index), options_.batch); }
  Operand Read(LayerIndex index) { return {state(index).output, Output(index)}; }
  Operand ReadInput(LayerIndex index, std::size_t which = 0) {
    return Read(layer(index).inputs[which]);
  }
  Operand ReadParameter(LayerIndex index, std::size_t which) const;
  Operand ReadGradient(LayerIndex index) { return {state(index).gradient, Output(index)}; }
  Operand ReadSaved(LayerIndex index, std::size_t which) {
    return {state(index).saved[which], state(index).saved_types[which]};
  }
  Result ParameterGradient(LayerIndex index, std::size_t which) const;
  Tape::Origin OriginOf(LayerIndex index) const { return {phase_, index}; }

  const Network& network_;
  const LoweringOptions& options_;
  Tape tape_;
  trace::Phase phase_ = trace::Phase::kForward;
  std::vector<State> states_;      // By layer.
  std::vector<Value> parameters_;  // By parameter, as the next ones.
  std::vector<Value> momenta_;
  std::vector<Value> variances_;
  std::vector<Value> parameter_gradients_;
  std::vector<std::int32_t> users_;       // Layers whose backward pass is still to come.
  std::vector<ParameterIndex> complete_;  // Whose gradients are, in that order.
  Value labels_ = Tape::kNone;
  Value loss_ = Tape::kNone;
  Value correct_ = Tape::kNone;
};

}  // namespace plimsoll::nn
