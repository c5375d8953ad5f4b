// SPDX-License-Identifier: Apache-2.0
// Where memory goes, and what becomes of variables.
#include "plimsoll/report/memory_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/report/decisions.h"
#include "plimsoll/report/sparkline.h"
#include "plimsoll/report/subject_for_test.h"

namespace plimsoll::report {
namespace {

using testing::ElementsAre;

TEST(MemoryViewTest, ARectangleLastsFromTheFirstToTheLastOfItsCommands) {
  const Subject subject = SwappingSubject();
  const std::vector<Rectangle> r = ListRectangles(subject, subject.drawn());
  ASSERT_EQ(r.size(), 4U);
  const auto span = [&](std::size_t k) { return std::pair(r[k].begin_ns, r[k].end_ns); };
  EXPECT_EQ(span(0), std::pair(Nanoseconds{0}, Nanoseconds{44000}));      // Never leaves.
  EXPECT_EQ(span(1), std::pair(Nanoseconds{0}, Nanoseconds{14000}));      // Up to its copy out.
  EXPECT_EQ(span(2), std::pair(Nanoseconds{30000}, Nanoseconds{44000}));  // From its copy in.
  EXPECT_EQ(span(3), std::pair(Nanoseconds{14000}, Nanoseconds{30000}));
}

TEST(MemoryViewTest, AMeasuredRunIsDrawnAtItsOwnTimes) {
  Subject subject = SwappingSubject();
  subject.measured = subject.predicted;
  // Op 1 and the copy in take 10 us longer.
  subject.measured->times = {
      64000, {0, 14000, 55000, 9000, 40000}, {9000, 40000, 64000, 14000, 55000}};
  EXPECT_EQ(&subject.drawn(), &subject.measured->times);
  const std::vector<Rectangle> r = ListRectangles(subject, subject.drawn());
  EXPECT_EQ(r[0].end_ns, 64000);
  EXPECT_EQ(r[2].begin_ns, 40000);
  EXPECT_EQ(r[2].end_ns, 64000);
  EXPECT_EQ(r[3].end_ns, 40000);
  EXPECT_EQ(ListStepsWithout(subject, subject.drawn())[2].time_ns, 55000);
  EXPECT_EQ(ListRectangles(subject, subject.predicted.times)[0].end_ns, 44000);
}

TEST(MemoryViewTest, ClocksThatDifferALittleDoNotMakeARectangleALapLonger) {
  Subject subject = SwappingSubject();
  subject.plan.problem.cyclic = true;
  subject.measured = subject.predicted;
  // By its clock, the copy in ends when op 2 runs already, and the copy out begins before op 0
  // ends.
  subject.measured->times.end_ns[4] += 200;
  subject.measured->times.start_ns[3] -= 200;
  const std::vector<Rectangle> r = ListRectangles(subject, subject.drawn());
  const std::vector<Rectangle> predicted = ListRectangles(subject, subject.predicted.times);
  for (std::size_t k = 0; k < r.size(); ++k) {
    EXPECT_EQ(r[k].begin_ns, predicted[k].begin_ns) << k;
    EXPECT_EQ(r[k].end_ns, predicted[k].end_ns) << k;
  }
}

TEST(MemoryViewTest, ScratchIsThereWhileItsOpRuns) {
  Subject subject = SwappingSubject();
  // Malloc'ed and freed before op 1, at position 4, runs.
  subject.plan.problem.variables.push_back({9, 1, 2, 3, plan::VariableKind::kWorkspace});
  subject.plan.residencies.push_back({3, 2, 3, 10});
  for (const bool planned : {true, false}) {
    if (!planned) subject.figures.limit_bytes.reset();
    const Rectangle r = ListRectangles(subject, subject.drawn()).back();
    EXPECT_EQ(r.begin_ns, 14000) << planned;
    EXPECT_EQ(r.end_ns, 30000) << planned;
  }
}

TEST(MemoryViewTest, StepsSayLoadAndHighestAddress) {
  const Subject subject = SwappingSubject();
  const auto steps =
      ListSteps(subject.plan, subject.drawn(), ListRectangles(subject, subject.drawn()));
  for (const MemoryStep& step : steps) EXPECT_EQ(step.load_bytes, 10);
  EXPECT_EQ(steps.front().time_ns, 0);
  EXPECT_EQ(steps.front().top_bytes, 10);
}

TEST(MemoryViewTest, WithoutAPlanEverythingIsThere) {
  const Subject subject = SwappingSubject();
  EXPECT_THAT(LoadByOp(subject.recorded), ElementsAre(10, 15, 10));
  const auto steps = ListStepsWithout(subject, subject.drawn());
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[1].time_ns, 14000);
  EXPECT_EQ(steps[1].load_bytes, 15);
}

TEST(DecisionsTest, SaysWhatBecomesOfEachVariableAndWhatItCosts) {
  const std::vector<DecisionRow> rows = ListDecisions(SwappingSubject());
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].choice, Choice::kKept);
  EXPECT_EQ(rows[1].choice, Choice::kSwapped);
  EXPECT_EQ(rows[1].reason, Reason::kWaitedFor);
  EXPECT_EQ(rows[1].gap_ns, 26000);
  EXPECT_EQ(rows[1].copies_ns, 10000);
  EXPECT_EQ(rows[1].stall_ns, 10000);
  EXPECT_EQ(rows[2].choice, Choice::kKept);
  EXPECT_EQ(rows[2].reason, Reason::kAlwaysInUse);
}

TEST(DecisionsTest, WithoutALimitEverythingStays) {
  Subject subject = SwappingSubject();
  subject.figures.limit_bytes.reset();
  EXPECT_EQ(ListDecisions(subject)[2].reason, Reason::kNoLimit);
}

TEST(SparklineTest, ShowsTheHighestOfEachColumn) {
  const std::vector<MemoryStep> steps = {{0, 10, 10}, {50, 80, 80}, {75, 0, 0}};
  EXPECT_EQ(DrawSparkline(steps, 100, 80, 4), "▁▁█ ");
  EXPECT_EQ(DrawSparkline({}, 0, 0, 3), "   ");
}

TEST(SparklineTest, TheTerminalGetsASmallVersion) {
  Subject subject = SwappingSubject();
  const std::string text = RenderForTerminal(subject);
  EXPECT_NE(text.find("Trains in 10 B instead of 15 B"), std::string::npos) << text;
  EXPECT_NE(text.find("without a plan"), std::string::npos) << text;
  EXPECT_EQ(text.find("measured"), std::string::npos) << text;
  subject.measured = subject.predicted;
  EXPECT_NE(RenderForTerminal(subject).find("with it, measured"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::report
