// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/learn/q_network_internal.h"

/// How a QNetwork is computed, for those who instantiate it.
namespace plimsoll::learn {

template <typename Scalar>
QNetwork<Scalar>::QNetwork(const OperationGraph& graph, const Policy& policy)
    : graph_(graph), width_(policy.width) {
  const auto shapes = PolicyShapes(width_);
  for (std::size_t k = 1; k < shapes.size(); ++k) {
    offsets_[k] = offsets_[k - 1] + shapes[k - 1].size();
  }
  const auto count = static_cast<Eigen::Index>(graph.size());
  weights_ = Eigen::Map<const Eigen::VectorXf>(policy.values.data(),
                                               static_cast<Eigen::Index>(policy.values.size()))
                 .template cast<Scalar>();
  features_.resize(count, kValid);
  weight_sums_.setZero(count);
  for (Eigen::Index n = 0; n < count; ++n) {
    const auto node = static_cast<std::size_t>(n);
    for (int f = 0; f < kValid; ++f) features_(n, f) = graph.features[node][f];
    for (std::int32_t k = graph.first_neighbour[node]; k < graph.first_neighbour[node + 1]; ++k) {
      weight_sums_[n] += graph.weights[static_cast<std::size_t>(k)];
    }
  }
}

template <typename Scalar>
Policy QNetwork<Scalar>::ToPolicy() const {
  Policy policy{.width = width_, .values = {}};
  for (const Scalar value : weights_) policy.values.push_back(static_cast<float>(value));
  return policy;
}

template <typename Scalar>
typename QNetwork<Scalar>::MatrixMap QNetwork<Scalar>::W(int k) const {
  const MatrixShape shape = PolicyShapes(width_)[static_cast<std::size_t>(k - 1)];
  return {weights_.data() + offsets_[static_cast<std::size_t>(k - 1)], shape.rows, shape.columns};
}

template <typename Scalar>
Eigen::Map<typename QNetwork<Scalar>::Matrix> QNetwork<Scalar>::GradientOf(int k,
                                                                           Vector* gradient) const {
  const MatrixShape shape = PolicyShapes(width_)[static_cast<std::size_t>(k - 1)];
  return {gradient->data() + offsets_[static_cast<std::size_t>(k - 1)], shape.rows, shape.columns};
}

template <typename Scalar>
void QNetwork<Scalar>::AddNeighbours(const Matrix& from, Matrix* to) const {
  const Eigen::Index length = batch_ * width_;
  to->resize(from.rows(), from.cols());
  for (std::size_t n = 0; n < graph_.size(); ++n) {
    Eigen::Map<Vector> sum(to->data() + static_cast<Eigen::Index>(n) * length, length);
    sum.setZero();
    for (std::int32_t k = graph_.first_neighbour[n]; k < graph_.first_neighbour[n + 1]; ++k) {
      const Eigen::Index neighbour = graph_.neighbours[static_cast<std::size_t>(k)];
      sum += Eigen::Map<const Vector>(from.data() + neighbour * length, length);
    }
  }
}

template <typename Scalar>
void QNetwork<Scalar>::Embed(const std::vector<const AgentState*>& states) {
  batch_ = static_cast<Eigen::Index>(states.size());
  valid_.clear();
  current_.clear();
  const auto count = static_cast<Eigen::Index>(graph_.size());
  const Vector edge = W(3) * W(4).cwiseMax(0);
  const Matrix base =
      features_ * W(1).leftCols(kValid).transpose() + weight_sums_ * edge.transpose();
  constant_.resize(count * batch_, width_);
  for (Eigen::Index n = 0; n < count; ++n) {
    constant_.middleRows(n * batch_, batch_).rowwise() = base.row(n);
  }
  const Vector validity = W(1).col(kValid);
  for (int b = 0; b < batch_; ++b) {
    valid_.push_back(states[static_cast<std::size_t>(b)]->valid);
    current_.push_back(states[static_cast<std::size_t>(b)]->current);
    for (const NodeIndex node : valid_.back()) {
      constant_.row(Row(b, node)) += validity.transpose();
    }
  }
  states_[0] = constant_.cwiseMax(0);
  for (std::size_t t = 1; t < kRounds; ++t) {
    AddNeighbours(states_[t - 1], &sums_[t - 1]);
    states_[t].noalias() = sums_[t - 1] * W(2).transpose();
    states_[t] = (states_[t] + constant_).cwiseMax(0);
  }
  means_.setZero(batch_, width_);
  for (Eigen::Index n = 0; n < count; ++n) {
    means_ += states_.back().middleRows(n * batch_, batch_);
  }
  means_ /= static_cast<Scalar>(count);
  graph_states_.resize(batch_, 2 * width_);
  graph_states_.leftCols(width_) = means_ * W(5).transpose();
  for (int b = 0; b < batch_; ++b) {
    const Vector current = NodeState(b, current_[static_cast<std::size_t>(b)]);
    graph_states_.row(b).tail(width_) = (W(6) * current).transpose();
  }
}

template <typename Scalar>
typename QNetwork<Scalar>::Vector QNetwork<Scalar>::NodeState(int state, NodeIndex node) const {
  return states_.back().row(Row(state, node)).transpose();
}

template <typename Scalar>
Scalar QNetwork<Scalar>::Value(int state, NodeIndex action) const {
  const auto output = W(7).row(0);
  const Vector chosen = W(8) * NodeState(state, action);
  return output.head(2 * width_).dot(graph_states_.row(state).cwiseMax(0)) +
         output.tail(width_).dot(chosen.cwiseMax(0).transpose());
}

template <typename Scalar>
void QNetwork<Scalar>::AddGradient(const std::vector<NodeIndex>& actions,
                                   const std::vector<Scalar>& slopes, Vector* gradient) {
  Matrix& slope = slope_;  // Of S^T.
  slope.setZero(states_[0].rows(), width_);
  Matrix mean_slope = Matrix::Zero(batch_, width_);
  for (int b = 0; b < batch_; ++b) {
    const auto at = static_cast<std::size_t>(b);
    Vector joined(3 * width_);
    const Vector acted = NodeState(b, actions[at]);
    const Vector current = NodeState(b, current_[at]);
    joined << graph_states_.row(b).transpose(), W(8) * acted;
    GradientOf(7, gradient).row(0) += slopes[at] * joined.cwiseMax(0).transpose();
    const Vector inner =
        (joined.array() > 0).select(slopes[at] * W(7).row(0).transpose(), Vector::Zero(3 * width_));
    const auto mean_part = inner.head(width_);
    const auto current_part = inner.segment(width_, width_);
    const auto action_part = inner.tail(width_);
    GradientOf(5, gradient) += mean_part * means_.row(b);
    GradientOf(6, gradient) += current_part * current.transpose();
    GradientOf(8, gradient) += action_part * acted.transpose();
    mean_slope.row(b) = (W(5).transpose() * mean_part).transpose();
    slope.row(Row(b, current_[at])) += (W(6).transpose() * current_part).transpose();
    slope.row(Row(b, actions[at])) += (W(8).transpose() * action_part).transpose();
  }
  mean_slope /= static_cast<Scalar>(graph_.size());
  for (Eigen::Index n = 0; n < static_cast<Eigen::Index>(graph_.size()); ++n) {
    slope.middleRows(n * batch_, batch_) += mean_slope;
  }
  Matrix& input_slope = input_slope_;
  input_slope.setZero(slope.rows(), width_);
  Matrix& through = through_;
  for (std::size_t t = kRounds; t-- > 0;) {
    slope = (states_[t].array() > 0).select(slope, Scalar{0});
    input_slope += slope;
    if (t == 0) break;
    GradientOf(2, gradient).noalias() += slope.transpose() * sums_[t - 1];
    through.noalias() = slope * W(2);
    AddNeighbours(through, &slope);  // The graph is symmetric.
  }
  AddInputGradient(input_slope, gradient);
}

/// From the slope of W1 x + W3 sum ReLU(W4 w) to those of W1, W3 and W4.
template <typename Scalar>
void QNetwork<Scalar>::AddInputGradient(const Matrix& slope, Vector* gradient) {
  Matrix& per_node = node_slope_;
  per_node.resize(static_cast<Eigen::Index>(graph_.size()), width_);
  for (Eigen::Index n = 0; n < per_node.rows(); ++n) {
    per_node.row(n) = slope.middleRows(n * batch_, batch_).colwise().sum();
  }
  auto w1 = GradientOf(1, gradient);
  w1.leftCols(kValid).noalias() += per_node.transpose() * features_;
  for (int b = 0; b < batch_; ++b) {
    for (const NodeIndex node : valid_[static_cast<std::size_t>(b)]) {
      w1.col(kValid) += slope.row(Row(b, node)).transpose();
    }
  }
  const Vector edge = per_node.transpose() * weight_sums_;
  const Vector positive = W(4).cwiseMax(0);
  GradientOf(3, gradient).noalias() += edge * positive.transpose();
  const Vector back = W(3).transpose() * edge;
  GradientOf(4, gradient).col(0) += (W(4).col(0).array() > 0).select(back, Vector::Zero(width_));
}

}  // namespace plimsoll::learn
