// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/onednn/run_for_test.h"

namespace plimsoll::nn::onednn {
namespace {

struct Case {
  std::int64_t images, height, width, inputs, outputs;
  std::int64_t kernel[2];
  std::int64_t stride[2];
  std::int64_t padding[2];
  std::int64_t groups = 1;
  bool bias = false;
};

const std::vector<Case> kCases = {
    {1, 5, 7, 3, 8, {3, 3}, {1, 1}, {1, 1}},
    {2, 8, 8, 16, 32, {3, 3}, {1, 1}, {1, 1}, 1, true},
    {2, 9, 9, 5, 7, {3, 3}, {2, 2}, {1, 1}, 1, true},
    {3, 8, 8, 16, 24, {1, 1}, {1, 1}, {0, 0}, 1, true},
    {1, 8, 6, 32, 16, {1, 1}, {2, 2}, {0, 0}},
    {2, 11, 13, 3, 6, {5, 5}, {1, 1}, {2, 2}, 1, true},
    {1, 23, 23, 3, 16, {11, 11}, {4, 4}, {2, 2}, 1, true},
    {2, 7, 7, 12, 18, {3, 3}, {1, 1}, {1, 1}, 3, true},
    {2, 6, 6, 8, 8, {3, 3}, {1, 1}, {1, 1}, 8, true},
    {1, 6, 6, 20, 20, {3, 3}, {2, 2}, {1, 1}, 20},
    {2, 4, 4, 64, 48, {3, 3}, {1, 1}, {1, 1}, 1, true},
    {2, 6, 6, 4, 4, {1, 7}, {1, 1}, {0, 3}},
    {1, 2, 2, 33, 17, {3, 3}, {1, 1}, {1, 1}},
};

/// The specs and operands of one case. A transposed convolution leads from the smaller image to
/// the larger.
struct Convolution {
  OpSpec forward, backward_weights, backward_data;
  std::vector<Data> reads;  ///< x, w, (bias).
  Data dy;
};

Convolution Make(const Case& c, bool transposed) {
  Attributes a{.groups = c.groups, .bias = c.bias};
  std::int64_t small[2];
  for (int i = 0; i < 2; ++i) {
    a.kernel[i] = c.kernel[i];
    a.stride[i] = c.stride[i];
    a.padding[i] = c.padding[i];
    small[i] = ((i == 0 ? c.height : c.width) + 2 * c.padding[i] - c.kernel[i]) / c.stride[i] + 1;
  }
  Tensor x = Floats({c.images, c.height, c.width, c.inputs});
  Tensor y = Floats({c.images, small[0], small[1], c.outputs});
  if (transposed) {
    std::swap(x.shape[1], y.shape[1]);
    std::swap(x.shape[2], y.shape[2]);
  }
  const Tensor w = Floats({c.outputs, c.kernel[0], c.kernel[1], c.inputs / c.groups});
  const Tensor bias = Floats({c.outputs});
  using enum OpKind;
  Convolution made;
  made.forward = {transposed ? kTransposedConvForward : kConvForward, {x, w}, {y}, a};
  made.backward_weights = {
      transposed ? kTransposedConvBackwardWeights : kConvBackwardWeights, {x, y}, {w}, a};
  made.backward_data = {
      transposed ? kTransposedConvBackwardData : kConvBackwardData, {y, w}, {x}, a};
  made.reads = {RandomFloats(x, 1), RandomFloats(w, 2)};
  made.dy = RandomFloats(y, 4);
  if (c.bias) {
    made.forward.reads.push_back(bias);
    made.backward_weights.writes.push_back(bias);
    made.reads.push_back(RandomFloats(bias, 3));
  }
  return made;
}

/// Visits every product that a convolution adds up: offsets in x, w and y.
template <typename Visit>
void ForProducts(const Convolution& made, bool transposed, const Visit& visit) {
  const Attributes& a = made.forward.attributes;
  const Shape& x = made.forward.reads[0].shape;
  const Shape& w = made.forward.reads[1].shape;
  const Shape& y = made.forward.writes[0].shape;
  const Shape& small = transposed ? x : y;
  const Shape& large = transposed ? y : x;
  const std::int64_t per_group = w[0] / a.groups;
  for (std::int64_t n = 0; n < x[0]; ++n)
    for (std::int64_t sh = 0; sh < small[1]; ++sh)
      for (std::int64_t sw = 0; sw < small[2]; ++sw)
        for (std::int64_t kh = 0; kh < w[1]; ++kh)
          for (std::int64_t kw = 0; kw < w[2]; ++kw) {
            const std::int64_t lh = sh * a.stride[0] - a.padding[0] + kh;
            const std::int64_t lw = sw * a.stride[1] - a.padding[1] + kw;
            if (lh < 0 || lh >= large[1] || lw < 0 || lw >= large[2]) continue;
            const std::int64_t s = (n * small[1] + sh) * small[2] + sw;
            const std::int64_t l = (n * large[1] + lh) * large[2] + lw;
            for (std::int64_t o = 0; o < w[0]; ++o)
              for (std::int64_t i = 0; i < w[3]; ++i) {
                const std::int64_t in = o / per_group * w[3] + i;
                visit((transposed ? s : l) * x[3] + in, ((o * w[1] + kh) * w[2] + kw) * w[3] + i,
                      (transposed ? l : s) * y[3] + o);
              }
          }
}

class ConvolutionTest : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  bool transposed() const { return std::get<1>(GetParam()); }
  const Convolution made_ =
      Make(kCases[static_cast<std::size_t>(std::get<0>(GetParam()))], std::get<1>(GetParam()));
};

double At(const Data& data, std::int64_t i) {
  return static_cast<double>(As<float>(data)[static_cast<std::size_t>(i)]);
}

TEST_P(ConvolutionTest, ForwardIsTheSumOfProducts) {
  const std::vector<Data> written = RunChecked(made_.forward, made_.reads);
  std::vector<double> y(As<float>(made_.dy).size());
  const auto channels = static_cast<std::size_t>(made_.forward.writes[0].shape[3]);
  for (std::size_t i = 0; i < y.size() && made_.reads.size() == 3; ++i) {
    y[i] = At(made_.reads[2], static_cast<std::int64_t>(i % channels));
  }
  ForProducts(made_, transposed(), [&](std::int64_t x, std::int64_t w, std::int64_t at) {
    y[static_cast<std::size_t>(at)] += At(made_.reads[0], x) * At(made_.reads[1], w);
  });
  ExpectNear(written[0], y, 1e-4, "y");
}

TEST_P(ConvolutionTest, BackwardIsTheSumOfProducts) {
  std::vector<double> dx(As<float>(made_.reads[0]).size());
  std::vector<double> dw(As<float>(made_.reads[1]).size());
  ForProducts(made_, transposed(), [&](std::int64_t x, std::int64_t w, std::int64_t y) {
    dx[static_cast<std::size_t>(x)] += At(made_.reads[1], w) * At(made_.dy, y);
    dw[static_cast<std::size_t>(w)] += At(made_.reads[0], x) * At(made_.dy, y);
  });
  const auto data = RunChecked(made_.backward_data, {made_.dy, made_.reads[1]});
  ExpectNear(data[0], dx, 1e-4, "dx");
  const auto weights = RunChecked(made_.backward_weights, {made_.reads[0], made_.dy});
  ExpectNear(weights[0], dw, 1e-4, "dw");
  if (made_.reads.size() < 3) return;
  std::vector<double> dbias(As<float>(made_.reads[2]).size());
  for (std::size_t i = 0; i < As<float>(made_.dy).size(); ++i) {
    dbias[i % dbias.size()] += At(made_.dy, static_cast<std::int64_t>(i));
  }
  ExpectNear(weights[1], dbias, 1e-4, "dbias");
}

TEST_P(ConvolutionTest, GradientsAgreeWithDifferences) {
  const auto scalar = [&](const std::vector<Data>& reads) {
    return Weighted(RunOp(made_.forward, reads)[0], made_.dy);
  };
  const auto weights = RunOp(made_.backward_weights, {made_.reads[0], made_.dy});
  // It is linear in each: the step may be large.
  ExpectGradient(scalar, made_.reads, 0, RunOp(made_.backward_data, {made_.dy, made_.reads[1]})[0],
                 "dx", 0.5F, 2e-3);
  ExpectGradient(scalar, made_.reads, 1, weights[0], "dw", 0.5F, 2e-3);
  if (made_.reads.size() == 3) ExpectGradient(scalar, made_.reads, 2, weights[1], "db", 0.5F, 2e-3);
}

INSTANTIATE_TEST_SUITE_P(Cases, ConvolutionTest,
                         testing::Combine(testing::Range(0, static_cast<int>(kCases.size())),
                                          testing::Bool()));

TEST(ConvolutionShapeTest, RefusesWhatDoesNotFit) {
  const auto refuses = [](const OpSpec& spec, const std::string& part) {
    try {
      Library().Prepare(spec);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  Attributes a;
  a.kernel[0] = a.kernel[1] = 3;
  const Tensor x = Floats({1, 8, 8, 4});
  const Tensor w = Floats({6, 3, 3, 4});
  refuses({OpKind::kConvForward, {x, w}, {Floats({1, 8, 8, 6})}, a},
          "conv_forward: reads [1,8,8,4]");
  refuses({OpKind::kConvForward, {x, Floats({6, 3, 3, 5})}, {Floats({1, 6, 6, 6})}, a},
          "weights should be [6,3,3,4]");
  refuses({OpKind::kConvForward, {x}, {Floats({1, 6, 6, 6})}, a}, "2 reads");
  a.groups = 3;
  refuses({OpKind::kConvForward, {x, w}, {Floats({1, 6, 6, 6})}, a}, "groups");
}

}  // namespace
}  // namespace plimsoll::nn::onednn
