// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/check_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/index.h"

namespace plimsoll::plan {
namespace {

/// An op that touches a variable; several operands of one op are one use.
struct Use {
  Position position = 0;
  OpIndex op = 0;
  bool writes = false;
  int served = 0;  ///< By how many residencies.
};

class ResidencyCheck {
 public:
  ResidencyCheck(const Plan& plan, CheckReport* report)
      : plan_(plan),
        problem_(plan.problem),
        report_(*report),
        uses_(plan.problem.variables.size()),
        residencies_(plan.problem.variables.size()) {
    contents_.stays.resize(plan.residencies.size());
  }

  Contents Run() {
    FindUses();
    for (std::size_t r = 0; r < plan_.residencies.size(); ++r) {
      residencies_[At(plan_.residencies[r].variable)].push_back(r);
      FindTouches(r);
    }
    for (std::size_t v = 0; v < problem_.variables.size() && !report_.full(); ++v) {
      CheckServed(v);
      if (problem_.variables[v].persistent()) {
        CheckCycle(v);
      } else {
        CheckLife(v);
      }
    }
    return std::move(contents_);
  }

 private:
  /// A stay in a chain of them, by how many iterations it begins after the chain.
  struct Link {
    std::size_t residency = 0;
    std::int64_t lap = 0;
  };

  void FindUses() {
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      const Op& op = problem_.ops[i];
      const auto note = [&](const Operand& operand, bool writes) {
        std::vector<Use>& uses = uses_[At(operand.variable)];
        if (uses.empty() || uses.back().position != op.position) {
          uses.push_back({op.position, static_cast<OpIndex>(i), false, 0});
        }
        uses.back().writes = uses.back().writes || writes;
      };
      for (const Operand& operand : problem_.reads(op)) note(operand, false);
      for (const Operand& operand : problem_.writes(op)) note(operand, true);
    }
  }

  CommandIndex CommandOf(OpIndex op) const { return plan_.queues[0][At(op)]; }
  const Residency& residency(std::size_t r) const { return plan_.residencies[r]; }

  void FindTouches(std::size_t r) {
    const Residency& x = residency(r);
    Stay& stay = contents_.stays[r];
    std::vector<Use>& uses = uses_[At(x.variable)];
    const auto touch = [&](Use* use, std::int64_t iteration) {
      const Moment moment{CommandOf(use->op), iteration};
      ++use->served;
      if (!stay.first_op.exists()) stay.first_op = moment;
      if (use->writes) stay.last_write = moment;
      stay.last_op = moment;
    };
    const auto from =
        std::lower_bound(uses.begin(), uses.end(), x.begin,
                         [](const Use& use, Position position) { return use.position < position; });
    for (auto use = from; use != uses.end() && use->position < x.end; ++use) touch(&*use, 0);
    for (auto use = uses.begin(); use != from && use->position + problem_.period < x.end; ++use) {
      touch(&*use, 1);
    }
    if (uses.empty() && !problem_.variables[At(x.variable)].persistent()) TouchWorkspace(x, &stay);
    if (x.copy_in >= 0) stay.copy_in = {x.copy_in, 0};
    if (x.copy_out >= 0) stay.copy_out = {x.copy_out, stay.last_op.iteration};
  }

  /// What no op names is scratch of the op that follows its malloc, even if it is free by then.
  void TouchWorkspace(const Residency& x, Stay* stay) const {
    const auto op = std::lower_bound(
        problem_.ops.begin(), problem_.ops.end(), x.begin,
        [](const Op& candidate, Position position) { return candidate.position < position; });
    Moment moment;
    if (op != problem_.ops.end()) {
      moment = {CommandOf(static_cast<OpIndex>(op - problem_.ops.begin())), 0};
    } else if (problem_.cyclic && !problem_.ops.empty()) {
      moment = {CommandOf(0), 1};
    }
    stay->first_op = stay->last_write = stay->last_op = moment;
  }

  void CheckServed(std::size_t v) {
    for (const Use& use : uses_[v]) {
      if (use.served == 1) continue;
      report_.Add(PlanLaw::kContent,
                  fmt::format("{} finds variable {} in {} residencies",
                              report_.Describe(CommandOf(use.op)), v, use.served));
    }
    if (residencies_[v].empty()) {
      report_.Add(PlanLaw::kContent, fmt::format("variable {} has no residency", v));
    }
    for (const std::size_t r : residencies_[v]) {
      const bool copied = residency(r).copy_in >= 0 || residency(r).copy_out >= 0;
      if (!copied || (contents_.stays[r].first_op.exists() && !uses_[v].empty())) continue;
      const CommandIndex c =
          residency(r).copy_in >= 0 ? residency(r).copy_in : residency(r).copy_out;
      report_.Add(PlanLaw::kContent, fmt::format("{} copies what no op touches in residency {}",
                                                 report_.Describe(c), r));
    }
  }

  /// Residencies of a persistent variable: one that never leaves, or a ring of copies.
  void CheckCycle(std::size_t v) {
    std::vector<std::size_t>& own = residencies_[v];
    std::sort(own.begin(), own.end(), [&](std::size_t a, std::size_t b) {
      return residency(a).begin < residency(b).begin;
    });
    if (own.size() == 1 && residency(own[0]).copy_in < 0 && residency(own[0]).copy_out < 0) {
      if (residency(own[0]).begin == 0 && residency(own[0]).end == problem_.period) return;
      report_.Add(PlanLaw::kBoundary, DescribeStay(own[0]) + " does not last for ever");
      return;
    }
    for (const std::size_t r : own) {
      if (residency(r).copy_in >= 0) continue;
      report_.Add(PlanLaw::kBoundary,
                  DescribeStay(r) + " does not begin with a copy, around the cycle");
      return;
    }
    if (!own.empty()) CheckRing(own);
  }

  /// The stays around the cycle, from one that is saved to itself, an iteration later.
  void CheckRing(const std::vector<std::size_t>& own) {
    const auto saved = std::find_if(own.begin(), own.end(),
                                    [&](std::size_t r) { return residency(r).copy_out >= 0; });
    if (saved == own.end()) {
      report_.Add(
          PlanLaw::kBoundary,
          fmt::format("{} brings back what nobody saves around the cycle, not even {}",
                      report_.Describe(residency(own.front()).copy_in), DescribeStay(own.back())));
      return;
    }
    std::vector<Link> chain;
    chain.reserve(own.size() + 1);
    for (auto r = saved; r != own.end(); ++r) chain.push_back({*r, 0});
    for (auto r = own.begin(); r != saved + 1; ++r) chain.push_back({*r, 1});
    for (std::size_t k = 0; k + 1 < chain.size(); ++k) CheckFollows(chain[k], chain[k + 1]);
    NoteHostCopies(chain);
  }

  /// Residencies of any other variable: a chain from its malloc to its free.
  void CheckLife(std::size_t v) {
    const Variable& variable = problem_.variables[v];
    std::vector<std::size_t>& own = residencies_[v];
    // What begins at a position before the malloc belongs to the instance of the iteration before.
    const auto lap = [&](std::size_t r) { return residency(r).begin < variable.begin ? 1 : 0; };
    std::sort(own.begin(), own.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(lap(a), residency(a).begin) < std::pair(lap(b), residency(b).begin);
    });
    std::vector<Link> chain;
    chain.reserve(own.size());
    for (const std::size_t r : own) chain.push_back({r, lap(r)});
    for (std::size_t k = 0; k < chain.size(); ++k) {
      const Residency& x = residency(own[k]);
      const bool last = k + 1 == chain.size();
      if (k == 0 ? x.copy_in >= 0 || x.begin != variable.begin : x.copy_in < 0) {
        report_.Add(PlanLaw::kContent,
                    DescribeStay(own[k]) + " begins with neither its malloc nor a copy-in alone");
      } else if (last && x.copy_out >= 0) {
        report_.Add(PlanLaw::kContent, DescribeStay(own[k]) + " is saved and never needed again");
      } else if (last && x.end + chain[k].lap * problem_.period > variable.end) {
        report_.Add(PlanLaw::kContent, DescribeStay(own[k]) + " outlives its variable");
      } else if (uses_[v].empty() && x.end < variable.end) {
        // Of scratch, only the free tells whether the same op's other scratch may have its bytes.
        report_.Add(PlanLaw::kContent, DescribeStay(own[k]) + " ends before its variable is freed");
      } else if (!last) {
        CheckFollows(chain[k], chain[k + 1]);
      }
    }
    NoteHostCopies(chain);
  }

  /// Judges a stay and the one that follows it.
  void CheckFollows(const Link& earlier, const Link& later) {
    const Residency& x = residency(earlier.residency);
    const Residency& y = residency(later.residency);
    if (x.end + earlier.lap * problem_.period > y.begin + later.lap * problem_.period) {
      report_.Add(PlanLaw::kContent,
                  fmt::format("{} overlaps in time with {}", DescribeStay(earlier.residency),
                              DescribeStay(later.residency)));
    }
    if (x.copy_out < 0 && y.copy_in >= 0) CheckDrop(earlier.residency, y.copy_in);
  }

  /// Judges a stay that nobody saves, although a copy in follows: the host must have it as it is.
  void CheckDrop(std::size_t dropped, CommandIndex copy_in) {
    const Stay& stay = contents_.stays[dropped];
    if (!stay.copy_in.exists()) {
      report_.Add(PlanLaw::kContent, fmt::format("{} is not saved before {}", DescribeStay(dropped),
                                                 report_.Describe(copy_in)));
    } else if (stay.last_write.exists()) {
      report_.Add(PlanLaw::kContent,
                  fmt::format("{} brings back a version from before {}, as {} is not saved",
                              report_.Describe(copy_in), report_.Describe(stay.last_write.command),
                              DescribeStay(dropped)));
    }
  }

  /// Notes every copy out of a chain of stays, with the copies in up to the next copy out.
  void NoteHostCopies(const std::vector<Link>& chain) {
    std::vector<HostCopy> copies;
    for (const Link& link : chain) {
      const Stay& stay = contents_.stays[link.residency];
      if (stay.copy_in.exists() && !copies.empty()) {
        copies.back().ins.push_back({stay.copy_in.command, link.lap});
      }
      if (!stay.copy_out.exists()) continue;
      copies.push_back({{stay.copy_out.command, link.lap + stay.copy_out.iteration}, {}});
    }
    for (HostCopy& copy : copies) {
      if (!copy.ins.empty()) contents_.host_copies.push_back(std::move(copy));
    }
  }

  std::string DescribeStay(std::size_t r) const {
    const Stay& stay = contents_.stays[r];
    const Residency& x = residency(r);
    std::string text =
        fmt::format("residency {} of variable {}, [{}, {})", r, x.variable, x.begin, x.end);
    if (stay.first_op.exists()) {
      text += fmt::format(", from {} to {},", report_.Describe(stay.first_op.command),
                          report_.Describe(stay.last_op.command));
    }
    return text;
  }

  const Plan& plan_;
  const Problem& problem_;
  CheckReport& report_;
  std::vector<std::vector<Use>> uses_;                 // By variable, in order.
  std::vector<std::vector<std::size_t>> residencies_;  // By variable.
  Contents contents_;
};

/// Judges that a copy out reads the last version of its stay, whole.
void CheckCopyOut(const Stay& stay, const Reach& reach, CheckReport* report) {
  if (stay.last_write.exists() && !reach.HasPath(stay.last_write, stay.copy_out)) {
    const std::string copy = report->Describe(stay.copy_out.command);
    const std::string op = report->Describe(stay.last_write.command);
    if (reach.HasPath(stay.copy_out, stay.last_write)) {
      report->Add(PlanLaw::kContent, fmt::format("{} saves what {} writes only later", copy, op));
    } else {
      report->Add(PlanLaw::kCopiedWrite, fmt::format("{} may be reading what {} writes", copy, op));
    }
  } else if (!stay.copy_in.exists() && !reach.HasPath(stay.first_op, stay.copy_out)) {
    report->Add(PlanLaw::kContent,
                fmt::format("{} may run before {}, the first to have the variable",
                            report->Describe(stay.copy_out.command),
                            report->Describe(stay.first_op.command)));
  }
}

/// Judges that a copy in reads what a copy out has saved, where it has, when it has.
void CheckSaved(const Plan& plan, const Moment& out, const Moment& in, const Reach& reach,
                CheckReport* report) {
  const Bytes to = plan.commands[At(out.command)].host_offset;
  const Bytes from = plan.commands[At(in.command)].host_offset;
  if (to != from) {
    report->Add(PlanLaw::kSaved,
                fmt::format("{} and {} are at {} and {} of the host slab",
                            report->Describe(in.command), report->Describe(out.command), from, to));
  }
  if (!reach.HasPath(out, in)) {
    report->Add(PlanLaw::kSaved,
                fmt::format("{} does not wait for {}, which saves what it reads",
                            report->Describe(in.command), report->Describe(out.command)));
  }
}

}  // namespace

Contents CheckResidencies(const Plan& plan, CheckReport* report) {
  return ResidencyCheck(plan, report).Run();
}

void CheckVersions(const Plan& plan, const Contents& contents, const Reach& reach,
                   CheckReport* report) {
  for (const Stay& stay : contents.stays) {
    if (report->full()) return;
    if (!stay.first_op.exists()) continue;
    for (const Moment& user : {stay.first_op, stay.copy_out}) {
      if (!stay.copy_in.exists() || !user.exists() || reach.HasPath(stay.copy_in, user)) continue;
      report->Add(PlanLaw::kArrival,
                  fmt::format("{} does not wait for {}", report->Describe(user.command),
                              report->Describe(stay.copy_in.command)));
    }
    if (stay.copy_out.exists()) CheckCopyOut(stay, reach, report);
  }
  for (const HostCopy& copy : contents.host_copies) {
    if (report->full()) return;
    for (const Moment& in : copy.ins) CheckSaved(plan, copy.out, in, reach, report);
  }
}

}  // namespace plimsoll::plan
