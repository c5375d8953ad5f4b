// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/iteration_watch.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "plimsoll/base/checksum.h"
#include "plimsoll/base/index.h"

namespace plimsoll::exec {
namespace {

/// Without marks, a recording that has not repeated itself within so many events begins anew.
constexpr trace::EventIndex kMostEvents = 1 << 20;
/// How many more times than rightly an iteration may be expected wrongly before it is no more.
constexpr std::int64_t kPatience = 2;
/// Hits beyond these are forgotten, so that a program that has changed is soon believed.
constexpr std::int64_t kMostHits = 8;
constexpr std::size_t kMostSuccessors = 4096;
/// After so many iterations in a row of which something is left when they end, marks are ignored.
constexpr int kMostOpen = 3;

}  // namespace

IterationWatch::IterationWatch(WatchOptions options) : options_(std::move(options)) {}

void IterationWatch::Begin(const std::map<Block, Bytes>& live) {
  live_ = live;
  recorder_.Begin(live_);
  shadow_.reset();
  shadowed_.reset();
  next_cut_ = 0;
  if (marked_) return;
  detector_ = std::make_unique<trace::PeriodDetector>();
  for (const auto& [block, size_bytes] : live_) {
    detector_->Declare(recorder_.IndexOf(block), size_bytes);
  }
}

void IterationWatch::Resume(const Follower& follower, const std::map<Block, Bytes>& live) {
  if (!marked_) {
    Begin(live);
    return;
  }
  const Steps& steps = follower.steps();
  const plan::Problem& problem = steps.problem;
  std::map<Block, Bytes> before;
  for (const plan::Variable& variable : problem.variables) {
    if (variable.persistent()) before.emplace(Block{variable.id}, variable.size_bytes);
  }
  Begin(before);
  live_ = live;
  const auto block_of = [&](plan::VariableIndex v) { return follower.latest_blocks()[At(v)]; };
  const auto blocks_of = [&](std::span<const plan::Operand> operands) {
    std::vector<Block> blocks;
    for (const plan::Operand& operand : operands) blocks.push_back(block_of(operand.variable));
    return blocks;
  };
  for (plan::Position p = 0; p < follower.position(); ++p) {
    const Step& step = steps.steps[At(p)];
    if (step.kind == trace::EventKind::kMalloc) {
      recorder_.Malloc(block_of(step.variable), problem.variables[At(step.variable)].size_bytes);
    } else if (step.kind == trace::EventKind::kFree) {
      recorder_.Free(block_of(step.variable));
    } else {
      const plan::Op& op = problem.ops[At(step.op)];
      const trace::OpIndex recorded = recorder_.Exec(
          {.name = step.name, .phase = op.phase, .traits = op.traits}, blocks_of(problem.reads(op)),
          blocks_of(problem.writes(op).first(At(step.write_count))));
      recorder_.SetDuration(recorded, op.duration_ns);
    }
  }
}

void IterationWatch::Malloc(Block block, Bytes size_bytes) {
  mark_is_due_ = false;
  live_.emplace(block, size_bytes);
  if (shadow_) {
    if (!shadow_->Malloc(size_bytes, block)) Lose();
    return;
  }
  recorder_.Malloc(block, size_bytes);
  if (!detector_) return GiveUpMarksIfEndless();
  detector_->Malloc(recorder_.IndexOf(block), size_bytes);
  FollowPeriod();
}

void IterationWatch::Free(Block block) {
  mark_is_due_ = false;
  live_.erase(block);
  if (shadow_) {
    if (!shadow_->Free(block)) Lose();
    return;
  }
  const trace::VariableIndex index = recorder_.IndexOf(block);
  recorder_.Free(block);
  if (!detector_) return GiveUpMarksIfEndless();
  detector_->Free(index);
  FollowPeriod();
}

void IterationWatch::Exec(const OpInfo& info, std::span<const Block> reads,
                          std::span<const Block> writes, Nanoseconds duration_ns) {
  mark_is_due_ = false;
  if (shadow_) {
    if (shadow_->Expects(info, reads, writes)) {
      shadow_->Pass();
    } else {
      Lose();
    }
    return;
  }
  const trace::OpIndex op = recorder_.Exec(info, reads, writes);
  recorder_.SetDuration(op, duration_ns);
  if (!detector_) return GiveUpMarksIfEndless();
  std::vector<trace::VariableIndex> read_indices;
  std::vector<trace::VariableIndex> write_indices;
  for (const Block block : reads) read_indices.push_back(recorder_.IndexOf(block));
  for (const Block block : writes) write_indices.push_back(recorder_.IndexOf(block));
  detector_->Exec(ChecksumOf(info.name), read_indices, write_indices);
  FollowPeriod();
}

/// An iteration that goes on and on is none: the marks are of something else.
void IterationWatch::GiveUpMarksIfEndless() {
  if (!marked_ || recorder_.event_count() <= kMostEvents) return;
  marked_ = false;
  open_iterations_ = kMostOpen;
  Lose();
}

/// The program is no longer where the shadow is: it is to be found anew.
void IterationWatch::Lose() {
  const std::map<Block, Bytes> live = live_;
  Begin(live);
}

void IterationWatch::FollowPeriod() {
  if (recorder_.event_count() > kMostEvents) {
    Lose();
    return;
  }
  if (recorder_.event_count() < next_cut_) return;
  const std::optional<trace::Period> period = detector_->Current();
  if (!period || period->iterations() < std::max<std::int64_t>(options_.recordings, 2)) return;
  // To cut takes time in proportion to all that was recorded.
  next_cut_ = recorder_.event_count() + recorder_.event_count() / 4;
  std::optional<Steps> steps = CutSteps(recorder_.trace(), *period, recorder_.plain_names());
  if (!steps || steps->problem.ops.empty()) return;
  const std::uint64_t signature = SignatureOf(*steps);
  std::shared_ptr<Pattern> pattern = Find(signature);
  if (pattern == nullptr) {
    pattern = Add(signature, {});
    pattern->Plan(*std::move(steps), options_.planning, options_.plan_at_once);
    ++plans_made_;
  } else if (!pattern->Rename(*std::move(steps))) {
    return;
  }
  shadowed_ = pattern;
  shadow_ = FollowerFromHere(pattern->steps());
  detector_.reset();
  if (!shadow_) Lose();
}

/// The blocks that are live now as variables of steps that were cut from the present recording.
std::unique_ptr<Follower> IterationWatch::FollowerFromHere(const Steps& steps) const {
  const plan::Problem& problem = steps.problem;
  std::unordered_map<std::int64_t, plan::VariableIndex> by_id;
  std::unordered_map<plan::Position, plan::VariableIndex> by_birth;
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const auto index = static_cast<plan::VariableIndex>(v);
    if (problem.variables[v].persistent()) by_id[problem.variables[v].id] = index;
    if (steps.births[v] >= 0) by_birth[steps.births[v]] = index;
  }
  const auto position_of = [&](trace::EventIndex event) {
    const trace::EventIndex position = (event - problem.first_event) % problem.period;
    return position < 0 ? position + problem.period : position;
  };
  std::vector<Block> blocks(problem.variables.size(), kNoBlock);
  for (const auto& [block, size_bytes] : live_) {
    const auto persistent = by_id.find(static_cast<std::int64_t>(block));
    if (persistent != by_id.end()) {
      blocks[At(persistent->second)] = block;
      continue;
    }
    const trace::EventIndex born = recorder_.BirthOf(block);
    if (born < 0) return nullptr;
    const auto carried = by_birth.find(position_of(born));
    if (carried == by_birth.end()) return nullptr;
    blocks[At(carried->second)] = block;
  }
  return std::make_unique<Follower>(&steps, position_of(recorder_.event_count()),
                                    std::move(blocks));
}

void IterationWatch::EndIteration(std::string_view next) {
  if (open_iterations_ >= kMostOpen) return;
  if (marked_) FinishRecording();
  marked_ = open_iterations_ < kMostOpen;
  detector_.reset();
  tag_ = next;
  const std::map<Block, Bytes> live = live_;
  Begin(live);
  mark_is_due_ = marked_;
}

void IterationWatch::FinishRecording() {
  if (recorder_.event_count() == 0) return;
  // What begins in an iteration and ends in another is not for plans from mark to mark.
  if (!recorder_.is_closed()) {
    ++open_iterations_;
    Remember(0);
    return;
  }
  const std::uint64_t hash = recorder_.hash() ^ ChecksumOf(tag_);
  open_iterations_ = 0;
  std::shared_ptr<Pattern> pattern = Find(hash);
  if (pattern == nullptr) pattern = Add(hash, tag_);
  pattern->last_used = ++clock_;
  Remember(hash);
  if (pattern->state() != Pattern::State::kCounting) return;
  pattern->See(recorder_.trace(), recorder_.plain_names());
  if (pattern->seen() < options_.recordings || IsPlanning()) return;
  pattern->Plan(options_.planning, options_.plan_at_once);
  ++plans_made_;
}

/// One search at a time: the processor is there to train.
bool IterationWatch::IsPlanning() const {
  return std::any_of(patterns_.begin(), patterns_.end(), [](const auto& pattern) {
    return pattern->state() == Pattern::State::kPlanning;
  });
}

std::optional<IterationWatch::Entry> IterationWatch::Due() {
  if (marked_) {
    if (!mark_is_due_) return std::nullopt;
    mark_is_due_ = false;
    std::shared_ptr<Pattern> expected = Expected(tag_);
    if (expected == nullptr || !IsInPlace(*expected)) return std::nullopt;
    const Steps& steps = expected->steps();
    return Entry{std::move(expected), Follower(&steps)};
  }
  if (!shadow_ || !shadow_->at_beginning() || shadowed_->state() != Pattern::State::kReady)
    return std::nullopt;
  shadowed_->last_used = ++clock_;
  return Entry{shadowed_, *shadow_};
}

/// Whether exactly the blocks are live that the iteration finds at its beginning.
bool IterationWatch::IsInPlace(const Pattern& pattern) const {
  std::size_t persistent = 0;
  for (const plan::Variable& variable : pattern.steps().problem.variables) {
    if (!variable.persistent()) continue;
    ++persistent;
    if (!live_.contains(Block{variable.id})) return false;
  }
  return persistent == live_.size();
}

std::shared_ptr<Pattern> IterationWatch::Expected(std::string_view tag) {
  std::shared_ptr<Pattern> latest;
  const auto successor = successors_.find(last_two_);
  if (successor != successors_.end()) {
    // What is known to come but is not planned yet is not served by the plan of something else.
    const std::shared_ptr<Pattern> known = Find(successor->second);
    if (known && known->tag() == tag && known->state() != Pattern::State::kReady) return nullptr;
  }
  for (const auto& pattern : patterns_) {
    const bool reliable = pattern->misses <= pattern->hits + kPatience;
    if (pattern->tag() != tag || !reliable || pattern->state() != Pattern::State::kReady) continue;
    if (successor != successors_.end() && successor->second == pattern->hash()) {
      return pattern;
    }
    if (latest == nullptr || latest->last_used < pattern->last_used) latest = pattern;
  }
  return latest;
}

void IterationWatch::NoteHit(Pattern* pattern) {
  pattern->hits = std::min(pattern->hits + 1, kMostHits);
  pattern->last_used = ++clock_;
  if (marked_) Remember(pattern->hash());
}

void IterationWatch::NoteMiss(Pattern* pattern) { ++pattern->misses; }

void IterationWatch::PlanAgain(Pattern* pattern, Bytes host_limit_bytes) {
  Bytes& limit_bytes = options_.planning.host_limit_bytes;
  limit_bytes = std::min(limit_bytes, host_limit_bytes);
  pattern->PlanAgain(options_.planning, options_.plan_at_once);
  ++plans_made_;
}

void IterationWatch::AwaitPlans() {
  for (const auto& pattern : patterns_) pattern->Await();
}

std::shared_ptr<Pattern> IterationWatch::Find(std::uint64_t hash) const {
  const auto found = std::find_if(patterns_.begin(), patterns_.end(),
                                  [&](const auto& pattern) { return pattern->hash() == hash; });
  return found == patterns_.end() ? nullptr : *found;
}

std::shared_ptr<Pattern> IterationWatch::Add(std::uint64_t hash, const std::string& tag) {
  if (patterns_.size() >= options_.most_patterns) {
    const auto oldest =
        std::min_element(patterns_.begin(), patterns_.end(),
                         [](const auto& a, const auto& b) { return a->last_used < b->last_used; });
    patterns_.erase(oldest);
  }
  patterns_.push_back(std::make_shared<Pattern>(hash, tag));
  patterns_.back()->last_used = ++clock_;
  return patterns_.back();
}

void IterationWatch::Remember(std::uint64_t hash) {
  if (successors_.size() >= kMostSuccessors) successors_.clear();
  successors_[last_two_] = hash;
  last_two_ = {last_two_.second, hash};
}

}  // namespace plimsoll::exec
