// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/trace/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/check.h"

namespace plimsoll::trace {
namespace {

using Operands = std::vector<VariableIndex>;

/// SplitMix64 (Steele, Lea and Flood, 2014): the same numbers on every platform, which the
/// distributions of <random> do not promise.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  /// Returns a number from `low` to `high`, both included.
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(Next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool OneIn(std::int64_t count) { return Between(1, count) == 1; }

 private:
  std::uint64_t state_;
};

/// One layer: a convolution and perhaps more. Zero sizes mean that there is none of it.
struct Layer {
  Bytes output_bytes = 0;
  Bytes weight_bytes = 0;
  Bytes workspace_bytes = 0;
  Bytes statistics_bytes = 0;  ///< Normalization.
  Bytes mask_bytes = 0;        ///< Dropout.
  Bytes temporary_bytes = 0;
  bool has_relu = false;
  bool has_empty_reserve = false;
  VariableIndex weight = -1;
  VariableIndex scale = -1;  ///< Of the normalization.
};

/// What the forward part of a layer leaves for its backward part; -1 where there is none of it.
struct Saved {
  const Layer* layer = nullptr;
  VariableIndex input = -1;
  VariableIndex convolved = -1;
  VariableIndex normalized = -1;
  VariableIndex statistics = -1;
  VariableIndex reserve = -1;
  VariableIndex dropped = -1;
  VariableIndex mask = -1;

  /// What the activation function wrote.
  VariableIndex activated() const { return normalized >= 0 ? normalized : convolved; }
  VariableIndex output() const { return dropped >= 0 ? dropped : activated(); }
};

class Generator {
 public:
  explicit Generator(const GenerateOptions& options)
      : options_(options), structure_(options.seed), jitter_(~options.seed) {}

  Trace Run();

 private:
  void DrawNetwork();
  Layer DrawLayer(int depth);
  std::vector<const Layer*> DrawDepth();

  void SetUp();
  void Train();
  void Evaluate();
  void Rotate();
  Saved Forward(const Layer& layer, VariableIndex input);
  void ForwardRest(const Layer& layer, Saved* saved);
  /// Takes the gradient of the layer's output, and returns that of its input, or -1 at the start of
  /// the network. Frees whatever the layer left.
  VariableIndex Backward(const Saved& saved, VariableIndex gradient);
  VariableIndex BackwardConvolution(const Saved& saved, VariableIndex gradient);
  void Update();

  VariableIndex Declare(Bytes size_bytes, bool preexisting);
  VariableIndex Malloc(Bytes size_bytes);
  void Free(VariableIndex variable);
  void MallocAndFree(Bytes size_bytes);
  void Exec(std::string_view name, Phase phase, const Operands& reads, const Operands& writes);
  Bytes SizeOf(VariableIndex variable) const {
    return trace_.variables[static_cast<std::size_t>(variable)].size_bytes;
  }

  GenerateOptions options_;
  Random structure_;
  Random jitter_;
  Trace trace_;
  std::vector<Layer> layers_;
  std::vector<VariableIndex> parameters_;
  std::vector<VariableIndex> momenta_;                              // By number of the parameter.
  std::vector<std::pair<VariableIndex, VariableIndex>> gradients_;  // With their parameters.
  std::set<std::vector<bool>> drawn_depths_;
  VariableIndex input_ = -1;
  VariableIndex target_ = -1;
  VariableIndex rotating_ = -1;
};

Trace Generator::Run() {
  DrawNetwork();
  for (int i = 0; i < options_.iterations; ++i) {
    trace_.iteration_marks.push_back(static_cast<EventIndex>(trace_.events.size()));
    if (i == 0 && options_.differing_first) SetUp();
    if (i + 1 == options_.iterations && options_.differing_last) {
      Evaluate();
    } else {
      Train();
    }
  }
  trace_.metadata = fmt::format(
      R"({{"model": "generated", "seed": {}, "layers": {}, "iterations": {}, "op_count": {}}})",
      options_.seed, options_.layers, options_.iterations, trace_.ops.size());
  return std::move(trace_);
}

void Generator::DrawNetwork() {
  input_ = Declare(options_.scale_bytes, /*preexisting=*/true);
  target_ = Declare(std::max<Bytes>(options_.scale_bytes / 1024, 8), /*preexisting=*/true);
  for (int i = 0; i < options_.layers; ++i) {
    Layer layer = DrawLayer(i);
    layer.weight = Declare(layer.weight_bytes, /*preexisting=*/true);
    parameters_.push_back(layer.weight);
    if (layer.statistics_bytes > 0) {
      layer.scale = Declare(layer.statistics_bytes, /*preexisting=*/true);
      parameters_.push_back(layer.scale);
    }
    layers_.push_back(layer);
  }
  momenta_.assign(trace_.variables.size(), -1);
  if (!options_.differing_first) {
    for (const VariableIndex parameter : parameters_) {
      momenta_[static_cast<std::size_t>(parameter)] =
          Declare(SizeOf(parameter), /*preexisting=*/true);
    }
  }
  if (options_.rotating) {
    rotating_ = Declare(std::max<Bytes>(options_.scale_bytes / 16, 4), /*preexisting=*/true);
  }
}

/// Draws a layer; like in real networks, activations shrink with depth and weights grow.
Layer Generator::DrawLayer(int depth) {
  const int stage = depth * 4 / options_.layers;
  const Bytes scale = options_.scale_bytes;
  const auto at_least_four = [](Bytes size) { return std::max<Bytes>(size / 4 * 4, 4); };
  Layer layer;
  layer.output_bytes = at_least_four((scale >> stage) / 4 * structure_.Between(2, 4));
  layer.weight_bytes = at_least_four((scale >> (7 - stage)) / 8 * structure_.Between(4, 12));
  if (structure_.OneIn(2)) {
    layer.workspace_bytes = at_least_four(layer.output_bytes / 4 * structure_.Between(1, 6)) + 3;
  }
  if (structure_.OneIn(2)) layer.statistics_bytes = at_least_four(scale >> (14 - stage));
  if (structure_.OneIn(5)) layer.mask_bytes = at_least_four(layer.output_bytes / 4);
  if (structure_.OneIn(5)) layer.temporary_bytes = layer.output_bytes;
  layer.has_relu = !structure_.OneIn(4);
  layer.has_empty_reserve = structure_.OneIn(2);
  return layer;
}

/// Returns the layers that this iteration passes through.
std::vector<const Layer*> Generator::DrawDepth() {
  std::vector<bool> kept(layers_.size(), true);
  constexpr int kMaxAttempts = 64;
  for (int attempt = 0; options_.stochastic && attempt < kMaxAttempts; ++attempt) {
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = !structure_.OneIn(4);
    if (drawn_depths_.insert(kept).second) break;
  }
  std::vector<const Layer*> layers;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) layers.push_back(&layers_[i]);
  }
  return layers;
}

void Generator::SetUp() {
  const VariableIndex scratch = Malloc(options_.scale_bytes);
  Exec("normal_", Phase::kForward, {}, {scratch});
  for (const VariableIndex parameter : parameters_) {
    const VariableIndex momentum = Malloc(SizeOf(parameter));
    momenta_[static_cast<std::size_t>(parameter)] = momentum;
    Exec("zeros_like", Phase::kForward, {parameter}, {momentum});
  }
  Free(scratch);
}

void Generator::Train() {
  std::vector<Saved> saved;
  VariableIndex output = input_;
  for (const Layer* layer : DrawDepth()) {
    saved.push_back(Forward(*layer, output));
    output = saved.back().output();
  }
  const VariableIndex loss = Malloc(4);
  Exec("loss_forward", Phase::kForward, {output, target_}, {loss});
  VariableIndex gradient = Malloc(SizeOf(output));
  Exec("loss_backward", Phase::kBackward, {loss, output, target_}, {gradient});
  for (auto layer = saved.rbegin(); layer != saved.rend(); ++layer) {
    gradient = Backward(*layer, gradient);
  }
  if (gradient >= 0) Free(gradient);
  Update();
  Free(loss);
  if (options_.rotating) Rotate();
}

void Generator::Evaluate() {
  VariableIndex output = input_;
  for (const Layer* layer : DrawDepth()) {
    const VariableIndex next = Malloc(layer->output_bytes);
    Exec("convolution", Phase::kForward, {output, layer->weight}, {next});
    if (layer->has_relu) Exec("relu_", Phase::kForward, {next}, {next});
    if (output != input_) Free(output);
    output = next;
  }
  const VariableIndex accuracy = Malloc(8);
  Exec("accuracy", Phase::kForward, {output, target_}, {accuracy});
  if (output != input_) Free(output);
  Free(accuracy);
}

void Generator::Rotate() {
  const VariableIndex next = Malloc(SizeOf(rotating_));
  Exec("average", Phase::kUpdate, {rotating_}, {next});
  Free(rotating_);
  rotating_ = next;
}

Saved Generator::Forward(const Layer& layer, VariableIndex input) {
  Saved saved;
  saved.layer = &layer;
  saved.input = input;
  saved.convolved = Malloc(layer.output_bytes);
  MallocAndFree(layer.workspace_bytes);
  Exec("convolution", Phase::kForward, {input, layer.weight}, {saved.convolved});
  ForwardRest(layer, &saved);
  return saved;
}

void Generator::ForwardRest(const Layer& layer, Saved* saved) {
  if (layer.statistics_bytes > 0) {
    saved->normalized = Malloc(layer.output_bytes);
    saved->statistics = Malloc(layer.statistics_bytes);
    if (layer.has_empty_reserve) saved->reserve = Malloc(0);
    Exec("batch_norm", Phase::kForward, {saved->convolved, layer.scale},
         {saved->normalized, saved->statistics});
  }
  const VariableIndex activated = saved->activated();
  if (layer.has_relu) Exec("relu_", Phase::kForward, {activated}, {activated});
  if (layer.temporary_bytes > 0) {
    const VariableIndex temporary = Malloc(layer.temporary_bytes);
    Exec("sigmoid", Phase::kForward, {activated}, {temporary});
    Exec("mul_", Phase::kForward, {activated, temporary}, {activated});
    Free(temporary);
  }
  if (layer.mask_bytes > 0) {
    saved->mask = Malloc(layer.mask_bytes);
    saved->dropped = Malloc(layer.output_bytes);
    Exec("dropout", Phase::kForward, {activated}, {saved->dropped, saved->mask});
  }
}

VariableIndex Generator::Backward(const Saved& saved, VariableIndex gradient) {
  const Layer& layer = *saved.layer;
  const auto replace_gradient = [&](VariableIndex next) { Free(std::exchange(gradient, next)); };
  if (saved.mask >= 0) {
    const VariableIndex next = Malloc(layer.output_bytes);
    Exec("dropout_backward", Phase::kBackward, {gradient, saved.mask}, {next});
    replace_gradient(next);
    Free(saved.dropped);
    Free(saved.mask);
  }
  if (layer.has_relu) {
    const VariableIndex next = Malloc(layer.output_bytes);
    Exec("relu_backward", Phase::kBackward, {gradient, saved.activated()}, {next});
    replace_gradient(next);
  }
  if (saved.normalized >= 0) {
    const VariableIndex next = Malloc(layer.output_bytes);
    const VariableIndex scale_gradient = Malloc(layer.statistics_bytes);
    Exec("batch_norm_backward", Phase::kBackward,
         {gradient, saved.convolved, saved.statistics, layer.scale}, {next, scale_gradient});
    gradients_.emplace_back(scale_gradient, layer.scale);
    replace_gradient(next);
    Free(saved.normalized);
    Free(saved.statistics);
    if (saved.reserve >= 0) Free(saved.reserve);
  }
  const VariableIndex input_gradient = BackwardConvolution(saved, gradient);
  Free(gradient);
  Free(saved.convolved);
  return input_gradient;
}

VariableIndex Generator::BackwardConvolution(const Saved& saved, VariableIndex gradient) {
  const Layer& layer = *saved.layer;
  const VariableIndex weight_gradient = Malloc(layer.weight_bytes);
  gradients_.emplace_back(weight_gradient, layer.weight);
  MallocAndFree(layer.workspace_bytes);
  Operands writes = {weight_gradient};
  VariableIndex input_gradient = -1;
  if (saved.input != input_) {
    input_gradient = Malloc(SizeOf(saved.input));
    writes.push_back(input_gradient);
  }
  Exec("convolution_backward", Phase::kBackward, {gradient, saved.input, layer.weight}, writes);
  return input_gradient;
}

void Generator::Update() {
  for (const auto& [gradient, parameter] : gradients_) {
    const VariableIndex momentum = momenta_[static_cast<std::size_t>(parameter)];
    Exec("momentum_", Phase::kUpdate, {momentum, gradient}, {momentum});
    Exec("add_", Phase::kUpdate, {parameter, momentum}, {parameter});
  }
  for (const auto& [gradient, parameter] : gradients_) Free(gradient);
  gradients_.clear();
}

VariableIndex Generator::Declare(Bytes size_bytes, bool preexisting) {
  const auto index = static_cast<VariableIndex>(trace_.variables.size());
  trace_.variables.push_back({.id = index, .size_bytes = size_bytes, .preexisting = preexisting});
  return index;
}

VariableIndex Generator::Malloc(Bytes size_bytes) {
  const VariableIndex index = Declare(size_bytes, /*preexisting=*/false);
  trace_.events.push_back({EventKind::kMalloc, index});
  return index;
}

void Generator::Free(VariableIndex variable) {
  trace_.events.push_back({EventKind::kFree, variable});
}

/// Allocates and frees at once, before an op: how a workspace of that op is recorded.
void Generator::MallocAndFree(Bytes size_bytes) {
  if (size_bytes > 0) Free(Malloc(size_bytes));
}

void Generator::Exec(std::string_view name, Phase phase, const Operands& reads,
                     const Operands& writes) {
  constexpr Nanoseconds kLaunch = 4000;
  constexpr Bytes kBytesPerNanosecond = 2000;
  Op op;
  const auto known = std::find(trace_.op_names.begin(), trace_.op_names.end(), name);
  op.name = static_cast<std::int32_t>(known - trace_.op_names.begin());
  if (known == trace_.op_names.end()) trace_.op_names.emplace_back(name);
  op.phase = phase;
  op.first_operand = static_cast<std::int64_t>(trace_.operands.size());
  op.read_count = static_cast<std::int32_t>(reads.size());
  op.write_count = static_cast<std::int32_t>(writes.size());
  trace_.operands.insert(trace_.operands.end(), reads.begin(), reads.end());
  trace_.operands.insert(trace_.operands.end(), writes.begin(), writes.end());
  Bytes touched = 0;
  for (const VariableIndex variable : reads) touched += SizeOf(variable);
  for (const VariableIndex variable : writes) touched += SizeOf(variable);
  const bool is_heavy = name.starts_with("convolution");
  const Nanoseconds usual = kLaunch + touched / kBytesPerNanosecond * (is_heavy ? 4 : 1);
  op.duration_ns = usual / 100 * jitter_.Between(97, 103);
  trace_.events.push_back({EventKind::kExec, static_cast<OpIndex>(trace_.ops.size())});
  trace_.ops.push_back(op);
}

}  // namespace

Trace GenerateTrace(const GenerateOptions& options) {
  constexpr Bytes kMaxScale = Bytes{1} << 40;
  PLIMSOLL_CHECK(options.layers >= 1, fmt::format("{} layers", options.layers));
  PLIMSOLL_CHECK(options.iterations >= 1, fmt::format("{} iterations", options.iterations));
  PLIMSOLL_CHECK(options.scale_bytes >= 1 && options.scale_bytes <= kMaxScale,
                 fmt::format("a scale of {} bytes", options.scale_bytes));
  return Generator(options).Run();
}

}  // namespace plimsoll::trace
