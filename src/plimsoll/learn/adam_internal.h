// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace plimsoll::learn {

/// Stochastic gradient descent with a step of its own for every weight (Kingma and Ba, "Adam: a
/// method for stochastic optimization", 2015). A gradient longer than `longest` is shortened.
class Adam {
 public:
  explicit Adam(Eigen::Index size, float rate, float longest)
      : rate_(rate),
        longest_(longest),
        mean_(Eigen::VectorXf::Zero(size)),
        square_(Eigen::VectorXf::Zero(size)) {}

  void Step(const Eigen::VectorXf& gradient, Eigen::VectorXf* weights) {
    const float shrink = std::min(1.0F, longest_ / std::max(gradient.norm(), 1e-12F));
    mean_ = kMeanDecay * mean_ + (1 - kMeanDecay) * shrink * gradient;
    square_ =
        kSquareDecay * square_ + (1 - kSquareDecay) * (shrink * gradient).array().square().matrix();
    mean_power_ *= kMeanDecay;
    square_power_ *= kSquareDecay;
    const float rate = rate_ * std::sqrt(1 - square_power_) / (1 - mean_power_);
    *weights -= (rate * mean_.array() / (square_.array().sqrt() + 1e-8F)).matrix();
  }

 private:
  static constexpr float kMeanDecay = 0.9F;
  static constexpr float kSquareDecay = 0.999F;

  const float rate_;
  const float longest_;
  Eigen::VectorXf mean_;
  Eigen::VectorXf square_;
  float mean_power_ = 1;
  float square_power_ = 1;
};

}  // namespace plimsoll::learn
