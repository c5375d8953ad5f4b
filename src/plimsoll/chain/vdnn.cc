// SPDX-License-Identifier: Apache-2.0
//
// vDNN as paper 002 (section 6.1) carries it over to chains, after vDNN++: the inputs of slow ops
// leave, because their way out hides best. For every threshold of u_F / |x| all activations at or
// above it are offloaded, or every other one of them; the best ordered schedule wins.
#include <algorithm>
#include <numeric>

#include "plimsoll/chain/planner.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {
namespace {

/// Orders activations by u_F / |x|, the largest first, without dividing by zero.
std::vector<std::size_t> ByLatencyPerByte(const Model& model) {
  std::vector<std::size_t> order(model.stages);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&model](std::size_t a, std::size_t b) {
    return static_cast<double>(model.op_ns[a]) * static_cast<double>(model.activation_bytes[b]) >
           static_cast<double>(model.op_ns[b]) * static_cast<double>(model.activation_bytes[a]);
  });
  return order;
}

std::vector<char> EveryOther(const std::vector<char>& marks) {
  std::vector<char> result(marks.size(), 0);
  bool take = true;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] == 0) continue;
    result[i] = take ? 1 : 0;
    take = !take;
  }
  return result;
}

}  // namespace

std::optional<Schedule> PlanVdnn(const Question& question, const PlannerOptions& /*options*/) {
  const Model& model = question.model;
  Simulator simulator(model, question.limit_bytes);
  std::vector<char> offloaded(model.stages, 0);
  std::optional<Nanoseconds> best;
  Decision best_decision;
  const auto consider = [&](const std::vector<char>& marks) {
    Decision decision = OrderedDecision(marks);
    const std::optional<Nanoseconds> makespan = simulator.Makespan(decision);
    if (!makespan || (best && *makespan >= *best)) return;
    best = makespan;
    best_decision = std::move(decision);
  };
  consider(offloaded);  // A threshold above every ratio.
  for (const std::size_t i : ByLatencyPerByte(model)) {
    offloaded[i] = 1;
    consider(offloaded);
    consider(EveryOther(offloaded));
  }
  if (!best) return std::nullopt;
  return simulator.Play(best_decision);
}

}  // namespace plimsoll::chain
