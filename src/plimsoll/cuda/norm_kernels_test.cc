// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/cuda/compare_for_test.h"
#include "plimsoll/cuda/own_kernels_for_test.h"

namespace plimsoll::cuda {
namespace {

using nn::OpKind;
using nn::onednn::Bits;
using nn::onednn::Floats;
using nn::onednn::RandomFloats;
using nn::onednn::RunOp;

OwnKernels& Own() {
  static OwnKernels library;
  return library;
}

struct Matrix {
  std::int64_t rows;
  std::int64_t channels;
};

/// One row and many, channels of all vectors and of none, idle lanes, several tiles and chunks.
const std::vector<Matrix> kMatrices = {{1, 1},      {1, 2048},   {2, 3},      {5, 8},
                                       {7, 12},     {49, 16},    {100, 24},   {333, 40},
                                       {64, 2056},  {1000, 64},  {4096, 192}, {100003, 64},
                                       {50000, 20}, {300000, 3}, {513, 1001}};

/// Shifted and of different size in each channel, so that sums of squares would lose digits.
Data Activations(const Matrix& m, std::uint64_t seed) {
  Data data = RandomFloats(Floats({m.rows, m.channels}), seed);
  auto values = As<float>(data);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto channel = static_cast<float>(i % static_cast<std::size_t>(m.channels) % 7);
    values[i] = values[i] * (0.5F + channel) + 4 * (channel - 3);
  }
  return data;
}

/// One row is its own mean; the host, which multiplies first, rounds what is left.
double ToleranceOf(const Matrix& m) { return m.rows == 1 ? 1e-3 : 3e-5; }

/// x, gamma and beta, and the statistics that the host makes of x.
std::vector<Data> NormReads(const Matrix& m) {
  const nn::Tensor x = Floats({m.rows, m.channels});
  const nn::Tensor c = Floats({m.channels});
  std::vector<Data> reads = {Activations(m, 1), RandomFloats(c, 2), RandomFloats(c, 3)};
  const std::vector<Data> made =
      RunOp({OpKind::kBatchNormForward, {x, c, c, c, c}, {x, c, c, c, c}},
            {reads[0], reads[1], reads[2], RandomFloats(c, 4), RandomFloats(c, 5, 0.5F, 2)});
  reads.push_back(made[1]);
  reads.push_back(made[2]);
  return reads;
}

/// The first half of the host's batch norm.
std::vector<Data> HostStatistics(const Case& c) {
  const nn::Tensor& x = c.spec.reads[0];
  const nn::Tensor& s = c.spec.reads[1];
  const Data any = RandomFloats(s, 9);
  std::vector<Data> made = RunOp({OpKind::kBatchNormForward, {x, s, s, s, s}, {x, s, s, s, s}},
                                 {c.reads[0], any, any, c.reads[1], c.reads[2]});
  made.erase(made.begin());
  return made;
}

/// The second half by a loop, with the sum and the ReLU on the host if the op has them.
std::vector<Data> HostNormalize(const Case& c) {
  const nn::Tensor& x = c.spec.reads[0];
  const auto of = [&](std::size_t read, std::size_t channel) {
    return static_cast<double>(As<float>(c.reads[read])[channel]);
  };
  Data y = c.reads[0];
  const auto values = As<float>(y);
  const auto channels = static_cast<std::size_t>(x.shape.back());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t k = i % channels;
    values[i] = static_cast<float>(
        (static_cast<double>(values[i]) - of(3, k)) * of(4, k) * of(1, k) + of(2, k));
  }
  if (c.reads.size() == 6) y = RunOp({OpKind::kAdd, {x, x}, {x}}, {y, c.reads[5]})[0];
  if (c.spec.kind == OpKind::kBatchNormNormalize) return {y};
  return RunOp({OpKind::kReluForward, {x}, {x, Bits(x.shape)}}, {y});
}

TEST(NormKernelsTest, BatchNorm) {
  PLIMSOLL_NEEDS_GPU();
  for (const Matrix& m : kMatrices) {
    const nn::Tensor x = Floats({m.rows, m.channels});
    const nn::Tensor c = Floats({m.channels});
    const std::vector<Data> reads = NormReads(m);
    const Data running = RandomFloats(c, 5, 0.5F, 2);
    Compare(Own(),
            {.spec = {OpKind::kBatchNormStatistics, {x, c, c}, {c, c, c, c}},
             .reads = {reads[0], RandomFloats(c, 4), running},
             .in_place = {{1, 2}, {2, 3}},
             .scalars = {},
             .tolerance = ToleranceOf(m)},
            HostStatistics);
    Compare(Own(),
            {.spec = {OpKind::kBatchNormNormalize, {x, c, c, c, c}, {x}},
             .reads = reads,
             .scalars = {},
             .tolerance = ToleranceOf(m)},
            HostNormalize);
    Compare(Own(), {.spec = {OpKind::kBatchNormInference, {x, c, c, c, c}, {x}},
                    .reads = {reads[0], reads[1], reads[2], RandomFloats(c, 4), running},
                    .in_place = {{0, 0}},
                    .scalars = {},
                    .tolerance = ToleranceOf(m)});
    if (HasFatalFailure()) return;
  }
}

/// x, dy, gamma and statistics that are those of x.
std::vector<Data> BackwardReads(const Matrix& m) {
  const std::vector<Data> reads = NormReads(m);
  return {reads[0], RandomFloats(Floats({m.rows, m.channels}), 6), reads[1], reads[3], reads[4]};
}

TEST(NormKernelsTest, BatchNormBackward) {
  PLIMSOLL_NEEDS_GPU();
  for (const Matrix& m : kMatrices) {
    if (m.rows < 5) continue;  // Little but rounding is left.
    const nn::Tensor x = Floats({m.rows, m.channels});
    const nn::Tensor c = Floats({m.channels});
    Compare(Own(), {.spec = {OpKind::kBatchNormBackward, {x, x, c, c, c}, {x, c, c}},
                    .reads = BackwardReads(m),
                    .in_place = {{1, 0}},
                    .scalars = {},
                    .tolerance = 1e-4});
  }
}

/// A bit is set just where y is positive; y is compared elsewhere. Beyond the last, all are 0.
void ExpectMaskOf(const Data& y, const Data& mask) {
  const auto values = As<float>(y);
  ASSERT_EQ(mask.size(), (values.size() + 63) / 64 * 8);
  for (std::size_t i = 0; i < mask.size() * 8; ++i) {
    const bool bit = (mask[i / 8] >> (i % 8) & std::byte{1}) != std::byte{0};
    ASSERT_EQ(bit, i < values.size() && values[i] > 0) << i;
  }
}

TEST(NormKernelsTest, BatchNormRelu) {
  PLIMSOLL_NEEDS_GPU();
  for (const Matrix& m : kMatrices) {
    for (const bool residual : {false, true}) {
      const nn::Tensor x = Floats({m.rows, m.channels});
      const nn::Tensor c = Floats({m.channels});
      Case fused{.spec = {OpKind::kBatchNormReluForward, {x, c, c, c, c}, {x, Bits(x.shape)}},
                 .reads = NormReads(m),
                 .scalars = {},
                 .tolerance = ToleranceOf(m)};
      if (residual) {
        fused.spec.reads.push_back(fused.spec.reads[0]);
        fused.reads.push_back(RandomFloats(fused.spec.reads[0], 8));
        fused.in_place.emplace_back(5, 0);
      }
      const auto results = Compare(Own(), fused, HostNormalize, 1);
      if (HasFatalFailure()) return;
      ExpectMaskOf(results[0][0], results[0][1]);
      ExpectMaskOf(FromBfloat16(results[1][0]), results[1][1]);
    }
  }
}

/// Backward of the ReLU and of the batch norm, one by one on the host.
std::vector<Data> UnfusedBackward(const Case& c) {
  const nn::Tensor& x = c.spec.reads[0];
  const nn::Tensor& gamma = c.spec.reads[3];
  const std::vector<Data> slopes =
      RunOp({OpKind::kReluBackward, {x, Bits(x.shape)}, {x}}, {c.reads[1], c.reads[2]});
  std::vector<Data> made =
      RunOp({OpKind::kBatchNormBackward, {x, x, gamma, gamma, gamma}, {x, gamma, gamma}},
            {c.reads[0], slopes[0], c.reads[3], c.reads[4], c.reads[5]});
  if (c.spec.writes.size() == 4) made.push_back(slopes[0]);
  return made;
}

TEST(NormKernelsTest, BatchNormReluBackward) {
  PLIMSOLL_NEEDS_GPU();
  for (const Matrix& m : kMatrices) {
    if (m.rows < 5) continue;
    for (const bool residual : {false, true}) {
      const nn::Tensor x = Floats({m.rows, m.channels});
      const nn::Tensor c = Floats({m.channels});
      std::vector<Data> reads = BackwardReads(m);
      const nn::Tensor bits = Bits({m.rows, m.channels});
      reads.insert(reads.begin() + 2,
                   RunOp({OpKind::kReluForward, {x}, {x, bits}}, {RandomFloats(x, 11)})[1]);
      Case fused{.spec = {OpKind::kBatchNormReluBackward, {x, x, bits, c, c, c}, {x, c, c}},
                 .reads = reads,
                 .in_place = {{1, 0}},
                 .scalars = {},
                 .tolerance = 1e-4};
      if (residual) {
        fused.spec.writes.push_back(x);
        fused.in_place = {{1, 3}};
      }
      Compare(Own(), fused, UnfusedBackward);
      if (HasFatalFailure()) return;
    }
  }
}

/// Rows of one warp, of several, in registers and not.
const std::vector<Matrix> kRows = {{1, 1},     {3, 7},      {9, 8},      {100, 96}, {1000, 768},
                                   {70, 1024}, {40, 1600},  {5, 4096},   {4, 8192}, {3, 10000},
                                   {2500, 64}, {129, 1030}, {600, 1280}, {8, 2052}};

TEST(NormKernelsTest, LayerNorm) {
  PLIMSOLL_NEEDS_GPU();
  for (const Matrix& m : kRows) {
    const nn::Tensor x = Floats({m.rows, m.channels});
    const nn::Tensor c = Floats({m.channels});
    const nn::Tensor r = Floats({m.rows});
    const std::vector<Data> reads = {RandomFloats(x, 1, -1, 3), RandomFloats(c, 2),
                                     RandomFloats(c, 3)};
    Compare(Own(), {{OpKind::kLayerNormForward, {x, c, c}, {x}}, reads});
    const nn::OpSpec forward{OpKind::kLayerNormForward, {x, c, c}, {x, r, r}};
    Compare(Own(), {.spec = forward, .reads = reads});
    if (m.channels == 1) continue;  // Nothing but rounding is left.
    const std::vector<Data> made = RunOp(forward, reads);
    Compare(Own(), {.spec = {OpKind::kLayerNormBackward, {x, x, c, r, r}, {x, c, c}},
                    .reads = {reads[0], RandomFloats(x, 4), reads[1], made[1], made[2]},
                    .in_place = {{1, 0}},
                    .scalars = {},
                    .tolerance = 1e-4});
  }
}

TEST(NormKernelsTest, Lrn) {
  PLIMSOLL_NEEDS_GPU();
  for (const Matrix& m : {Matrix{1, 1}, Matrix{5, 3}, Matrix{700, 96}, Matrix{9, 256},
                          Matrix{4, 300}, Matrix{2, 1000}}) {
    for (const std::int64_t size : {1, 2, 5, 11}) {
      nn::Attributes attributes;
      attributes.lrn_size = size;
      attributes.lrn_alpha = 0.5F;
      attributes.lrn_k = 2;
      const nn::Tensor x = Floats({m.rows, m.channels});
      const Data values = RandomFloats(x, 1, -3, 3);
      Compare(Own(), {{OpKind::kLrnForward, {x}, {x}, attributes}, {values}});
      Compare(Own(),
              {{OpKind::kLrnBackward, {x, x}, {x}, attributes}, {values, RandomFloats(x, 2)}});
    }
  }
}

}  // namespace
}  // namespace plimsoll::cuda
