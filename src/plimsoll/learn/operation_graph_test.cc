// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/learn/operation_graph.h"

#include <gtest/gtest.h>

#include <set>

#include "plimsoll/plan/problem_for_test.h"

namespace plimsoll::learn {
namespace {

/// Three ops of 10, 20 and 30 ns and then the first two's variables again:
///
///     op          0    1    2    3
///     x, 40 B     W              R
///     y, 10 B          W    R
plan::Problem MakeProblem() {
  plan::Problem problem;
  problem.cyclic = false;
  plan::AddTimedOp(10, {}, {0}, &problem);
  plan::AddTimedOp(20, {}, {1}, &problem);
  plan::AddTimedOp(30, {1}, {}, &problem);
  plan::AddTimedOp(40, {0}, {}, &problem);
  plan::AddVariable(40, 0, 4, &problem);
  plan::AddVariable(10, 1, 3, &problem);
  return problem;
}

std::vector<Candidate> OnlyX(const plan::Problem& problem) {
  std::vector<Candidate> candidates;
  for (const plan::Gap& gap : plan::GapsOf(problem, {0})) {
    candidates.push_back({.gap = gap, .can_swap = true, .can_remove = true, .recompute_ns = 10});
  }
  return candidates;
}

float WeightOf(const OperationGraph& graph, NodeIndex one, NodeIndex other) {
  const auto at = static_cast<std::size_t>(one);
  for (std::int32_t k = graph.first_neighbour[at]; k < graph.first_neighbour[at + 1]; ++k) {
    const auto neighbour = static_cast<std::size_t>(k);
    if (graph.neighbours[neighbour] == other) return graph.weights[neighbour];
  }
  return -1;
}

TEST(OperationGraphTest, NodesAreMallocsUsesAndFreesOfCandidates) {
  const plan::Problem problem = MakeProblem();
  const OperationGraph graph = MakeOperationGraph(problem, plan::OneBytePerNs(), OnlyX(problem));
  // Malloc, write, read, free of x. Frees behind the end of what runs once are at its last event.
  ASSERT_EQ(graph.size(), 4);
  for (const auto& node : graph.nodes) EXPECT_EQ(node.variable, 0);
  EXPECT_EQ(graph.nodes[1].position, 0);
  EXPECT_EQ(graph.nodes[2].position, 3);
  EXPECT_EQ(graph.NodeAt(-1), 0);
  EXPECT_EQ(graph.NodeAt(2), 1);
  EXPECT_EQ(graph.NodeAt(3), 3);
}

TEST(OperationGraphTest, EdgesWeighTheTimeBetweenTheirNodes) {
  const plan::Problem problem = MakeProblem();
  const OperationGraph graph = MakeOperationGraph(problem, plan::OneBytePerNs(), OnlyX(problem));
  EXPECT_EQ(WeightOf(graph, 1, 1), 0);
  EXPECT_FLOAT_EQ(WeightOf(graph, 0, 1), 0);
  // From the start of op 0 to that of op 3: 60 of 100 ns.
  EXPECT_FLOAT_EQ(WeightOf(graph, 1, 2), 0.6F);
  EXPECT_FLOAT_EQ(WeightOf(graph, 2, 1), 0.6F);
  EXPECT_FLOAT_EQ(WeightOf(graph, 0, 3), 0.6F);
}

TEST(OperationGraphTest, FeaturesOfActionsAreThoseOfTheirGaps) {
  const plan::Problem problem = MakeProblem();
  const OperationGraph graph = MakeOperationGraph(problem, plan::OneBytePerNs(), OnlyX(problem));
  ASSERT_EQ(graph.actions.size(), 3);
  EXPECT_EQ(graph.actions[0].kind, ActionKind::kNothing);
  EXPECT_EQ(graph.actions[0].node, 0);
  EXPECT_EQ(graph.actions[1].kind, ActionKind::kSwap);
  EXPECT_EQ(graph.actions[1].node, 1) << "the use before the gap";
  EXPECT_EQ(graph.actions[2].kind, ActionKind::kRemove);
  EXPECT_EQ(graph.actions[2].node, 2) << "the use behind the gap";
  const auto& swap = graph.features[1];
  EXPECT_FLOAT_EQ(swap[kSize], 1);
  EXPECT_FLOAT_EQ(swap[kTransfer], 1) << "80 ns are the mean of all candidates";
  EXPECT_FLOAT_EQ(swap[kRecompute], 10.0F / 80);
  EXPECT_FLOAT_EQ(swap[kRevisit], 0.6F);
  EXPECT_FLOAT_EQ(swap[kAction], 1);
  EXPECT_FLOAT_EQ(swap[kValid], 0);
  EXPECT_FLOAT_EQ(graph.features[2][kAction], -1);
  EXPECT_FLOAT_EQ(graph.features[3][kAction], 0);
}

TEST(OperationGraphTest, NoNodeStandsForTwoActions) {
  plan::Problem problem;
  problem.cyclic = false;
  // Six uses of one variable with an op between any two: five gaps, ten actions, eight nodes, of
  // which the first is for nothing.
  for (int k = 0; k < 11; ++k) {
    if (k % 2 == 0) {
      plan::AddTimedOp(10, {0}, {}, &problem);
    } else {
      plan::AddTimedOp(10, {}, {}, &problem);
    }
  }
  plan::AddVariable(8, 0, 11, &problem);
  std::vector<Candidate> candidates;
  for (const plan::Gap& gap : plan::GapsOf(problem, {0})) {
    candidates.push_back({.gap = gap, .can_swap = true, .can_remove = true});
  }
  ASSERT_EQ(candidates.size(), 5);
  const OperationGraph graph = MakeOperationGraph(problem, plan::OneBytePerNs(), candidates);
  EXPECT_EQ(graph.size(), 8);
  EXPECT_EQ(graph.actions.size(), 8);
  std::set<NodeIndex> nodes;
  for (const Action& action : graph.actions) EXPECT_TRUE(nodes.insert(action.node).second);
}

}  // namespace
}  // namespace plimsoll::learn
