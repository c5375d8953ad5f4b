// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/op_load.h"

#include <algorithm>
#include <tuple>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/gaps.h"

namespace plimsoll::plan {
namespace {

/// Adds to stretches of ops; the sums are taken at the end.
class Stretches {
 public:
  explicit Stretches(std::size_t ops) : steps_(ops + 1) {}

  /// Adds to the ops [begin, end).
  void Add(std::int64_t begin, std::int64_t end, Bytes bytes) {
    if (begin >= end) return;
    steps_[At(begin)] += bytes;
    steps_[At(end)] -= bytes;
  }
  std::vector<Bytes> Sums() const {
    std::vector<Bytes> sums;
    Bytes sum = 0;
    for (std::size_t i = 0; i + 1 < steps_.size(); ++i) sums.push_back(sum += steps_[i]);
    return sums;
  }

 private:
  std::vector<Bytes> steps_;
};

/// A variable that an op is the first to touch, with its life counted from that op.
struct Newcomer {
  Position begin = 0;
  Position end = 0;
  Bytes size_bytes = 0;
};

Bytes MostAtOnce(const std::vector<Newcomer>& newcomers) {
  std::vector<std::tuple<Position, Bytes>> steps;  // At a position, leavers go first.
  for (const Newcomer& x : newcomers) {
    steps.emplace_back(x.begin, x.size_bytes);
    steps.emplace_back(x.end, -x.size_bytes);
  }
  std::sort(steps.begin(), steps.end());
  Bytes most = 0;
  Bytes load = 0;
  for (const auto& [position, bytes] : steps) most = std::max(most, load += bytes);
  return most;
}

class Loader {
 public:
  explicit Loader(const Problem& problem)
      : problem_(problem),
        ops_(static_cast<std::int64_t>(problem.ops.size())),
        loads_(problem.ops.size()),
        newcomers_(problem.ops.size()),
        held_(problem.ops.size()),
        clean_(problem.ops.size()) {}

  std::vector<OpLoad> Run() {
    const std::vector<std::vector<Access>> accesses = ListAccesses(problem_);
    for (std::size_t v = 0; v < accesses.size(); ++v) {
      const Variable& variable = problem_.variables[v];
      if (variable.persistent()) {
        AddPersistent(variable, accesses[v]);
      } else if (!accesses[v].empty()) {
        AddOther(variable, accesses[v]);
      }
    }
    const std::vector<Bytes> held = held_.Sums();
    const std::vector<Bytes> clean = clean_.Sums();
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      loads_[i].held_bytes = held[i];
      loads_[i].clean_bytes += clean[i];
      loads_[i].new_bytes = MostAtOnce(newcomers_[i]);
      loads_[i].idle_bytes = idle_bytes_;
    }
    return std::move(loads_);
  }

 private:
  void AddPersistent(const Variable& variable, const std::vector<Access>& accesses) {
    const Bytes size = variable.size_bytes;
    const bool always = problem_.cyclic || accesses.empty();
    const std::int64_t end = always ? ops_ : accesses.back().op + 1;
    held_.Add(0, end, size);
    if (accesses.empty()) idle_bytes_ += size;  // It stays for ever.
    if (accesses.empty()) return;
    const bool clean =
        !problem_.cyclic || std::none_of(accesses.begin(), accesses.end(),
                                         [](const Access& access) { return access.writes; });
    if (clean) clean_.Add(0, end, size);
    OpIndex last = -1;
    for (const Access& access : accesses) {
      if (access.op == last) continue;
      last = access.op;
      loads_[At(access.op)].touched_bytes += size;
      if (clean) loads_[At(access.op)].clean_bytes -= size;
    }
  }

  void AddOther(const Variable& variable, const std::vector<Access>& accesses) {
    const Access& first = accesses.front();
    const Access& last = accesses.back();
    const Position period = problem_.period;
    // Scratch behind the last op of an iteration that runs once is nobody's.
    if (!problem_.cyclic && first.time >= period) return;
    const Bytes size = variable.size_bytes;
    newcomers_[At(first.op)].push_back(
        {variable.begin - first.time, variable.end - first.time, size});
    if (last.time / period == first.time / period) {
      held_.Add(first.op + 1, last.op + 1, size);
    } else {
      held_.Add(first.op + 1, ops_, size);
      held_.Add(0, last.op + 1, size);
    }
    Position touched = first.time;
    for (const Access& access : accesses) {
      if (access.time == touched) continue;
      touched = access.time;
      loads_[At(access.op)].touched_bytes += size;
    }
  }

  const Problem& problem_;
  const std::int64_t ops_;
  std::vector<OpLoad> loads_;
  std::vector<std::vector<Newcomer>> newcomers_;  // By op.
  Stretches held_;
  Stretches clean_;
  Bytes idle_bytes_ = 0;
};

}  // namespace

std::vector<OpLoad> LoadOps(const Problem& problem) { return Loader(problem).Run(); }

OpIndex FindLargestOp(const std::vector<OpLoad>& loads) {
  const auto largest = std::max_element(
      loads.begin(), loads.end(),
      [](const auto& a, const auto& b) { return a.needed_bytes() < b.needed_bytes(); });
  return largest == loads.end() ? -1 : static_cast<OpIndex>(largest - loads.begin());
}

}  // namespace plimsoll::plan
