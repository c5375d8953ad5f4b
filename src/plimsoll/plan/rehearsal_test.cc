// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/rehearsal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/plan/schedule.h"

namespace plimsoll::plan {
namespace {

/// Absences for all of these gaps, in the order of the copy-out queue.
std::vector<Absence> AwayFor(const std::vector<Gap>& gaps) {
  std::vector<Absence> absences;
  for (const Gap& gap : gaps) absences.push_back({.gap = gap});
  std::sort(absences.begin(), absences.end(), [](const Absence& a, const Absence& b) {
    return std::pair(a.gap.after, a.gap.variable) < std::pair(b.gap.after, b.gap.variable);
  });
  return absences;
}

void ExpectAway(const Absence& absence, Position released, Position acquired) {
  EXPECT_EQ(absence.released, released);
  EXPECT_EQ(absence.acquired, acquired);
}

/// An activation x, written by the first op and read by the last, and scratch y in between, for
/// which it must leave: there is room for one of them only.
///
///     op     0    1     2    3    ...   n - 1
///     x      W──────────────────────────R      100 bytes, gap [1, n - 1)
///     y                 W                      100 bytes
Problem OneLeaves(std::initializer_list<Nanoseconds> durations) {
  Problem problem;
  problem.cyclic = false;
  const auto last = static_cast<OpIndex>(durations.size()) - 1;
  for (const Nanoseconds duration : durations) {
    const auto i = static_cast<OpIndex>(problem.ops.size());
    if (i == 0) {
      AddTimedOp(duration, {}, {0}, &problem);
    } else if (i == 2) {
      AddTimedOp(duration, {}, {1}, &problem);
    } else if (i == last) {
      AddTimedOp(duration, {0}, {}, &problem);
    } else {
      AddTimedOp(duration, {}, {}, &problem);
    }
  }
  AddVariable(100, 0, problem.period, &problem);
  AddVariable(100, 2, 3, &problem);
  return problem;
}

constexpr RehearsalOptions kRoomForOne = {.load_limit_bytes = 100};

TEST(RehearsalTest, WithoutAbsencesOpsFollowEachOther) {
  const Problem problem = OneLeaves({10, 20, 30, 40});
  std::vector<Absence> none;
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), kRoomForOne, &none), 100);
}

TEST(RehearsalTest, HidesACopyOutUnderTheOpsBehindIt) {
  //     compute    │0│─────── 1 ───────│─ 2 ─│─────── 3 ───────│4│
  //     copy out     ├──── x ────┤
  //     copy in                              ├──── x ────┤
  //     ns         0 10         110   160   180         280   330
  const Problem problem = OneLeaves({10, 150, 20, 150, 10});
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), kRoomForOne, &absences), 340);
  ASSERT_EQ(absences.size(), 1U);
  ExpectAway(absences[0], 2, 3);
}

TEST(RehearsalTest, AnOpThatNeedsTheBytesWaitsForTheCopyOut) {
  //     compute    │0│1│         │─ 2 ─│─────── 3 ───────│4│
  //     copy out     ├──── x ────┤
  //     copy in                        ├──── x ────┤
  //     ns         0 10 30      110   130         230   280
  const Problem problem = OneLeaves({10, 20, 20, 150, 10});
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), kRoomForOne, &absences), 290);
  ASSERT_EQ(absences.size(), 1U);
  ExpectAway(absences[0], 2, 3);
}

TEST(RehearsalTest, AnOpThatNeedsTheVariableWaitsForTheCopyIn) {
  // As before, but the last op follows 30 ns behind the one that has the bytes.
  const Problem problem = OneLeaves({10, 20, 20, 30, 10});
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), kRoomForOne, &absences), 110 + 20 + 100 + 10);
  ASSERT_EQ(absences.size(), 1U);
  ExpectAway(absences[0], 2, 3);
}

/// x is needed 300 ns after its bytes are free again.
Problem LongWay() { return OneLeaves({10, 150, 20, 50, 50, 50, 50, 50, 50, 10}); }

TEST(RehearsalTest, ComesBackJustInTime) {
  //     compute    ... 2 │ 3 │ 4 │ 5 │ 6 │ 7 │ 8 │9│
  //     copy in                          ├── x ──┤      100 ns before it is needed
  const Problem problem = LongWay();
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), kRoomForOne, &absences), problem.iteration_ns());
  ASSERT_EQ(absences.size(), 1U);
  ExpectAway(absences[0], 2, 7);
}

TEST(RehearsalTest, ComesBackBeforeTheOpThatWouldMakeItLate) {
  // One byte more than fits under the last two ops.
  Problem problem = LongWay();
  problem.variables[0].size_bytes = 101;
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), {.load_limit_bytes = 101}, &absences),
            problem.iteration_ns());
  ASSERT_EQ(absences.size(), 1U);
  ExpectAway(absences[0], 2, 6);
}

TEST(RehearsalTest, ComesBackSoonerIfCopiesAreExpectedToTakeLonger) {
  const Problem problem = LongWay();
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
  RehearsalOptions options = kRoomForOne;
  options.prefetch = 2;
  Rehearse(problem, OneBytePerNs(), options, &absences);
  ExpectAway(absences[0], 2, 5);
}

TEST(RehearsalTest, ComesBackEarlyAsSoonAsItsBytesAreThere) {
  const Problem problem = LongWay();
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
  RehearsalOptions options = kRoomForOne;
  options.prefetch = kPrefetchEarly;
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), options, &absences), problem.iteration_ns());
  ASSERT_EQ(absences.size(), 1U);
  ExpectAway(absences[0], 2, 3);
}

TEST(RehearsalTest, ComesBackEarlyOverALinkThatTakesNoTime) {
  const Problem problem = LongWay();
  const Machine prompt = {"test", 0, 0, 1e18, 1e18, 1e18, 1e18};
  ASSERT_EQ(prompt.in_ns(100), 0);
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
  RehearsalOptions options = kRoomForOne;
  options.prefetch = kPrefetchEarly;
  Rehearse(problem, prompt, options, &absences);
  ASSERT_EQ(absences.size(), 1U);
  ExpectAway(absences[0], 2, 3);
}

TEST(RehearsalTest, ComesBackNoEarlierThanLaterOpsLeaveRoom) {
  //     op     0    1    2    3    4    5    6
  //     x      W─────────────────────────────R
  //     y                W         W                there is room at 3, but not at 4
  Problem problem = OneLeaves({10, 150, 20, 200, 20, 200, 10});
  problem.operands.push_back({1, 0});
  problem.ops[4].first_operand = 3;
  problem.ops[4].write_count = 1;
  problem.variables[1].end = 5;
  problem.variables[1].begin = 2;
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
  RehearsalOptions options = kRoomForOne;
  options.prefetch = kPrefetchEarly;
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), options, &absences), problem.iteration_ns());
  ASSERT_EQ(absences.size(), 1U);
  ExpectAway(absences[0], 2, 5);
}

TEST(RehearsalTest, RemovesWhatIsNeededAgainBeforeItHasLeft) {
  // Room for both: nobody waits for the copy out, and it is not over when x is needed.
  const Problem problem = OneLeaves({10, 20, 20, 30, 10});
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), {.load_limit_bytes = 200}, &absences),
            problem.iteration_ns());
  EXPECT_TRUE(absences.empty());
}

TEST(RehearsalTest, KeepsWhatIsOfUseBesideWhatIsNot) {
  //     op     0    1    2    3    4    5    6
  //     u      W─────────R                          100 bytes: it cannot be gone in time
  //     x                W───────────────────R      100 bytes: it must be, and its copy queues up
  //     y                          W                200 bytes, room for 200
  Problem problem;
  problem.cyclic = false;
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(20, {}, {}, &problem);
  AddTimedOp(10, {0}, {1}, &problem);
  AddTimedOp(170, {}, {}, &problem);
  AddTimedOp(10, {}, {2}, &problem);
  AddTimedOp(100, {}, {}, &problem);
  AddTimedOp(10, {1}, {}, &problem);
  AddVariable(100, 0, 3, &problem);
  AddVariable(100, 2, 7, &problem);
  AddVariable(200, 4, 5, &problem);
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0, 1}));
  ASSERT_EQ(absences.size(), 2U);
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), {.load_limit_bytes = 200}, &absences),
            problem.iteration_ns());
  ASSERT_EQ(absences.size(), 1U);
  EXPECT_EQ(absences[0].gap.variable, 1);
  ExpectAway(absences[0], 4, 5);
}

TEST(RehearsalTest, GoesAroundTheEndOfTheIteration) {
  //     op          0    1    2    3   │  0    1
  //     w          ░░░░  R────W ░░░░░░░│░░░░░  R      100 bytes, gap [3, 5)
  //     y           W                  │  W           100 bytes
  //
  // 100 ns of copying out are hidden under op 3; those of copying in begin behind op 0.
  Problem problem;
  AddTimedOp(50, {}, {0}, &problem);
  AddTimedOp(10, {1}, {}, &problem);
  AddTimedOp(10, {}, {1}, &problem);
  AddTimedOp(200, {}, {}, &problem);
  AddVariable(100, 0, 1, &problem);
  AddPersistent(100, &problem);
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {1}));
  ASSERT_EQ(absences.size(), 1U);
  EXPECT_EQ(absences[0].gap, (Gap{1, 2, 1, 3, 5}));
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), kRoomForOne, &absences), 270 + 100);
  ASSERT_EQ(absences.size(), 1U);
  ExpectAway(absences[0], 4, 5);
}

TEST(RehearsalTest, ComesBackForAnOpAtTheVeryBeginning) {
  //     op          0    1    2    3   │  0
  //     w           R────W ░░░░░░░░░░░░│  R      100 bytes, gap [2, 4): it ends with the iteration
  //     y                     W        │         100 bytes
  Problem problem;
  AddTimedOp(10, {1}, {}, &problem);
  AddTimedOp(10, {}, {1}, &problem);
  AddTimedOp(50, {}, {0}, &problem);
  AddTimedOp(200, {}, {}, &problem);
  AddVariable(100, 2, 3, &problem);
  AddPersistent(100, &problem);
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {1}));
  ASSERT_EQ(absences.size(), 1U);
  EXPECT_EQ(absences[0].gap, (Gap{1, 1, 0, 2, 4}));
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), kRoomForOne, &absences), 270 + 100);
  ASSERT_EQ(absences.size(), 1U);
  ExpectAway(absences[0], 2, 3);
}

TEST(RehearsalTest, CountsTheLapThatKnowsWhatTheOneBeforeLeavesBehind) {
  //     op          0    1    2    3    4  │
  //     x           W─────────R            │      100 bytes, gap [1, 2)
  //     y                W                 │      100 bytes
  //     w          ░░░░░░░░░░░░░░ W ░░░░░░░│      100 bytes, gap [4, 8)
  //
  // In the first lap w is away already, and op 0 begins at once. In all others it waits for w's
  // copy out: 10 + [x out] + 10 + [x in] + 10 + [w in] + 10 + (10 under [w out], 90 more of it).
  Problem problem;
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(10, {}, {1}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(10, {}, {2}, &problem);
  AddTimedOp(10, {}, {}, &problem);
  AddVariable(100, 0, 3, &problem);
  AddVariable(100, 1, 2, &problem);
  AddPersistent(100, &problem);
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0, 2}));
  ASSERT_EQ(absences.size(), 2U);
  EXPECT_EQ(Rehearse(problem, OneBytePerNs(), kRoomForOne, &absences), 440);
  ASSERT_EQ(absences.size(), 2U);
  ExpectAway(absences[0], 1, 2);
  ExpectAway(absences[1], 5, 8);
}

TEST(RehearsalTest, ALinkThatCannotKeepUpSetsThePace) {
  // Four weights, each of which may be away from its op to the same one of the next iteration, and
  // has time enough. But the link does not: 320 ns of copying out in 308 ns of ops.
  //
  //     op     0    1    2    3
  //     w0     W                       80 bytes each, room for three of the four
  //     w1          W
  //     w2               W
  //     w3                    W
  Problem problem;
  for (VariableIndex v = 0; v < 4; ++v) AddTimedOp(77, {}, {v}, &problem);
  for (VariableIndex v = 0; v < 4; ++v) AddPersistent(80, &problem);
  std::vector<Absence> absences = AwayFor(GapsOf(problem, {0, 1, 2, 3}));
  ASSERT_EQ(absences.size(), 4U);
  const Nanoseconds predicted =
      Rehearse(problem, OneBytePerNs(), {.load_limit_bytes = 240}, &absences);
  EXPECT_EQ(predicted, 320);
  EXPECT_EQ(absences.size(), 4U);
}

/// x leaves twice and is not written in between.
///
///     op     0    1    2    3    4
///     x      W─────────R─────────R      100 bytes, gaps [1, 2) and [3, 4)
///     y           W         W           100 bytes each, room for one of the three
Problem LeavesTwice() {
  Problem problem;
  problem.cyclic = false;
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(10, {}, {1}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(10, {}, {2}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddVariable(100, 0, 5, &problem);
  AddVariable(100, 1, 2, &problem);
  AddVariable(100, 3, 4, &problem);
  return problem;
}

TEST(RehearsalTest, WhatIsNotSavedLeavesAtOnce) {
  const Problem problem = LeavesTwice();
  for (const bool saves : {true, false}) {
    std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
    ASSERT_EQ(absences.size(), 2U);
    absences[1].saves = saves;
    EXPECT_EQ(Rehearse(problem, OneBytePerNs(), kRoomForOne, &absences), saves ? 450 : 350);
    ASSERT_EQ(absences.size(), 2U);
    ExpectAway(absences[0], 1, 2);
    ExpectAway(absences[1], 3, 4);
  }
}

TEST(RehearsalTest, CountsSizesRoundedUp) {
  // 100 bytes each take 128; with room for 255 one of them must go, with room for 256 none.
  const Problem problem = OneLeaves({10, 20, 20, 30, 10});
  for (const Bytes limit : {Bytes{255}, Bytes{256}}) {
    std::vector<Absence> absences = AwayFor(GapsOf(problem, {0}));
    Rehearse(problem, OneBytePerNs(), {.load_limit_bytes = limit, .alignment = 128}, &absences);
    EXPECT_EQ(absences.size(), limit == 255 ? 1U : 0U);
  }
}

TEST(RehearsalTest, RandomRehearsalsEndAndStayWithinTheirGaps) {
  int kept = 0;
  for (int c = 0; c < PlanCaseCount(3000); ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 7'000'000'000);
    const Problem problem = Unroll(RandomProblem(&random).Make());
    const std::vector<Gap> gaps = ListGaps(problem, 0);
    std::vector<Absence> absences = AwayFor(gaps);
    const std::vector<Bytes> load = LeastLoad(problem, {gaps});
    RehearsalOptions options;
    options.load_limit_bytes = *std::max_element(load.begin(), load.end()) + random.Between(0, 5);
    options.prefetch = random.OneIn(2) ? kPrefetchEarly : kPrefetchJustInTime;
    const Machine machine = RandomMachine(&random);
    const Nanoseconds predicted = Rehearse(problem, machine, options, &absences);
    // A rehearsal that is stuck is over too soon.
    ASSERT_GE(predicted, problem.iteration_ns()) << "case " << c;
    for (const Absence& absence : absences) {
      ASSERT_LE(absence.gap.begin, absence.released) << "case " << c;
      ASSERT_LT(absence.released, absence.acquired) << "case " << c;
      ASSERT_LE(absence.acquired, AbsenceEnd(problem, absence.gap)) << "case " << c;
    }
    kept += absences.empty() ? 0 : 1;
  }
  EXPECT_GT(kept, 0);
}

}  // namespace
}  // namespace plimsoll::plan
