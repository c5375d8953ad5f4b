// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/check_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"

namespace plimsoll::plan {
namespace {

/// Somebody who has a range of bytes, once per iteration, counted so that the first touch is in
/// iteration 0.
struct Tenant {
  Bytes offset = 0;
  Bytes size_bytes = 0;
  bool eternal = false;           ///< Has its bytes always.
  Moment first;                   ///< Of no command: the beginning of a plan that runs once.
  std::array<Moment, 2> lasts{};  ///< Those that exist must all be over before another one enters.
  Position begin = 0;
  Position end = 0;
  VariableIndex variable = 0;
};

/// Whether there is anything to compare with others. What is out of bounds is refused already.
bool TakesBytes(const Tenant& tenant, Bytes limit) {
  return tenant.size_bytes > 0 && IsWithin(tenant.offset, tenant.size_bytes, limit);
}

/// Counts from the iteration of the first touch.
void Normalise(Position period, Tenant* tenant) {
  const std::int64_t shift = tenant->first.iteration;
  tenant->first.iteration = 0;
  for (Moment& last : tenant->lasts) last.iteration -= shift;
  tenant->begin -= shift * period;
  tenant->end -= shift * period;
}

class Sweep {
 public:
  Sweep(const Plan& plan, const Reach& reach, PlanLaw law, std::vector<Tenant> tenants,
        CheckReport* report)
      : plan_(plan), reach_(reach), law_(law), tenants_(std::move(tenants)), report_(*report) {}

  void Run() {
    // At an offset, leavers go first: their top is not theirs any more.
    std::vector<std::tuple<Bytes, bool, std::size_t>> steps;
    for (std::size_t t = 0; t < tenants_.size(); ++t) {
      steps.emplace_back(tenants_[t].offset, true, t);
      steps.emplace_back(tenants_[t].offset + tenants_[t].size_bytes, false, t);
    }
    std::sort(steps.begin(), steps.end());
    for (const auto& [offset, enters, t] : steps) {
      if (report_.full()) return;
      if (enters) {
        Enter(t);
      } else {
        Leave(t);
      }
    }
  }

 private:
  /// By first touch, then as the program malloc'ed them.
  using Key = std::tuple<std::int64_t, Position, std::size_t>;
  using Ring = std::set<Key>;

  Key KeyOf(std::size_t t) const {
    const Tenant& x = tenants_[t];
    return {x.first.exists() ? reach_.order(x.first.command) : -1, x.begin, t};
  }

  void Enter(std::size_t t) {
    if (tenants_[t].eternal) {
      if (!ring_.empty()) RefuseEternal(t, std::get<2>(*ring_.begin()));
      if (!eternal_.empty()) RefuseEternal(t, *eternal_.begin());
      eternal_.insert(t);
      return;
    }
    if (!eternal_.empty()) RefuseEternal(*eternal_.begin(), t);
    const Ring::iterator place = ring_.insert(KeyOf(t)).first;
    CheckNext(place);
    if (ring_.size() > 1) CheckNext(Before(place));
  }

  void Leave(std::size_t t) {
    if (eternal_.erase(t) > 0) return;
    const Ring::iterator place = ring_.find(KeyOf(t));
    if (ring_.size() > 2) {
      const Ring::iterator before = Before(place);
      ring_.erase(place);
      CheckNext(before);
    } else {
      ring_.erase(place);
    }
  }

  Ring::iterator Before(Ring::iterator place) const {
    return std::prev(place == ring_.begin() ? ring_.end() : place);
  }

  /// Compares one in the ring with the next, which may be itself, an iteration later.
  void CheckNext(Ring::iterator place) {
    const Ring::iterator behind = std::next(place);
    const bool around = behind == ring_.end();
    const Tenant& x = tenants_[std::get<2>(*place)];
    const Tenant& y = tenants_[std::get<2>(around ? *ring_.begin() : *behind)];
    const std::int64_t lap = around ? 1 : 0;
    if (const Moment last = StillThere(x, y, lap); last.exists()) Refuse(x, y, lap, last);
  }

  /// Returns a last touch of x that may not be over when y, `lap` iterations later, begins.
  Moment StillThere(const Tenant& x, const Tenant& y, std::int64_t lap) const {
    for (const Moment& last : x.lasts) {
      if (last.exists() && !IsOver(x, last, y, lap)) return last;
    }
    return {};
  }

  /// Names the two commands that should be in order. In whichever order they came up, the positions
  /// tell who was meant to be first.
  void Refuse(const Tenant& x, const Tenant& y, std::int64_t lap, const Moment& last) {
    const Moment other = StillThere(y, x, -lap);
    const bool meant = y.end + lap * plan_.problem.period <= x.begin;
    const bool reverse = meant && other.exists();
    report_.Add(law_, fmt::format("{} and {} share bytes [{}, {}) in no certain order",
                                  reverse ? Describe(other, y) : Describe(last, x),
                                  reverse ? Describe(x.first, x) : Describe(y.first, y),
                                  std::max(x.offset, y.offset),
                                  std::min(x.offset + x.size_bytes, y.offset + y.size_bytes)));
  }

  /// Whether a last touch of x is always over when y, `lap` iterations later, begins.
  bool IsOver(const Tenant& x, const Moment& last, const Tenant& y, std::int64_t lap) const {
    if (!y.first.exists()) return last.iteration < lap;
    if (last.command == y.first.command && last.iteration == lap) {
      return x.end <= y.begin + lap * plan_.problem.period;
    }
    return reach_.HasPath(last, {y.first.command, lap});
  }

  void RefuseEternal(std::size_t eternal, std::size_t other) {
    const Tenant& x = tenants_[eternal];
    const Tenant& y = tenants_[other];
    report_.Add(
        law_, fmt::format("{} and {}, which never leaves, share bytes [{}, {})",
                          Describe(y.first, y), Describe(x.first, x), std::max(x.offset, y.offset),
                          std::min(x.offset + x.size_bytes, y.offset + y.size_bytes)));
  }

  std::string Describe(const Moment& moment, const Tenant& tenant) const {
    if (!moment.exists()) return fmt::format("variable {}", tenant.variable);
    const std::string name = report_.Describe(moment.command);
    const bool is_op = plan_.commands[At(moment.command)].queue == Queue::kCompute;
    return is_op ? fmt::format("{} of variable {}", name, tenant.variable) : name;
  }

  const Plan& plan_;
  const Reach& reach_;
  const PlanLaw law_;
  const std::vector<Tenant> tenants_;
  CheckReport& report_;
  Ring ring_;                      // Who has the byte at the sweep line, by first touch.
  std::set<std::size_t> eternal_;  // Who has it always.
};

std::vector<Tenant> DeviceTenants(const Plan& plan, const Contents& contents) {
  const Problem& problem = plan.problem;
  std::vector<Tenant> tenants;
  for (std::size_t r = 0; r < plan.residencies.size(); ++r) {
    const Residency& x = plan.residencies[r];
    const Variable& variable = problem.variables[At(x.variable)];
    const Stay& stay = contents.stays[r];
    Tenant tenant{.offset = x.offset,
                  .size_bytes = variable.size_bytes,
                  .eternal = variable.persistent() && x.copy_in < 0,
                  .first = stay.copy_in.exists() ? stay.copy_in : stay.first_op,
                  .lasts = {stay.last_op, stay.copy_out},
                  .begin = x.begin,
                  .end = x.end,
                  .variable = x.variable};
    if (!TakesBytes(tenant, plan.limit_bytes)) continue;
    if (!tenant.first.exists() && !tenant.eternal) continue;
    Normalise(problem.period, &tenant);
    // Whether it is malloc'ed at position 0 or was there before cannot be told.
    if (!problem.cyclic && x.begin == 0 && x.copy_in < 0) tenant.first = {};
    tenants.push_back(tenant);
  }
  return tenants;
}

/// Returns the copy in of a host copy that is over last. All are of one queue, hence of any two one
/// has a path to the other, whatever the order of the stays that they fill.
Moment LastIn(const HostCopy& copy, const Reach& reach) {
  Moment last = copy.ins.front();
  for (const Moment& in : copy.ins) {
    if (reach.HasPath(last, in)) last = in;
  }
  return last;
}

std::vector<Tenant> HostTenants(const Plan& plan, const Contents& contents, const Reach& reach) {
  const Position period = plan.problem.period;
  std::vector<Tenant> tenants;
  for (const HostCopy& copy : contents.host_copies) {
    const Command& out = plan.commands[At(copy.out.command)];
    const Stay& stay = contents.stays[At(out.residency)];
    const Residency& saved = plan.residencies[At(out.residency)];
    const Moment& in = copy.ins.back();
    const Residency& filled = plan.residencies[At(plan.commands[At(in.command)].residency)];
    Tenant tenant{.offset = out.host_offset,
                  .size_bytes = plan.problem.variables[At(saved.variable)].size_bytes,
                  .first = copy.out,
                  .lasts = {LastIn(copy, reach), {}},
                  .begin = saved.end + (copy.out.iteration - stay.copy_out.iteration) * period,
                  .end = filled.begin + in.iteration * period,
                  .variable = saved.variable};
    if (!TakesBytes(tenant, plan.host_limit_bytes)) continue;
    Normalise(period, &tenant);
    tenants.push_back(tenant);
  }
  return tenants;
}

}  // namespace

void CheckOverlaps(const Plan& plan, const Contents& contents, const Reach& reach,
                   CheckReport* report) {
  Sweep(plan, reach, PlanLaw::kAddress, DeviceTenants(plan, contents), report).Run();
  Sweep(plan, reach, PlanLaw::kHostAddress, HostTenants(plan, contents, reach), report).Run();
}

}  // namespace plimsoll::plan
