// SPDX-License-Identifier: Apache-2.0
#include "cli/train_steps.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "cli/interrupt.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/nn/data.h"

namespace plimsoll::cli {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

TrainedSteps TrainSteps(const ModelInput& model, TrainingDevice* on, Bytes limit_bytes,
                        const std::string& planner, std::int64_t steps) {
  exec::ManagedOptions managed;
  exec::PlanningOptions& planning = managed.watch.planning;
  planning.planner = planner;
  planning.machine = on->machine;
  planning.limit_bytes = limit_bytes;
  // Steps are few: training waits for its plan.
  managed.watch.plan_at_once = true;
  exec::ManagedDevice device(on->backend.get(), managed);
  const std::unique_ptr<nn::Dataset> data = nn::OpenData("", model.network, model.data, 1);
  nn::TrainOptions train;
  train.batch = model.batch;
  train.optimizer = model.optimizer;
  train.precision = model.precision;
  nn::Trainer trainer(&device, on->library.get(), model.network, train);
  std::vector<double> all;
  std::vector<double> planned;
  const Interrupt interrupt;
  bool was_planned = false;
  while (std::ssize(all) < steps && !interrupt.requested()) {
    const nn::Batch batch = data->TrainBatch(trainer.step(), model.batch);
    const Stopwatch watch;
    trainer.Step(batch);
    all.push_back(watch.seconds());
    const bool is_planned = device.stats().service == exec::Service::kPlanned;
    if (is_planned && was_planned) planned.push_back(all.back());
    was_planned = is_planned;
  }
  const double seconds = Median(planned.empty() ? all : planned);
  TrainedSteps result;
  result.samples_per_second = seconds > 0 ? static_cast<double>(model.batch) / seconds : 0;
  result.peak_footprint_bytes = device.stats().peak_footprint_bytes;
  result.planned_steps = std::ssize(planned);
  return result;
}

}  // namespace plimsoll::cli
