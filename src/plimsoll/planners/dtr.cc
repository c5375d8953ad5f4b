// SPDX-License-Identifier: Apache-2.0
//
// `dtr`: Kirisame et al., "Dynamic tensor rematerialization", ICLR 2021.
//
// A runtime without a plan: when an op would exceed the budget, variables are dropped until it does
// not; when one that was dropped is needed, what made it runs again, to any depth, which may drop
// others. What goes is what has the least
//
//     h(v) = (own cost + cost of the dropped neighbourhood) / (size · staleness)
//
// The neighbourhood, what else would have to run again for v or is rebuilt from it, is that of
// their section 4.1: classes of dropped neighbours, joined by union-find when something is dropped;
// what comes back leaves its class without splitting it.
//
// Reproduced: that heuristic, on-demand rebuilding, and that what the program frees can be rebuilt.
// Different: what was dropped in an iteration at a budget is then a plan, and with a plan a
// variable goes right behind its last use, not when memory runs out. What is rebuilt on the way may
// stay longer than it did; so budgets below the limit are tried as well, and several rules for how
// long it stays. Of those that fit, the cheapest is taken.
#include <array>
#include <utility>
#include <vector>

#include "plimsoll/planners/dtr_runtime_internal.h"

namespace plimsoll::planners {
namespace {

/// Budgets that are tried, each as a share of the one before, and how many.
constexpr double kBudgetStep = 0.96;
constexpr int kBudgets = 24;
/// How long what is rebuilt on the way stays.
constexpr std::array<plan::OpIndex, 7> kHorizons = {plan::Rewriter::kFar, 100, 50, 24, 12, 6, 0};

}  // namespace

Chooser ChooseDtr(const Question& question, JointEvaluator* evaluator) {
  const DtrModel model(question, *evaluator);
  Family family(question, evaluator);
  auto budget = static_cast<double>(question.options.limit_bytes);
  std::vector<Choice> before;
  int failures = 0;
  for (int k = 0; k < kBudgets && failures < 2; ++k, budget *= kBudgetStep) {
    DtrRuntime runtime(model, static_cast<Bytes>(budget));
    std::vector<Choice> choices = runtime.Run();
    if (runtime.failed()) ++failures;
    if (choices == before) continue;
    for (const plan::OpIndex horizon : kHorizons) {
      // What stays shorter costs more; no need to if it fits anyway.
      if (family.Add({choices, horizon}) <= static_cast<Bytes>(budget)) break;
    }
    before = std::move(choices);
  }
  return [family](Bytes load_limit) { return family.For(load_limit); };
}

}  // namespace plimsoll::planners
