// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/chain_view.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/schedule.h"
#include "plimsoll/planners/chain_cuts.h"

namespace plimsoll::planners {
namespace {

using plan::OpIndex;
using plan::Position;
using plan::VariableIndex;

/// What is smaller than this part of the peak load does not matter.
constexpr Bytes kSmall = 1000;

class Viewer {
 public:
  Viewer(const plan::Problem& problem, Bytes alignment, std::size_t most_stages)
      : problem_(problem),
        alignment_(alignment),
        most_stages_(most_stages),
        accesses_(plan::ListAccesses(problem)),
        load_(plan::LeastLoad(problem, {}, alignment)) {}

  std::optional<ChainView> Run() {
    const Bytes small = *std::max_element(load_.begin(), load_.end()) / kSmall;
    const auto found = FindCuts(problem_, accesses_, small, most_stages_);
    if (!found) return std::nullopt;
    turn_ = found->turn;
    end_ = found->end;
    cuts_ = found->cuts;
    // From the start on, if the first stage can run again; else from the first cut that allows it.
    cuts_.insert(cuts_.begin(), {found->begin - 1, kNone});
    for (;; cuts_.erase(cuts_.begin())) {
      if (cuts_.size() < 2) return std::nullopt;
      CutForward();
      FindInsides();
      const std::optional<std::size_t> fixed = FindOpsToRunAgain();
      if (!fixed) break;
      if (*fixed > 0) return std::nullopt;
    }
    CutBackward();
    Measure();
    return std::move(view_);
  }

 private:
  static constexpr VariableIndex kNone = -1;

  Bytes SizeOf(VariableIndex v) const {
    if (v == kNone) return 0;
    const Bytes size = problem_.variables[At(v)].size_bytes;
    return (size + alignment_ - 1) / alignment_ * alignment_;
  }
  bool IsInside(VariableIndex v) const {
    const plan::Variable& x = problem_.variables[At(v)];
    return !x.persistent() && x.end <= problem_.period;
  }

  /// Whether an op may run again, as far as one can tell without a row.
  bool MayRunAgain(OpIndex i) const {
    const plan::Op& op = problem_.ops[At(i)];
    if (!op.traits.replayable) return false;
    for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
      const plan::Operand& operand = problem_.operands[At(op.first_operand + k)];
      if (operand.age != 0) return false;
      if (k >= op.read_count && !IsInside(operand.variable) && !IsState(op, operand.variable)) {
        return false;
      }
    }
    return true;
  }

  /// Whether all that an op reads of a variable is state that it updates on the side.
  bool IsState(const plan::Op& op, VariableIndex v) const {
    bool state = false;
    for (std::int32_t k = 0; k < op.read_count; ++k) {
      if (problem_.reads(op)[At(k)].variable != v) continue;
      if (k >= 32 || (op.traits.state_reads >> k & 1) == 0) return false;
      state = true;
    }
    return state;
  }

  void CutForward() {
    view_ = {};
    for (std::size_t k = 0; k < cuts_.size(); ++k) {
      const OpIndex end = k + 1 == cuts_.size() ? turn_ : cuts_[k + 1].after + 1;
      view_.forward.push_back({cuts_[k].after + 1, end});
      view_.outputs.push_back(cuts_[k].variable);
    }
  }

  std::size_t StageOf(OpIndex op) const {
    const auto stage = std::upper_bound(
        view_.forward.begin(), view_.forward.end(), op,
        [](OpIndex x, const ChainView::Stretch& stretch) { return x < stretch.end; });
    return At(stage - view_.forward.begin());
  }

  /// What stages make and backward reads, less the outputs.
  void FindInsides() {
    view_.insides.resize(view_.forward.size());
    stage_of_variable_.assign(accesses_.size(), -1);
    for (std::size_t i = 1; i < view_.outputs.size(); ++i) {
      stage_of_variable_[At(view_.outputs[i])] = static_cast<std::int64_t>(i);
    }
    for (std::size_t v = 0; v < accesses_.size(); ++v) {
      const auto index = static_cast<VariableIndex>(v);
      if (!IsInside(index) || accesses_[v].empty() || stage_of_variable_[v] >= 0) continue;
      const OpIndex made = accesses_[v].front().op;
      if (made < view_.forward.front().begin || made >= turn_) continue;
      if (accesses_[v].back().op < turn_ || index == view_.outputs[0]) continue;
      const std::size_t stage = StageOf(made);
      view_.insides[stage].push_back(index);
      stage_of_variable_[v] = static_cast<std::int64_t>(stage);
    }
  }

  /// Goes through each stage backwards, from what it leaves to what that is made of. Returns the
  /// first stage that cannot run again but for the last, which never does.
  std::optional<std::size_t> FindOpsToRunAgain() {
    const std::size_t n = view_.forward.size();
    view_.again.resize(n);
    std::vector<bool> needed(accesses_.size());
    for (std::size_t i = 0; i < n; ++i) {
      for (const VariableIndex v : view_.insides[i]) needed[At(v)] = true;
      if (i + 1 < n) needed[At(view_.outputs[i + 1])] = true;
      for (OpIndex k = view_.forward[i].end; k-- > view_.forward[i].begin;) {
        const plan::Op& op = problem_.ops[At(k)];
        const auto writes = problem_.writes(op);
        if (std::none_of(writes.begin(), writes.end(),
                         [&](const plan::Operand& x) { return needed[At(x.variable)]; })) {
          continue;
        }
        if (i + 1 < n && !MayRunAgain(k)) return i;
        view_.again[i].push_back(k);
        for (const plan::Operand& x : problem_.reads(op)) {
          if (IsInside(x.variable) &&
              accesses_[At(x.variable)].front().op >= view_.forward[i].begin) {
            needed[At(x.variable)] = true;
          }
        }
      }
      std::reverse(view_.again[i].begin(), view_.again[i].end());
    }
    return std::nullopt;
  }

  /// The stage to whose backward an op seems to belong, at the latest: that of an inside, an input
  /// or a weight that it reads.
  std::int64_t HintOf(OpIndex i, const std::vector<std::int64_t>& stage_of_weight) const {
    std::int64_t hint = std::numeric_limits<std::int64_t>::max();
    for (const plan::Operand& x : problem_.reads(problem_.ops[At(i)])) {
      std::int64_t stage = stage_of_variable_[At(x.variable)];
      if (x.variable == view_.outputs[0]) stage = 0;
      if (problem_.variables[At(x.variable)].persistent()) stage = stage_of_weight[At(x.variable)];
      if (stage >= 0) hint = std::min(hint, stage);
    }
    return hint;
  }

  void CutBackward() {
    const std::size_t n = view_.forward.size();
    // The one stage whose forward reads a persistent variable; -1 if there is none or several.
    std::vector<std::int64_t> stage_of_weight(accesses_.size(), -1);
    for (std::size_t v = 0; v < accesses_.size(); ++v) {
      if (!problem_.variables[v].persistent()) continue;
      bool several = false;
      for (const plan::Access& access : accesses_[v]) {
        if (access.op < view_.forward.front().begin || access.op >= turn_) continue;
        const auto stage = static_cast<std::int64_t>(StageOf(access.op));
        several = several || (stage_of_weight[v] >= 0 && stage_of_weight[v] != stage);
        stage_of_weight[v] = stage;
      }
      if (several) stage_of_weight[v] = -1;
    }
    view_.backward.assign(n, {turn_, turn_});
    std::size_t stage = n - 1;
    for (OpIndex i = turn_; i < end_; ++i) {
      const std::int64_t hint = HintOf(i, stage_of_weight);
      while (static_cast<std::int64_t>(stage) > hint) view_.backward[--stage] = {i, i};
      view_.backward[stage].end = i + 1;
    }
    while (stage > 0) view_.backward[--stage] = {end_, end_};
  }

  /// Where least is there between an op and the one before it: frees come first, then mallocs.
  Position LowestBefore(OpIndex op) const {
    const bool last = At(op) == problem_.ops.size();
    const Position begin = op == 0 ? 0 : problem_.ops[At(op - 1)].position + 1;
    const Position end = last ? problem_.period : problem_.ops[At(op)].position + 1;
    if (begin >= end) return problem_.period - 1;
    return std::min_element(rest_.begin() + begin, rest_.begin() + end) - rest_.begin();
  }
  /// What is there besides the activations of lower stages: the most while a stretch runs.
  Bytes MostRest(const ChainView::Stretch& stretch) const {
    if (stretch.begin == stretch.end) return 0;
    const Position begin = LowestBefore(stretch.begin);
    const Position end = problem_.ops[At(stretch.end - 1)].position + 1;
    return *std::max_element(rest_.begin() + begin, rest_.begin() + end);
  }
  /// The same before an op.
  Bytes RestBefore(OpIndex op) const { return rest_[At(LowestBefore(op))]; }
  void TakeFromRest(VariableIndex v) {
    if (v == kNone || !IsInside(v)) return;
    const plan::Variable& x = problem_.variables[At(v)];
    for (Position at = x.begin; at < x.end; ++at) rest_[At(at)] -= SizeOf(v);
  }

  void Measure() {
    for (std::size_t v = 0; v < problem_.variables.size(); ++v) {
      const auto index = static_cast<VariableIndex>(v);
      if (!IsInside(index)) view_.base_bytes += SizeOf(index);
    }
    rest_ = load_;
    for (Bytes& bytes : rest_) bytes = std::max<Bytes>(0, bytes - view_.base_bytes);
    const std::size_t n = view_.forward.size();
    view_.chain.name = "view";
    view_.chain.input_bytes = SizeOf(view_.outputs[0]);
    TakeFromRest(view_.outputs[0]);
    std::vector<Bytes> most_backward;
    for (std::size_t i = 0; i < n; ++i) {
      chain::Stage stage;
      stage.name = std::to_string(i);
      const VariableIndex output = i + 1 < n ? view_.outputs[i + 1] : kNone;
      for (const VariableIndex v : view_.insides[i]) stage.inside_bytes += SizeOf(v);
      stage.kept_bytes = stage.inside_bytes + SizeOf(output);
      stage.forward_ns = TimeOf(view_.forward[i]);
      stage.backward_ns = TimeOf(view_.backward[i]);
      stage.forward_temp_bytes = std::max<Bytes>(0, MostRest(view_.forward[i]) - stage.kept_bytes);
      stage.input_gradient_bytes = RestBefore(view_.backward[i].end);
      most_backward.push_back(MostRest(view_.backward[i]));
      for (const VariableIndex v : view_.insides[i]) TakeFromRest(v);
      TakeFromRest(output);
      view_.chain.stages.push_back(stage);
    }
    view_.chain.output_gradient_bytes = RestBefore(turn_);
    for (std::size_t i = 0; i < n; ++i) {
      chain::Stage& stage = view_.chain.stages[i];
      const Bytes known =
          stage.kept_bytes + view_.chain.GradientBytes(i) + view_.chain.GradientBytes(i + 1);
      stage.backward_temp_bytes = std::max<Bytes>(0, most_backward[i] - known);
    }
  }

  Nanoseconds TimeOf(const ChainView::Stretch& stretch) const {
    Nanoseconds sum = 0;
    for (OpIndex i = stretch.begin; i < stretch.end; ++i) sum += problem_.ops[At(i)].duration_ns;
    return sum;
  }

  const plan::Problem& problem_;
  const Bytes alignment_;
  const std::size_t most_stages_;
  const std::vector<std::vector<plan::Access>> accesses_;
  const std::vector<Bytes> load_;  // By position.
  OpIndex turn_ = 0;
  OpIndex end_ = 0;
  std::vector<ForwardCuts::Cut> cuts_;
  std::vector<std::int64_t> stage_of_variable_;  // The one that made it, or reads it as input.
  std::vector<Bytes> rest_;  // By position: besides base and activations of lower stages.
  ChainView view_;
};

}  // namespace

std::vector<OpIndex> ChainView::RowOf(const plan::Problem& problem,
                                      const chain::Order& order) const {
  std::vector<OpIndex> row;
  const auto append = [&row](OpIndex begin, OpIndex end) {
    for (OpIndex i = begin; i < end; ++i) row.push_back(i);
  };
  append(0, forward.front().begin);
  const std::size_t n = forward.size();
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto op = static_cast<std::size_t>(order[k]);
    if (k >= n && op < n) {
      row.insert(row.end(), again[op].begin(), again[op].end());
      continue;
    }
    const Stretch& stretch = op < n ? forward[op] : backward[2 * n - 1 - op];
    append(stretch.begin, stretch.end);
  }
  append(backward.front().end, static_cast<OpIndex>(problem.ops.size()));
  return row;
}

std::optional<ChainView> ViewAsChain(const plan::Problem& problem, Bytes alignment,
                                     std::size_t most_stages) {
  if (problem.ops.empty()) return std::nullopt;
  return Viewer(problem, alignment, most_stages).Run();
}

}  // namespace plimsoll::planners
