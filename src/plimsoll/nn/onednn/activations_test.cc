// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/nn/onednn/run_for_test.h"
#include "plimsoll/nn/onednn/vector_math.h"

namespace plimsoll::nn::onednn {
namespace {

bool Bit(const Data& mask, std::size_t i) {
  return (As<std::uint64_t>(mask)[i / 64] >> (i % 64) & 1U) != 0;
}

class ActivationsTest : public testing::TestWithParam<Shape> {
 protected:
  const Tensor x_ = Floats(GetParam());
  const Tensor mask_ = Bits(GetParam());
  const Data x_data_ = RandomFloats(x_, 1, -3, 3);
  const Data dy_ = RandomFloats(x_, 2);
  const std::size_t count_ = static_cast<std::size_t>(x_.count());

  /// A pair of ops whose backward pass reads x or y, and dy.
  void CheckPair(OpKind forward_kind, OpKind backward_kind, bool reads_y, bool in_place,
                 double (*function)(double)) {
    const OpSpec forward{forward_kind, {x_}, {x_}, {}};
    const auto y = RunChecked(forward, {x_data_},
                              in_place ? std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}}
                                       : std::vector<std::pair<std::size_t, std::size_t>>{});
    std::vector<double> expected;
    for (const float x : As<float>(x_data_)) expected.push_back(function(x));
    ExpectNear(y[0], expected, 1e-6, "y");
    const auto dx =
        RunChecked({backward_kind, {x_, x_}, {x_}, {}}, {reads_y ? y[0] : x_data_, dy_}, {{1, 0}});
    ExpectGradient(
        [&](const std::vector<Data>& moved) { return Weighted(RunOp(forward, moved)[0], dy_); },
        {x_data_}, 0, dx[0], "dx");
  }
};

TEST_P(ActivationsTest, ReluKeepsWhatIsPositive) {
  const auto written =
      RunChecked({OpKind::kReluForward, {x_}, {x_, mask_}, {}}, {x_data_}, {{0, 0}});
  const auto plain = RunChecked({OpKind::kReluForward, {x_}, {x_}, {}}, {x_data_}, {{0, 0}});
  const auto dx =
      RunChecked({OpKind::kReluBackward, {x_, mask_}, {x_}, {}}, {dy_, written[1]}, {{0, 0}});
  EXPECT_EQ(written[0], plain[0]);
  for (std::size_t i = 0; i < count_; ++i) {
    const float x = As<float>(x_data_)[i];
    ASSERT_EQ(As<float>(written[0])[i], x > 0 ? x : 0.0F);
    ASSERT_EQ(Bit(written[1], i), x > 0) << i;
    ASSERT_EQ(As<float>(dx[0])[i], x > 0 ? As<float>(dy_)[i] : 0.0F);
  }
}

TEST_P(ActivationsTest, ReluPassesOnWhatIsNoNumber) {
  Data x = x_data_;
  As<float>(x)[count_ - 1] = std::numeric_limits<float>::quiet_NaN();
  const auto written = RunOp({OpKind::kReluForward, {x_}, {x_, mask_}, {}}, {x});
  EXPECT_TRUE(std::isnan(As<float>(written[0])[count_ - 1]));
}

TEST_P(ActivationsTest, DropoutIsTheSameForTheSameSeed) {
  const OpSpec forward{OpKind::kDropoutForward, {x_}, {x_, mask_}, {.rate = 0.25F, .stream = 3}};
  const StepScalars scalars{.seed = 99};
  const auto written = RunChecked(forward, {x_data_}, {{0, 0}}, scalars);
  const auto dx = RunChecked({OpKind::kDropoutBackward, {x_, mask_}, {x_}, {.rate = 0.25F}},
                             {dy_, written[1]}, {{0, 0}});
  for (std::size_t i = 0; i < count_; ++i) {
    const bool kept = Bit(written[1], i);
    const float scale = 1 / 0.75F;
    ASSERT_EQ(As<float>(written[0])[i], kept ? As<float>(x_data_)[i] * scale : 0.0F);
    ASSERT_EQ(As<float>(dx[0])[i], kept ? As<float>(dy_)[i] * scale : 0.0F);
  }
  if (count_ < 100) return;
  OpSpec other = forward;
  other.attributes.stream = 4;
  EXPECT_NE(written[1], RunOp(forward, {x_data_}, {}, {.seed = 100})[1]);
  EXPECT_NE(written[1], RunOp(other, {x_data_}, {}, scalars)[1]);
}

TEST_P(ActivationsTest, GeluAgreesWithItsFormulaAndDifferences) {
  CheckPair(OpKind::kGeluForward, OpKind::kGeluBackward, false, false, [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  });
}

TEST_P(ActivationsTest, TanhAgreesWithItsFormulaAndDifferences) {
  CheckPair(OpKind::kTanhForward, OpKind::kTanhBackward, true, true,
            [](double x) { return std::tanh(x); });
}

TEST_P(ActivationsTest, SigmoidAgreesWithItsFormulaAndDifferences) {
  CheckPair(OpKind::kSigmoidForward, OpKind::kSigmoidBackward, true, true,
            [](double x) { return 1 / (1 + std::exp(-x)); });
}

INSTANTIATE_TEST_SUITE_P(Shapes, ActivationsTest,
                         testing::Values(Shape{1}, Shape{63}, Shape{64}, Shape{5, 13},
                                         Shape{2, 7, 7, 65}, Shape{8, 16, 16, 32}));

TEST(DropoutTest, KeepsTheShareThatItShould) {
  const Tensor x = Floats({1 << 20});
  const Data ones = RandomFloats(x, 1, 1, 1);
  for (const float rate : {0.0F, 0.1F, 0.5F, 0.9F}) {
    const auto written = RunOp({OpKind::kDropoutForward, {x}, {x, Bits({1 << 20})}, {.rate = rate}},
                               {ones}, {}, {.seed = 5});
    std::int64_t kept = 0;
    std::int64_t pairs = 0;  // Neighbours that are both kept: those are independent.
    for (std::size_t i = 0; i + 1 < (1U << 20); ++i) {
      kept += Bit(written[1], i) ? 1 : 0;
      pairs += Bit(written[1], i) && Bit(written[1], i + 1) ? 1 : 0;
    }
    const double share = 1 - static_cast<double>(rate);
    EXPECT_NEAR(static_cast<double>(kept) / (1 << 20), share, 3e-3) << rate;
    EXPECT_NEAR(static_cast<double>(pairs) / (1 << 20), share * share, 3e-3) << rate;
  }
}

TEST(VectorMathTest, IsGoodToAFewUnitsInTheLastPlace) {
  for (float x = -100; x < 100; x += 0.0137F) {
    const double power = std::exp(static_cast<double>(std::min(x, 88.37F)));
    ASSERT_NEAR(Exp(x), power, 3e-7 * power + 2e-38) << x;
    ASSERT_NEAR(Tanh(x), std::tanh(static_cast<double>(x)),
                3e-7 * std::abs(std::tanh(static_cast<double>(x))))
        << x;
    const float positive = std::exp2(x);
    ASSERT_NEAR(Log(positive), std::log(static_cast<double>(positive)),
                3e-7 * std::abs(std::log(static_cast<double>(positive))) + 3e-8)
        << x;
  }
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(Tanh(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace plimsoll::nn::onednn
