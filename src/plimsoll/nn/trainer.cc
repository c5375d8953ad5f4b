// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"
#include "plimsoll/nn/bfloat16.h"
#include "plimsoll/nn/random.h"

namespace plimsoll::nn {
namespace {

/// The smallest vocabulary of all embeddings; their input is that of the network.
std::int64_t VocabularyOf(const Network& network) {
  std::int64_t vocabulary = std::numeric_limits<std::int32_t>::max();
  for (const Layer& layer : network.layers) {
    if (layer.kind != LayerKind::kEmbedding) continue;
    const auto table = static_cast<std::size_t>(layer.parameters[0]);
    vocabulary = std::min(vocabulary, network.parameters[table].shape[0]);
  }
  return vocabulary;
}

/// Programs that are kept: batches, modes, and patterns of branches, which hardly recur.
constexpr std::size_t kMaxPrograms = 12;

constexpr std::uint64_t kBranchStream = 0xb7a9c4;

}  // namespace

float LearningRate(const TrainOptions& options, std::int64_t step) {
  const double rate = options.learning_rate;
  if (step <= options.warmup_steps) {
    return static_cast<float>(rate * static_cast<double>(step) /
                              static_cast<double>(options.warmup_steps));
  }
  if (options.schedule == Schedule::kConstant || options.schedule_steps <= options.warmup_steps) {
    return options.learning_rate;
  }
  const double done =
      std::min(1.0, static_cast<double>(step - 1 - options.warmup_steps) /
                        static_cast<double>(options.schedule_steps - options.warmup_steps));
  if (options.schedule == Schedule::kCosine) {
    return static_cast<float>(rate * 0.5 * (1 + std::cos(std::numbers::pi * done)));
  }
  return static_cast<float>(rate * (done < 0.5 ? 1 : done < 0.75 ? 0.1 : 0.01));
}

std::vector<float> InitialValues(const Parameter& parameter, ParameterIndex index,
                                 std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(Count(parameter.shape)),
                            parameter.initializer.value);
  Random random(MixSeeds(seed, static_cast<std::uint64_t>(index)));
  const double scale = parameter.initializer.value;
  switch (parameter.initializer.kind) {
    case Initializer::Kind::kConstant:
      break;
    case Initializer::Kind::kNormal:
      for (float& value : values) value = static_cast<float>(scale * random.Normal());
      break;
    case Initializer::Kind::kUniform:
      for (float& value : values) value = static_cast<float>(scale * (2 * random.Uniform() - 1));
      break;
  }
  return values;
}

Trainer::Trainer(exec::Device* device, KernelLibrary* library, const Network& network,
                 const TrainOptions& options)
    : device_(*device),
      library_(*library),
      network_(network),
      options_(options),
      vocabulary_(VocabularyOf(network)) {
  const Program& program = ProgramFor(options.batch, /*train=*/true);
  for (const Slot& slot : program.slots) {
    if (IsPersistent(slot.role)) slots_.push_back(slot);
  }
  blocks_ = AllocatePersistent(device, program);
  try {
    Initialize();
  } catch (...) {
    for (const exec::Block block : blocks_) device_.Free(block);
    throw;
  }
}

Trainer::~Trainer() {
  try {
    for (const exec::Block block : blocks_) device_.Free(block);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // The device is broken, which whoever used it last has been told.
  }
}

void Trainer::Initialize() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].role == Role::kBatch) continue;
    const Parameter& parameter = network_.parameters[static_cast<std::size_t>(slots_[i].parameter)];
    Initializer initializer = parameter.initializer;
    if (slots_[i].role == Role::kMomentum || slots_[i].role == Role::kVariance) {
      initializer = Constant(0);
    }
    if (initializer.kind != Initializer::Kind::kConstant) {
      WritePersistent(static_cast<SlotIndex>(i),
                      InitialValues(parameter, slots_[i].parameter, options_.seed));
      continue;
    }
    OpSpec fill;
    fill.kind = OpKind::kFill;
    fill.writes.push_back({parameter.shape});
    fill.attributes.scale = initializer.value;
    const Kernel kernel = library_.Prepare(fill);
    PLIMSOLL_CHECK(kernel.workspace_bytes == 0, "fill needs no workspace");
    exec::Function function;
    if (kernel.run) {
      function = [run = kernel.run](const exec::Launch& launch) { run(launch, {}); };
    }
    device_.Exec({.name = Name(fill.kind),
                  .phase = trace::Phase::kUpdate,
                  .traits = TraitsOf(fill.kind),
                  .expected_ns = kernel.expected_ns},
                 {}, std::array{blocks_[i]}, std::move(function));
  }
}

const Program& Trainer::ProgramFor(std::int64_t batch, bool train) {
  return Find(batch, train, {});
}

const Program& Trainer::Find(std::int64_t batch, bool train, std::vector<bool> branches) {
  const auto found = std::find_if(programs_.begin(), programs_.end(), [&](const Cached& cached) {
    return cached.batch == batch && cached.train == train && cached.branches == branches;
  });
  if (found != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, found);
    return programs_.front().program;
  }
  LoweringOptions lowering{.batch = batch,
                           .train = train,
                           .early_updates = options_.early_updates,
                           .optimizer = options_.optimizer,
                           .momentum = options_.momentum,
                           .weight_decay = options_.weight_decay,
                           .precision = options_.precision,
                           .keeps_batch = options_.keeps_batch,
                           .active_branches = branches};
  Program program = Lower(network_, lowering, &library_);
  if (options_.profiler != nullptr) SetKnownTimes(*options_.profiler, &program);
  programs_.push_front({batch, train, std::move(branches), std::move(program)});
  if (programs_.size() > kMaxPrograms) programs_.pop_back();
  return programs_.front().program;
}

std::vector<bool> Trainer::NextBranches() const {
  std::vector<bool> active;
  if (!options_.stochastic_depth) return active;
  Random random(
      MixSeeds(MixSeeds(options_.seed, kBranchStream), static_cast<std::uint64_t>(step_ + 1)));
  for (const Branch& branch : network_.branches) {
    active.push_back(random.Uniform() < static_cast<double>(branch.survival));
  }
  return active;
}

void Trainer::CheckBatch(const Batch& batch) const {
  const Tensor input = network_.input_tensor();
  const bool is_text = input.type == ElementType::kInt;
  const std::size_t got = is_text ? batch.tokens.size() : batch.values.size();
  const auto size = static_cast<std::size_t>(batch.size);
  if (batch.size <= 0 || got != size * static_cast<std::size_t>(input.count())) {
    throw Error(fmt::format("{}: a batch of {} samples with {} {}; expected {} each ({})",
                            network_.name, batch.size, got, is_text ? "tokens" : "values",
                            input.count(), FormatShape(input.shape)));
  }
  const std::int64_t labels = network_.label_tensor().count();
  if (batch.labels.size() != size * static_cast<std::size_t>(labels)) {
    throw Error(fmt::format("{}: a batch of {} samples with {} labels; expected {} each",
                            network_.name, batch.size, batch.labels.size(), labels));
  }
  for (const std::int32_t label : batch.labels) {
    if (label < network_.classes) continue;
    throw Error(fmt::format("{}: the label {} is beyond the {} classes", network_.name, label,
                            network_.classes));
  }
  for (const std::int32_t token : batch.tokens) {
    if (token >= 0 && token < vocabulary_) continue;
    throw Error(fmt::format("{}: the token {} is not of the vocabulary, 0 to {}", network_.name,
                            token, vocabulary_ - 1));
  }
}

void Trainer::Upload(const Program& program, const Batch& batch, SlotIndex slot,
                     exec::Block block) {
  const Bytes bytes = program.slots[static_cast<std::size_t>(slot)].size_bytes;
  const void* data = batch.labels.data();
  std::vector<std::uint16_t> rounded;
  if (slot == program.input && !batch.values.empty() &&
      options_.precision == Precision::kBfloat16) {
    rounded.resize(batch.values.size());
    std::transform(batch.values.begin(), batch.values.end(), rounded.begin(), ToBfloat16);
    data = rounded.data();
  } else if (slot == program.input) {
    data = batch.values.empty() ? static_cast<const void*>(batch.tokens.data())
                                : static_cast<const void*>(batch.values.data());
  }
  device_.Write(block, data, bytes);
}

void Trainer::BeginIteration(std::string_view mode, std::int64_t batch,
                             const std::vector<bool>& branches) {
  std::string name(mode);
  if (batch != options_.batch) name += fmt::format(" {}", batch);
  if (!branches.empty()) {
    std::uint64_t hash = 0;
    for (const bool there : branches) hash = MixSeeds(hash, there ? 1 : 2);
    name += fmt::format(" {:x}", hash);
  }
  device_.EndIteration(name);
}

float Trainer::Step(const Batch& batch) {
  CheckBatch(batch);
  const std::vector<bool> branches = NextBranches();
  const Program& program = Find(batch.size, /*train=*/true, branches);
  const StepScalars scalars{.seed = MixSeeds(options_.seed, static_cast<std::uint64_t>(step_ + 1)),
                            .learning_rate = LearningRate(options_, step_ + 1),
                            .step = step_ + 1};
  if (options_.keeps_batch && batch.size != options_.batch) {
    throw Error(
        fmt::format("a batch of {} samples; one of {} is kept", batch.size, options_.batch));
  }
  if (options_.keeps_batch && !batch_is_there_) {
    for (const SlotIndex slot : {program.input, program.labels}) {
      Upload(program, batch, slot, blocks_[static_cast<std::size_t>(slot)]);
    }
    batch_is_there_ = true;
  }
  float loss = 0;
  RunHooks hooks;
  hooks.upload = [&](SlotIndex slot, exec::Block block) { Upload(program, batch, slot, block); };
  hooks.download = [&](SlotIndex, exec::Block block) { device_.Read(block, &loss, sizeof(loss)); };
  if (gradient_hook_) {
    hooks.before_update = [&](ParameterIndex parameter, exec::Block block) {
      const Parameter& of = network_.parameters[static_cast<std::size_t>(parameter)];
      std::vector<float> gradient(static_cast<std::size_t>(Count(of.shape)));
      device_.Read(block, gradient.data(), Tensor{of.shape}.size_bytes());
      gradient_hook_(parameter, gradient);
    };
  }
  BeginIteration("train", batch.size, branches);
  device_.SetConstants(std::as_bytes(std::span(&scalars, 1)));
  RunProgram(&device_, program, blocks_, scalars, hooks);
  ++step_;
  return loss;
}

Evaluation Trainer::Evaluate(const Batch& batch) {
  CheckBatch(batch);
  if (options_.keeps_batch) throw Error("an evaluation needs a batch of its own; keep none");
  const Program& program = Find(batch.size, /*train=*/false, {});
  Evaluation evaluation;
  float correct = 0;
  RunHooks hooks;
  hooks.upload = [&](SlotIndex slot, exec::Block block) { Upload(program, batch, slot, block); };
  hooks.download = [&](SlotIndex slot, exec::Block block) {
    device_.Read(block, slot == program.loss ? &evaluation.loss : &correct, sizeof(float));
  };
  BeginIteration("evaluate", batch.size, {});
  const StepScalars scalars;
  device_.SetConstants(std::as_bytes(std::span(&scalars, 1)));
  RunProgram(&device_, program, blocks_, scalars, hooks);
  evaluation.correct = std::llround(correct);
  evaluation.rows = std::count_if(batch.labels.begin(), batch.labels.end(),
                                  [](std::int32_t label) { return label >= 0; });
  return evaluation;
}

std::span<const Slot> Trainer::persistent_slots() const {
  // The batch comes last.
  const auto end = std::find_if(slots_.begin(), slots_.end(),
                                [](const Slot& slot) { return slot.role == Role::kBatch; });
  return {slots_.begin(), end};
}

std::vector<float> Trainer::ReadPersistent(SlotIndex slot) {
  const Bytes bytes = slots_.at(static_cast<std::size_t>(slot)).size_bytes;
  std::vector<float> values(static_cast<std::size_t>(bytes) / sizeof(float));
  device_.Read(blocks_[static_cast<std::size_t>(slot)], values.data(), bytes);
  return values;
}

void Trainer::WritePersistent(SlotIndex slot, std::span<const float> values) {
  const Bytes bytes = slots_.at(static_cast<std::size_t>(slot)).size_bytes;
  PLIMSOLL_CHECK(bytes == static_cast<Bytes>(values.size_bytes()),
                 fmt::format("{} bytes for a block of {}", values.size_bytes(), bytes));
  device_.Write(blocks_[static_cast<std::size_t>(slot)], values.data(), bytes);
}

std::vector<std::vector<float>> Trainer::ReadParameters() {
  std::vector<std::vector<float>> parameters;
  for (std::size_t i = 0; i < network_.parameters.size(); ++i) {
    parameters.push_back(ReadPersistent(static_cast<SlotIndex>(i)));
  }
  return parameters;
}

}  // namespace plimsoll::nn
