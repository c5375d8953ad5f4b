// SPDX-License-Identifier: Apache-2.0
//
// Greedy, paper 002, section 4.2: theorem 2 rounded up. Offloads the first activations, as few as
// suffice to carry M_peak - limit bytes.
#include <algorithm>

#include "plimsoll/chain/planner.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {

std::optional<Schedule> PlanGreedy(const Question& question, const PlannerOptions& /*options*/) {
  const Model& model = question.model;
  std::vector<char> offloaded(model.stages, 0);
  Bytes left = model.peak_bytes - question.limit_bytes;
  for (std::size_t i = 0; i < model.stages && left > 0; ++i) {
    offloaded[i] = 1;
    left -= model.activation_bytes[i];
  }
  return Simulator(model, question.limit_bytes).Play(OrderedDecision(offloaded));
}

}  // namespace plimsoll::chain
