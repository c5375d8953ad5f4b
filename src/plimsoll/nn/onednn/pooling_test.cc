// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/onednn/run_for_test.h"

namespace plimsoll::nn::onednn {
namespace {

struct Case {
  Shape x;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;
  bool ceil = false;
};

class PoolingTest : public testing::TestWithParam<Case> {
 protected:
  PoolingTest() {
    const Case& c = GetParam();
    for (int i = 0; i < 2; ++i) {
      attributes_.kernel[i] = c.kernel;
      attributes_.stride[i] = c.stride;
      attributes_.padding[i] = c.padding;
    }
    const auto out = [&](std::int64_t extent) {
      const std::int64_t room = extent + 2 * c.padding - c.kernel;
      return (c.ceil ? (room + c.stride - 1) / c.stride : room / c.stride) + 1;
    };
    x_ = Floats(c.x);
    y_ = Floats({c.x[0], out(c.x[1]), out(c.x[2]), c.x[3]});
    x_data_ = RandomFloats(x_, 1);
    dy_ = RandomFloats(y_, 2);
  }

  /// Calls `visit(y, x, position)` for every pixel of every window, channel by channel.
  template <typename Visit>
  void ForPixels(const Visit& visit) const {
    const Case& c = GetParam();
    for (std::int64_t i = 0; i < y_.count(); ++i) {
      const std::int64_t channel = i % c.x[3];
      const std::int64_t column = i / c.x[3] % y_.shape[2];
      const std::int64_t row = i / c.x[3] / y_.shape[2] % y_.shape[1];
      const std::int64_t image = i / c.x[3] / y_.shape[2] / y_.shape[1];
      for (std::int64_t p = 0; p < c.kernel * c.kernel; ++p) {
        const std::int64_t h = row * c.stride - c.padding + p / c.kernel;
        const std::int64_t w = column * c.stride - c.padding + p % c.kernel;
        if (h < 0 || h >= c.x[1] || w < 0 || w >= c.x[2]) continue;
        visit(static_cast<std::size_t>(i),
              static_cast<std::size_t>(((image * c.x[1] + h) * c.x[2] + w) * c.x[3] + channel), p);
      }
    }
  }

  Attributes attributes_;
  Tensor x_, y_;
  Data x_data_, dy_;
};

TEST_P(PoolingTest, MaxPoolTakesTheLargest) {
  const Tensor index = ByteTensor(y_.shape);
  const auto written =
      RunChecked({OpKind::kMaxPoolForward, {x_}, {y_, index}, attributes_}, {x_data_});
  const auto plain = RunChecked({OpKind::kMaxPoolForward, {x_}, {y_}, attributes_}, {x_data_});
  const auto dx =
      RunChecked({OpKind::kMaxPoolBackward, {y_, index}, {x_}, attributes_}, {dy_, written[1]});
  EXPECT_EQ(written[0], plain[0]);
  const auto count = static_cast<std::size_t>(y_.count());
  std::vector<double> largest(count, -1e9);
  std::vector<std::size_t> from(count);
  std::vector<std::uint8_t> positions(count);
  ForPixels([&](std::size_t y, std::size_t x, std::int64_t position) {
    if (As<float>(x_data_)[x] <= largest[y]) return;
    largest[y] = As<float>(x_data_)[x];
    from[y] = x;
    positions[y] = static_cast<std::uint8_t>(position);
  });
  std::vector<double> expected(static_cast<std::size_t>(x_.count()));
  for (std::size_t i = 0; i < count; ++i) {
    expected[from[i]] += As<float>(dy_)[i];
    ASSERT_EQ(As<std::uint8_t>(written[1])[i], positions[i]) << i;
  }
  ExpectNear(written[0], largest, 0, "y");
  ExpectNear(dx[0], expected, 1e-6, "dx");
}

TEST_P(PoolingTest, AveragePoolIsTheMeanOfWhatIsThere) {
  const OpSpec forward{OpKind::kAveragePoolForward, {x_}, {y_}, attributes_};
  const auto written = RunChecked(forward, {x_data_});
  std::vector<double> sums(static_cast<std::size_t>(y_.count()));
  std::vector<double> counts(sums.size());
  ForPixels([&](std::size_t y, std::size_t x, std::int64_t) {
    sums[y] += As<float>(x_data_)[x];
    counts[y] += 1;
  });
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] /= counts[i];
  ExpectNear(written[0], sums, 1e-6, "y");
  const auto dx = RunChecked({OpKind::kAveragePoolBackward, {y_}, {x_}, attributes_}, {dy_});
  ExpectGradient(
      [&](const std::vector<Data>& moved) { return Weighted(RunOp(forward, moved)[0], dy_); },
      {x_data_}, 0, dx[0], "dx", 0.5F, 1e-3);
}

TEST_P(PoolingTest, GlobalPoolIsTheMeanOfAnImage) {
  const Tensor y = Floats({x_.shape[0], x_.shape[3]});
  const OpSpec forward{OpKind::kGlobalPoolForward, {x_}, {y}, {}};
  const auto written = RunChecked(forward, {x_data_});
  std::vector<double> means(static_cast<std::size_t>(y.count()));
  const std::int64_t pixels = x_.shape[1] * x_.shape[2];
  for (std::int64_t i = 0; i < x_.count(); ++i) {
    const std::int64_t at = i / (pixels * x_.shape[3]) * x_.shape[3] + i % x_.shape[3];
    means[static_cast<std::size_t>(at)] +=
        static_cast<double>(As<float>(x_data_)[static_cast<std::size_t>(i)]) /
        static_cast<double>(pixels);
  }
  ExpectNear(written[0], means, 1e-6, "y");
  const Data dy = RandomFloats(y, 7);
  const auto dx = RunChecked({OpKind::kGlobalPoolBackward, {y}, {x_}, {}}, {dy});
  ExpectGradient(
      [&](const std::vector<Data>& moved) { return Weighted(RunOp(forward, moved)[0], dy); },
      {x_data_}, 0, dx[0], "dx", 0.5F, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Cases, PoolingTest,
                         testing::Values(Case{{2, 8, 8, 16}, 2, 2, 0}, Case{{1, 7, 9, 3}, 3, 2, 1},
                                         Case{{3, 8, 8, 70}, 3, 2, 0, true},
                                         Case{{2, 6, 5, 20}, 3, 1, 1}, Case{{1, 1, 1, 5}, 1, 1, 0},
                                         Case{{8, 13, 13, 32}, 3, 2, 0},
                                         Case{{4, 16, 16, 130}, 2, 2, 0}));

TEST(PoolingShapeTest, RefusesWhatDoesNotFit) {
  Attributes a;
  a.kernel[0] = a.kernel[1] = 2;
  a.stride[0] = a.stride[1] = 2;
  const Tensor x = Floats({1, 8, 8, 4});
  EXPECT_THROW(Library().Prepare({OpKind::kMaxPoolForward, {x}, {Floats({1, 8, 8, 4})}, a}), Error);
  EXPECT_THROW(Library().Prepare({OpKind::kMaxPoolForward, {x}, {Floats({1, 4, 4, 5})}, a}), Error);
  EXPECT_THROW(Library().Prepare({OpKind::kAveragePoolForward, {x}, {x, x}, a}), Error);
  a.padding[0] = 2;
  EXPECT_THROW(Library().Prepare({OpKind::kMaxPoolForward, {x}, {Floats({1, 6, 4, 4})}, a}), Error);
}

}  // namespace
}  // namespace plimsoll::nn::onednn
