// SPDX-License-Identifier: Apache-2.0
#include "cli/train_steps.h"

#include <memory>

#include "cli/interrupt.h"
#include "cli/train_log.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/nn/data.h"

namespace plimsoll::cli {

TrainedSteps TrainSteps(const ModelInput& model, const TrainStepsOptions& options,
                        TrainingDevice* on) {
  exec::ManagedOptions managed;
  exec::PlanningOptions& planning = managed.watch.planning;
  planning.planner = options.planner;
  planning.machine = on->machine;
  planning.limit_bytes = options.limit_bytes;
  planning.host_limit_bytes = options.host_limit_bytes;
  // Steps are few: training waits for its plan.
  managed.watch.plan_at_once = true;
  exec::ManagedDevice device(on->backend.get(), managed);
  const std::unique_ptr<nn::Dataset> data = nn::OpenData("", model.network, model.data, 1);
  nn::TrainOptions train;
  train.batch = model.batch;
  train.optimizer = model.optimizer;
  train.early_updates = model.early_updates;
  train.precision = model.precision;
  nn::Trainer trainer(&device, on->library.get(), model.network, train);
  TrainLog log;
  const Interrupt interrupt;
  while (log.size() < options.steps && !interrupt.requested()) {
    const nn::Batch batch = data->TrainBatch(trainer.step(), model.batch);
    const Stopwatch watch;
    StepRecord step;
    step.loss = static_cast<double>(trainer.Step(batch));
    step.ms = watch.seconds() * 1e3;
    step.NoteService(device.stats());
    log.Add(step);
  }
  const double typical_ms = log.TypicalMs();
  TrainedSteps result;
  result.samples_per_second =
      typical_ms > 0 ? 1e3 * static_cast<double>(model.batch) / typical_ms : 0;
  result.peak_footprint_bytes = device.stats().peak_footprint_bytes;
  result.planned_steps = log.CountPlanned();
  return result;
}

}  // namespace plimsoll::cli
