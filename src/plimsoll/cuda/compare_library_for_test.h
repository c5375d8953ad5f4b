// SPDX-License-Identifier: Apache-2.0
//
// Compares what a library for GPUs computes with what the host's does. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "plimsoll/cuda/library.h"
#include "plimsoll/cuda/run_cuda_for_test.h"
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
inline Data ToType(const Data& floats, ElementType type) {
  if (type != ElementType::kBfloat16) return floats;
  Data data(floats.size() / 2);
  for (std::size_t i = 0; i < As<float>(floats).size(); ++i) {
    As<std::uint16_t>(data)[i] =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(As<float>(floats)[i]) >> 16);
  }
  return data;
}
inline Data ToFloatData(const Data& data, ElementType type) {
  if (type != ElementType::kBfloat16) return data;
  Data floats(data.size() * 2);
  for (std::size_t i = 0; i < As<float>(floats).size(); ++i) {
    As<float>(floats)[i] = std::bit_cast<float>(std::uint32_t{As<std::uint16_t>(data)[i]} << 16);
  }
  return floats;
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

}  // namespace plimsoll::cuda
