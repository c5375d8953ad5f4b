// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/trace/period.h"

#include <algorithm>
#include <array>
#include <functional>

namespace plimsoll::trace {
namespace {

/// A wrong candidate dies within a few events, so few are alive at a time.
constexpr std::size_t kMostActive = 8;
constexpr std::size_t kMostRetired = 8;
/// How far a new candidate is followed back at once; Longest() follows it all the way.
constexpr EventIndex kFirstLookBack = 64;
/// The base of the polynomial that hashes a history; odd.
constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15U;
/// An iteration's stretch covers at least one part in this many of the events seen.
constexpr EventIndex kLeastShare = 4;

std::uint64_t Mix(std::uint64_t seed, std::uint64_t value) {
  std::uint64_t x = (seed + 0x9e3779b97f4a7c15U) ^ value;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// The last `length` makes: they tell where in the iteration we are even if each of them occurs in
/// it more than once.
struct History {
  explicit constexpr History(std::size_t count) : length(count) {
    for (std::size_t i = 0; i < count; ++i) power *= kBase;
  }

  std::size_t length;
  std::uint64_t power = 1;  // Of the base: what the hash before them has been multiplied by.
};
constexpr std::array kHistories = {History(8), History(64)};

}  // namespace

PeriodDetector::PeriodDetector() { active_.reserve(kMostActive); }

PeriodDetector::Life& PeriodDetector::LifeOf(VariableIndex variable) {
  const auto index = static_cast<std::size_t>(variable);
  if (index >= lives_.size()) lives_.resize(index + 1);
  return lives_[index];
}

void PeriodDetector::Declare(VariableIndex variable, Bytes size_bytes) {
  LifeOf(variable) = {-1, size_bytes};
}

void PeriodDetector::Malloc(VariableIndex variable, Bytes size_bytes) {
  LifeOf(variable) = {event_count(), size_bytes};
  operands_.push_back(variable);
  Add(Mix(Mix(1, static_cast<std::uint64_t>(size_bytes)), 1), {size_bytes, 1});
}

void PeriodDetector::Free(VariableIndex variable) {
  const Bytes size_bytes = LifeOf(variable).size_bytes;
  operands_.push_back(variable);
  Add(Mix(Mix(2, static_cast<std::uint64_t>(size_bytes)), 1), {-size_bytes, -1});
}

void PeriodDetector::Exec(std::uint64_t op, std::span<const VariableIndex> reads,
                          std::span<const VariableIndex> writes) {
  std::uint64_t make = Mix(Mix(Mix(3, op), reads.size()), writes.size());
  for (const auto operands : {reads, writes}) {
    for (const VariableIndex variable : operands) {
      make = Mix(make, static_cast<std::uint64_t>(LifeOf(variable).size_bytes));
      operands_.push_back(variable);
    }
  }
  Add(make, {});
}

/// Completes the record of the event whose operands have just been pushed.
void PeriodDetector::Add(std::uint64_t make, const Level& change) {
  const EventIndex now = event_count();
  const std::int64_t first =
      events_.empty() ? 0 : events_.back().first_operand + events_.back().operand_count;
  const auto count = static_cast<std::int32_t>(static_cast<std::int64_t>(operands_.size()) - first);
  events_.push_back({make, first, count});
  const Level before = levels_.empty() ? Level{} : levels_.back();
  levels_.push_back({before.bytes + change.bytes, before.variables + change.variables});
  history_.push_back((history_.empty() ? 0 : history_.back() * kBase) + make);
  FollowCandidates(now);
  // An event may be the first of its make after a whole period; so may one that touches a certain
  // variable, which tells apart the many equal layers of a network by their weights.
  const auto propose_last = [&](std::uint64_t key) {
    const auto [entry, inserted] = last_of_make_.try_emplace(key, now);
    if (inserted) return;
    Propose(now, now - entry->second);
    entry->second = now;
  };
  propose_last(make);
  for (std::int32_t k = 0; k < count; ++k) {
    const VariableIndex variable = operands_[static_cast<std::size_t>(first + k)];
    propose_last(
        Mix(Mix(make, static_cast<std::uint64_t>(k)), static_cast<std::uint64_t>(variable)));
  }
  for (const History& history : kHistories) {
    if (history_.size() <= history.length) break;
    const std::uint64_t past = history_[history_.size() - 1 - history.length];
    propose_last(Mix(history.length, history_.back() - past * history.power));
  }
}

/// Whether the event `earlier` and the one `length` after it correspond. Loosely, a variable that
/// was there before the stream stands for any that would have been malloc'ed before its beginning.
bool PeriodDetector::Corresponds(EventIndex earlier, EventIndex length, bool loosely) const {
  const Record& a = events_[static_cast<std::size_t>(earlier)];
  const Record& b = events_[static_cast<std::size_t>(earlier + length)];
  if (a.make != b.make || a.operand_count != b.operand_count) return false;
  for (std::int32_t k = 0; k < a.operand_count; ++k) {
    const VariableIndex x = operands_[static_cast<std::size_t>(a.first_operand + k)];
    const VariableIndex y = operands_[static_cast<std::size_t>(b.first_operand + k)];
    if (x == y) continue;
    const EventIndex born = lives_[static_cast<std::size_t>(x)].born;
    const EventIndex later = lives_[static_cast<std::size_t>(y)].born;
    const bool stands = loosely && born < 0 && 0 <= later && later < length;
    if (!stands && (born < 0 || later != born + length)) return false;
  }
  return true;
}

void PeriodDetector::FollowCandidates(EventIndex now) {
  std::erase_if(active_, [&](Candidate& candidate) {
    const EventIndex earlier = now - candidate.length;
    const bool strictly = Corresponds(earlier, candidate.length);
    if (strictly || Corresponds(earlier, candidate.length, /*loosely=*/true)) {
      candidate.run = strictly ? candidate.run + 1 : 0;
      ++candidate.loose_run;
      ++candidate.end;
      return false;
    }
    Retire(candidate);
    return true;
  });
}

void PeriodDetector::Propose(EventIndex now, EventIndex length) {
  if (std::any_of(active_.begin(), active_.end(),
                  [&](const Candidate& c) { return c.length == length; })) {
    return;
  }
  EventIndex run = 0;
  while (run < kFirstLookBack && now - run - length >= 0 &&
         Corresponds(now - run - length, length)) {
    ++run;
  }
  if (run == 0) return;
  const Candidate candidate{length, now + 1, run, run};
  if (active_.size() < kMostActive) {
    active_.push_back(candidate);
    return;
  }
  const auto weakest = std::min_element(
      active_.begin(), active_.end(),
      [](const Candidate& a, const Candidate& b) { return a.loose_run < b.loose_run; });
  if (weakest->loose_run < run) {
    Retire(*weakest);
    *weakest = candidate;
  }
}

/// Remembers the candidates that have explained the most. One that was proposed late, and looked at
/// only so far back, may explain more than is known.
void PeriodDetector::Retire(const Candidate& candidate) {
  if (2 * candidate.loose_run < candidate.length && candidate.loose_run < kFirstLookBack) return;
  retired_.push_back(candidate);
  std::sort(retired_.begin(), retired_.end(), [](const Candidate& a, const Candidate& b) {
    return a.support() != b.support() ? a.support() > b.support() : a.length < b.length;
  });
  if (retired_.size() > kMostRetired) retired_.pop_back();
}

/// Whether a period frees as much as it allocates; the same at every event of a run.
bool PeriodDetector::IsBalanced(const Period& period) const {
  const auto last = static_cast<std::size_t>(period.end - 1);
  return levels_[last] == levels_[last - static_cast<std::size_t>(period.length)];
}

/// Whether a stretch is long enough to be taken for the program's main loop.
bool PeriodDetector::IsIteration(const Period& period) const {
  const EventIndex coverage = period.end - period.begin;
  return coverage >= 2 * period.length && coverage * kLeastShare >= event_count() &&
         IsBalanced(period);
}

std::optional<Period> PeriodDetector::Current() const {
  std::optional<Period> shortest;
  for (const Candidate& candidate : active_) {
    const EventIndex begin = candidate.end - candidate.run - candidate.length;
    const Period period{candidate.length, begin, candidate.end};
    if (!IsIteration(period)) continue;
    if (shortest && shortest->length <= period.length) continue;
    shortest = period;
  }
  return shortest;
}

/// Returns the whole stretch of the candidate, in which a variable that was there before the stream
/// may stand for one, and only one, that would have been malloc'ed before its beginning.
Period PeriodDetector::Extend(const Candidate& candidate) const {
  const EventIndex length = candidate.length;
  std::unordered_map<VariableIndex, EventIndex> stands_for;  // Where it would have been born.
  const auto stands = [&](VariableIndex x, VariableIndex y) {
    const Life& a = lives_[static_cast<std::size_t>(x)];
    const Life& b = lives_[static_cast<std::size_t>(y)];
    if (x == y || (a.born >= 0 && b.born == a.born + length)) return true;
    if (a.born >= 0 || b.born < 0 || b.born >= length) return false;
    return stands_for.try_emplace(x, b.born - length).first->second == b.born - length;
  };
  const auto corresponds = [&](EventIndex earlier) {
    const Record& a = events_[static_cast<std::size_t>(earlier)];
    const Record& b = events_[static_cast<std::size_t>(earlier + length)];
    if (a.make != b.make || a.operand_count != b.operand_count) return false;
    const VariableIndex* x = operands_.data() + a.first_operand;
    const VariableIndex* y = operands_.data() + b.first_operand;
    return std::equal(x, x + a.operand_count, y, stands);
  };
  Period period{length, candidate.end - length, candidate.end};
  while (period.begin > 0 && corresponds(period.begin - 1)) --period.begin;
  while (period.end < event_count() && corresponds(period.end - length)) ++period.end;
  return period;
}

std::optional<Period> PeriodDetector::Longest() const {
  std::vector<Candidate> candidates = retired_;
  candidates.insert(candidates.end(), active_.begin(), active_.end());
  std::optional<Period> longest;
  for (const Candidate& candidate : candidates) {
    const Period period = Extend(candidate);
    if (!IsIteration(period)) continue;
    if (longest) {
      const EventIndex coverage = period.end - period.begin;
      const EventIndex best = longest->end - longest->begin;
      if (coverage < best || (coverage == best && period.length >= longest->length)) continue;
    }
    longest = period;
  }
  return longest;
}

std::optional<Period> FindPeriod(const Trace& trace) {
  PeriodDetector detector;
  for (std::size_t v = 0; v < trace.variables.size() && trace.variables[v].preexisting; ++v) {
    detector.Declare(static_cast<VariableIndex>(v), trace.variables[v].size_bytes);
  }
  for (const Event& event : trace.events) {
    switch (event.kind) {
      case EventKind::kMalloc:
        detector.Malloc(event.index,
                        trace.variables[static_cast<std::size_t>(event.index)].size_bytes);
        break;
      case EventKind::kFree:
        detector.Free(event.index);
        break;
      case EventKind::kExec: {
        const Op& op = trace.ops[static_cast<std::size_t>(event.index)];
        const std::uint64_t name =
            std::hash<std::string>{}(trace.op_names[static_cast<std::size_t>(op.name)]);
        detector.Exec(Mix(name, static_cast<std::uint64_t>(op.phase)), trace.reads(op),
                      trace.writes(op));
        break;
      }
    }
  }
  return detector.Longest();
}

}  // namespace plimsoll::trace
