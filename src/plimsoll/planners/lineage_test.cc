// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/planners/dropped_classes_internal.h"
#include "plimsoll/planners/lineage_internal.h"
#include "plimsoll/planners/network_for_test.h"

namespace plimsoll::planners {
namespace {

bool Never(Content /*content*/) { return false; }

TEST(LineageTest, WhatIsMadeInSeveralStepsCostsAllOfThem) {
  Network network;
  const auto a = network.Forward("batch_norm", 10, {0}, 1);
  network.Change("relu_", 3, a);
  const auto b = network.Forward("relu", 100, {a}, 1);
  network.Backward(1, {a, b}, 1);
  const plan::Problem problem = network.Finish();
  const Lineage lineage(problem);
  EXPECT_EQ(lineage.After(a, 0).version, 1);
  EXPECT_EQ(lineage.After(a, 1).version, 2);
  EXPECT_EQ(lineage.RebuildNs(lineage.After(a, 0), Never), 10);
  EXPECT_EQ(lineage.RebuildNs(lineage.After(a, 1), Never), 13);
  EXPECT_EQ(lineage.RebuildNs(lineage.After(b, 2), Never), 113);
  const auto has_a = [&](Content content) { return content.variable == a; };
  EXPECT_EQ(lineage.RebuildNs(lineage.After(b, 2), has_a), 100);
}

TEST(LineageTest, AContentIsThereUntilItIsOverwrittenOrFreed) {
  Network network;
  const auto a = network.Forward("batch_norm", 10, {0}, 1);
  network.Change("relu_", 3, a);
  const auto b = network.Forward("relu", 100, {a}, 1);
  network.Backward(1, {b}, 1);
  const plan::Problem problem = network.Finish();
  const Lineage lineage(problem);
  EXPECT_TRUE(lineage.IsThere({a, 1}, 1));
  EXPECT_FALSE(lineage.IsThere({a, 1}, 2));
  EXPECT_TRUE(lineage.IsThere({a, 2}, 2));
  EXPECT_FALSE(lineage.IsThere({a, 2}, 3)) << "freed behind its last use";
}

TEST(LineageTest, NothingIsRebuiltFromWhatIsGoneForGood) {
  Network network;
  const auto a = network.Forward("rnn", 10, {0}, 1);
  network.last_op().traits.replayable = false;
  const auto b = network.Forward("relu", 100, {a}, 1);
  const auto c = network.Forward("relu", 100, {b}, 1);
  network.Backward(1, {c}, 1);
  network.Backward(1, {b}, 1);
  const plan::Problem problem = network.Finish();
  const Lineage lineage(problem);
  EXPECT_FALSE(lineage.CanRebuild({a, 1}, 1));
  EXPECT_TRUE(lineage.CanRebuild({b, 1}, 1)) << "a is still there";
  EXPECT_FALSE(lineage.CanRebuild({b, 1}, 4)) << "a is freed, and its op must not run again";
  EXPECT_TRUE(lineage.CanRebuild({c, 1}, 3)) << "from b, which is kept";
}

TEST(LineageTest, StateThatIsUpdatedOnTheSideIsNoInput) {
  Network network;
  const auto state = network.Forward("zeros", 1, {}, 1);
  const auto a = network.Forward("batch_norm", 10, {0, state}, 1);
  network.last_op().traits.state_reads = 0b10;
  network.Backward(1, {a, state}, 1);
  const plan::Problem problem = network.Finish();
  const Lineage lineage(problem);
  ASSERT_EQ(lineage.inputs(1).size(), 1U);
  EXPECT_EQ(lineage.inputs(1)[0].variable, 0);
  EXPECT_EQ(lineage.After(state, 1).version, 2) << "but it has changed";
}

TEST(DroppedClassesTest, NeighboursThatAreDroppedAddUp) {
  const plan::Problem problem = ChainNetwork(5, 1);
  const Lineage lineage(problem);
  DroppedClasses classes(problem, lineage);
  classes.Drop(2, 10);
  EXPECT_EQ(classes.CostAround(1), 10);
  EXPECT_EQ(classes.CostAround(4), 0);
  classes.Drop(4, 7);
  EXPECT_EQ(classes.CostAround(3), 17) << "two classes";
  classes.Drop(3, 1);
  EXPECT_EQ(classes.CostAround(1), 18) << "one";
  EXPECT_EQ(classes.CostAround(5), 18);
  classes.Return(3);
  EXPECT_EQ(classes.CostAround(5), 17) << "classes are not split";
  EXPECT_FALSE(classes.is_dropped(3));
}

}  // namespace
}  // namespace plimsoll::planners
