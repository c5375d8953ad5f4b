// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/edges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <optional>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/assemble.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/plan/random_plan_for_test.h"

namespace plimsoll::plan {
namespace {

/// Assembles a plan, puts its residencies at these offsets and draws its edges.
Plan Draw(const Problem& problem, const std::vector<Absence>& absences,
          const std::vector<Bytes>& host_offsets, const std::vector<Bytes>& offsets) {
  Plan plan = Assemble(problem, absences, host_offsets);
  EXPECT_EQ(plan.residencies.size(), offsets.size());
  for (std::size_t r = 0; r < offsets.size(); ++r) {
    Residency& residency = plan.residencies[r];
    residency.offset = offsets[r];
    plan.footprint_bytes = std::max(
        plan.footprint_bytes, offsets[r] + problem.variables[At(residency.variable)].size_bytes);
  }
  for (std::size_t k = 0; k < absences.size(); ++k) {
    const Bytes size = problem.variables[At(absences[k].gap.variable)].size_bytes;
    plan.host_bytes = std::max(plan.host_bytes, host_offsets[k] + size);
  }
  plan.limit_bytes = plan.footprint_bytes;
  plan.host_limit_bytes = plan.host_bytes;
  plan.machine = OneBytePerNs();
  DrawEdges(&plan);
  return plan;
}

void ExpectRight(const Plan& plan) {
  for (const PlanViolation& violation : CheckPlan(plan)) {
    ADD_FAILURE() << violation.message << "\n" << Dump(plan);
  }
}

using Waits = std::vector<Wait>;

/// x is away while y, and then z, are used.
///
///     op     0    1    2    3
///     x      W──────────────R      100 bytes; residencies 0, [0, 1), and 1, [3, 4)
///     y           W                60 bytes; residency 2
///     z                W           60 bytes; residency 3
///
/// Commands 0 to 3 are the ops, 4 is the copy out and 5 the copy in.
class EdgesTest : public testing::Test {
 protected:
  EdgesTest() {
    AddTimedOp(10, {}, {0}, &problem_);
    AddTimedOp(10, {}, {1}, &problem_);
    AddTimedOp(10, {}, {2}, &problem_);
    AddTimedOp(10, {0}, {}, &problem_);
    AddVariable(100, 0, 4, &problem_);
    AddVariable(60, 1, 2, &problem_);
    AddVariable(60, 2, 3, &problem_);
    absences_ = {{GapsOf(problem_, {0})[0], 1, 3, true}};
  }
  Plan DrawAt(const std::vector<Bytes>& offsets) const {
    return Draw(problem_, absences_, {0}, offsets);
  }

  Problem problem_;
  std::vector<Absence> absences_;
};

TEST_F(EdgesTest, FollowTheContent) {
  problem_.cyclic = false;
  const Plan plan = DrawAt({0, 100, 200, 300});
  ExpectRight(plan);
  EXPECT_EQ(plan.commands[4].waits, (Waits{{0, 0}})) << "what op 0 writes is copied out";
  EXPECT_EQ(plan.commands[5].waits, (Waits{{4, 0}})) << "what was copied out is copied in";
  EXPECT_EQ(plan.commands[3].waits, (Waits{{5, 0}})) << "op 3 reads what was copied in";
  for (const std::size_t op : {0U, 1U, 2U}) EXPECT_TRUE(plan.commands[op].waits.empty());
}

TEST_F(EdgesTest, ACopyOutWaitsForTheLastWriterOnly) {
  // Op 1 reads x as well; y is put where x was, z is not.
  problem_.cyclic = false;
  problem_.operands.push_back({0, 0});
  problem_.operands.push_back({1, 0});
  problem_.ops[1].first_operand = static_cast<std::int64_t>(problem_.operands.size()) - 2;
  problem_.ops[1].read_count = 1;
  problem_.variables[1] = {.size_bytes = 60, .begin = 1, .end = 3};
  absences_ = {{GapsOf(problem_, {0})[0], 2, 3, true}};
  const Plan plan = DrawAt({0, 0, 100, 0});
  ExpectRight(plan);
  EXPECT_EQ(plan.commands[4].waits, (Waits{{0, 0}})) << "while op 1 still reads";
  EXPECT_EQ(plan.commands[2].waits, (Waits{{4, 0}})) << "op 2 takes its bytes";
}

TEST_F(EdgesTest, ACopyInWaitsForReadersOfTheBytesThatItTakes) {
  // w leaves behind op 1, a reader, and x comes in where it was.
  //
  //     op     0    1    2    3    4
  //     w      W────R              R      60 bytes
  //     x      W              R           60 bytes
  Problem problem;
  problem.cyclic = false;
  AddTimedOp(10, {}, {0, 1}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(10, {}, {}, &problem);
  AddTimedOp(10, {1}, {}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddVariable(60, 0, 5, &problem);
  AddVariable(60, 0, 4, &problem);
  const std::vector<Absence> absences = {{GapsOf(problem, {1})[0], 1, 2, true},
                                         {GapsOf(problem, {0})[0], 2, 4, true}};
  // Residencies: w [0, 2), w [4, 5), x [0, 1), x [2, 4). Commands: x out 5 and in 6, w out 7, in 8.
  const Plan plan = Draw(problem, absences, {0, 60}, {0, 100, 200, 0});
  ExpectRight(plan);
  EXPECT_EQ(plan.commands[7].waits, (Waits{{0, 0}}));
  EXPECT_EQ(plan.commands[6].waits, (Waits{{1, 0}, {7, 0}})) << "w's last reader, and its copy";
}

TEST_F(EdgesTest, ReachBackIfTheBytesAreOnesOwn) {
  // Nobody else has them; but op 0 writes again what the copy out of the iteration before reads.
  const Plan plan = DrawAt({0, 100, 200, 300});
  ExpectRight(plan);
  EXPECT_EQ(plan.commands[0].waits, (Waits{{4, 1}}));
  EXPECT_EQ(plan.commands[5].waits, (Waits{{3, 1}, {4, 0}}));
  EXPECT_TRUE(plan.commands[1].waits.empty());
}

TEST_F(EdgesTest, WhoTakesBytesWaitsForTheCopyOut) {
  const Plan plan = DrawAt({0, 100, 0, 300});
  ExpectRight(plan);
  EXPECT_EQ(plan.commands[1].waits, (Waits{{4, 0}}));
  EXPECT_TRUE(plan.commands[2].waits.empty());
}

TEST_F(EdgesTest, ACopyInWaitsForWhoHadItsBytes) {
  const Plan plan = DrawAt({0, 100, 300, 100});
  ExpectRight(plan);
  EXPECT_EQ(plan.commands[5].waits, (Waits{{2, 0}, {4, 0}}));
  // y had other bytes, and z follows an op at its own.
  EXPECT_TRUE(plan.commands[1].waits.empty());
  EXPECT_TRUE(plan.commands[2].waits.empty());
}

TEST_F(EdgesTest, ACopyInWaitsForTheLastOfThoseThatHadItsBytes) {
  //     offset   0        60       100      160
  //     x        ├─────────────────┤
  //     y        ├────────┤
  //     z                 ├─────────────────┤
  const Plan plan = DrawAt({0, 0, 0, 60});
  ExpectRight(plan);
  EXPECT_EQ(plan.commands[5].waits, (Waits{{2, 0}, {4, 0}}));
  EXPECT_EQ(plan.commands[1].waits, (Waits{{4, 0}}));
  EXPECT_EQ(plan.commands[2].waits, (Waits{{4, 0}})) << "z has bytes that y has not";
}

TEST_F(EdgesTest, OneByteInCommonIsEnough) {
  for (const Bytes offset : {Bytes{99}, Bytes{100}}) {
    const Plan plan = DrawAt({0, 200, offset, 300});
    ExpectRight(plan);
    EXPECT_EQ(plan.commands[1].waits, offset == 99 ? (Waits{{4, 0}}) : (Waits{}));
  }
}

TEST_F(EdgesTest, BytesThatAreTakenAgainInTheNextIterationAreWaitedForThere) {
  // x goes to the bytes of z, which had them before in this iteration, and leaves them at its end:
  // the op that writes z runs long after the one that reads x.
  const Plan plan = DrawAt({0, 200, 100, 200});
  ExpectRight(plan);
  EXPECT_EQ(plan.commands[5].waits, (Waits{{2, 0}, {4, 0}}));
  EXPECT_TRUE(plan.commands[2].waits.empty());
}

TEST(EdgesAroundTest, BytesGoFromTheEndOfAnIterationToTheBeginningOfTheNext) {
  //     op     0    1    2   │  0    1
  //     w           W ░░░░░░░│░░░░░  W      100 bytes; away for [2, 4)
  //     y      W             │  W           100 bytes, at the same bytes
  //
  // Commands 0 to 2 are the ops, 3 is the copy out, and 4 the copy in, which begins at position 1.
  Problem problem;
  AddTimedOp(10, {}, {1}, &problem);
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(10, {}, {}, &problem);
  AddPersistent(100, &problem);
  AddVariable(100, 0, 1, &problem);
  const std::vector<Gap> gaps = GapsOf(problem, {0});
  ASSERT_EQ(gaps.size(), 1U);
  const Plan plan = Draw(problem, {{gaps[0], 2, 4, true}}, {0}, {0, 0});
  ExpectRight(plan);
  EXPECT_EQ(plan.commands[0].waits, (Waits{{3, 1}})) << "w left an iteration ago";
  EXPECT_EQ(plan.commands[4].waits, (Waits{{0, 0}, {3, 1}}));
  EXPECT_EQ(plan.commands[1].waits, (Waits{{4, 0}}));
  EXPECT_EQ(plan.commands[3].waits, (Waits{{1, 0}}));
}

TEST(EdgesAroundTest, ADroppedResidencyIsWaitedForByItsLastOp) {
  //     op     0    1    2    3    4
  //     x      W─────────R─────────R      100 bytes; saved once, dropped behind op 2
  //     y           W         W           100 bytes each, at the same bytes
  //
  // Commands 0 to 4 are the ops, 5 is the copy out, 6 and 7 are the copies in.
  Problem problem;
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(10, {}, {1}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(10, {}, {2}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddVariable(100, 0, 5, &problem);
  AddVariable(100, 1, 2, &problem);
  AddVariable(100, 3, 4, &problem);
  const std::vector<Gap> gaps = GapsOf(problem, {0});
  ASSERT_EQ(gaps.size(), 2U);
  const Plan plan =
      Draw(problem, {{gaps[0], 1, 2, true}, {gaps[1], 3, 4, false}}, {0, 0}, {0, 0, 0, 0, 0});
  ExpectRight(plan);
  EXPECT_TRUE(plan.commands[3].waits.empty()) << "two ops need no edge";
  EXPECT_EQ(plan.commands[6].waits, (Waits{{1, 0}, {5, 0}}));
  EXPECT_EQ(plan.commands[7].waits, (Waits{{3, 0}, {5, 0}}));
}

TEST(EdgesRandomTest, OfRandomPlansAreEnough) {
  int edges = 0;
  int superfluous = 0;
  for (int c = 0; c < PlanCaseCount(1000); ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 9'000'000'000);
    const std::optional<Plan> plan = RandomPlan(&random);
    if (!plan) continue;
    ASSERT_TRUE(CheckPlan(*plan).empty()) << "case " << c << "\n" << Dump(*plan);
    for (std::size_t k = 0; k < plan->commands.size(); ++k) {
      const Waits& waits = plan->commands[k].waits;
      std::array<int, kQueues> of_queue{};
      for (std::size_t w = 0; w < waits.size(); ++w) {
        const Queue queue = plan->commands[At(waits[w].command)].queue;
        ASSERT_EQ(++of_queue[static_cast<std::size_t>(queue)], 1) << "case " << c;
        ASSERT_NE(queue, plan->commands[k].queue) << "case " << c << ": queues are in order";
        ASSERT_GE(waits[w].lag, 0) << "case " << c;
        Plan without = *plan;
        without.commands[k].waits.erase(without.commands[k].waits.begin() +
                                        static_cast<std::ptrdiff_t>(w));
        superfluous += CheckPlan(without, 1).empty() ? 1 : 0;
        ++edges;
      }
    }
  }
  std::cout << superfluous << " of " << edges << " edges follow from others\n";
  // No pass takes away what follows from others; but most edges must be needed.
  EXPECT_LT(superfluous, edges / 2);
}

}  // namespace
}  // namespace plimsoll::plan
