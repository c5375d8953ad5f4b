// SPDX-License-Identifier: Apache-2.0
//
// A batch norm and the ReLU behind it as one op, with the addition between them if there is one:
//
//     x ─▶ norm ─▶ relu ─▶ y          x ─▶ norm ─▶ add ─▶ relu ─▶ y
//                                      residual ────┘
//
// The op stands where the ReLU does, the norm's statistics right before it; norm and addition have
// none of their own.
#include <algorithm>
#include <utility>

#include "plimsoll/nn/lowering_internal.h"

namespace plimsoll::nn {

/// For every layer how many inputs of others it is, in this iteration.
std::vector<std::int32_t> Lowering::CountUsers() const {
  std::vector<std::int32_t> users(network_.layers.size(), 0);
  for (const Layer& of : network_.layers) {
    if (IsLeftOut(of)) continue;
    for (const LayerIndex input : of.inputs) ++users[static_cast<std::size_t>(input)];
  }
  return users;
}

/// Whether only one layer reads a batch norm, which then need not be there by itself.
bool Lowering::IsFusable(LayerIndex norm, const std::vector<std::int32_t>& users) const {
  return layer(norm).kind == LayerKind::kBatchNorm && users[static_cast<std::size_t>(norm)] == 1 &&
         state(norm).needs_gradient;
}

/// Returns the norm of an addition that can go with it. Of two the earlier: the other then runs
/// right before the sum that takes its block.
LayerIndex Lowering::FindNorm(LayerIndex add, const std::vector<std::int32_t>& users) const {
  const Layer& of = layer(add);
  if (of.kind != LayerKind::kAdd || PassesThrough(of) || of.attributes.scale != 1 ||
      users[static_cast<std::size_t>(add)] != 1) {
    return -1;
  }
  LayerIndex found = -1;
  for (const LayerIndex input : of.inputs) {
    if (IsFusable(input, users) && (found < 0 || input < found)) found = input;
  }
  return found;
}

void Lowering::FindFusions() {
  if (!options_.train || !library_.fuses_batch_norm()) return;
  const std::vector<std::int32_t> users = CountUsers();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const Layer& relu = network_.layers[i];
    if (relu.kind != LayerKind::kRelu || IsLeftOut(relu)) continue;
    const LayerIndex before = relu.inputs[0];
    if (IsFusable(before, users)) {
      states_[i].fusion = {before, -1};
    } else if (const LayerIndex norm = FindNorm(before, users); norm >= 0) {
      const std::vector<LayerIndex>& addends = layer(before).inputs;
      states_[i].fusion = {norm, addends[0] == norm ? addends[1] : addends[0]};
      state(norm).is_absorbed = true;
    } else {
      continue;
    }
    state(before).is_absorbed = true;
  }
}

void Lowering::ForwardFusion(LayerIndex index) {
  const auto [norm, residual] = state(index).fusion;
  std::vector<Operand> reads = EmitStatistics(norm, index);
  int shares = -1;
  if (residual >= 0) {
    shares = static_cast<int>(reads.size());
    reads.push_back(Read(residual));
  }
  Emit(index, OpKind::kBatchNormReluForward, layer(norm).attributes, std::move(reads),
       {{Output(index), Role::kActivation, shares},
        {{Output(index).shape, ElementType::kBit}, Role::kSaved}});
}

void Lowering::BackwardFusion(LayerIndex index) {
  const auto [norm, residual] = state(index).fusion;
  const bool passes_on = residual >= 0 && state(residual).needs_gradient;
  constexpr int kDy = 1;
  std::vector<Result> results = {{Output(norm), Role::kGradient, passes_on ? -1 : kDy},
                                 ParameterGradient(norm, 0),
                                 ParameterGradient(norm, 1)};
  if (passes_on) results.push_back({Output(residual), Role::kGradient, kDy});
  const std::vector<Value> values =
      tape_.Emit(OpKind::kBatchNormReluBackward, layer(norm).attributes, OriginOf(index),
                 {ReadInput(norm), ReadGradient(index), ReadSaved(index, 2), ReadParameter(norm, 0),
                  ReadSaved(index, 0), ReadSaved(index, 1)},
                 results);
  AddParameterGradient(norm, 0, values[1]);
  AddParameterGradient(norm, 1, values[2]);
  if (passes_on) AddGradient(residual, values[3]);
  AddGradient(layer(norm).inputs[0], values[0]);
}

}  // namespace plimsoll::nn
