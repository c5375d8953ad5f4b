// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "plimsoll/base/random_for_test.h"
#include "plimsoll/learn/q_network_body_internal.h"

namespace plimsoll::learn {
namespace {

/// A graph with random edges and features; every node is its own neighbour.
OperationGraph MakeRandomGraph(int count, std::uint64_t seed) {
  TestRandom random(seed);
  std::vector<std::vector<float>> weight(count, std::vector<float>(count, -1));
  for (int n = 0; n < count; ++n) {
    weight[n][n] = 0;
    for (int other = 0; other < n; ++other) {
      if (!random.OneIn(3) && other + 1 != n) continue;
      weight[n][other] = weight[other][n] = static_cast<float>(random.Between(0, 100)) / 100;
    }
  }
  OperationGraph graph;
  graph.nodes.resize(count);
  for (int n = 0; n < count; ++n) {
    graph.first_neighbour.push_back(static_cast<std::int32_t>(graph.neighbours.size()));
    for (int other = 0; other < count; ++other) {
      if (weight[n][other] < 0) continue;
      graph.neighbours.push_back(other);
      graph.weights.push_back(weight[n][other]);
    }
    auto& x = graph.features.emplace_back();
    for (int f = 0; f < kValid; ++f) x[f] = static_cast<float>(random.Between(-100, 100)) / 100;
  }
  graph.first_neighbour.push_back(static_cast<std::int32_t>(graph.neighbours.size()));
  return graph;
}

AgentState MakeRandomState(int count, TestRandom* random) {
  AgentState state{.current = static_cast<NodeIndex>(random->Index(count)), .valid = {}};
  for (NodeIndex n = 0; n < count; ++n) {
    if (random->OneIn(2)) state.valid.push_back(n);
  }
  return state;
}

/// Two nodes with an edge of weight 2 between them; width 1, so that every weight is a number.
OperationGraph MakePair() {
  OperationGraph graph;
  graph.nodes.resize(2);
  graph.first_neighbour = {0, 2, 4};
  graph.neighbours = {0, 1, 0, 1};
  graph.weights = {0, 2, 2, 0};
  graph.features = {{1, 0, 0, 0, 0, 0}, {0, 3, 0, 0, 0, 0}};
  return graph;
}

TEST(QNetworkTest, EquationOneByHandForTwoNodes) {
  const OperationGraph graph = MakePair();
  // W1, by feature; W2, W3, W4; W5, W6; W7 for the mean, the current node and the action; W8.
  const Policy policy{.width = 1,
                      .values = {1, 2, 0, 0, 0, -5, 0.5, 3, 0.25, 1, 2, 1, 10, 100, -1}};
  QNetwork<double> network(graph, policy);
  const AgentState state{.current = 1, .valid = {0}};
  network.Embed({&state});
  // W3 ReLU(W4 2) = 1.5. Constant terms: node 0: 1 - 5 + 1.5 = -2.5, node 1: 6 + 1.5 = 7.5.
  // Node 0 over the rounds: 0, then 0.5 times the sum of both less 2.5.
  //   s1 = (0, 7.5)                   s2 = (0.5 * 7.5 - 2.5, 0.5 * 7.5 + 7.5) = (1.25, 11.25)
  //   s3 = (6.25 - 2.5, 6.25 + 7.5) = (3.75, 13.75)
  //   s4 = (8.75 - 2.5, 8.75 + 7.5) = (6.25, 16.25)
  EXPECT_DOUBLE_EQ(network.NodeState(0, 0)[0], 6.25);
  EXPECT_DOUBLE_EQ(network.NodeState(0, 1)[0], 16.25);
  // g = (1 * 11.25, 2 * 16.25); W8 s_a is negative, so that only g counts.
  EXPECT_DOUBLE_EQ(network.Value(0, 0), 11.25 + 10 * 32.5);
}

TEST(QNetworkTest, GradientsAgreeWithFiniteDifferences) {
  constexpr double kStep = 1e-6;
  Eigen::Index different_from_zero = 0;
  Eigen::Index all = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    TestRandom random(seed);
    const int count = 4 + static_cast<int>(random.Index(6));
    const OperationGraph graph = MakeRandomGraph(count, seed);
    QNetwork<double> network(graph, MakeRandomPolicy(5, seed));
    const AgentState one = MakeRandomState(count, &random);
    const AgentState two = MakeRandomState(count, &random);
    const std::vector<NodeIndex> actions = {static_cast<NodeIndex>(random.Index(count)),
                                            static_cast<NodeIndex>(random.Index(count))};
    const std::vector<double> slopes = {1, -0.5};
    const auto value = [&] {
      network.Embed({&one, &two});
      return slopes[0] * network.Value(0, actions[0]) + slopes[1] * network.Value(1, actions[1]);
    };
    value();
    Eigen::VectorXd gradient = Eigen::VectorXd::Zero(network.weights().size());
    network.AddGradient(actions, slopes, &gradient);
    all += gradient.size();
    for (Eigen::Index k = 0; k < gradient.size(); ++k) {
      const double kept = network.weights()[k];
      network.weights()[k] = kept + kStep;
      const double above = value();
      network.weights()[k] = kept - kStep;
      const double below = value();
      network.weights()[k] = kept;
      const double difference = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient[k], difference, 1e-6 * std::max(1.0, std::abs(difference)))
          << "weight " << k << ", seed " << seed;
      different_from_zero += gradient[k] != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(different_from_zero, all / 3) << "hardly anything was compared";
}

TEST(QNetworkTest, AStateIsWorthTheSameInABatchAndAlone) {
  const OperationGraph graph = MakeRandomGraph(12, 3);
  TestRandom random(3);
  QNetwork<double> network(graph, MakeRandomPolicy(8, 3));
  const AgentState one = MakeRandomState(12, &random);
  const AgentState two = MakeRandomState(12, &random);
  network.Embed({&two});
  const double alone = network.Value(0, 5);
  network.Embed({&one, &two});
  EXPECT_NEAR(network.Value(1, 5), alone, 1e-12);
}

TEST(QNetworkTest, ReadWeightsGiveTheSameValues) {
  const OperationGraph graph = MakeRandomGraph(9, 7);
  const Policy policy = MakeRandomPolicy(kWidth, 7);
  QNetwork<float> network(graph, policy);
  const AgentState state{.current = 2, .valid = {0, 4}};
  network.Embed({&state});
  const Policy read = ParsePolicy(FormatPolicy(network.ToPolicy()), "memory");
  QNetwork<float> other(graph, read);
  other.Embed({&state});
  for (NodeIndex node = 0; node < 9; ++node) {
    EXPECT_EQ(other.Value(0, node), network.Value(0, node)) << node;
  }
}

}  // namespace
}  // namespace plimsoll::learn
