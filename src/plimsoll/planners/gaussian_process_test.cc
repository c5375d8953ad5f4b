// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "plimsoll/planners/gaussian_process_internal.h"

namespace plimsoll::planners {
namespace {

Eigen::VectorXd Point(double x, double y) { return Eigen::Vector2d(x, y); }

double Bowl(const Eigen::VectorXd& point) { return 100 + 7 * point.squaredNorm(); }

/// The bowl, seen at its bottom and at four points around it.
GaussianProcess Observed() {
  GaussianProcess process(0.7);
  for (const auto& point :
       {Point(0, 0), Point(1, 0), Point(0, 1), Point(-1, 0), Point(0.5, -0.5)}) {
    process.Observe(point, Bowl(point));
  }
  return process;
}

TEST(GaussianProcessTest, InterpolatesWhatItHasObserved) {
  GaussianProcess process = Observed();
  for (const auto& point : {Point(0, 0), Point(1, 0), Point(0.5, -0.5)}) {
    EXPECT_NEAR(process.Mean(point), Bowl(point), 1e-3);
  }
}

TEST(GaussianProcessTest, PredictsValuesBetweenObservations) {
  GaussianProcess process = Observed();
  EXPECT_GT(process.Mean(Point(0.5, 0)), 100);
  EXPECT_LT(process.Mean(Point(0.5, 0)), 107);
}

TEST(GaussianProcessTest, ExpectsNoImprovementAtTheBestPointAndSomeElsewhere) {
  GaussianProcess process = Observed();
  const double at_best = process.ExpectedImprovement(Point(0, 0));
  // Not quite zero: the noise of 1e-6 that keeps the kernel definite leaves a deviation of about
  // 1e-3 there, in units of the values' own, which is below 7.
  EXPECT_GE(at_best, 0);
  EXPECT_LT(at_best, 7 * 1e-3);
  EXPECT_GT(process.ExpectedImprovement(Point(0.2, 0.1)), at_best);
  EXPECT_GT(process.ExpectedImprovement(Point(-1, -1)), at_best);
}

TEST(GaussianProcessTest, EndsWithEqualValuesAndCoincidingPoints) {
  GaussianProcess process(0.7);
  for (int k = 0; k < 3; ++k) process.Observe(Point(0.3, 0.3), 5);
  EXPECT_NEAR(process.Mean(Point(0.3, 0.3)), 5, 1e-6);
  EXPECT_TRUE(std::isfinite(process.ExpectedImprovement(Point(0, 0))));
}

}  // namespace
}  // namespace plimsoll::planners
