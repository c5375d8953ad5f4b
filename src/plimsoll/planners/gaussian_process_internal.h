// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Dense>
#include <utility>
#include <vector>

namespace plimsoll::planners {

/// A Gaussian process over points of a cube [-1, 1]^d with a squared-exponential kernel, for the
/// handful of expensive evaluations that Bayesian optimisation makes (Snoek, Larochelle, Adams,
/// "Practical Bayesian Optimization of Machine Learning Algorithms", 2012). Values are standardised
/// inside.
class GaussianProcess {
 public:
  explicit GaussianProcess(double length_scale) : length_scale_(length_scale) {}

  /// Adds an observation. The fit is made anew when next asked: O(n^3).
  void Observe(const Eigen::VectorXd& point, double value);

  /// How much lower than the lowest value observed the value at the point is expected to be.
  /// REQUIRES: at least one observation.
  double ExpectedImprovement(const Eigen::VectorXd& point);

  /// The mean of the process at the point.
  double Mean(const Eigen::VectorXd& point);

 private:
  double Kernel(const Eigen::VectorXd& a, const Eigen::VectorXd& b) const;
  void Fit();
  /// Mean and standard deviation at the point, in standardised units.
  std::pair<double, double> Predict(const Eigen::VectorXd& point);

  double length_scale_;
  std::vector<Eigen::VectorXd> points_;
  std::vector<double> values_;
  bool fitted_ = false;
  double mean_ = 0;
  double deviation_ = 1;
  Eigen::LLT<Eigen::MatrixXd> factor_;
  Eigen::VectorXd weights_;
};

}  // namespace plimsoll::planners
