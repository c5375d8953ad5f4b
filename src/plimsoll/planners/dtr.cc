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
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "plimsoll/planners/choices_internal.h"
#include "plimsoll/planners/dropped_classes_internal.h"

namespace plimsoll::planners {
namespace {

using plan::OpIndex;
using plan::VariableIndex;

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Budgets that are tried, each as a share of the one before, and how many.
constexpr double kBudgetStep = 0.96;
constexpr int kBudgets = 24;
/// How long what is rebuilt on the way stays.
constexpr std::array<OpIndex, 7> kHorizons = {plan::Rewriter::kFar, 100, 50, 24, 12, 6, 0};

/// What every run at a budget needs to know.
struct Model {
  Model(const Question& question, const JointEvaluator& of)
      : problem(question.problem),
        evaluator(of),
        lineage(problem),
        droppable(ListDroppable(of, lineage)),
        gaps(problem.variables.size()),
        wanted(problem.ops.size()),
        frees(At(problem.period) + 1) {
    for (std::size_t g = 0; g < droppable.size(); ++g) {
      const plan::Gap& gap = of.gaps()[g];
      if (droppable[g]) gaps[At(gap.variable)].push_back(g);
      rebuild_ns.push_back(
          !droppable[g]
              ? 0
              : lineage.RebuildNs(lineage.After(gap.variable, gap.after), [&](Content content) {
                  return lineage.IsThere(content, gap.before);
                }));
    }
    const auto accesses = plan::ListAccesses(problem);
    for (std::size_t v = 0; v < accesses.size(); ++v) {
      const auto index = static_cast<VariableIndex>(v);
      const plan::Variable& variable = problem.variables[v];
      const bool is_inside = !variable.persistent() && variable.end <= problem.period;
      if (is_inside) frees[At(variable.end)].push_back(index);
      if (!is_inside) always_bytes += variable.size_bytes;
      for (const plan::Access& access : accesses[v]) wanted[At(access.op)].push_back(index);
    }
  }

  const plan::Problem& problem;
  const JointEvaluator& evaluator;
  const Lineage lineage;
  const std::vector<bool> droppable;
  std::vector<Nanoseconds> rebuild_ns;             // Per gap: if nothing else is dropped.
  std::vector<std::vector<std::size_t>> gaps;      // Per variable: those that can be dropped.
  std::vector<std::vector<VariableIndex>> wanted;  // Per op.
  std::vector<std::vector<VariableIndex>> frees;   // Per position.
  Bytes always_bytes = 0;                          // Of what is there all the time.
};

/// One iteration under a budget.
class Runtime {
 public:
  Runtime(const Model& model, Bytes budget_bytes)
      : model_(model),
        problem_(model.problem),
        budget_(budget_bytes),
        load_(model.always_bytes),
        classes_(problem_, model.lineage),
        resident_(problem_.variables.size(), false),
        locked_(problem_.variables.size(), 0),
        last_ns_(problem_.variables.size(), 0) {
    for (std::size_t v = 0; v < problem_.variables.size(); ++v) {
      const plan::Variable& variable = problem_.variables[v];
      resident_[v] = variable.persistent() || variable.end > problem_.period;
    }
  }

  Offer Run() {
    Offer offer = KeepAll(model_.evaluator);
    choices_ = &offer.choices;
    plan::Position done = 0;
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      now_ = static_cast<OpIndex>(i);
      for (; done <= problem_.ops[i].position; ++done) {
        for (const VariableIndex v : model_.frees[At(done)]) Free(v);
      }
      RunOp(model_.wanted[i]);
    }
    return offer;
  }

  /// Whether something did not fit with everything dropped that could be.
  bool failed() const { return failed_; }

 private:
  Bytes Size(VariableIndex v) const { return problem_.variables[At(v)].size_bytes; }

  void RunOp(const std::vector<VariableIndex>& wanted) {
    for (const VariableIndex v : wanted) ++locked_[At(v)];
    for (const VariableIndex v : wanted) {
      if (resident_[At(v)]) continue;
      if (classes_.is_dropped(v)) {
        Rebuild(model_.lineage.After(v, now_ - 1));
      } else {
        Take(v);
      }
    }
    clock_ns_ += problem_.ops[At(now_)].duration_ns;
    for (const VariableIndex v : wanted) {
      --locked_[At(v)];
      last_ns_[At(v)] = clock_ns_;
      // Scratch may be free by now, before the op that uses it.
      if (problem_.variables[At(v)].kind == plan::VariableKind::kWorkspace) Free(v);
    }
  }

  void Take(VariableIndex v) {
    MakeRoom(Size(v));
    load_ += Size(v);
    resident_[At(v)] = true;
    last_ns_[At(v)] = clock_ns_;
    if (!model_.gaps[At(v)].empty()) candidates_.push_back(v);
  }

  void Free(VariableIndex v) {
    if (resident_[At(v)]) load_ -= Size(v);
    resident_[At(v)] = false;
    if (classes_.is_dropped(v)) classes_.Return(v);
    std::erase(candidates_, v);
  }

  void MakeRoom(Bytes bytes) {
    while (load_ + bytes > budget_) {
      const auto [v, gap] = FindLeast();
      if (v < 0) {
        failed_ = true;
        return;
      }
      (*choices_)[gap] = Choice::kDrop;
      resident_[At(v)] = false;
      load_ -= Size(v);
      std::erase(candidates_, v);
      classes_.Drop(v, model_.rebuild_ns[gap]);
    }
  }

  /// The gap that the current op lies in, if its variable can be dropped there; else the end.
  std::size_t GapNow(VariableIndex v) const {
    for (const std::size_t g : model_.gaps[At(v)]) {
      const plan::Gap& gap = model_.evaluator.gaps()[g];
      if (gap.after < now_ && now_ < gap.before) return g;
    }
    return model_.droppable.size();
  }

  /// Who has the least h, and its gap; -1 if nothing can go.
  std::pair<VariableIndex, std::size_t> FindLeast() {
    std::pair<VariableIndex, std::size_t> least = {-1, 0};
    double least_h = 0;
    for (const VariableIndex v : candidates_) {
      if (locked_[At(v)] > 0) continue;
      const std::size_t gap = GapNow(v);
      if (gap == model_.droppable.size()) continue;
      const auto cost = static_cast<double>(model_.rebuild_ns[gap] + classes_.CostAround(v) + 1);
      const auto staleness = static_cast<double>(clock_ns_ - last_ns_[At(v)] + 1);
      const double h = cost / (static_cast<double>(Size(v)) * staleness);
      if (least.first >= 0 && h >= least_h) continue;
      least = {v, gap};
      least_h = h;
    }
    return least;
  }

  /// Runs again what made a content. What the program still has then stays; the rest passes.
  void Rebuild(Content content) {
    const VariableIndex v = content.variable;
    const bool stays = classes_.is_dropped(v) && model_.lineage.IsThere(content, now_);
    ++locked_[At(v)];
    if (stays) {
      classes_.Return(v);
      Take(v);
    } else {
      MakeRoom(Size(v));
      load_ += Size(v);
    }
    for (std::int32_t k = 0; k < content.version; ++k) {
      const OpIndex op = model_.lineage.writers(v)[At(k)];
      for (const Content& input : model_.lineage.inputs(op)) Bring(input, v);
      clock_ns_ += problem_.ops[At(op)].duration_ns;
    }
    --locked_[At(v)];
    if (!stays) load_ -= Size(v);
  }

  void Bring(Content input, VariableIndex for_whom) {
    if (input.variable == for_whom || input.version == 0) return;
    if (model_.lineage.IsThere(input, now_) && resident_[At(input.variable)]) {
      last_ns_[At(input.variable)] = clock_ns_;
      return;
    }
    if (++depth_ > kDeepest) failed_ = true;
    if (!failed_) Rebuild(input);
    --depth_;
  }

  static constexpr int kDeepest = 20'000;

  const Model& model_;
  const plan::Problem& problem_;
  const Bytes budget_;
  Bytes load_;
  DroppedClasses classes_;
  std::vector<bool> resident_;
  std::vector<int> locked_;
  std::vector<Nanoseconds> last_ns_;  // Of the last use.
  std::vector<VariableIndex> candidates_;
  std::vector<Choice>* choices_ = nullptr;
  OpIndex now_ = 0;
  Nanoseconds clock_ns_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace

Chooser ChooseDtr(const Question& question, JointEvaluator* evaluator) {
  const Model model(question, *evaluator);
  Family family(question, evaluator);
  auto budget = static_cast<double>(question.options.limit_bytes);
  std::vector<Choice> before;
  int failures = 0;
  for (int k = 0; k < kBudgets && failures < 2; ++k, budget *= kBudgetStep) {
    Runtime runtime(model, static_cast<Bytes>(budget));
    const Offer offer = runtime.Run();
    if (runtime.failed()) ++failures;
    if (offer.choices == before) continue;
    before = offer.choices;
    for (const OpIndex horizon : kHorizons) {
      // What stays shorter costs more; no need to if it fits anyway.
      if (family.Add({offer.choices, horizon}) <= static_cast<Bytes>(budget)) break;
    }
  }
  return [family](Bytes load_limit) { return family.For(load_limit); };
}

}  // namespace plimsoll::planners
