// SPDX-License-Identifier: Apache-2.0
//
// Compares ops on the device with the same ops on the host, in both types. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/cuda/run_cuda_for_test.h"
#include "plimsoll/nn/onednn/run_for_test.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::cuda {

/// Which operands are activations or their gradients; those that are not there do not matter.
struct ActivationOperands {
  std::vector<std::size_t> reads;
  std::vector<std::size_t> writes;
};

inline ActivationOperands ActivationsOf(nn::OpKind kind) {
  using enum nn::OpKind;
  switch (kind) {
    case kBatchNormReluForward:
      return {{0, 5}, {0}};
    case kBatchNormReluBackward:
      return {{0, 1}, {0, 3}};
    case kBatchNormBackward:
    case kLayerNormBackward:
    case kLrnBackward:
    case kGeluBackward:
    case kTanhBackward:
    case kSigmoidBackward:
    case kAdd:
      return {{0, 1}, {0}};
    case kConcat:
      return {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {0}};
    case kEmbeddingForward:
      return {{}, {0}};
    case kEmbeddingBackward:
      return {{1}, {}};
    case kAddRowsBackward:
    case kCountCorrect:
      return {{0}, {}};
    case kSgdUpdate:
    case kAdamWUpdate:
      return {{}, {}};
    default:
      return {{0}, {0}};
  }
}

/// The nearest bfloat16, to even of two that are as near. REQUIRES: it is a number.
inline std::uint16_t ToBfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}
inline float FromBfloat16(std::uint16_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16U);
}
inline Data ToBfloat16(const Data& floats) {
  Data data(floats.size() / 2);
  std::transform(As<float>(floats).begin(), As<float>(floats).end(),
                 As<std::uint16_t>(data).begin(), [](float x) { return ToBfloat16(x); });
  return data;
}
inline Data FromBfloat16(const Data& halves) {
  Data data(halves.size() * 2);
  std::transform(As<std::uint16_t>(halves).begin(), As<std::uint16_t>(halves).end(),
                 As<float>(data).begin(), [](std::uint16_t x) { return FromBfloat16(x); });
  return data;
}

/// An op in floats, and what the device may do with it.
struct Case {
  nn::OpSpec spec;
  std::vector<Data> reads;
  std::vector<std::pair<std::size_t, std::size_t>> in_place{};
  nn::StepScalars scalars{};
  double tolerance = 2e-5;  ///< Of floats, relative to the number and the largest of its tensor.
};

/// What an op writes on the host.
using Host = std::function<std::vector<Data>(const Case&)>;
inline std::vector<Data> RunOnHost(const Case& c) {
  return nn::onednn::RunOp(c.spec, c.reads, {}, c.scalars);
}

/// The same in bfloat16: the spec, and reads as the device takes them; c.reads are rounded.
inline std::pair<nn::OpSpec, std::vector<Data>> InBfloat16(Case* c) {
  nn::OpSpec spec = c->spec;
  std::vector<Data> reads = c->reads;
  const ActivationOperands operands = ActivationsOf(spec.kind);
  for (const std::size_t i : operands.reads) {
    if (i >= reads.size()) continue;
    spec.reads[i].type = nn::ElementType::kBfloat16;
    reads[i] = ToBfloat16(c->reads[i]);
    c->reads[i] = FromBfloat16(reads[i]);
  }
  for (const std::size_t i : operands.writes) {
    if (i < spec.writes.size()) spec.writes[i].type = nn::ElementType::kBfloat16;
  }
  return {spec, reads};
}

inline void ExpectClose(const Data& actual, const Data& expected, double relative, double absolute,
                        const std::string& what) {
  const auto a = As<float>(actual);
  const auto b = As<float>(expected);
  ASSERT_EQ(a.size(), b.size()) << what;
  double largest = 1e-20;  // Where all are 0 but for what rounding leaves.
  for (const float x : b) largest = std::max(largest, std::abs(static_cast<double>(x)));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(b[i]);
    ASSERT_NEAR(static_cast<double>(a[i]), x, relative * std::abs(x) + absolute * largest)
        << what << " at " << i << " of " << a.size();
  }
}

/// Compares outputs: floats nearly, bfloat16 to half a unit in its last place and a little, all
/// else exactly, unless `skip` says that it is compared elsewhere.
inline void ExpectOutputs(const nn::OpSpec& spec, const std::vector<Data>& actual,
                          const std::vector<Data>& expected, double tolerance, std::size_t skip) {
  for (std::size_t i = 0; i < spec.writes.size(); ++i) {
    if (i == skip) continue;
    const std::string what = nn::Describe(spec) + ", output " + std::to_string(i);
    if (spec.writes[i].type == nn::ElementType::kFloat) {
      ExpectClose(actual[i], expected[i], tolerance, tolerance, what);
    } else if (spec.writes[i].type == nn::ElementType::kBfloat16) {
      ExpectClose(FromBfloat16(actual[i]), expected[i], 0.00392 + tolerance, tolerance,
                  what + ", bfloat16");
    } else {
      EXPECT_TRUE(actual[i] == expected[i]) << what;
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

inline constexpr std::size_t kSkipNone = static_cast<std::size_t>(-1);

/// Runs a case on the device, in floats and in bfloat16, and compares with the host. Returns what
/// it wrote, of both.
inline std::vector<std::vector<Data>> Compare(nn::KernelLibrary& library, const Case& original,
                                              const Host& host = RunOnHost,
                                              std::size_t skip = kSkipNone) {
  Case c = original;
  std::vector<std::vector<Data>> results;
  results.push_back(RunCheckedOnCuda(library, c.spec, c.reads, c.in_place, c.scalars));
  ExpectOutputs(c.spec, results.back(), host(c), c.tolerance, skip);
  const auto [spec, reads] = InBfloat16(&c);
  if (spec == c.spec) return results;
  results.push_back(RunCheckedOnCuda(library, spec, reads, c.in_place, c.scalars));
  ExpectOutputs(spec, results.back(), host(c), c.tolerance, skip);
  return results;
}

}  // namespace plimsoll::cuda
