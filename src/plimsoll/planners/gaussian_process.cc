// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "plimsoll/planners/gaussian_process_internal.h"

namespace plimsoll::planners {
namespace {

/// Keeps the kernel matrix positive definite when points coincide.
constexpr double kNoise = 1e-6;

}  // namespace

void GaussianProcess::Observe(const Eigen::VectorXd& point, double value) {
  points_.push_back(point);
  values_.push_back(value);
  fitted_ = false;
}

double GaussianProcess::Kernel(const Eigen::VectorXd& a, const Eigen::VectorXd& b) const {
  return std::exp(-(a - b).squaredNorm() / (2 * length_scale_ * length_scale_));
}

void GaussianProcess::Fit() {
  if (fitted_) return;
  fitted_ = true;
  const auto count = static_cast<Eigen::Index>(points_.size());
  mean_ = std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(count);
  double square = 0;
  for (const double value : values_) square += (value - mean_) * (value - mean_);
  deviation_ = std::max(std::sqrt(square / static_cast<double>(count)), 1e-12);
  Eigen::MatrixXd kernel(count, count);
  Eigen::VectorXd targets(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    targets(i) = (values_[static_cast<std::size_t>(i)] - mean_) / deviation_;
    for (Eigen::Index j = 0; j < count; ++j) {
      kernel(i, j) =
          Kernel(points_[static_cast<std::size_t>(i)], points_[static_cast<std::size_t>(j)]);
    }
    kernel(i, i) += kNoise;
  }
  factor_.compute(kernel);
  weights_ = factor_.solve(targets);
}

std::pair<double, double> GaussianProcess::Predict(const Eigen::VectorXd& point) {
  Fit();
  Eigen::VectorXd row(static_cast<Eigen::Index>(points_.size()));
  for (std::size_t i = 0; i < points_.size(); ++i) {
    row(static_cast<Eigen::Index>(i)) = Kernel(points_[i], point);
  }
  const double variance = 1 + kNoise - row.dot(factor_.solve(row));
  return {row.dot(weights_), std::sqrt(std::max(variance, 0.0))};
}

double GaussianProcess::Mean(const Eigen::VectorXd& point) {
  const double standard = Predict(point).first;  // Fits, if need be, mean and deviation too.
  return mean_ + deviation_ * standard;
}

double GaussianProcess::ExpectedImprovement(const Eigen::VectorXd& point) {
  const auto [mean, deviation] = Predict(point);
  const double lowest = (*std::min_element(values_.begin(), values_.end()) - mean_) / deviation_;
  if (deviation < 1e-9) return std::max(lowest - mean, 0.0) * deviation_;
  const double z = (lowest - mean) / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double share = std::erfc(-z / std::numbers::sqrt2) / 2;
  return ((lowest - mean) * share + deviation * density) * deviation_;
}

}  // namespace plimsoll::planners
