// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/learn/policy.h"

#include <cmath>
#include <numbers>
#include <random>

#include "plimsoll/learn/operation_graph.h"

namespace plimsoll::learn {
namespace {

/// How many neighbours a node has, about: equation 1 adds their states up.
constexpr double kNeighbours = 7;

/// Normal numbers from 53 random bits, without the standard's distributions: the same everywhere.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : random_(seed) {}
  double Next() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  std::mt19937_64 random_;
};

}  // namespace

std::array<MatrixShape, kPolicyMatrices> PolicyShapes(int width) {
  const MatrixShape square{width, width};
  return {{{width, kFeatures}, square, square, {width, 1}, square, square, {1, 3 * width}, square}};
}

std::size_t PolicySize(int width) {
  std::size_t size = 0;
  for (const MatrixShape& shape : PolicyShapes(width)) size += shape.size();
  return size;
}

Policy MakeRandomPolicy(int width, std::uint64_t seed) {
  Normal normal(seed);
  Policy policy{.width = width, .values = {}};
  const auto shapes = PolicyShapes(width);
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    double scale = std::sqrt(1.0 / shapes[k].columns);
    if (k == 1) scale /= kNeighbours;
    for (std::size_t i = 0; i < shapes[k].size(); ++i) {
      const double value = scale * normal.Next();
      // Weights of edges are never negative: what W4 makes negative would stay zero for ever.
      policy.values.push_back(static_cast<float>(k == 3 ? std::abs(value) : value));
    }
  }
  return policy;
}

}  // namespace plimsoll::learn
