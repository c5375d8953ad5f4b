// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"

namespace plimsoll::chain {
namespace {

/// Times stay exact in double precision up to here (104 days).
constexpr Nanoseconds kMaxTime = Nanoseconds{1} << 53;

/// Adds a value of the chain to a sum, or says what is wrong with it.
class Adder {
 public:
  Adder(const std::string& source, const std::string& unit, std::int64_t most)
      : source_(source), unit_(unit), most_(most) {}

  void Add(std::int64_t value, const std::string& where, const char* what) {
    if (value < 0) {
      throw InputError(source_, 0, fmt::format("{}: {} is negative", where, what));
    }
    if (value >= most_ - sum_) {
      throw InputError(source_, 0,
                       fmt::format("{}: with {} the sum reaches {} {}", where, what, most_, unit_));
    }
    sum_ += value;
  }

 private:
  const std::string& source_;
  std::string unit_;
  std::int64_t most_;
  std::int64_t sum_ = 0;
};

}  // namespace

Chain ScaleTimes(Chain chain, double factor) {
  const auto scale = [factor](Nanoseconds time) {
    return static_cast<Nanoseconds>(std::llround(static_cast<double>(time) * factor));
  };
  for (Stage& stage : chain.stages) {
    stage.forward_ns = scale(stage.forward_ns);
    stage.backward_ns = scale(stage.backward_ns);
  }
  return chain;
}

Nanoseconds TransferTime(Bytes bytes, std::int64_t bandwidth_bytes_per_s) {
  // 128 bits, because bytes times 10^9 leaves 64 from 9 GB on.
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(bytes) * 1'000'000'000U;
  const auto bandwidth = static_cast<Wide>(bandwidth_bytes_per_s);
  const Wide time = (product + bandwidth - 1) / bandwidth;
  return static_cast<Nanoseconds>(std::min<Wide>(time, static_cast<Wide>(kMaxTime)));
}

Model MakeModel(const Chain& chain, std::int64_t bandwidth_bytes_per_s) {
  PLIMSOLL_CHECK(bandwidth_bytes_per_s > 0, fmt::format("bandwidth {}", bandwidth_bytes_per_s));
  Model model;
  const std::size_t n = chain.stages.size();
  PLIMSOLL_CHECK(n > 0, "a chain without stages");
  model.stages = n;
  model.bandwidth_bytes_per_s = bandwidth_bytes_per_s;
  for (std::size_t i = 0; i <= n; ++i) {
    model.activation_bytes.push_back(chain.ActivationBytes(i));
    model.transfer_ns.push_back(TransferTime(chain.ActivationBytes(i), bandwidth_bytes_per_s));
  }
  model.return_op.resize(n);
  for (std::size_t i = 0; i < n; ++i) model.return_op[i] = model.BackwardOp(i);
  model.op_ns.resize(2 * n);
  model.total_bytes.resize(2 * n);
  model.own_bytes.resize(2 * n);
  Bytes others = 0;  // x_0 .. x_{i-1}: what F_i and B_i do not touch.
  for (std::size_t i = 0; i < n; ++i) {
    const Stage& stage = chain.stages[i];
    const Bytes read = chain.ActivationBytes(i) + chain.ActivationBytes(i + 1);
    const std::size_t forward = model.ForwardOp(i);
    const std::size_t backward = model.BackwardOp(i);
    model.op_ns[forward] = stage.forward_ns;
    model.op_ns[backward] = stage.backward_ns;
    model.own_bytes[forward] = read + stage.forward_temp_bytes;
    model.own_bytes[backward] =
        read + stage.backward_temp_bytes + chain.GradientBytes(i) + chain.GradientBytes(i + 1);
    for (const std::size_t op : {forward, backward}) {
      model.total_bytes[op] = others + model.own_bytes[op];
      model.compute_ns += model.op_ns[op];
      model.peak_bytes = std::max(model.peak_bytes, model.total_bytes[op]);
      if (model.own_bytes[op] > model.smallest_limit_bytes) {
        model.smallest_limit_bytes = model.own_bytes[op];
        model.smallest_limit_op = op;
      }
    }
    others += chain.ActivationBytes(i);
  }
  return model;
}

void CheckTransfers(const Chain& chain, const Model& model, const std::string& source) {
  Nanoseconds sum = 0;
  for (std::size_t i = 0; i <= chain.stages.size(); ++i) {
    if (model.transfer_ns[i] >= kMaxTime - sum) {
      throw InputError(source, 0,
                       fmt::format("x_{} has {} bytes: over a link of {} bytes per second, the "
                                   "activations take more than 104 days; name a faster one",
                                   i, model.activation_bytes[i], model.bandwidth_bytes_per_s));
    }
    sum += model.transfer_ns[i];
  }
}

std::string OpName(const Chain& chain, std::size_t op) {
  const std::size_t n = chain.stages.size();
  const bool forward = op < n;
  return fmt::format("{} of {}", forward ? "forward" : "backward",
                     chain.stages[forward ? op : 2 * n - 1 - op].name);
}

Nanoseconds LowerBound(const Model& model, Bytes limit_bytes) {
  const Bytes carried = std::max<Bytes>(0, model.peak_bytes - limit_bytes);
  return std::max(model.compute_ns, 2 * TransferTime(carried, model.bandwidth_bytes_per_s));
}

void CheckWellFormed(const Chain& chain, const std::string& source) {
  if (chain.stages.empty()) throw InputError(source, 0, "the chain has no stages");
  Adder bytes(source, "bytes", kMaxBytes);
  Adder times(source, "ns", kMaxTime);
  bytes.Add(chain.input_bytes, "the chain", "input_bytes");
  bytes.Add(chain.output_gradient_bytes, "the chain", "output_gradient_bytes");
  for (std::size_t i = 0; i < chain.stages.size(); ++i) {
    const Stage& stage = chain.stages[i];
    const std::string where = fmt::format("stage {} ({})", i, Quote(stage.name));
    bytes.Add(stage.kept_bytes, where, "kept_bytes");
    bytes.Add(stage.forward_temp_bytes, where, "forward_temp_bytes");
    bytes.Add(stage.backward_temp_bytes, where, "backward_temp_bytes");
    bytes.Add(stage.input_gradient_bytes, where, "input_gradient_bytes");
    if (stage.inside_bytes < 0 || stage.inside_bytes > stage.kept_bytes) {
      throw InputError(source, 0, fmt::format("{}: inside_bytes is no part of kept_bytes", where));
    }
    times.Add(stage.forward_ns, where, "forward_ms");
    times.Add(stage.backward_ns, where, "backward_ms");
  }
}

}  // namespace plimsoll::chain
