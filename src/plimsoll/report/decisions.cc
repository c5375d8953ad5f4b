// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/decisions.h"

#include <algorithm>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/gaps.h"
#include "plimsoll/report/memory_view.h"

namespace plimsoll::report {
namespace {

/// Makes the rows, one pass for each thing that they say.
class Rows {
 public:
  explicit Rows(const Subject& subject)
      : subject_(subject),
        plan_(subject.plan),
        original_(plan_.rewriting ? plan_.rewriting->original : plan_.problem),
        rows_(original_.variables.size()),
        lowers_peak_(original_.variables.size(), false) {
    for (std::size_t v = 0; v < rows_.size(); ++v) {
      const Bytes size = original_.variables[v].size_bytes;
      rows_[v].variable = static_cast<plan::VariableIndex>(v);
      rows_[v].planned = -1;
      rows_[v].round_trip_ns = plan_.machine.out_ns(size) + plan_.machine.in_ns(size);
    }
    for (std::size_t p = 0; p < plan_.problem.variables.size(); ++p) {
      DecisionRow& row = RowOf(static_cast<plan::VariableIndex>(p));
      if (row.planned < 0) row.planned = static_cast<plan::VariableIndex>(p);
    }
  }

  std::vector<DecisionRow> Make() {
    AddGaps();
    AddCopies();
    AddReplays();
    for (DecisionRow& row : rows_) Decide(&row);
    return std::move(rows_);
  }

 private:
  DecisionRow& RowOf(plan::VariableIndex planned) {
    return rows_[At(plan_.rewriting ? plan_.rewriting->variable_source[At(planned)] : planned)];
  }

  /// The command that runs each recorded op for the first time.
  std::vector<plan::CommandIndex> CommandsOfRecorded() const {
    std::vector<plan::CommandIndex> commands(original_.ops.size(), 0);
    for (const plan::CommandIndex c : plan_.queues[0]) {
      const plan::OpIndex op = plan_.commands[At(c)].op;
      if (!IsReplay(plan_, op)) commands[At(SourceOf(plan_, op))] = c;
    }
    return commands;
  }

  void AddGaps() {
    const CommandTimes& times = subject_.predicted.times;
    const std::vector<plan::CommandIndex> commands = CommandsOfRecorded();
    // How many ops up to each have a load above the limit.
    std::vector<std::int64_t> above = {0};
    for (const Bytes load : LoadByOp(subject_.recorded)) {
      above.push_back(above.back() + (load > plan_.limit_bytes ? 1 : 0));
    }
    for (const plan::Gap& gap : plan::ListGaps(original_, 0)) {
      const bool around = gap.before <= gap.after;
      const Nanoseconds length = times.start_ns[At(commands[At(gap.before)])] -
                                 times.end_ns[At(commands[At(gap.after)])] +
                                 (around ? times.iteration_ns : 0);
      DecisionRow& row = rows_[At(gap.variable)];
      row.gap_ns = std::max(row.gap_ns, length);
      std::int64_t count = above[At(gap.before)] - above[At(gap.after) + 1];
      if (around) count += above.back();
      if (count > 0) lowers_peak_[At(gap.variable)] = true;
    }
  }

  void AddCopies() {
    const CommandTimes& times = subject_.predicted.times;
    for (const plan::Residency& residency : plan_.residencies) {
      for (const plan::CommandIndex c : {residency.copy_in, residency.copy_out}) {
        if (c < 0) continue;
        RowOf(residency.variable).copies_ns += times.end_ns[At(c)] - times.start_ns[At(c)];
      }
    }
    for (const StallMark& stall : subject_.predicted.stalls) {
      if (stall.awaited < 0) continue;
      const plan::Command& awaited = plan_.commands[At(stall.awaited)];
      if (awaited.residency < 0) continue;
      RowOf(plan_.residencies[At(awaited.residency)].variable).stall_ns += stall.length_ns;
    }
  }

  void AddReplays() {
    for (std::size_t k = 0; k < plan_.problem.ops.size(); ++k) {
      if (!IsReplay(plan_, static_cast<plan::OpIndex>(k))) continue;
      const plan::Op& op = plan_.problem.ops[k];
      double bytes = 0;
      for (const plan::Operand& x : plan_.problem.writes(op)) bytes += SizeOf(x);
      for (const plan::Operand& x : plan_.problem.writes(op)) {
        DecisionRow& row = RowOf(x.variable);
        const double share = bytes > 0 ? SizeOf(x) / bytes : 0;
        row.replays_ns += static_cast<Nanoseconds>(share * static_cast<double>(op.duration_ns));
        ++row.replays;
      }
    }
  }
  double SizeOf(const plan::Operand& operand) const {
    return static_cast<double>(plan_.problem.variables[At(operand.variable)].size_bytes);
  }

  void Decide(DecisionRow* row) const {
    const bool swapped = row->copies_ns > 0;
    const bool recomputed = row->replays > 0;
    if (swapped) row->choice = recomputed ? Choice::kBoth : Choice::kSwapped;
    if (recomputed && !swapped) row->choice = Choice::kRecomputed;
    if (swapped) {
      row->reason = row->stall_ns > 0 ? Reason::kWaitedFor : Reason::kHidden;
    } else if (recomputed) {
      row->reason = row->replays_ns <= row->round_trip_ns ? Reason::kCheaper : Reason::kFreesLink;
    } else if (!subject_.figures.planned()) {
      row->reason = Reason::kNoLimit;
    } else if (row->gap_ns <= 0) {
      row->reason = Reason::kAlwaysInUse;
    } else if (!lowers_peak_[At(row->variable)]) {
      row->reason = Reason::kOffPeak;
    } else {
      row->reason = row->gap_ns < row->round_trip_ns ? Reason::kGapTooShort : Reason::kNotNeeded;
    }
  }

  const Subject& subject_;
  const plan::Plan& plan_;
  const plan::Problem& original_;
  std::vector<DecisionRow> rows_;
  std::vector<bool> lowers_peak_;
};

}  // namespace

std::vector<DecisionRow> ListDecisions(const Subject& subject) { return Rows(subject).Make(); }

}  // namespace plimsoll::report
