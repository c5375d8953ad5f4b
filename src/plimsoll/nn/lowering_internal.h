// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "plimsoll/nn/lowering.h"
#include "plimsoll/nn/tape_internal.h"

namespace plimsoll::nn {

/// Walks a network forward, backward and over its parameters, and leaves ops on a tape.
class Lowering {
 public:
  /// The library outlives it.
  Lowering(const Network& network, const LoweringOptions& options, KernelLibrary* library);

  Program Run();

 private:
  using Value = Tape::Value;
  using Operand = Tape::Operand;
  using Result = Tape::Result;

  /// What a ReLU does at once with itself.
  struct Fusion {
    LayerIndex norm = -1;      ///< None if there is nothing.
    LayerIndex residual = -1;  ///< What is added to the norm, if something is.
  };

  /// What the forward pass keeps for the backward pass of a layer.
  struct State {
    Value output = Tape::kNone;       ///< None if the layer is left out, or part of a fusion.
    bool needs_gradient = false;      ///< Whether a parameter comes before it.
    Value gradient = Tape::kNone;     ///< Of the output: the sum so far.
    std::vector<Value> saved;         ///< Masks, indices, statistics, in the order of writes.
    std::vector<Tensor> saved_types;  ///< Of those.
    Fusion fusion;
    bool is_absorbed = false;  ///< By a ReLU behind it.
  };

  // Forward.
  void DeclarePersistent();
  void FindGradients();
  bool IsLeftOut(const Layer& layer) const;
  bool PassesThrough(const Layer& layer) const;
  void Forward(LayerIndex index);
  void Simple(LayerIndex index, OpKind kind, bool in_place, std::vector<Result> saved = {});
  void ForwardBatchNorm(LayerIndex index);
  std::vector<Operand> EmitStatistics(LayerIndex norm, LayerIndex index);
  void ForwardMaxPool(LayerIndex index);
  void ForwardLoss(LayerIndex index);
  void Emit(LayerIndex index, OpKind kind, const Attributes& attributes, std::vector<Operand> reads,
            std::vector<Result> results);

  // Batch norms with their ReLUs.
  std::vector<std::int32_t> CountUsers() const;
  void FindFusions();
  LayerIndex FindNorm(LayerIndex add, const std::vector<std::int32_t>& users) const;
  bool IsFusable(LayerIndex norm, const std::vector<std::int32_t>& users) const;
  void ForwardFusion(LayerIndex index);
  void BackwardFusion(LayerIndex index);

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
  void EndGroup();
  void Update(std::span<const ParameterIndex> parameters);

  const Layer& layer(LayerIndex index) const {
    return network_.layers[static_cast<std::size_t>(index)];
  }
  State& state(LayerIndex index) { return states_[static_cast<std::size_t>(index)]; }
  const State& state(LayerIndex index) const { return states_[static_cast<std::size_t>(index)]; }
  /// The output of a layer, or its gradient.
  Tensor Output(LayerIndex index) const;
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
  KernelLibrary& library_;
  Tape tape_;
  trace::Phase phase_ = trace::Phase::kForward;
  std::vector<State> states_;      // By layer.
  std::vector<Value> parameters_;  // By parameter, as the next ones.
  std::vector<Value> momenta_;
  std::vector<Value> variances_;
  std::vector<Value> parameter_gradients_;
  std::vector<std::int32_t> users_;  // Layers whose backward pass is still to come.
  // Whose gradients are complete, in that order: those that are updated together, and those that
  // are at the end.
  std::vector<ParameterIndex> group_;
  Bytes group_bytes_ = 0;
  std::vector<std::vector<ParameterIndex>> late_groups_;
  Value labels_ = Tape::kNone;
  Value loss_ = Tape::kNone;
  Value correct_ = Tape::kNone;
};

}  // namespace plimsoll::nn
