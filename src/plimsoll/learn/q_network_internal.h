// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Dense>
#include <array>
#include <vector>

#include "plimsoll/learn/operation_graph.h"
#include "plimsoll/learn/policy.h"

namespace plimsoll::learn {

/// What changes from one decision to the next (section 4.6): where the agent is, and which nodes'
/// actions can be taken.
struct AgentState {
  NodeIndex current = 0;
  std::vector<NodeIndex> valid;
};

/// The network of paper 000 on one graph: equations 1 to 3, and the gradient of Q.
///
///   s_v^{t+1} = ReLU(W1 x_v + W2 sum_u s_u^t + W3 sum_u ReLU(W4 w(u, v)))    T rounds from 0   (1)
///   g = [W5 mean_u s_u^T, W6 s_c^T]                                                            (2)
///   Q(g, a) = W7 ReLU([g, W8 s_a^T])                                                           (3)
///
/// The sum of equation 2 is divided by the number of nodes, so that its size does not depend on
/// that of the graph. As no weight of an edge is negative, ReLU(W4 w) = ReLU(W4) w, and the third
/// term is W3 ReLU(W4) times the sum of the weights.
///
/// Several states are looked at together: row n * B + b of a matrix is of node n in state b, so
/// that one row of bytes holds all states of a node, and neighbours are added up in one go. Scalar
/// is float, or double where gradients are checked. Not thread-safe.
template <typename Scalar>
class QNetwork {
 public:
  using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

  /// Keeps a reference to the graph.
  QNetwork(const OperationGraph& graph, const Policy& policy);

  /// W1 to W8 as in a Policy.
  Vector& weights() { return weights_; }
  Policy ToPolicy() const;

  /// Computes the node and graph states of every agent state given.
  /// REQUIRES: `states` is not empty.
  void Embed(const std::vector<const AgentState*>& states);

  /// S^T of a node in a state.
  Vector NodeState(int state, NodeIndex node) const;

  /// Returns Q of an action in one of the states. REQUIRES: Embed() with these weights.
  Scalar Value(int state, NodeIndex action) const;

  /// Adds to the gradient, for one action of each state, `slopes` times that of its Q.
  void AddGradient(const std::vector<NodeIndex>& actions, const std::vector<Scalar>& slopes,
                   Vector* gradient);

 private:
  using MatrixMap = Eigen::Map<const Matrix>;

  MatrixMap W(int k) const;  // W1 is W(1).
  Eigen::Map<Matrix> GradientOf(int k, Vector* gradient) const;
  void AddNeighbours(const Matrix& from, Matrix* to) const;
  Eigen::Index Row(int state, NodeIndex node) const { return node * batch_ + state; }
  void AddInputGradient(const Matrix& slope, Vector* gradient);

  const OperationGraph& graph_;
  const int width_;
  std::array<std::size_t, kPolicyMatrices> offsets_{};
  Vector weights_;
  Matrix features_;     // Nodes by the features that never change.
  Vector weight_sums_;  // Per node: of its edges.
  Eigen::Index batch_ = 0;
  std::vector<std::vector<NodeIndex>> valid_;  // Per state.
  std::vector<NodeIndex> current_;
  Matrix constant_;                       // W1 x + W3 sum ReLU(W4 w).
  std::array<Matrix, kRounds> states_;    // S^1 to S^T.
  std::array<Matrix, kRounds - 1> sums_;  // Over the neighbours, of S^1 to S^{T-1}.
  Matrix means_;                          // Per state: of S^T.
  Matrix graph_states_;                   // Per state: g.
  // What gradients are computed in: as large as `states_`, and kept, for memory that is new each
  // time costs more than what is computed.
  Matrix slope_;
  Matrix input_slope_;
  Matrix through_;
  Matrix node_slope_;
};

extern template class QNetwork<float>;

}  // namespace plimsoll::learn
