// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/model_input.h"
#include "cli/training_device.h"
#include "plimsoll/exec/device.h"
#include "plimsoll/nn/trainer.h"

namespace plimsoll::cli {

/// What `train` trains: a network, or k-means.
class Trainee {
 public:
  virtual ~Trainee() = default;
  Trainee() = default;
  Trainee(const Trainee&) = delete;
  Trainee& operator=(const Trainee&) = delete;

  /// One line: what it is, and on which data.
  virtual std::string Describe() const = 0;
  virtual std::string name() const = 0;
  virtual std::int64_t batch() const = 0;
  /// The peak load of an iteration, and its largest op, known before anything runs.
  virtual Bytes peak_bytes() const = 0;
  virtual LargestOp largest_op() const = 0;

  /// Allocates what is persistent. The device outlives it.
  virtual void Begin(exec::Device* device) = 0;
  /// Makes the data of the next iteration.
  virtual void Prepare() {}
  /// One iteration; returns what it minimises. REQUIRES: Begin(), Prepare().
  virtual double Step() = 0;
  virtual std::int64_t steps() const = 0;
  /// Over so many batches of held-out data; nothing if there is none.
  virtual std::optional<nn::Evaluation> Evaluate(std::int64_t batches) = 0;
  virtual bool has_checkpoints() const = 0;
  /// REQUIRES: has_checkpoints().
  virtual void Load(const std::string& path) = 0;
  virtual void Save(const std::string& path) = 0;
};

struct TraineeOptions {
  std::string data;  ///< Empty for synthetic data.
  float learning_rate = 0.05F;
  std::uint64_t seed = 1;
  bool keeps_batch = false;  ///< One batch, which stays on the device.
  /// Whether ops are measured one by one at first, so that plans need not rely on what they take
  /// while memory is served on demand.
  bool profiles = false;
};

/// Kernels are those of the device, which outlives the trainee. Throws CLI::ValidationError for an
/// unknown model, InputError for bad files.
std::unique_ptr<Trainee> OpenTrainee(const ModelSettings& model, const TraineeOptions& options,
                                     const TrainingDevice& device);

}  // namespace plimsoll::cli
