// SPDX-License-Identifier: Apache-2.0
//
// pofo: offloads and recomputes, after "Efficient Combination of Rematerialization and Offloading
// for Training DNNs" (Beaumont, Eyraud-Dubois, Shilova, NeurIPS 2021), from its published
// description. A dynamic program (pofo_states.cc) proposes recipes; the simulator of chains says
// what they are worth; a local search moves their blocks, marks and slots. It begins with the
// schedules of rotor and chainsearch as well, so that it is never behind any planner that only
// recomputes or only offloads.
#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "plimsoll/base/clock.h"
#include "plimsoll/chain/pofo_internal.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {
namespace {

/// Recipes of the dynamic program that are played.
constexpr std::size_t kMostRecipes = 100;
/// Recipes that the local search looks at, times stages.
constexpr std::size_t kWork = 400'000;
/// Times the iteration without a limit: what takes longer is not looked for.
constexpr Nanoseconds kSlowest = 100;
/// Of the iteration: what a change for the worse may cost at first.
constexpr double kHeat = 0.004;

class Search {
 public:
  Search(const Question& question, const PlannerOptions& options)
      : question_(question),
        options_(options),
        deadline_(options.time_budget_seconds),
        table_(MakeRotorTable(question, RotorSlots(question.model.stages))),
        kitchen_(question, table_),
        random_(options.seed) {}

  std::optional<Schedule> Run() {
    // Below, offloading alone cannot do.
    if (question_.limit_bytes >= question_.model.smallest_limit_bytes) {
      Consider(PlanChainSearch(question_, options_));
    }
    std::optional<Order> order = RotorOrder(question_, table_);
    if (order) {
      const Model model =
          MakeModel(question_.chain, question_.model.bandwidth_bytes_per_s, std::move(*order));
      Consider(Simulator(model, question_.limit_bytes).Play({}));
    }
    const std::size_t n = question_.model.stages;
    if (best_ns_ <= question_.model.compute_ns || n < 2) return std::move(best_);
    const Nanoseconds below = std::min(best_ns_, kSlowest * question_.model.compute_ns);
    std::vector<Recipe> starts = ProposeRecipes(question_, table_, below, kMostRecipes);
    if (offloading_) starts.push_back(*offloading_);
    const std::int64_t slots = question_.limit_bytes / table_.slot_bytes();
    Recipe rotor{{{0, n - 1, true, slots}}, std::vector<char>(n, 0)};
    starts.push_back(rotor);
    Improve(std::move(starts));
    return std::move(best_);
  }

 private:
  void Consider(std::optional<Schedule> schedule) {
    if (!schedule) return;
    if (schedule->order.empty()) {
      offloading_ = PlainRecipe(question_.model.stages, &*schedule);
    }
    if (schedule->iteration_ns() >= best_ns_) return;
    best_ns_ = schedule->iteration_ns();
    best_ = std::move(schedule);
    if (options_.on_progress) options_.on_progress(best_ns_, question_.model.compute_ns);
  }

  void Improve(std::vector<Recipe> starts) {
    std::vector<std::pair<Nanoseconds, std::size_t>> ranks;
    for (std::size_t k = 0; k < starts.size(); ++k) {
      const Nanoseconds time = kitchen_.Time(starts[k]);
      if (time < best_ns_) Consider(kitchen_.Play(starts[k]));
      ranks.emplace_back(time, k);
    }
    std::sort(ranks.begin(), ranks.end());
    const std::size_t steps = kWork / question_.model.stages;
    constexpr std::size_t kRounds = 3;
    for (std::size_t round = 0; round < std::min(kRounds, ranks.size()); ++round) {
      const auto& [time, k] = ranks[round];
      if (time == Kitchen::kNever) break;
      Anneal(round == 2 && !found_.blocks.empty() ? found_ : starts[k], steps / kRounds);
    }
  }

  void Anneal(Recipe current, std::size_t steps) {
    Nanoseconds time = kitchen_.Time(current);
    for (std::size_t step = 0; step < steps && !deadline_.passed(); ++step) {
      const double left = 1 - static_cast<double>(step) / static_cast<double>(steps);
      const double heat = kHeat * static_cast<double>(question_.model.compute_ns) * left * left;
      Recipe next = current;
      Change(&next);
      if (next == current) continue;
      const Nanoseconds next_time = kitchen_.Time(next);
      if (next_time == Kitchen::kNever) continue;
      const double chance = std::max(1e-9, static_cast<double>(random_() >> 11) * 0x1p-53);
      if (static_cast<double>(next_time - time) > -heat * std::log(chance)) continue;
      current = std::move(next);
      time = next_time;
      if (time < best_ns_) {
        found_ = current;
        Consider(kitchen_.Play(current));
      }
      if (best_ns_ <= question_.model.compute_ns) return;
    }
  }

  std::size_t Draw(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  void Change(Recipe* recipe) {
    const int changes = Draw(3) == 0 ? 2 : 1;
    for (int k = 0; k < changes; ++k) {
      switch (Draw(8)) {
        case 0:
        case 1:
        case 2:
          Toggle(recipe);
          break;
        case 3:
          Resize(recipe);
          break;
        case 4:
        case 5:
          MoveBorder(recipe);
          break;
        case 6:
          Merge(recipe);
          break;
        default:
          Split(recipe);
          break;
      }
    }
  }

  /// Lets an activation leave or stay; or another one in its place.
  void Toggle(Recipe* recipe) {
    const std::size_t i = Draw(recipe->offloaded.size());
    recipe->offloaded[i] ^= 1;
    if (Draw(2) == 0) return;
    const std::size_t j = Draw(recipe->offloaded.size());
    if (recipe->offloaded[j] == recipe->offloaded[i]) recipe->offloaded[j] ^= 1;
  }

  /// Gives a block more or less memory.
  void Resize(Recipe* recipe) {
    Block& block = recipe->blocks[Draw(recipe->blocks.size())];
    if (!block.again) return;
    const auto reach = static_cast<std::size_t>(std::max<std::int64_t>(2, table_.slots() / 10));
    const auto step = static_cast<std::int64_t>(1 + Draw(reach));
    block.slots =
        std::clamp<std::int64_t>(block.slots + (Draw(2) == 0 ? step : -step), 0, table_.slots());
  }

  /// Two neighbours: one gets a stage of the other.
  void MoveBorder(Recipe* recipe) {
    if (recipe->blocks.size() < 2) return;
    const std::size_t k = Draw(recipe->blocks.size() - 1);
    Block& left = recipe->blocks[k];
    Block& right = recipe->blocks[k + 1];
    const bool grows = Draw(2) == 0;
    Block& giver = grows ? right : left;
    Block& taker = grows ? left : right;
    if (giver.first == giver.last) return;
    if (!taker.again) {
      taker.again = true;
      taker.slots = giver.slots;
    }
    left.last = grows ? left.last + 1 : left.last - 1;
    right.first = left.last + 1;
  }

  void Merge(Recipe* recipe) {
    if (recipe->blocks.size() < 2) return;
    const std::size_t k = Draw(recipe->blocks.size() - 1);
    Block& left = recipe->blocks[k];
    const Block& right = recipe->blocks[k + 1];
    left.slots = std::max({left.slots, right.slots, table_.slots() / 4});
    left.again = true;
    left.last = right.last;
    recipe->blocks.erase(recipe->blocks.begin() + static_cast<std::ptrdiff_t>(k) + 1);
  }

  /// Cuts a block in two; one of a single stage keeps everything, or no longer does.
  void Split(Recipe* recipe) {
    const std::size_t k = Draw(recipe->blocks.size());
    Block& block = recipe->blocks[k];
    if (block.first == block.last) {
      block.again = !block.again;
      block.slots = std::max(block.slots, table_.slots() / 2);
      return;
    }
    Block right = block;
    const std::size_t cut = block.first + Draw(block.last - block.first);
    block.last = cut;
    right.first = cut + 1;
    if (block.first == block.last && Draw(2) == 0) block.again = false;
    if (right.first == right.last && Draw(2) == 0) right.again = false;
    recipe->blocks.insert(recipe->blocks.begin() + static_cast<std::ptrdiff_t>(k) + 1, right);
  }

  const Question& question_;
  const PlannerOptions& options_;
  const Deadline deadline_;
  const RotorTable table_;
  const Kitchen kitchen_;
  std::mt19937_64 random_;
  Nanoseconds best_ns_ = Kitchen::kNever;
  std::optional<Schedule> best_;
  std::optional<Recipe> offloading_;
  Recipe found_;  // The best by the local search.
};

}  // namespace

std::optional<Schedule> PlanPofo(const Question& question, const PlannerOptions& options) {
  if (question.limit_bytes >= question.model.peak_bytes) {
    return Simulator(question.model, question.limit_bytes).Play({});
  }
  return Search(question, options).Run();
}

}  // namespace plimsoll::chain
