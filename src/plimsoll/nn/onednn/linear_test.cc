// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/onednn/run_for_test.h"

namespace plimsoll::nn::onednn {
namespace {

struct Case {
  Shape x;
  std::int64_t outputs;
  bool bias;
};

class LinearTest : public testing::TestWithParam<Case> {};

TEST_P(LinearTest, AgreesWithLoopsAndDifferences) {
  const Case& c = GetParam();
  const std::int64_t inputs = c.x.back();
  const std::int64_t rows = Count(c.x) / inputs;
  Shape y_shape = c.x;
  y_shape.back() = c.outputs;
  const Tensor x = Floats(c.x);
  const Tensor y = Floats(y_shape);
  const Tensor w = Floats({c.outputs, inputs});
  const Tensor bias = Floats({c.outputs});
  const Attributes a{.bias = c.bias};
  OpSpec forward{OpKind::kLinearForward, {x, w}, {y}, a};
  OpSpec backward{OpKind::kLinearBackwardWeights, {x, y}, {w}, a};
  std::vector<Data> reads = {RandomFloats(x, 1), RandomFloats(w, 2)};
  if (c.bias) {
    forward.reads.push_back(bias);
    backward.writes.push_back(bias);
    reads.push_back(RandomFloats(bias, 3));
  }
  const Data dy = RandomFloats(y, 4);
  std::vector<double> expected(static_cast<std::size_t>(rows * c.outputs));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < c.outputs; ++o) {
      double sum = c.bias ? As<float>(reads[2])[static_cast<std::size_t>(o)] : 0;
      for (std::int64_t i = 0; i < inputs; ++i) {
        sum += static_cast<double>(As<float>(reads[0])[static_cast<std::size_t>(r * inputs + i)]) *
               static_cast<double>(As<float>(reads[1])[static_cast<std::size_t>(o * inputs + i)]);
      }
      expected[static_cast<std::size_t>(r * c.outputs + o)] = sum;
    }
  }
  ExpectNear(RunChecked(forward, reads)[0], expected, 1e-4, "y");
  const auto scalar = [&](const std::vector<Data>& moved) {
    return Weighted(RunOp(forward, moved)[0], dy);
  };
  const auto data = RunChecked({OpKind::kLinearBackwardData, {y, w}, {x}, a}, {dy, reads[1]});
  const auto weights = RunChecked(backward, {reads[0], dy});
  ExpectGradient(scalar, reads, 0, data[0], "dx", 0.5F, 2e-3);
  ExpectGradient(scalar, reads, 1, weights[0], "dw", 0.5F, 2e-3);
  if (c.bias) ExpectGradient(scalar, reads, 2, weights[1], "dbias", 0.5F, 2e-3);
}

INSTANTIATE_TEST_SUITE_P(Cases, LinearTest,
                         testing::Values(Case{{1, 1}, 1, true}, Case{{1, 17}, 10, true},
                                         Case{{64, 512}, 10, true}, Case{{5, 33}, 65, false},
                                         Case{{2, 7, 48}, 96, true}, Case{{300, 64}, 31, true},
                                         Case{{16, 1000}, 129, true}, Case{{2, 150, 40}, 260, true},
                                         Case{{257, 65}, 256, false}));

TEST(LinearShapeTest, RefusesWhatDoesNotFit) {
  EXPECT_THROW(
      Library().Prepare(
          {OpKind::kLinearForward, {Floats({2, 3}), Floats({4, 5})}, {Floats({2, 4})}, {}}),
      Error);
}

}  // namespace
}  // namespace plimsoll::nn::onednn
