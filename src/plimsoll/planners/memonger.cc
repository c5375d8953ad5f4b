// SPDX-License-Identifier: Apache-2.0
//
// `memonger`: Chen, Xu, Zhang, Guestrin, "Training deep nets with sublinear memory cost", 2016.
//
// Forward is cut into segments (their algorithm 3): maps are added up in program order, and where
// they exceed a budget, a segment ends. What lies across the cut is kept, everything inside is
// dropped, and backward rebuilds a segment when it comes to it. The budget is searched for: for
// equal layers, the best one makes about as many segments as there are layers in each.
//
//     kept      ●           ●           ●
//     forward   ├─ segment ─┼─ segment ─┼─ last: stays ─┤
//
// Reproduced: the planner by a budget and the search over it. Different: where a segment may end is
// not told by the user but found, behind the op across which the fewest bytes lie in the second
// half of the budget; their grid of six budgets is a finer one over all sizes; of what fits, the
// cheapest is taken, not what needs least; the last segment, which backward needs at once, stays.
// Left out: recursion into segments (their section 4.4).
#include <algorithm>
#include <utility>
#include <vector>

#include "plimsoll/planners/forward_internal.h"

namespace plimsoll::planners {
namespace {

/// Between one budget and the next.
constexpr double kStep = 0.84;

/// Bytes of droppable maps that each op of the iteration makes.
std::vector<Bytes> ListMade(const Question& question, const std::vector<FeatureMap>& maps) {
  std::vector<Bytes> made(question.problem.ops.size(), 0);
  for (const FeatureMap& map : maps) {
    if (map.droppable) made[static_cast<std::size_t>(map.made)] += map.size_bytes;
  }
  return made;
}

/// Ends a segment where the budget is spent.
std::vector<const Cut*> CutByBudget(const std::vector<Cut>& cuts, const std::vector<Bytes>& made,
                                    Bytes budget_bytes) {
  std::vector<const Cut*> chosen;
  const Cut* best = nullptr;
  Bytes since_best = 0;
  Bytes bytes = 0;
  auto next = cuts.begin();
  for (std::size_t i = 0; i < made.size(); ++i) {
    bytes += made[i];
    since_best += made[i];
    if (next != cuts.end() && static_cast<std::size_t>(next->after) == i) {
      if (bytes > budget_bytes / 2 && (best == nullptr || next->bytes <= best->bytes)) {
        best = &*next;
        since_best = 0;
      }
      ++next;
    }
    if (bytes <= budget_bytes || best == nullptr) continue;
    chosen.push_back(best);
    best = nullptr;
    bytes = since_best;
  }
  return chosen;
}

}  // namespace

Chooser ChooseMemonger(const Question& question, JointEvaluator* evaluator) {
  const std::vector<FeatureMap> maps = ListFeatureMaps(question, *evaluator);
  const std::vector<Cut> cuts = ListCuts(question, maps);
  const std::vector<Bytes> made = ListMade(question, maps);
  Bytes total = 0;
  for (const Bytes bytes : made) total += bytes;
  const Bytes largest = made.empty() ? 0 : *std::max_element(made.begin(), made.end());
  Family family(question, evaluator);
  std::vector<const Cut*> before;
  for (auto budget = static_cast<double>(total);
       budget > 1 && 2 * budget > static_cast<double>(largest); budget *= kStep) {
    const auto chosen = CutByBudget(cuts, made, static_cast<Bytes>(budget));
    if (chosen.empty() || chosen == before) continue;
    family.Add(DropBetween(chosen, chosen.back()->after, maps, *evaluator));
    before = chosen;
  }
  return [family](Bytes load_limit) { return family.For(load_limit); };
}

}  // namespace plimsoll::planners
