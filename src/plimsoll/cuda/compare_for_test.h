// SPDX-License-Identifier: Apache-2.0
//
// Compares ops on the device with the same ops on the host, in both types: by ExpectClose() where a
// test says for each element how far it may be off, by Compare() where the whole tensor says it.
// For tests only.
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

#include "plimsoll/cuda/library.h"
#include "plimsoll/cuda/run_cuda_for_test.h"
#include "plimsoll/nn/bfloat16.h"
#include "plimsoll/nn/onednn/run_for_test.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::cuda {

using nn::Attributes;
using nn::ElementType;
using nn::OpKind;
using nn::OpSpec;
using nn::Shape;
using nn::Tensor;

/// Chooses by heuristics, the same each time.
inline nn::KernelLibrary& Reproducible() {
  static const auto library = MakeCudaLibrary({.reproducible = true});
  return *library;
}
/// Times kernels, and takes the fastest.
inline nn::KernelLibrary& Tuned() {
  static const auto library = MakeCudaLibrary({});
  return *library;
}

/// Numbers that bfloat16 has, as floats or in that type.
inline Data RandomData(const Tensor& tensor, std::uint64_t seed) {
  Data floats = nn::onednn::RandomFloats({tensor.shape, ElementType::kFloat}, seed);
  for (float& x : As<float>(floats)) {
    x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000U);
  }
  return floats;
}
inline Data ToBfloat16(const Data& floats) {
  Data data(floats.size() / 2);
  std::transform(As<float>(floats).begin(), As<float>(floats).end(),
                 As<std::uint16_t>(data).begin(), nn::ToBfloat16);
  return data;
}
inline Data FromBfloat16(const Data& halves) {
  Data data(halves.size() * 2);
  std::transform(As<std::uint16_t>(halves).begin(), As<std::uint16_t>(halves).end(),
                 As<float>(data).begin(), nn::FromBfloat16);
  return data;
}
inline Data ToType(const Data& floats, ElementType type) {
  return type == ElementType::kBfloat16 ? ToBfloat16(floats) : floats;
}
inline Data ToFloatData(const Data& data, ElementType type) {
  return type == ElementType::kBfloat16 ? FromBfloat16(data) : data;
}

/// The same op in floats, for the host.
inline OpSpec InFloats(OpSpec spec) {
  for (auto* list : {&spec.reads, &spec.writes}) {
    for (Tensor& tensor : *list) tensor.type = ElementType::kFloat;
  }
  return spec;
}

inline std::vector<Data> RandomReads(const OpSpec& spec) {
  std::vector<Data> reads;
  for (const Tensor& tensor : spec.reads) reads.push_back(RandomData(tensor, reads.size() + 1));
  return reads;
}
inline std::vector<Data> Typed(const OpSpec& spec, const std::vector<Data>& floats) {
  std::vector<Data> typed;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    typed.push_back(ToType(floats[i], spec.reads[i].type));
  }
  return typed;
}

/// How far results may be from the host's: a part of what `bounds` says for each element.
inline void ExpectClose(const OpSpec& spec, const std::vector<Data>& actual,
                        const std::vector<Data>& expected, const std::vector<Data>& bounds,
                        double tolerance, const char* library) {
  for (std::size_t i = 0; i < spec.writes.size(); ++i) {
    const Data floats = ToFloatData(actual[i], spec.writes[i].type);
    const auto a = As<float>(floats);
    const auto e = As<float>(expected[i]);
    const auto b = As<float>(bounds[i]);
    ASSERT_EQ(a.size(), e.size());
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t j = 0; j < a.size(); ++j) {
      const double difference = std::abs(static_cast<double>(a[j]) - static_cast<double>(e[j]));
      const double part = difference / (std::abs(static_cast<double>(b[j])) + 1e-6);
      // Written so that what is no number is the worst of all.
      if (!(part <= worst)) {
        worst = part;
        at = j;
      }
      if (std::isnan(part)) break;
    }
    EXPECT_LE(worst, tolerance) << library << ", " << Describe(spec) << ": output " << i << " at "
                                << at << " is " << a[at] << ", not " << e[at];
  }
}

/// The largest number of each output, for all of its elements.
inline std::vector<Data> LargestOf(const std::vector<Data>& outputs) {
  std::vector<Data> bounds = outputs;
  for (Data& data : bounds) {
    float most = 0;
    for (const float x : As<float>(data)) most = std::max(most, std::abs(x));
    std::fill(As<float>(data).begin(), As<float>(data).end(), most);
  }
  return bounds;
}

/// Which operands are activations or their gradients; those that are not there do not matter.
struct ActivationOperands {
  std::vector<std::size_t> reads;
  std::vector<std::size_t> writes;
};

inline ActivationOperands ActivationsOf(OpKind kind) {
  using enum OpKind;
  switch (kind) {
    case kBatchNormStatistics:
      return {{0}, {}};
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

/// An op in floats, and what the device may do with it.
struct Case {
  OpSpec spec;
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
inline std::pair<OpSpec, std::vector<Data>> InBfloat16(Case* c) {
  OpSpec spec = c->spec;
  std::vector<Data> reads = c->reads;
  const ActivationOperands operands = ActivationsOf(spec.kind);
  for (const std::size_t i : operands.reads) {
    if (i >= reads.size()) continue;
    spec.reads[i].type = ElementType::kBfloat16;
    reads[i] = ToBfloat16(c->reads[i]);
    c->reads[i] = FromBfloat16(reads[i]);
  }
  for (const std::size_t i : operands.writes) {
    if (i < spec.writes.size()) spec.writes[i].type = ElementType::kBfloat16;
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
inline void ExpectOutputs(const OpSpec& spec, const std::vector<Data>& actual,
                          const std::vector<Data>& expected, double tolerance, std::size_t skip) {
  for (std::size_t i = 0; i < spec.writes.size(); ++i) {
    if (i == skip) continue;
    const std::string what = nn::Describe(spec) + ", output " + std::to_string(i);
    if (spec.writes[i].type == ElementType::kFloat) {
      ExpectClose(actual[i], expected[i], tolerance, tolerance, what);
    } else if (spec.writes[i].type == ElementType::kBfloat16) {
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
