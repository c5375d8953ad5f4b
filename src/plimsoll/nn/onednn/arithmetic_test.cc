// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/onednn/run_for_test.h"

namespace plimsoll::nn::onednn {
namespace {

double At(const Data& data, std::size_t i) { return As<float>(data)[i]; }

class ArithmeticTest : public testing::TestWithParam<Shape> {
 protected:
  const Tensor x_ = Floats(GetParam());
  const Data a_ = RandomFloats(x_, 1);
  const Data b_ = RandomFloats(x_, 2);
  const std::size_t count_ = static_cast<std::size_t>(x_.count());
};

TEST_P(ArithmeticTest, AddsScalesAndFills) {
  const Attributes attributes{.scale = -0.5F};
  const auto sum = RunChecked({OpKind::kAdd, {x_, x_}, {x_}, attributes}, {a_, b_}, {{0, 0}});
  const auto scaled = RunChecked({OpKind::kScale, {x_}, {x_}, attributes}, {a_}, {{0, 0}});
  const auto filled = RunChecked({OpKind::kFill, {}, {x_}, attributes}, {});
  for (std::size_t i = 0; i < count_; ++i) {
    ASSERT_FLOAT_EQ(As<float>(sum[0])[i], As<float>(a_)[i] - 0.5F * As<float>(b_)[i]);
    ASSERT_EQ(As<float>(scaled[0])[i], -0.5F * As<float>(a_)[i]);
    ASSERT_EQ(As<float>(filled[0])[i], -0.5F);
  }
}

TEST_P(ArithmeticTest, SgdIsThatOfPyTorch) {
  const Data m = RandomFloats(x_, 3);
  const OpSpec spec{
      OpKind::kSgdUpdate, {x_, x_, x_}, {x_, x_}, {.momentum = 0.9F, .weight_decay = 0.01F}};
  const auto written = RunChecked(spec, {a_, b_, m}, {{0, 0}, {2, 1}}, {.learning_rate = 0.1F});
  std::vector<double> new_w;
  std::vector<double> new_m;
  for (std::size_t i = 0; i < count_; ++i) {
    new_m.push_back(0.9 * At(m, i) + At(b_, i) + 0.01 * At(a_, i));
    new_w.push_back(At(a_, i) - 0.1 * new_m.back());
  }
  ExpectNear(written[0], new_w, 1e-6, "w");
  ExpectNear(written[1], new_m, 1e-6, "m");
}

TEST_P(ArithmeticTest, AdamWIsThatOfPyTorch) {
  const Data m = RandomFloats(x_, 3);
  const Data v = RandomFloats(x_, 4, 0, 1);
  const OpSpec spec{OpKind::kAdamWUpdate,
                    {x_, x_, x_, x_},
                    {x_, x_, x_},
                    {.epsilon = 1e-8F, .weight_decay = 0.01F}};
  const auto written = RunChecked(spec, {a_, b_, m, v}, {{0, 0}, {2, 1}, {3, 2}},
                                  {.learning_rate = 0.1F, .step = 3});
  std::vector<double> expected[3];
  for (std::size_t i = 0; i < count_; ++i) {
    const double g = At(b_, i);
    const double new_m = 0.9 * At(m, i) + 0.1 * g;
    const double new_v = 0.999 * At(v, i) + 0.001 * g * g;
    const double denominator = std::sqrt(new_v) / std::sqrt(1 - std::pow(0.999, 3)) + 1e-8;
    expected[0].push_back(At(a_, i) * (1 - 0.1 * 0.01) -
                          0.1 / (1 - std::pow(0.9, 3)) * new_m / denominator);
    expected[1].push_back(new_m);
    expected[2].push_back(new_v);
  }
  for (std::size_t i = 0; i < 3; ++i) ExpectNear(written[i], expected[i], 1e-5, "of adam");
}

TEST_P(ArithmeticTest, SlicesAreWhatWasConcatenated) {
  Shape wide = GetParam();
  Shape other = GetParam();
  other.back() = 3;
  wide.back() = 2 * GetParam().back() + 3;
  const Tensor y = Floats(wide);
  const Tensor small = Floats(other);
  const Data c = RandomFloats(small, 5);
  const auto written = RunChecked({OpKind::kConcat, {x_, small, x_}, {y}, {}}, {a_, c, b_});
  const std::int64_t last = GetParam().back();
  const auto slice = [&](const Tensor& tensor, std::int64_t offset) {
    return RunChecked({OpKind::kSlice, {y}, {tensor}, {.offset = offset}}, {written[0]})[0];
  };
  EXPECT_EQ(slice(x_, 0), a_);
  EXPECT_EQ(slice(small, last), c);
  EXPECT_EQ(slice(x_, last + 3), b_);
  EXPECT_EQ(As<float>(written[0])[static_cast<std::size_t>(last)], As<float>(c)[0]);
  EXPECT_THROW(Library().Prepare({OpKind::kSlice, {y}, {x_}, {.offset = last + 4}}), Error);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ArithmeticTest,
                         testing::Values(Shape{1}, Shape{3, 5}, Shape{2, 3, 3, 17}, Shape{40, 700},
                                         Shape{4, 16, 16, 64}));

class EmbeddingTest : public testing::Test {
 protected:
  static constexpr std::int64_t kVocabulary = 11;
  static constexpr std::int64_t kWidth = 37;
  const Tensor ids_ = Ints({3, 5});
  const Tensor table_ = Floats({kVocabulary, kWidth});
  const Tensor y_ = Floats({3, 5, kWidth});
  const Data id_data_ = IntData({0, 10, 3, 3, 3, 7, 0, 1, 2, 5, 10, 10, 4, 3, 0});
};

TEST_F(EmbeddingTest, LooksUpRowsAndAddsGradientsUp) {
  const std::vector<Data> reads = {id_data_, RandomFloats(table_, 1)};
  const OpSpec forward{OpKind::kEmbeddingForward, {ids_, table_}, {y_}, {}};
  const auto y = RunChecked(forward, reads);
  for (std::size_t i = 0; i < 15 * kWidth; ++i) {
    const auto row = static_cast<std::size_t>(As<std::int32_t>(id_data_)[i / kWidth]);
    ASSERT_EQ(At(y[0], i), At(reads[1], row * kWidth + i % kWidth));
  }
  const Data dy = RandomFloats(y_, 2);
  const auto gradient =
      RunChecked({OpKind::kEmbeddingBackward, {ids_, y_}, {table_}, {}}, {id_data_, dy});
  ExpectGradient(
      [&](const std::vector<Data>& moved) { return Weighted(RunOp(forward, moved)[0], dy); }, reads,
      1, gradient[0], "dtable", 0.5F, 1e-3);
  EXPECT_EQ(At(gradient[0], 6 * kWidth), 0);
  Data wrong = id_data_;
  As<std::int32_t>(wrong)[4] = kVocabulary;
  EXPECT_THROW(RunOp(forward, {wrong, reads[1]}), Error);
}

TEST_F(EmbeddingTest, AddsRowsToEverySequence) {
  const Tensor rows = Floats({9, kWidth});
  const std::vector<Data> reads = {RandomFloats(y_, 1), RandomFloats(rows, 2)};
  const OpSpec forward{OpKind::kAddRowsForward, {y_, rows}, {y_}, {}};
  const auto y = RunChecked(forward, reads, {{0, 0}});
  for (std::size_t i = 0; i < 15 * kWidth; ++i) {
    ASSERT_EQ(As<float>(y[0])[i], As<float>(reads[0])[i] + As<float>(reads[1])[i % (5 * kWidth)]);
  }
  const Data dy = RandomFloats(y_, 3);
  const auto gradient = RunChecked({OpKind::kAddRowsBackward, {y_}, {rows}, {}}, {dy});
  ExpectGradient(
      [&](const std::vector<Data>& moved) { return Weighted(RunOp(forward, moved)[0], dy); }, reads,
      1, gradient[0], "drows", 0.5F, 1e-3);
}

}  // namespace
}  // namespace plimsoll::nn::onednn
