// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/graph_trial.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace plimsoll::exec {
namespace {

/// What the iterations of a program are told, if they take so long in graphs, and otherwise.
std::vector<bool> Told(GraphTrial trial, int count, std::chrono::milliseconds in_graphs,
                       std::chrono::milliseconds op_by_op) {
  std::vector<bool> told;
  for (int k = 0; k < count; ++k) {
    trial.BeginIteration();
    told.push_back(trial.wants_graphs());
    std::this_thread::sleep_for(told.back() ? in_graphs : op_by_op);
    trial.EndIteration();
  }
  return told;
}

TEST(GraphTrialTest, WithoutATrialGraphsAreWanted) {
  using std::chrono::milliseconds;
  for (const bool told : Told(GraphTrial(), 15, milliseconds(1), milliseconds(0)))
    EXPECT_TRUE(told);
}

TEST(GraphTrialTest, TheFasterWayIsTaken) {
  using std::chrono::milliseconds;
  const std::vector<bool> slow_graphs =
      Told(GraphTrial(true), 20, milliseconds(20), milliseconds(1));
  const std::vector<bool> fast_graphs =
      Told(GraphTrial(true), 20, milliseconds(1), milliseconds(20));
  for (int k = 0; k < 20; ++k) {
    const auto i = static_cast<std::size_t>(k);
    EXPECT_EQ(slow_graphs[i], k >= 6 && k < 14) << k;
    EXPECT_EQ(fast_graphs[i], k >= 6) << k;
  }
}

TEST(GraphTrialTest, WhatDoesNotComeToItsEndIsNotTimed) {
  GraphTrial trial(true);
  // Of two iterations one does: the trial takes twice as long.
  for (int k = 0; k < 14; ++k) {
    trial.BeginIteration();
    trial.BeginIteration();
    EXPECT_FALSE(trial.is_over()) << k;
    trial.EndIteration();
  }
  trial.BeginIteration();
  EXPECT_TRUE(trial.is_over());
}

TEST(GraphTrialTest, EndsOpByOpWhereGraphsAreNeverTimed) {
  GraphTrial trial(true);
  for (int k = 0; k < 50; ++k) {
    trial.BeginIteration();
    if (k > 6) trial.ForgetGraphs();
    trial.EndIteration();
  }
  EXPECT_TRUE(trial.is_over());
  EXPECT_FALSE(trial.wants_graphs());
}

}  // namespace
}  // namespace plimsoll::exec
