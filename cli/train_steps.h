// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "cli/model_input.h"
#include "cli/training_device.h"

namespace plimsoll::cli {

/// What a few steps of training under a limit came to.
struct TrainedSteps {
  double samples_per_second =
      0;  ///< By the median of planned steps, if there are any, else of all.
  Bytes peak_footprint_bytes = 0;
  std::int64_t planned_steps = 0;
};

/// What they are taken under.
struct TrainStepsOptions {
  Bytes limit_bytes = 0;  ///< Of the network.
  Bytes host_limit_bytes = kMaxBytes;
  std::string planner = "joint";
  std::int64_t steps = 0;
};

/// Trains a model on synthetic data, under a limit.
TrainedSteps TrainSteps(const ModelInput& model, const TrainStepsOptions& options,
                        TrainingDevice* on);

}  // namespace plimsoll::cli
