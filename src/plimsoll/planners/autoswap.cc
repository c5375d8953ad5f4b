// SPDX-License-Identifier: Apache-2.0
//
// AutoSwap (paper 001, section IV). A score for every gap across the peak:
//
//   DOA    duration of absence: the time between the two accesses less the time of both copies
//   AOA    area of absence: DOA times size; for a negative DOA, DOA over size
//   WDOA   the area under the load curve between the two accesses
//   SWDOA  WDOA with the load updated after each choice: the order in which they are chosen
//
// Gaps are taken by decreasing score until the peak load is within the limit.
#include "plimsoll/planners/autoswap.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/place/load_tree.h"

namespace plimsoll::planners {
namespace {

using plan::Gap;
using plan::Position;

/// Whether swapping the gap lowers the load at the position.
bool Covers(const plan::Problem& problem, const Gap& gap, Position position) {
  const Position end = plan::AbsenceEnd(problem, gap);
  const Position lapped = position + problem.period;
  return (gap.begin <= position && position < end) || (gap.begin <= lapped && lapped < end);
}

/// The load while gaps are chosen: plan::LeastLoad(), one gap at a time.
class FallingLoad {
 public:
  explicit FallingLoad(const plan::Problem& problem)
      : problem_(problem), load_(plan::LeastLoad(problem, {})) {}

  Bytes peak() const { return problem_.period == 0 ? 0 : load_.HighestIn(0, end()); }
  Position peak_position() const { return load_.HeaviestIn(0, end()); }
  void Remove(const Gap& gap) {
    const Bytes size = problem_.variables[At(gap.variable)].size_bytes;
    const auto begin = static_cast<place::SectionIndex>(gap.begin);
    const auto until = static_cast<place::SectionIndex>(plan::AbsenceEnd(problem_, gap));
    load_.Add(std::min(begin, end()), std::min(until, end()), -size);
    load_.Add(std::max(begin - end(), 0), std::max(until - end(), 0), -size);
  }

 private:
  place::SectionIndex end() const { return static_cast<place::SectionIndex>(problem_.period); }

  const plan::Problem& problem_;
  place::LoadTree load_;  // By position.
};

/// Whether the gap lies across the peak, of any iteration if the problem spans several.
bool CoversPeak(const plan::Problem& problem, const Gap& gap, Position peak) {
  const Position lap = problem.period / problem.laps;
  for (std::int32_t k = 0; k < problem.laps; ++k) {
    if (Covers(problem, gap, (peak + k * lap) % problem.period)) return true;
  }
  return false;
}

/// Areas under a load curve over real time, in O(1) by sums from the left.
class Areas {
 public:
  Areas(const plan::Problem& problem, const std::vector<Bytes>& load) : problem_(problem) {
    sums_.assign(1, 0);
    for (const plan::Op& op : problem.ops) {
      const double bytes = static_cast<double>(load[At(op.position)]);
      sums_.push_back(sums_.back() + bytes * static_cast<double>(op.duration_ns));
    }
  }
  double Between(const Gap& gap) const {
    const double lap = gap.end >= problem_.period ? sums_.back() : 0;
    return sums_[At(gap.before)] + lap - sums_[At(gap.after) + 1];
  }

 private:
  const plan::Problem& problem_;
  std::vector<double> sums_;  // Up to each op.
};

double Doa(const Question& question, const std::vector<Nanoseconds>& starts, const Gap& gap) {
  const Bytes size = question.problem.variables[At(gap.variable)].size_bytes;
  const Nanoseconds lap = gap.end >= question.problem.period ? starts.back() : 0;
  return static_cast<double>(starts[At(gap.before)] + lap - starts[At(gap.after) + 1] -
                             question.machine.out_ns(size) - question.machine.in_ns(size));
}

/// Scores gaps by the order in which WDOA with an updated load would choose them.
void AddSwdoa(const Question& question, ScoredGaps* scored) {
  const plan::Problem& problem = question.problem;
  std::vector<Bytes> load = plan::LeastLoad(problem, {});
  std::vector<std::size_t> left(scored->gaps.size());
  std::iota(left.begin(), left.end(), 0);
  while (!left.empty()) {
    const Areas areas(problem, load);
    const auto best = std::max_element(left.begin(), left.end(), [&](std::size_t a, std::size_t b) {
      return areas.Between(scored->gaps[a]) < areas.Between(scored->gaps[b]);
    });
    scored->scores[*best][static_cast<std::size_t>(Score::kSwdoa)] =
        static_cast<double>(left.size());
    const Gap& gap = scored->gaps[*best];
    const Position end = plan::AbsenceEnd(problem, gap);
    for (Position p = gap.begin; p < end; ++p) {
      load[At(p % problem.period)] -= problem.variables[At(gap.variable)].size_bytes;
    }
    left.erase(best);
  }
}

std::pair<plan::VariableIndex, Position> Key(const Gap& gap) { return {gap.variable, gap.begin}; }

/// All gaps, however small, but `gaps`; the largest first.
std::vector<Gap> Others(const plan::Problem& problem, const std::vector<Gap>& gaps) {
  std::set<std::pair<plan::VariableIndex, Position>> taken;
  for (const Gap& gap : gaps) taken.insert(Key(gap));
  std::vector<Gap> others = plan::ListGaps(problem, 1);
  std::erase_if(others, [&](const Gap& gap) { return taken.contains(Key(gap)); });
  std::stable_sort(others.begin(), others.end(), [&](const Gap& a, const Gap& b) {
    return problem.variables[At(a.variable)].size_bytes >
           problem.variables[At(b.variable)].size_bytes;
  });
  return others;
}

Decider DecideBy(const Question& question, Score score) {
  const ScoredGaps scored = ScoreCandidates(question);
  std::vector<double> scores;
  for (const auto& row : scored.scores) scores.push_back(row[static_cast<std::size_t>(score)]);
  return [&question, gaps = scored.gaps, scores](Bytes load_limit) {
    return Choose(question, gaps, scores, load_limit);
  };
}

}  // namespace

ScoredGaps ScoreCandidates(const Question& question) {
  const plan::Problem& problem = question.problem;
  const std::vector<Bytes> load = plan::LeastLoad(problem, {});
  const Position peak = std::max_element(load.begin(), load.end()) - load.begin();
  std::vector<Nanoseconds> starts(1, 0);
  for (const plan::Op& op : problem.ops) starts.push_back(starts.back() + op.duration_ns);
  const Areas areas(problem, load);
  ScoredGaps scored;
  for (const Gap& gap : plan::ListGaps(problem, question.options.least_bytes)) {
    if (!CoversPeak(problem, gap, peak)) continue;
    const auto size = static_cast<double>(problem.variables[At(gap.variable)].size_bytes);
    const double doa = Doa(question, starts, gap);
    scored.gaps.push_back(gap);
    scored.scores.push_back({doa, doa >= 0 ? doa * size : doa / size, areas.Between(gap), 0});
  }
  AddSwdoa(question, &scored);
  return scored;
}

plan::Decision Choose(const Question& question, const std::vector<Gap>& gaps,
                      const std::vector<double>& scores, Bytes load_limit_bytes) {
  plan::Decision decision;
  FallingLoad load(question.problem);
  const auto swap = [&](const Gap& gap) {
    decision.swapped.push_back(gap);
    load.Remove(gap);
  };
  std::vector<std::size_t> order(gaps.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  for (const std::size_t k : order) {
    if (load.peak() <= load_limit_bytes) break;
    swap(gaps[k]);
  }
  // Below load_min: whatever lies across the peak that is left, the largest first, small ones last.
  std::vector<Gap> others;
  if (load.peak() > load_limit_bytes) others = Others(question.problem, gaps);
  while (load.peak() > load_limit_bytes) {
    const Position position = load.peak_position();
    const auto next = std::find_if(others.begin(), others.end(), [&](const Gap& gap) {
      return Covers(question.problem, gap, position);
    });
    if (next == others.end()) break;
    swap(*next);
    others.erase(next);
  }
  std::sort(decision.swapped.begin(), decision.swapped.end(),
            [](const Gap& a, const Gap& b) { return Key(a) < Key(b); });
  return decision;
}

Decider DecideNothing(const Question& /*question*/) {
  return [](Bytes /*load_limit*/) { return plan::Decision{}; };
}
Decider DecideDoa(const Question& question) { return DecideBy(question, Score::kDoa); }
Decider DecideAoa(const Question& question) { return DecideBy(question, Score::kAoa); }
Decider DecideWdoa(const Question& question) { return DecideBy(question, Score::kWdoa); }
Decider DecideSwdoa(const Question& question) { return DecideBy(question, Score::kSwdoa); }

}  // namespace plimsoll::planners
