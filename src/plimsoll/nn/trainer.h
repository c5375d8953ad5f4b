// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/exec/device.h"
#include "plimsoll/nn/batch.h"
#include "plimsoll/nn/lowering.h"
#include "plimsoll/nn/profile.h"
#include "plimsoll/nn/runner.h"

namespace plimsoll::nn {

/// How the learning rate goes on.
enum class Schedule : std::uint8_t {
  kConstant,
  kCosine,  ///< Down to zero at `schedule_steps`.
  kSteps,   ///< A tenth of it from half of `schedule_steps` on, a hundredth from three quarters.
};

struct TrainOptions {
  std::int64_t batch = 1;  ///< Of the program that is made at once; others as they come.
  Optimizer optimizer = Optimizer::kSgd;
  float learning_rate = 0.05F;
  Schedule schedule = Schedule::kConstant;
  std::int64_t warmup_steps = 0;    ///< Over which the rate rises from zero.
  std::int64_t schedule_steps = 0;  ///< The length of the run, as the schedule sees it.
  float momentum = 0.9F;
  float weight_decay = 0;  ///< Of all parameters.
  Precision precision = Precision::kFloat32;
  std::uint64_t seed = 1;
  bool early_updates = true;  ///< As in LoweringOptions.
  /// Whether the batch of the first step stays on the device, and is that of all steps: for
  /// measuring the device alone.
  bool keeps_batch = false;
  /// What it has measured, ops are known to take: a device then does not measure them as they run.
  /// If there is one, it outlives the trainer.
  const Profiler* profiler = nullptr;
  /// Whether branches are left out at random, where a network has them.
  bool stochastic_depth = true;
};

/// Returns the rate of a step, which counts from 1.
float LearningRate(const TrainOptions& options, std::int64_t step);

struct Evaluation {
  float loss = 0;  ///< The mean over rows.
  std::int64_t correct = 0;
  std::int64_t rows = 0;  ///< That have labels.
};

/// Trains a network on a device. Says before each step and each evaluation that an iteration
/// begins: EndIteration("train"), EndIteration("evaluate"), with the batch behind it, as in "train
/// 8", if that is not the one of the options, and with a number for the branches that are there,
/// where a network has them. Not thread-safe.
class Trainer {
 public:
  /// Allocates and initialises what is persistent. Keeps references: all three outlive it. Throws
  /// OutOfMemory, and what Lower() throws; nothing stays allocated then.
  Trainer(exec::Device* device, KernelLibrary* library, const Network& network,
          const TrainOptions& options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Trains on a batch and returns its loss. Throws Error if the batch is not of the network's
  /// shape; what the device throws leaves no blocks behind.
  float Step(const Batch& batch);
  /// Computes loss and right answers, without training.
  Evaluation Evaluate(const Batch& batch);

  /// Steps so far; set by whoever loads a checkpoint.
  std::int64_t step() const { return step_; }
  void set_step(std::int64_t step) { step_ = step; }

  const Network& network() const { return network_; }
  const TrainOptions& options() const { return options_; }
  /// The persistent slots, in order: parameters, statistics among them, then moments.
  std::span<const Slot> persistent_slots() const;
  /// Reads or writes one of them. Waits for the device.
  std::vector<float> ReadPersistent(SlotIndex slot);
  void WritePersistent(SlotIndex slot, std::span<const float> values);
  /// Reads all parameters, statistics included, in the order of the network.
  std::vector<std::vector<float>> ReadParameters();

  /// Sees the gradient of each parameter right before the op that updates it. The device sees
  /// downloads then.
  using GradientHook = std::function<void(ParameterIndex, std::span<const float>)>;
  void set_gradient_hook(GradientHook hook) { gradient_hook_ = std::move(hook); }

  /// The program for a batch, with all branches.
  const Program& ProgramFor(std::int64_t batch, bool train);
  /// Which branches the next step has; empty if all, always.
  std::vector<bool> NextBranches() const;

 private:
  struct Cached {
    std::int64_t batch;
    bool train;
    std::vector<bool> branches;
    Program program;
  };

  const Program& Find(std::int64_t batch, bool train, std::vector<bool> branches);
  void Initialize();
  void CheckBatch(const Batch& batch) const;
  void Upload(const Program& program, const Batch& batch, SlotIndex slot, exec::Block block);
  void BeginIteration(std::string_view mode, std::int64_t batch, const std::vector<bool>& branches);

  exec::Device& device_;
  KernelLibrary& library_;
  const Network& network_;
  const TrainOptions options_;
  const std::int64_t vocabulary_;
  std::list<Cached> programs_;  // The latest first.
  std::vector<Slot> slots_;     // Persistent ones.
  std::vector<exec::Block> blocks_;
  std::int64_t step_ = 0;
  bool batch_is_there_ = false;
  GradientHook gradient_hook_;
};

/// The first values of a parameter: the same for a seed and a place in the network, on every
/// machine but for the last bits of its logarithm.
std::vector<float> InitialValues(const Parameter& parameter, ParameterIndex index,
                                 std::uint64_t seed);

}  // namespace plimsoll::nn
