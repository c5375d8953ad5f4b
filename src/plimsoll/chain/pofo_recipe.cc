// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "plimsoll/chain/order.h"
#include "plimsoll/chain/pofo_internal.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {

Recipe PlainRecipe(std::size_t stages, const Schedule* schedule) {
  Recipe recipe;
  for (std::size_t i = 0; i < stages; ++i) recipe.blocks.push_back({i, i, false, 0});
  recipe.offloaded.assign(stages, 0);
  if (schedule == nullptr) return recipe;
  for (const TimedTransfer& timed : schedule->transfers) {
    recipe.offloaded[static_cast<std::size_t>(timed.transfer.activation)] = 1;
  }
  return recipe;
}

std::optional<Model> Kitchen::MakeModelOf(const Recipe& recipe) const {
  const std::size_t n = question_.model.stages;
  Order order;
  const Block& end = recipe.blocks.back();
  const std::size_t swept = end.again ? end.first : n;
  for (std::size_t i = 0; i < swept; ++i) order.push_back(static_cast<std::int32_t>(i));
  for (std::size_t k = recipe.blocks.size(); k-- > 0;) {
    const Block& block = recipe.blocks[k];
    if (!block.again) {
      order.push_back(static_cast<std::int32_t>(2 * n - 1 - block.first));
      continue;
    }
    if (table_.Time(block.first, block.last, block.slots) == RotorTable::kNever) {
      return std::nullopt;
    }
    table_.Append(block.first, block.last, block.slots, &order);
  }
  return MakeModel(question_.chain, question_.model.bandwidth_bytes_per_s, std::move(order));
}

Decision Kitchen::DecisionOf(const Recipe& recipe, const Model& model) const {
  std::vector<char> offloaded = recipe.offloaded;
  for (std::size_t i = 0; i < offloaded.size(); ++i) {
    if (model.return_op[i] == kNoOp) offloaded[i] = 0;
  }
  return OrderedDecision(offloaded);
}

Nanoseconds Kitchen::Time(const Recipe& recipe) const {
  const std::optional<Model> model = MakeModelOf(recipe);
  if (!model || model->smallest_limit_bytes > question_.limit_bytes) return kNever;
  Simulator simulator(*model, question_.limit_bytes);
  return simulator.Makespan(DecisionOf(recipe, *model)).value_or(kNever);
}

std::optional<Schedule> Kitchen::Play(const Recipe& recipe) const {
  const std::optional<Model> model = MakeModelOf(recipe);
  if (!model) return std::nullopt;
  return Simulator(*model, question_.limit_bytes).Play(DecisionOf(recipe, *model));
}

}  // namespace plimsoll::chain
