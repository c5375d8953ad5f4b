// SPDX-License-Identifier: Apache-2.0
#include "cli/train_log.h"

#include <gtest/gtest.h>

#include <vector>

namespace plimsoll::cli {
namespace {

using exec::Service;

TrainLog LogOf(const std::vector<StepRecord>& steps) {
  TrainLog log;
  for (const StepRecord& step : steps) log.Add(step);
  return log;
}

TEST(TrainLogTest, StepsInWhichGraphsAreTriedDoNotCount) {
  const TrainLog log = LogOf({{.ms = 90, .service = Service::kRecording},
                              {.ms = 50, .service = Service::kPlanned},
                              {.ms = 20, .service = Service::kPlanned, .settled = false},
                              {.ms = 30, .service = Service::kPlanned, .settled = false},
                              {.ms = 11, .service = Service::kPlanned},
                              {.ms = 10, .service = Service::kPlanned},
                              {.ms = 12, .service = Service::kPlanned}});
  EXPECT_EQ(log.TypicalMs(), 11);
  EXPECT_EQ(log.CountPlanned(), 5);
  EXPECT_EQ(log.PlannedMs(1), std::vector<double>{12});
}

TEST(TrainLogTest, TheyCountWhereThereAreNoOthers) {
  const TrainLog log = LogOf({{.ms = 90, .service = Service::kRecording},
                              {.ms = 50, .service = Service::kPlanned, .settled = false},
                              {.ms = 20, .service = Service::kPlanned, .settled = false},
                              {.ms = 30, .service = Service::kPlanned, .settled = false}});
  EXPECT_EQ(log.PlannedMs(), (std::vector<double>{20, 30}));
}

TEST(TrainLogTest, WithoutAPlanAllStepsCount) {
  const TrainLog log = LogOf({{.ms = 3, .service = Service::kRecording},
                              {.ms = 1, .service = Service::kRecording},
                              {.ms = 2, .service = Service::kDrifted}});
  EXPECT_EQ(log.TypicalMs(), 2);
  EXPECT_EQ(log.CountPlanned(), 0);
}

}  // namespace
}  // namespace plimsoll::cli
