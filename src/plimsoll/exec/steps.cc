// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/steps.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/index.h"

namespace plimsoll::exec {
namespace {

using plan::VariableIndex;
using trace::EventIndex;
using trace::EventKind;

/// Says which variable of a problem the events of its trace are about.
class Namer {
 public:
  Namer(const trace::Trace& trace, const plan::Problem& problem)
      : trace_(trace), problem_(problem), born_(trace.variables.size(), -1) {
    for (std::size_t v = 0; v < problem.variables.size(); ++v) {
      by_id_[problem.variables[v].id] = static_cast<VariableIndex>(v);
    }
    for (std::size_t e = 0; e < trace.events.size(); ++e) {
      const trace::Event& event = trace.events[e];
      if (event.kind == EventKind::kMalloc) born_[At(event.index)] = static_cast<EventIndex>(e);
    }
  }

  /// Of the instance that the window shows, or of an older one, which was malloc'ed whole
  /// iterations before an instance of the window; -1 if nothing like it is.
  VariableIndex VariableOf(trace::VariableIndex v) const {
    const auto own = by_id_.find(trace_.variables[At(v)].id);
    if (own != by_id_.end()) return own->second;
    if (born_[At(v)] < 0) return -1;
    EventIndex twin = (born_[At(v)] - problem_.first_event) % problem_.period;
    if (twin < 0) twin += problem_.period;
    const trace::Event& event = trace_.events[At(problem_.first_event + twin)];
    if (event.kind != EventKind::kMalloc) return -1;
    const auto younger = by_id_.find(trace_.variables[At(event.index)].id);
    return younger == by_id_.end() ? -1 : younger->second;
  }

 private:
  const trace::Trace& trace_;
  const plan::Problem& problem_;
  std::vector<EventIndex> born_;  // By variable of the trace; -1 if before it.
  std::unordered_map<std::int64_t, VariableIndex> by_id_;
};

/// The problem of `laps` iterations of the program.
std::optional<plan::Problem> CutLaps(const trace::Trace& trace, trace::Period period,
                                     std::int32_t laps) {
  period.length *= laps;
  // Whatever its beginning, a whole one of them must lie in the stretch.
  if (period.iterations() < 2) return std::nullopt;
  return plan::CutIteration(trace, period);
}

std::int32_t MostInstances(const plan::Problem& problem) {
  std::int32_t most = 1;
  for (const plan::Variable& variable : problem.variables) {
    most = std::max(most, variable.instances);
  }
  return most;
}

}  // namespace

std::optional<Steps> CutSteps(const trace::Trace& trace, const trace::Period& period,
                              const std::vector<std::string>& plain_names) {
  std::optional<plan::Problem> problem = CutLaps(trace, period, 1);
  if (problem && MostInstances(*problem) > 1) {
    const std::int32_t laps = MostInstances(*problem);
    problem = CutLaps(trace, period, laps);
    if (problem) problem->laps = laps;
  }
  if (!problem || MostInstances(*problem) > 1) return std::nullopt;

  Steps steps;
  const Namer namer(trace, *problem);
  steps.births.assign(problem->variables.size(), -1);
  plan::OpIndex op = 0;
  for (plan::Position p = 0; p < problem->period; ++p) {
    const trace::Event& event = trace.events[At(problem->first_event + p)];
    Step step;
    step.kind = event.kind;
    if (event.kind == EventKind::kExec) {
      step.op = op++;
      const trace::Op& recorded = trace.ops[At(event.index)];
      step.write_count = recorded.write_count;
      step.name = (plain_names.empty() ? trace.op_names : plain_names)[At(recorded.name)];
    } else {
      step.variable = namer.VariableOf(event.index);
      if (step.variable < 0) return std::nullopt;
      if (event.kind == EventKind::kMalloc) steps.births[At(step.variable)] = p;
    }
    steps.steps.push_back(step);
  }
  steps.problem = *std::move(problem);
  return steps;
}

Follower::Follower(const Steps* steps)
    : steps_(steps), blocks_(steps->problem.variables.size(), kNoBlock) {
  for (std::size_t v = 0; v < blocks_.size(); ++v) {
    const plan::Variable& variable = steps->problem.variables[v];
    if (variable.persistent()) blocks_[v] = Block{variable.id};
  }
  latest_blocks_ = blocks_;
}

Follower::Follower(const Steps* steps, plan::Position position, std::vector<Block> blocks)
    : steps_(steps), position_(position), blocks_(std::move(blocks)) {
  latest_blocks_ = blocks_;
  PLIMSOLL_CHECK(blocks_.size() == steps->problem.variables.size(), "blocks of another problem");
}

const Step* Follower::Next(EventKind kind) const {
  const Step& step = steps_->steps[At(position_)];
  return step.kind == kind ? &step : nullptr;
}

bool Follower::Malloc(Bytes size_bytes, Block block) {
  const Step* step = Next(EventKind::kMalloc);
  if (step == nullptr) return false;
  if (steps_->problem.variables[At(step->variable)].size_bytes != size_bytes) return false;
  blocks_[At(step->variable)] = block;
  latest_blocks_[At(step->variable)] = block;
  Pass();
  return true;
}

bool Follower::Free(Block block) {
  const Step* step = Next(EventKind::kFree);
  if (step == nullptr || blocks_[At(step->variable)] != block) return false;
  blocks_[At(step->variable)] = kNoBlock;
  Pass();
  return true;
}

bool Follower::Expects(const OpInfo& info, std::span<const Block> reads,
                       std::span<const Block> writes) const {
  const Step* step = Next(EventKind::kExec);
  if (step == nullptr) return false;
  const plan::Problem& problem = steps_->problem;
  const plan::Op& op = problem.ops[At(step->op)];
  return step->name == info.name && op.traits == info.traits &&
         AreOperands(problem.reads(op), reads) &&
         AreOperands(problem.writes(op).first(At(step->write_count)), writes);
}

bool Follower::AreOperands(std::span<const plan::Operand> operands,
                           std::span<const Block> blocks) const {
  if (operands.size() != blocks.size()) return false;
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    if (blocks_[At(operands[k].variable)] != blocks[k]) return false;
  }
  return true;
}

void Follower::Pass() {
  if (++position_ == steps_->problem.period) position_ = 0;
}

plan::OpIndex Follower::op() const { return steps_->steps[At(position_)].op; }

}  // namespace plimsoll::exec
