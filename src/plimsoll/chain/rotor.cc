// SPDX-License-Identifier: Apache-2.0
//
// rotor: recomputation alone, optimal among schedules that keep what they keep until it is used
// (rotor_table.h). Memory is cut into slots. Sizes are rounded to the nearest slot, and the real
// peak of the order that comes out decides: as many slots are granted as keep the limit.
#include "plimsoll/chain/rotor.h"

#include <algorithm>

#include "plimsoll/chain/order.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {
namespace {

/// How far the slots that are granted may be from those of the limit, either way.
constexpr std::int64_t kSpare = 8;  // An eighth.

}  // namespace

std::int64_t RotorSlots(std::size_t stages) {
  return std::clamp<std::int64_t>(5'000'000 / static_cast<std::int64_t>(stages * stages), 500,
                                  5'000);
}

RotorTable MakeRotorTable(const Question& question, std::int64_t slots) {
  const Bytes slot = std::max<Bytes>(1, (question.limit_bytes + slots - 1) / slots);
  const std::int64_t of_limit = question.limit_bytes / slot;
  return {question.chain, slot, slot == 1 ? of_limit : of_limit + of_limit / kSpare};
}

std::optional<Order> RotorOrder(const Question& question, const RotorTable& table) {
  const Chain& chain = question.chain;
  const std::size_t last = chain.stages.size() - 1;
  const std::int64_t of_limit = (question.limit_bytes - chain.input_bytes) / table.slot_bytes();
  const std::int64_t least = of_limit - of_limit / kSpare;
  const bool exact = table.slot_bytes() == 1;
  for (std::int64_t m = exact ? of_limit : table.slots(); m >= least && m >= 0; --m) {
    const double time = table.Time(0, last, m);
    if (time == RotorTable::kNever) break;
    // Of those that take equally long, the one that gets by with least.
    if (m > least && m > 0 && table.Time(0, last, m - 1) == time) continue;
    Order order;
    table.Append(0, last, m, &order);
    const Model model = MakeModel(chain, question.model.bandwidth_bytes_per_s, order);
    if (model.peak_bytes <= question.limit_bytes) return order;
  }
  return std::nullopt;
}

std::optional<Schedule> PlanRotor(const Question& question, const PlannerOptions& /*options*/) {
  if (question.limit_bytes >= question.model.peak_bytes) {
    return Simulator(question.model, question.limit_bytes).Play({});
  }
  const std::optional<Order> order =
      RotorOrder(question, MakeRotorTable(question, RotorSlots(question.model.stages)));
  if (!order) return std::nullopt;
  const Model model = MakeModel(question.chain, question.model.bandwidth_bytes_per_s, *order);
  return Simulator(model, question.limit_bytes).Play({});
}

}  // namespace plimsoll::chain
