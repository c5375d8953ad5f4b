// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/fractional.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/base/check.h"

namespace plimsoll::chain {
namespace {

double BytesPerNanosecond(const Model& model) {
  return static_cast<double>(model.bandwidth_bytes_per_s) * 1e-9;
}

}  // namespace

Terms<double> RealTerms(const Chain& chain, const Model& model, Bytes limit_bytes) {
  Terms<double> terms;
  const double speed = BytesPerNanosecond(model);
  for (std::size_t i = 0; i <= chain.stages.size(); ++i) {
    terms.activation.push_back(static_cast<double>(chain.ActivationBytes(i)));
    terms.gradient.push_back(static_cast<double>(chain.GradientBytes(i)));
  }
  for (const Stage& stage : chain.stages) {
    terms.forward_temp.push_back(static_cast<double>(stage.forward_temp_bytes));
    terms.backward_temp.push_back(static_cast<double>(stage.backward_temp_bytes));
    terms.forward.push_back(static_cast<double>(stage.forward_ns) * speed);
    terms.backward.push_back(static_cast<double>(stage.backward_ns) * speed);
  }
  terms.limit = static_cast<double>(limit_bytes);
  return terms;
}

std::optional<double> InterruptibleMakespan(const Terms<double>& terms, const Model& model,
                                            const std::vector<double>& amounts) {
  // Sums of reals may miss a limit that they meet exactly; a thousandth of a byte is no byte.
  Terms<double> eased = terms;
  eased.limit += 1e-3;
  Phase<double> phase = FirstPhase(eased);
  for (std::size_t i = 0; i < terms.stages(); ++i) {
    const auto next = PassStage(eased, i, phase, amounts[i]);
    if (!next) return std::nullopt;
    phase = *next;
  }
  const double idle = phase.idle + IdleBetween(eased, phase);
  return static_cast<double>(model.compute_ns) + idle / BytesPerNanosecond(model);
}

Nanoseconds FractionalOptimum(const Chain& chain, const Model& model, Bytes limit_bytes) {
  PLIMSOLL_CHECK(limit_bytes >= model.smallest_limit_bytes,
                 fmt::format("{} < {}", limit_bytes, model.smallest_limit_bytes));
  Bytes left = std::max<Bytes>(0, model.peak_bytes - limit_bytes);
  std::vector<double> amounts;
  for (std::size_t i = 0; i < model.stages; ++i) {
    const Bytes amount = std::min(left, model.activation_bytes[i]);
    amounts.push_back(static_cast<double>(amount));
    left -= amount;
  }
  const auto makespan = InterruptibleMakespan(RealTerms(chain, model, limit_bytes), model, amounts);
  PLIMSOLL_CHECK(makespan, fmt::format("theorem 2 fails at {} bytes", limit_bytes));
  // Rounded down, with room for the rounding of sums, so that it stays a bound.
  const double bound = std::floor(*makespan * (1 - 1e-12) - 1e-3);
  return std::max(LowerBound(model, limit_bytes), static_cast<Nanoseconds>(bound));
}

}  // namespace plimsoll::chain
