// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"

namespace plimsoll::nn {
namespace {

double CountOf(const Tensor& tensor) { return static_cast<double>(tensor.count()); }

/// Every output is a product of two vectors, as long as a row of the weights.
double ProductFlops(double outputs, const Shape& weight) {
  const std::int64_t row = Count(weight) / weight[0];
  return 2.0 * outputs * static_cast<double>(row);
}

double AttentionFlops(const Tensor& qkv, const Attributes& attributes) {
  // Two products of t x t x d; half of them are never needed if later positions are not seen.
  const double products = CountOf(qkv) / 3 * static_cast<double>(qkv.shape[1]) * 4;
  return attributes.causal ? products / 2 : products;
}

double LstmFlops(const Tensor& gates, const Shape& w_input, const Shape& w_hidden) {
  return ProductFlops(CountOf(gates), w_input) + ProductFlops(CountOf(gates), w_hidden);
}

}  // namespace

const std::vector<MachineSpeed>& MachineSpeeds() {
  static const std::vector<MachineSpeed> speeds = {
      {"host", 1.2e11, 1.2e10, 2'000},
      {"h200-fp32", 4.5e13, 3.6e12, 4'000, true, 32},
      {"h200-tf32", 2.5e14, 3.6e12, 4'000, true, 32},
      {"h200-bf16", 7e14, 3.6e12, 4'000, true, 32},
  };
  return speeds;
}

const MachineSpeed& FindMachineSpeed(std::string_view name) {
  std::string names;
  for (const MachineSpeed& speed : MachineSpeeds()) {
    if (speed.name == name) return speed;
    names += (names.empty() ? "" : ", ") + speed.name;
  }
  throw Error(fmt::format("no machine is called {}; there are {}", name, names));
}

double FlopsOf(const OpSpec& spec) {
  switch (spec.kind) {
    case OpKind::kConvForward:
    case OpKind::kLinearForward:
      return ProductFlops(CountOf(spec.writes[0]), spec.reads[1].shape);
    case OpKind::kConvBackwardWeights:
    case OpKind::kLinearBackwardWeights:
      return ProductFlops(CountOf(spec.reads[1]), spec.writes[0].shape);
    case OpKind::kConvBackwardData:
    case OpKind::kLinearBackwardData:
      return ProductFlops(CountOf(spec.reads[0]), spec.reads[1].shape);
    // Every pixel that goes in meets all of the weights of its channel.
    case OpKind::kTransposedConvForward:
      return 2 * CountOf(spec.reads[0]) * CountOf(spec.reads[1]) /
             static_cast<double>(spec.reads[0].shape.back());
    case OpKind::kTransposedConvBackwardWeights:
      return 2 * CountOf(spec.reads[0]) * CountOf(spec.writes[0]) /
             static_cast<double>(spec.reads[0].shape.back());
    case OpKind::kTransposedConvBackwardData:
      return 2 * CountOf(spec.writes[0]) * CountOf(spec.reads[1]) /
             static_cast<double>(spec.writes[0].shape.back());
    case OpKind::kAttentionForward:
      return AttentionFlops(spec.reads[0], spec.attributes);
    case OpKind::kAttentionBackward:
      return 2.5 * AttentionFlops(spec.reads[0], spec.attributes);
    case OpKind::kLstmForward: {
      Tensor gates = spec.writes[0];
      gates.shape.back() *= 4;
      return LstmFlops(gates, spec.reads[1].shape, spec.reads[2].shape);
    }
    case OpKind::kLstmBackward:
      return 2 * LstmFlops(spec.reads[4], spec.reads[1].shape, spec.reads[2].shape);
    case OpKind::kSgdUpdate:
    case OpKind::kAdamWUpdate: {
      // Weights come first of each group of operands, and are written once, as each moment.
      double count = 0;
      for (const Tensor& tensor : spec.writes) count += CountOf(tensor);
      return 4 * count / (spec.kind == OpKind::kSgdUpdate ? 2 : 3);
    }
    default: {
      // A few operations an element: memory decides.
      double count = 0;
      for (const Tensor& tensor : spec.writes) count = std::max(count, CountOf(tensor));
      return 4 * count;
    }
  }
}

double BytesMovedBy(const OpSpec& spec) {
  double bytes = 0;
  for (const Tensor& tensor : spec.reads) bytes += static_cast<double>(tensor.size_bytes());
  for (const Tensor& tensor : spec.writes) bytes += static_cast<double>(tensor.size_bytes());
  return bytes;
}

Nanoseconds ExpectedTime(const OpSpec& spec, const MachineSpeed& speed) {
  const double seconds =
      std::max(FlopsOf(spec) / speed.flops_per_s, BytesMovedBy(spec) / speed.bytes_per_s);
  return speed.latency_ns + std::llround(seconds * 1e9);
}

}  // namespace plimsoll::nn
