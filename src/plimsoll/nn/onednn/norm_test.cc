// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/nn/onednn/run_for_test.h"

namespace plimsoll::nn::onednn {
namespace {

class NormTest : public testing::TestWithParam<Shape> {
 protected:
  const Tensor x_ = Floats(GetParam());
  const std::int64_t columns_ = GetParam().back();
  const std::int64_t rows_ = Count(GetParam()) / columns_;
  const Tensor row_ = Floats({columns_});
  const Data x_data_ = RandomFloats(x_, 1, 2, 5);
  const Data dy_ = RandomFloats(x_, 2);
  const Data gamma_ = RandomFloats(row_, 3, 0.5F, 2);
  const Data beta_ = RandomFloats(row_, 4);

  double X(std::int64_t row, std::int64_t column) const {
    return As<float>(x_data_)[static_cast<std::size_t>(row * columns_ + column)];
  }
};

double At(const Data& data, std::int64_t i) { return As<float>(data)[static_cast<std::size_t>(i)]; }

TEST_P(NormTest, BatchNormAgreesWithLoopsAndDifferences) {
  const OpSpec forward{OpKind::kBatchNormForward,
                       {x_, row_, row_, row_, row_},
                       {x_, row_, row_, row_, row_},
                       {.epsilon = 1e-3F, .momentum = 0.25F}};
  const Data running_mean = RandomFloats(row_, 5);
  const Data running_var = RandomFloats(row_, 6, 1, 2);
  const std::vector<Data> reads = {x_data_, gamma_, beta_, running_mean, running_var};
  const auto written = RunChecked(forward, reads, {{3, 3}, {4, 4}});
  std::vector<double> y(static_cast<std::size_t>(x_.count()));
  std::vector<double> means;
  std::vector<double> inv_stds;
  std::vector<double> new_means;
  std::vector<double> new_vars;
  for (std::int64_t c = 0; c < columns_; ++c) {
    double mean = 0;
    double variance = 0;
    for (std::int64_t r = 0; r < rows_; ++r) mean += X(r, c) / static_cast<double>(rows_);
    for (std::int64_t r = 0; r < rows_; ++r) variance += (X(r, c) - mean) * (X(r, c) - mean);
    const double unbiased = rows_ > 1 ? variance / static_cast<double>(rows_ - 1) : 0;
    variance /= static_cast<double>(rows_);
    means.push_back(mean);
    inv_stds.push_back(1 / std::sqrt(variance + 1e-3));
    new_means.push_back(0.75 * At(running_mean, c) + 0.25 * mean);
    new_vars.push_back(0.75 * At(running_var, c) + 0.25 * unbiased);
    for (std::int64_t r = 0; r < rows_; ++r) {
      y[static_cast<std::size_t>(r * columns_ + c)] =
          (X(r, c) - mean) * inv_stds.back() * At(gamma_, c) + At(beta_, c);
    }
  }
  ExpectNear(written[0], y, 1e-4, "y");
  ExpectNear(written[1], means, 1e-5, "mean");
  ExpectNear(written[2], inv_stds, 1e-4, "inv_std");
  ExpectNear(written[3], new_means, 1e-5, "running mean");
  ExpectNear(written[4], new_vars, 1e-5, "running variance");

  const OpSpec backward{
      OpKind::kBatchNormBackward, {x_, x_, row_, row_, row_}, {x_, row_, row_}, {}};
  const auto gradients =
      RunChecked(backward, {x_data_, dy_, gamma_, written[1], written[2]}, {{1, 0}});
  const auto scalar = [&](const std::vector<Data>& moved) {
    return Weighted(RunOp(forward, moved)[0], dy_);
  };
  ExpectGradient(scalar, reads, 0, gradients[0], "dx", 2e-2F, 2e-2);
  ExpectGradient(scalar, reads, 1, gradients[1], "dgamma", 0.1F);
  ExpectGradient(scalar, reads, 2, gradients[2], "dbeta", 0.1F);
}

TEST_P(NormTest, BatchNormInferenceUsesWhatItWasGiven) {
  const Data mean = RandomFloats(row_, 5);
  const Data variance = RandomFloats(row_, 6, 1, 2);
  const auto written =
      RunChecked({OpKind::kBatchNormInference, {x_, row_, row_, row_, row_}, {x_}, {}},
                 {x_data_, gamma_, beta_, mean, variance}, {{0, 0}});
  std::vector<double> y;
  for (std::int64_t i = 0; i < x_.count(); ++i) {
    const std::int64_t c = i % columns_;
    y.push_back((At(x_data_, i) - At(mean, c)) / std::sqrt(At(variance, c) + 1e-5) * At(gamma_, c) +
                At(beta_, c));
  }
  ExpectNear(written[0], y, 1e-4, "y");
}

TEST_P(NormTest, LayerNormAgreesWithLoopsAndDifferences) {
  const Tensor column = Floats({rows_});
  const OpSpec forward{
      OpKind::kLayerNormForward, {x_, row_, row_}, {x_, column, column}, {.epsilon = 1e-2F}};
  const std::vector<Data> reads = {x_data_, gamma_, beta_};
  const auto written = RunChecked(forward, reads);
  std::vector<double> y;
  for (std::int64_t r = 0; r < rows_; ++r) {
    double mean = 0;
    double variance = 0;
    for (std::int64_t c = 0; c < columns_; ++c) mean += X(r, c) / static_cast<double>(columns_);
    for (std::int64_t c = 0; c < columns_; ++c) {
      variance += (X(r, c) - mean) * (X(r, c) - mean) / static_cast<double>(columns_);
    }
    for (std::int64_t c = 0; c < columns_; ++c) {
      y.push_back((X(r, c) - mean) / std::sqrt(variance + 1e-2) * At(gamma_, c) + At(beta_, c));
    }
  }
  ExpectNear(written[0], y, 1e-4, "y");
  const OpSpec backward{
      OpKind::kLayerNormBackward, {x_, x_, row_, column, column}, {x_, row_, row_}, {}};
  const auto gradients =
      RunChecked(backward, {x_data_, dy_, gamma_, written[1], written[2]}, {{1, 0}});
  const auto scalar = [&](const std::vector<Data>& moved) {
    return Weighted(RunOp(forward, moved)[0], dy_);
  };
  ExpectGradient(scalar, reads, 0, gradients[0], "dx", 1e-2F, 2e-2);
  ExpectGradient(scalar, reads, 1, gradients[1], "dgamma", 0.1F);
  ExpectGradient(scalar, reads, 2, gradients[2], "dbeta", 0.1F);
}

TEST_P(NormTest, LrnAgreesWithLoopsAndDifferences) {
  for (const std::int64_t size : {1, 2, 3, 5}) {
    const Attributes a{.lrn_size = size, .lrn_alpha = 0.5F, .lrn_beta = 0.75F, .lrn_k = 2};
    const OpSpec forward{OpKind::kLrnForward, {x_}, {x_}, a};
    std::vector<double> y;
    for (std::int64_t r = 0; r < rows_; ++r) {
      for (std::int64_t c = 0; c < columns_; ++c) {
        double sum = 0;
        for (std::int64_t j = c - size / 2; j < c - size / 2 + size; ++j) {
          if (j >= 0 && j < columns_) sum += X(r, j) * X(r, j);
        }
        y.push_back(X(r, c) * std::pow(2 + 0.5 / static_cast<double>(size) * sum, -0.75));
      }
    }
    ExpectNear(RunChecked(forward, {x_data_})[0], y, 1e-5, "y");
    const auto dx = RunChecked({OpKind::kLrnBackward, {x_, x_}, {x_}, a}, {x_data_, dy_});
    ExpectGradient(
        [&](const std::vector<Data>& moved) { return Weighted(RunOp(forward, moved)[0], dy_); },
        {x_data_}, 0, dx[0], "dx", 1e-2F, 2e-2);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, NormTest,
                         testing::Values(Shape{4, 5, 5, 16}, Shape{2, 3, 3, 3}, Shape{7, 5},
                                         Shape{1, 9, 7, 33}, Shape{16, 130}, Shape{3, 4, 4, 300},
                                         Shape{8, 16, 16, 24}));

TEST(BatchNormTest, IsExactFarFromZero) {
  // A mean of 1000 and a deviation of 0.6: the squares alone would have no digits left.
  const Tensor x = Floats({64, 8, 8, 8});
  const Tensor row = Floats({8});
  const Data data = RandomFloats(x, 1, 999, 1001);
  const auto written =
      RunOp({OpKind::kBatchNormForward, {x, row, row, row, row}, {x, row, row, row, row}, {}},
            {data, RandomFloats(row, 2), RandomFloats(row, 3), RandomFloats(row, 4),
             RandomFloats(row, 5)});
  for (std::int64_t c = 0; c < 8; ++c) {
    double mean = 0;
    double squares = 0;
    for (std::int64_t r = 0; r < 4096; ++r) mean += At(data, r * 8 + c) / 4096;
    for (std::int64_t r = 0; r < 4096; ++r) {
      squares += (At(data, r * 8 + c) - mean) * (At(data, r * 8 + c) - mean) / 4096;
    }
    EXPECT_NEAR(At(written[1], c), mean, 1e-4);
    EXPECT_NEAR(At(written[2], c), 1 / std::sqrt(squares + 1e-5), 1e-4);
  }
}

}  // namespace
}  // namespace plimsoll::nn::onednn
