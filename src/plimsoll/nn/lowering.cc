// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/lowering_internal.h"

namespace plimsoll::nn {
namespace {

/// Batches beyond this overflow before they fit anywhere.
constexpr std::int64_t kMaxBatch = std::int64_t{1} << 24;

/// Weights of one update.
constexpr Bytes kMaxGroupBytes = Bytes{32} << 20;

}  // namespace

Program Lower(const Network& network, const LoweringOptions& options, KernelLibrary* library) {
  if (options.batch <= 0 || options.batch > kMaxBatch) {
    throw Error(
        fmt::format("{}: a batch of {}; expected 1 to {}", network.name, options.batch, kMaxBatch));
  }
  for (const Layer& layer : network.layers) {
    if (!IsReasonable(layer.shape, options.batch * layer.rows)) {
      throw Error(fmt::format("{}: layer {}, {} for each of {}, is too large", network.name,
                              layer.name, FormatShape(layer.shape), options.batch * layer.rows));
    }
  }
  if (!options.active_branches.empty() &&
      options.active_branches.size() != network.branches.size()) {
    throw Error(fmt::format("{}: {} choices for {} branches", network.name,
                            options.active_branches.size(), network.branches.size()));
  }
  return Lowering(network, options, library).Run();
}

Lowering::Lowering(const Network& network, const LoweringOptions& options, KernelLibrary* library)
    : network_(network),
      options_(options),
      library_(*library),
      states_(network.layers.size()),
      parameter_gradients_(network.parameters.size(), Tape::kNone),
      users_(network.parameters.size(), 0) {}

Program Lowering::Run() {
  DeclarePersistent();
  FindGradients();
  FindFusions();
  const Tensor labels = network_.label_tensor();
  const Bytes label_bytes = labels.size_bytes() * options_.batch;
  if (options_.keeps_batch) {
    state(0).output = tape_.Persistent(Output(0).size_bytes(), Role::kBatch, -1);
    labels_ = tape_.Persistent(label_bytes, Role::kBatch, -1);
  } else {
    state(0).output = tape_.External(Output(0).size_bytes(), Role::kInput);
    labels_ = tape_.External(label_bytes, Role::kLabels);
  }
  const auto layers = static_cast<LayerIndex>(network_.layers.size());
  for (LayerIndex index = 1; index < layers; ++index) Forward(index);
  if (options_.train) {
    phase_ = trace::Phase::kBackward;
    for (LayerIndex index = layers - 1; index > 0; --index) Backward(index);
    EndGroup();
    for (const std::vector<ParameterIndex>& group : late_groups_) Update(group);
  }
  tape_.Download(loss_);
  if (!options_.train) tape_.Download(correct_);
  Program program = tape_.Finish(&library_);
  program.batch = options_.batch;
  program.input = tape_.slot_of(state(0).output);
  program.labels = tape_.slot_of(labels_);
  program.loss = tape_.slot_of(loss_);
  program.correct = tape_.slot_of(correct_);
  return program;
}

void Lowering::DeclarePersistent() {
  const auto count = static_cast<ParameterIndex>(network_.parameters.size());
  const auto bytes = [&](ParameterIndex p) {
    return Tensor{network_.parameters[p].shape}.size_bytes();
  };
  const auto trained = [&](ParameterIndex p) { return network_.parameters[p].trained; };
  for (ParameterIndex p = 0; p < count; ++p) {
    parameters_.push_back(
        tape_.Persistent(bytes(p), trained(p) ? Role::kParameter : Role::kStatistics, p));
  }
  const auto moments = [&](Role role, std::vector<Value>* values) {
    for (ParameterIndex p = 0; p < count; ++p) {
      values->push_back(trained(p) ? tape_.Persistent(bytes(p), role, p) : Tape::kNone);
    }
  };
  moments(Role::kMomentum, &momenta_);
  if (options_.optimizer == Optimizer::kAdamW) moments(Role::kVariance, &variances_);
}

Tensor Lowering::Output(LayerIndex index) const {
  Tensor tensor = OutputTensor(layer(index), options_.batch);
  if (tensor.type == ElementType::kFloat && options_.precision == Precision::kBfloat16) {
    tensor.type = ElementType::kBfloat16;
  }
  return tensor;
}

bool Lowering::IsLeftOut(const Layer& of) const {
  return of.branch >= 0 && options_.train && !options_.active_branches.empty() &&
         !options_.active_branches[static_cast<std::size_t>(of.branch)];
}

bool Lowering::PassesThrough(const Layer& of) const {
  if (of.kind == LayerKind::kReshape) return true;
  if (of.kind == LayerKind::kDropout) return !options_.train || of.attributes.rate == 0;
  return of.kind == LayerKind::kAdd && of.joins >= 0 && IsLeftOut(layer(of.inputs[1]));
}

void Lowering::FindGradients() {
  if (!options_.train) return;
  for (std::size_t i = 1; i < states_.size(); ++i) {
    const Layer& of = network_.layers[i];
    if (IsLeftOut(of)) continue;
    bool needed = false;
    for (const ParameterIndex parameter : of.parameters) {
      if (!network_.parameters[static_cast<std::size_t>(parameter)].trained) continue;
      needed = true;
      ++users_[static_cast<std::size_t>(parameter)];
    }
    for (const LayerIndex input : of.inputs) needed = needed || state(input).needs_gradient;
    states_[i].needs_gradient = needed;
  }
}

void Lowering::FinishParameter(ParameterIndex parameter) {
  if (--users_[static_cast<std::size_t>(parameter)] > 0) return;
  if (parameter_gradients_[static_cast<std::size_t>(parameter)] == Tape::kNone) return;
  const Tensor tensor{network_.parameters[static_cast<std::size_t>(parameter)].shape};
  if (group_bytes_ + tensor.size_bytes() > kMaxGroupBytes) EndGroup();
  group_.push_back(parameter);
  group_bytes_ += tensor.size_bytes();
  const int most = std::max(library_.update_group(), 1);
  if (std::ssize(group_) == most || group_bytes_ >= kMaxGroupBytes) EndGroup();
}

void Lowering::EndGroup() {
  if (group_.empty()) return;
  if (options_.early_updates) {
    Update(group_);
  } else {
    late_groups_.push_back(group_);
  }
  group_.clear();
  group_bytes_ = 0;
}

void Lowering::Update(std::span<const ParameterIndex> parameters) {
  const bool adam = options_.optimizer == Optimizer::kAdamW;
  Attributes attributes;
  attributes.weight_decay = options_.weight_decay;
  if (adam) {
    attributes.epsilon = 1e-8F;
  } else {
    attributes.momentum = options_.momentum;
  }
  std::vector<Operand> reads;
  std::vector<Result> results;
  for (const ParameterIndex parameter : parameters) {
    const auto p = static_cast<std::size_t>(parameter);
    const Tensor tensor{network_.parameters[p].shape};
    const auto first = static_cast<int>(reads.size());
    reads.push_back({parameters_[p], tensor});
    reads.push_back({parameter_gradients_[p], tensor});
    reads.push_back({momenta_[p], tensor});
    results.push_back({tensor, Role::kParameter, first});
    results.push_back({tensor, Role::kMomentum, first + 2});
    if (!adam) continue;
    reads.push_back({variances_[p], tensor});
    results.push_back({tensor, Role::kVariance, first + 3});
  }
  tape_.Emit(adam ? OpKind::kAdamWUpdate : OpKind::kSgdUpdate, attributes,
             {trace::Phase::kUpdate, -1, {parameters.begin(), parameters.end()}}, std::move(reads),
             results);
}

}  // namespace plimsoll::nn
