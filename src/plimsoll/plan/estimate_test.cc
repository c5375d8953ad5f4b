// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/estimate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/plan/rehearsal.h"

namespace plimsoll::plan {
namespace {

Nanoseconds Estimate(const Script& script, Bytes limit_bytes,
                     const Machine& machine = OneBytePerNs()) {
  Estimator estimator;
  return estimator.Run(script, machine, limit_bytes);
}

Nanoseconds Rehearsed(const Script& script, Bytes limit_bytes,
                      const Machine& machine = OneBytePerNs()) {
  return Perform(script, machine, limit_bytes, kPrefetchJustInTime);
}

Script FourOps() {
  Script script;
  script.durations_ns = {10, 100, 100, 10};
  script.needs_bytes = {100, 100, 100, 100};
  return script;
}

TEST(EstimatorTest, WithoutExitsAnIterationIsTheSumOfItsOps) {
  EXPECT_EQ(Estimate(FourOps(), 100), 220);
}

TEST(EstimatorTest, CopiesThatHaveTimeAndRoomAreHidden) {
  Script script = FourOps();
  script.exits = {{.after = 0, .before = 3, .size_bytes = 50, .held_bytes = 50}};
  EXPECT_EQ(Estimate(script, 200), 220);
  EXPECT_EQ(Rehearsed(script, 200), 220);
}

TEST(EstimatorTest, AnOpWaitsForTheBytesOfACopyOut) {
  Script script = FourOps();
  script.exits = {{.after = 0, .before = 3, .size_bytes = 50, .held_bytes = 50}};
  // The second op has room only when the copy out is over, and the copy in begins when the third
  // has ended.
  EXPECT_EQ(Estimate(script, 100), 220 + 50 + 50);
  EXPECT_EQ(Rehearsed(script, 100), 220 + 50 + 50);
}

TEST(EstimatorTest, SaysHowHighTheLoadIsWithWhatIsStillLeaving) {
  Script script = FourOps();
  script.exits = {{.after = 0, .before = 3, .size_bytes = 50, .held_bytes = 50}};
  Estimator estimator;
  estimator.Run(script, OneBytePerNs(), 1000);
  EXPECT_EQ(estimator.highest_bytes(), 150);  // The second op runs beside the copy out.
  estimator.Run(script, OneBytePerNs(), 100);
  EXPECT_EQ(estimator.highest_bytes(), 100);  // It waits for it.
}

TEST(EstimatorTest, WhatWasWrittenEarlierIsGoneEarlier) {
  Script script = FourOps();
  script.exits = {{.after = 1, .before = 3, .size_bytes = 50, .held_bytes = 50}};
  // The third op has room when the copy out is over, the copy in begins when that op has ended.
  EXPECT_EQ(Estimate(script, 100), 220 + 50 + 50);
  EXPECT_EQ(Rehearsed(script, 100), 220 + 50 + 50);
  script.exits[0].written = 0;
  EXPECT_EQ(Estimate(script, 100), 220 + 50);
  EXPECT_EQ(Rehearsed(script, 100), 220 + 50);
}

TEST(EstimatorTest, ACopyThatOutlastsTheLastReaderIsWaitedFor) {
  Script script = FourOps();
  script.exits = {{.after = 1, .before = 3, .size_bytes = 130, .held_bytes = 50, .written = 0}};
  // It ends 30 ns behind the second op.
  EXPECT_EQ(Estimate(script, 100), 220 + 30 + 130);
  EXPECT_EQ(Rehearsed(script, 100), 220 + 30 + 130);
}

TEST(EstimatorTest, WhatWasThereBeforeGoesFromTheBeginningOn) {
  Script script = FourOps();
  script.exits = {{.after = 1, .before = 3, .size_bytes = 130, .held_bytes = 50, .written = -1}};
  // It ends 20 ns behind the second op, the copy in begins when the third has ended.
  EXPECT_EQ(Estimate(script, 100), 220 + 20 + 130);
  EXPECT_EQ(Rehearsed(script, 100), 220 + 20 + 130);
}

TEST(EstimatorTest, CopiesOutOfTheIterationBeforeAreInTheWay) {
  Script script = FourOps();
  script.exits = {{.after = 0, .before = 3, .size_bytes = 50, .held_bytes = 50},
                  {.after = 3, .before = 2, .around = true, .size_bytes = 100, .held_bytes = 0}};
  // The copy behind the first op waits for one behind the last op of the iteration before, which
  // takes 90 ns longer than the first op. The second op waits for the room that it makes, and the
  // last for what comes back when the third has ended.
  EXPECT_EQ(Rehearsed(script, 100), 220 + 90 + 50 + 50);
  EXPECT_EQ(Estimate(script, 100), 220 + 90 + 50 + 50);
}

TEST(EstimatorTest, CopiesCostOpsWhatTheMachineSays) {
  Script script = FourOps();
  script.exits = {{.after = 0, .before = 3, .size_bytes = 50, .held_bytes = 50}};
  Machine machine = OneBytePerNs();
  // The op behind the copy out, and the one that needs it back.
  machine.handover_ns = 7;
  EXPECT_EQ(Estimate(script, 200, machine), 220 + 7 + 7);
  EXPECT_EQ(Rehearsed(script, 200, machine), 220 + 7 + 7);
  machine.handover_ns = 0;
  machine.slowdown_by_out = 1.5;
  // 50 ns of copying, in which an op does 33.
  EXPECT_EQ(Rehearsed(script, 200, machine), 220 + 17);
  EXPECT_NEAR(static_cast<double>(Estimate(script, 200, machine)), 237, 10);
}

TEST(EstimatorTest, SaysWhatWasNeededBeforeItWasGone) {
  Script script = FourOps();
  script.exits = {{.after = 0, .before = 2, .size_bytes = 500, .held_bytes = 50}};
  Estimator estimator;
  EXPECT_EQ(estimator.Run(script, OneBytePerNs(), 200), 500);  // The link is busy for so long.
  EXPECT_EQ(estimator.useless(), std::vector<std::size_t>{0});
}

/// A forward and a backward phase; what leaves in one comes back in the other.
Script RandomScript(PlanRandom* random) {
  Script script;
  const std::int64_t half = random->Between(3, 30);
  for (std::int64_t k = 0; k < 2 * half; ++k) {
    script.durations_ns.push_back(random->Between(1, 200));
    script.needs_bytes.push_back(random->Between(500, 900));
  }
  for (std::int64_t k = 0; k + 1 < half; ++k) {
    if (random->OneIn(2)) continue;
    const Bytes size = random->Between(1, 100);
    script.exits.push_back({.after = static_cast<Slot>(k),
                            .before = static_cast<Slot>(2 * half - 1 - k),
                            .saves = !random->OneIn(8),
                            .size_bytes = size,
                            .held_bytes = size});
  }
  return script;
}

TEST(EstimatorTest, IsCloseToARehearsal) {
  int exact = 0;
  int close = 0;
  int close_with_costs = 0;
  const int cases = PlanCaseCount(2000);
  for (int k = 0; k < cases; ++k) {
    PlanRandom random(static_cast<std::uint64_t>(k));
    const Script script = RandomScript(&random);
    const Bytes limit = random.Between(900, 1400);
    const auto estimated = static_cast<double>(Estimate(script, limit));
    const auto rehearsed = static_cast<double>(Rehearsed(script, limit));
    exact += estimated == rehearsed ? 1 : 0;
    close += std::abs(estimated / rehearsed - 1) < 0.02 ? 1 : 0;
    Machine machine = OneBytePerNs();
    machine.slowdown_by_in = 1.1;
    machine.slowdown_by_out = 1.05;
    machine.handover_ns = 2;
    close_with_costs += std::abs(static_cast<double>(Estimate(script, limit, machine)) /
                                     static_cast<double>(Rehearsed(script, limit, machine)) -
                                 1) < 0.04
                            ? 1
                            : 0;
  }
  EXPECT_GT(exact, cases / 2);
  EXPECT_GT(close, cases * 9 / 10);
  EXPECT_GT(close_with_costs, cases * 9 / 10);
}

TEST(EstimatorTest, IsCloseToARehearsalInWhichCopiesInBeginEarly) {
  int close = 0;
  int other = 0;
  const int cases = PlanCaseCount(2000);
  for (int k = 0; k < cases; ++k) {
    PlanRandom random(static_cast<std::uint64_t>(k));
    const Script script = RandomScript(&random);
    const Bytes limit = random.Between(900, 1400);
    const double prefetch =
        random.OneIn(4) ? kPrefetchEarly : 1.5 + static_cast<double>(random.Between(0, 3));
    // Copies in that meet copies out take longer than just in time counts on.
    Machine machine = OneBytePerNs();
    machine.both_in_bytes_per_s /= 3;
    const auto estimated = static_cast<double>(Estimator().Run(script, machine, limit, prefetch));
    const auto rehearsed = static_cast<double>(Perform(script, machine, limit, prefetch));
    close += std::abs(estimated / rehearsed - 1) < 0.02 ? 1 : 0;
    const auto just_in_time = static_cast<double>(Estimate(script, limit, machine));
    other += estimated != just_in_time ? 1 : 0;
  }
  EXPECT_GT(close, cases * 9 / 10);
  EXPECT_GT(other, 0);
}

}  // namespace
}  // namespace plimsoll::plan
