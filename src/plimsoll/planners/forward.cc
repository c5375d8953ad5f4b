// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/forward_internal.h"

namespace plimsoll::planners {
namespace {

using plan::OpIndex;

bool IsForward(const plan::Problem& problem, OpIndex op) {
  return problem.ops[At(op)].phase == trace::Phase::kForward;
}

/// The forward life of anything that ops of the phase hand on.
struct Life {
  OpIndex first = 0;
  OpIndex made = 0;
  OpIndex last = 0;
  std::int64_t map = -1;  ///< Index of the feature map that it is; none: never idle for long.
  Bytes size_bytes = 0;
  bool stays = false;  ///< Whether it is there when forward ends.
};

/// Of all variables that come and go within the iteration and are not small.
std::vector<Life> ListLives(const Question& question, const std::vector<FeatureMap>& maps) {
  const plan::Problem& problem = question.problem;
  std::vector<std::int64_t> map_of(problem.variables.size(), -1);
  for (std::size_t m = 0; m < maps.size(); ++m) {
    map_of[At(maps[m].variable)] = static_cast<std::int64_t>(m);
  }
  std::vector<Life> lives;
  const auto accesses = plan::ListAccesses(problem);
  for (std::size_t v = 0; v < accesses.size(); ++v) {
    const plan::Variable& variable = problem.variables[v];
    if (variable.persistent() || variable.end > problem.period || accesses[v].empty()) continue;
    if (variable.size_bytes < question.options.least_bytes) continue;
    Life life{accesses[v].front().op, 0, 0, map_of[v], variable.size_bytes, false};
    if (!IsForward(problem, life.first)) continue;
    for (const plan::Access& access : accesses[v]) {
      life.stays = !IsForward(problem, access.op);
      if (life.stays) break;
      if (access.writes) life.made = access.op;
      life.last = access.op;
    }
    lives.push_back(life);
  }
  std::sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) {
    return std::pair(a.first, a.map) < std::pair(b.first, b.map);
  });
  return lives;
}

}  // namespace

std::vector<FeatureMap> ListFeatureMaps(const Question& question, const JointEvaluator& evaluator) {
  const plan::Problem& problem = question.problem;
  const Lineage lineage(problem);
  const std::vector<bool> droppable = ListDroppable(evaluator, lineage);
  std::vector<FeatureMap> maps;
  for (std::size_t g = 0; g < droppable.size(); ++g) {
    const plan::Gap& gap = evaluator.gaps()[g];
    if (problem.variables[At(gap.variable)].persistent() || gap.end >= problem.period) continue;
    if (!IsForward(problem, gap.after) || IsForward(problem, gap.before)) continue;
    const Content content = lineage.After(gap.variable, gap.after);
    if (content.version == 0) continue;  // Made by nobody that we know.
    const auto writers = lineage.writers(gap.variable);
    maps.push_back({gap.variable, g, writers[0], writers[At(content.version) - 1], gap.after,
                    evaluator.SizeOf(g), droppable[g]});
  }
  std::sort(maps.begin(), maps.end(), [](const FeatureMap& a, const FeatureMap& b) {
    return std::pair(a.first, a.variable) < std::pair(b.first, b.variable);
  });
  return maps;
}

std::vector<Cut> ListCuts(const Question& question, const std::vector<FeatureMap>& maps) {
  const std::vector<Life> lives = ListLives(question, maps);
  std::vector<Cut> cuts;
  std::vector<const Life*> active;
  std::size_t next = 0;
  for (std::size_t i = 0; i < question.problem.ops.size() && !lives.empty(); ++i) {
    const auto op = static_cast<OpIndex>(i);
    if (!IsForward(question.problem, op)) continue;
    for (; next < lives.size() && lives[next].first <= op; ++next) active.push_back(&lives[next]);
    std::erase_if(active, [&](const Life* life) { return life->last <= op; });
    const bool clean = std::all_of(active.begin(), active.end(), [&](const Life* life) {
      return life->stays && life->made <= op;
    });
    if (!clean || active.empty()) continue;
    Cut cut{op, {}, active.size(), 0};
    for (const Life* life : active) {
      if (life->map >= 0) cut.across.push_back(At(life->map));
      cut.bytes += life->size_bytes;
    }
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

Offer DropBetween(const std::vector<const Cut*>& cuts, OpIndex last_dropped,
                  const std::vector<FeatureMap>& maps, const JointEvaluator& evaluator) {
  std::vector<bool> kept(maps.size(), false);
  for (const Cut* cut : cuts) {
    for (const std::size_t m : cut->across) kept[m] = true;
  }
  Offer offer = KeepAll(evaluator);
  for (std::size_t m = 0; m < maps.size(); ++m) {
    if (kept[m] || !maps[m].droppable || maps[m].made > last_dropped) continue;
    offer.choices[maps[m].gap] = Choice::kDrop;
  }
  return offer;
}

}  // namespace plimsoll::planners
