// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/chain_cuts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "plimsoll/base/index.h"

namespace plimsoll::planners {
namespace {

using plan::OpIndex;
using plan::VariableIndex;
using trace::Phase;

constexpr VariableIndex kNone = -1;

class Finder {
 public:
  Finder(const plan::Problem& problem, const std::vector<std::vector<plan::Access>>& accesses,
         Bytes small_bytes, std::size_t most)
      : problem_(problem), accesses_(accesses), small_bytes_(small_bytes), most_(most) {}

  std::optional<ForwardCuts> Run() {
    if (!FindPhases() || !ListCuts()) return std::nullopt;
    Coarsen();
    return std::move(found_);
  }

 private:
  bool IsInside(VariableIndex v) const {
    const plan::Variable& x = problem_.variables[At(v)];
    return !x.persistent() && x.end <= problem_.period;
  }

  /// Says where forward and backward are.
  bool FindPhases() {
    const auto count = static_cast<OpIndex>(problem_.ops.size());
    while (found_.turn < count && problem_.ops[At(found_.turn)].phase != Phase::kBackward)
      ++found_.turn;
    if (found_.turn == 0 || found_.turn == count) return false;
    found_.begin = found_.turn;
    while (found_.begin > 0 && problem_.ops[At(found_.begin - 1)].phase == Phase::kForward)
      --found_.begin;
    found_.end = found_.turn;
    for (OpIndex i = found_.turn; i < count; ++i) {
      if (problem_.ops[At(i)].phase == Phase::kBackward) found_.end = i + 1;
    }
    return found_.begin < found_.turn;
  }

  /// Finds every op of forward behind which a single variable leads on: made before, read later in
  /// forward, and written no more.
  bool ListCuts() {
    const std::vector<VariableIndex> all = FindLeads(0);
    const std::vector<VariableIndex> large = FindLeads(small_bytes_);
    for (OpIndex i = found_.begin; i + 1 < found_.turn; ++i) {
      const std::size_t k = At(i - found_.begin);
      const VariableIndex variable = large[k] != kNone ? large[k] : all[k];
      if (variable == kNone) continue;
      // Of two cuts at the same variable, the later one.
      if (!found_.cuts.empty() && found_.cuts.back().variable == variable) found_.cuts.pop_back();
      found_.cuts.push_back({i, variable});
    }
    return found_.cuts.size() >= 2;
  }

  /// For every op of forward: the one variable of at least so many bytes that leads on; or none.
  std::vector<VariableIndex> FindLeads(Bytes least_bytes) const {
    const auto count = At(found_.turn - found_.begin);
    std::vector<int> crossing(count + 1, 0);  // Changes, by op.
    std::vector<std::int64_t> which(count + 1, 0);
    for (std::size_t v = 0; v < accesses_.size(); ++v) {
      if (!IsInside(static_cast<VariableIndex>(v))) continue;
      if (problem_.variables[v].size_bytes < least_bytes) continue;
      OpIndex first = -1;
      OpIndex last = -1;
      OpIndex last_write = -1;
      for (const plan::Access& access : accesses_[v]) {
        if (access.op < found_.begin || access.op >= found_.turn) continue;
        if (first < 0) first = access.op;
        last = access.op;
        if (access.writes) last_write = access.op;
      }
      if (first < 0 || first == last) continue;
      const auto add = [&](OpIndex from, OpIndex to, int weight) {
        crossing[At(from - found_.begin)] += weight;
        crossing[At(to - found_.begin)] -= weight;
        which[At(from - found_.begin)] += weight * static_cast<std::int64_t>(v);
        which[At(to - found_.begin)] -= weight * static_cast<std::int64_t>(v);
      };
      // Twice where it is still to be written: never alone then.
      add(first, last, 1);
      if (last_write > first) add(first, last_write, 1);
    }
    int lead = 0;
    std::int64_t variable = 0;
    std::vector<VariableIndex> leads(count, kNone);
    for (std::size_t k = 0; k < count; ++k) {
      lead += crossing[k];
      variable += which[k];
      if (lead == 1) leads[k] = static_cast<VariableIndex>(variable);
    }
    return leads;
  }

  /// Leaves so many cuts: those go first around which least is made that backward needs.
  void Coarsen() {
    std::vector<Bytes> made(At(found_.turn) + 1, 0);
    for (std::size_t v = 0; v < accesses_.size() && found_.cuts.size() > most_; ++v) {
      if (accesses_[v].empty() || accesses_[v].back().op < found_.turn) continue;
      const OpIndex first = accesses_[v].front().op;
      if (first < found_.turn) made[At(first) + 1] += problem_.variables[v].size_bytes;
    }
    for (std::size_t i = 1; i < made.size(); ++i) made[i] += made[i - 1];
    while (found_.cuts.size() > most_) {
      std::size_t least = 1;
      Bytes least_made = std::numeric_limits<Bytes>::max();
      for (std::size_t k = 1; k < found_.cuts.size(); ++k) {
        const Bytes end =
            k + 1 == found_.cuts.size() ? made.back() : made[At(found_.cuts[k + 1].after)];
        const Bytes around = end - made[At(found_.cuts[k - 1].after)];
        if (around >= least_made) continue;
        least_made = around;
        least = k;
      }
      found_.cuts.erase(found_.cuts.begin() + static_cast<std::ptrdiff_t>(least));
    }
  }

  const plan::Problem& problem_;
  const std::vector<std::vector<plan::Access>>& accesses_;
  const Bytes small_bytes_;
  const std::size_t most_;
  ForwardCuts found_;
};

}  // namespace

std::optional<ForwardCuts> FindCuts(const plan::Problem& problem,
                                    const std::vector<std::vector<plan::Access>>& accesses,
                                    Bytes small_bytes, std::size_t most) {
  return Finder(problem, accesses, small_bytes, most).Run();
}

}  // namespace plimsoll::planners
