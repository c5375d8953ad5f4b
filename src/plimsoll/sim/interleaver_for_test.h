// SPDX-License-Identifier: Apache-2.0
//
// Runs a plan in random legal orders over a byte-accurate shadow of its memory. For tests only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/random_plan_for_test.h"

namespace plimsoll::sim {

/// What a byte holds: one version of a variable, or something in the making by a command.
struct Tag {
  std::int64_t variable = -1;
  std::int64_t instance = 0;  ///< The iteration of its malloc; 0 if persistent.
  std::int64_t version = 0;

  friend bool operator==(const Tag&, const Tag&) = default;
};

/// Each step starts the head of a queue that may start, or ends one that is running: commands of
/// different queues overlap in every way that the plan allows. A command's destination is worth
/// nothing from its start to its end; its source must be right at both.
class Interleaver {
 public:
  Interleaver(const plan::Plan& plan, std::int64_t iterations, plan::PlanRandom* random)
      : plan_(plan), problem_(plan.problem), random_(*random) {
    iterations_ = problem_.cyclic ? iterations : 1;
    arena_.resize(At(plan.footprint_bytes));
    slab_.resize(At(plan.host_bytes));
    accesses_.resize(problem_.variables.size());
    scratch_.resize(problem_.ops.size());
    rank_.resize(plan.commands.size());
    for (const auto& queue : plan.queues) {
      for (std::size_t k = 0; k < queue.size(); ++k) rank_[At(queue[k])] = k;
    }
    for (std::int64_t& weight : weights_) weight = random_.OneIn(3) ? 100 : random_.Between(1, 9);
    ListAccesses();
    SetTheScene();
  }

  /// Returns what went wrong first; nothing if all went well.
  std::string Run() {
    while (wrong_.empty()) {
      std::array<std::int64_t, 2 * plan::kQueues> chances{};
      std::int64_t sum = 0;
      for (std::size_t q = 0; q < plan::kQueues; ++q) {
        if (running_[q]) sum += chances[q] = weights_[q];
        if (CanStart(q)) sum += chances[q + plan::kQueues] = weights_[q + plan::kQueues];
      }
      if (sum == 0) break;
      std::int64_t lot = random_.Between(0, sum - 1);
      std::size_t chosen = 0;
      while (lot >= chances[chosen]) lot -= chances[chosen++];
      Step(chosen % plan::kQueues, chosen >= plan::kQueues);
    }
    if (!wrong_.empty()) return wrong_;
    for (std::size_t q = 0; q < plan::kQueues; ++q) {
      if (ended_[q] < iterations_ * Length(q)) return "deadlock";
    }
    for (const plan::Residency& r : plan_.residencies) {
      if (!IsEternal(r)) continue;
      Expect(&arena_, r.offset, r.variable, TagAt(r.variable, iterations_ * problem_.period),
             "in the end");
    }
    return wrong_;
  }

 private:
  struct Access {
    plan::Position time = 0;  ///< On the variable's own axis.
    bool writes = false;
  };
  /// A residency that an op touches, and what is there before it.
  struct Touch {
    const plan::Residency* residency = nullptr;
    plan::Position begin = 0;  ///< Over all iterations.
    Tag before;
    bool writes = false;
    bool takes = false;    ///< Is the first to have these bytes.
    bool scratch = false;  ///< Is named by nobody.
    bool alive = true;     ///< Is not freed before the op runs.
  };

  std::int64_t Length(std::size_t q) const {
    return static_cast<std::int64_t>(plan_.queues[q].size());
  }
  Bytes SizeOf(plan::VariableIndex v) const { return problem_.variables[At(v)].size_bytes; }
  bool IsEternal(const plan::Residency& r) const {
    return problem_.variables[At(r.variable)].persistent() && r.copy_in < 0;
  }

  void ListAccesses() {
    for (const plan::Op& op : problem_.ops) {
      for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
        const plan::Operand& x = problem_.operands[At(op.first_operand + k)];
        auto& own = accesses_[At(x.variable)];
        const plan::Position time = op.position + x.age * problem_.period;
        if (own.empty() || own.back().time != time) own.push_back({time, false});
        if (k >= op.read_count) own.back().writes = true;
      }
    }
    for (std::size_t v = 0; v < accesses_.size(); ++v) {
      auto& own = accesses_[v];
      std::sort(own.begin(), own.end(),
                [](const Access& a, const Access& b) { return a.time < b.time; });
      const plan::Variable& variable = problem_.variables[v];
      if (!own.empty() || variable.persistent() || problem_.ops.empty()) continue;
      std::size_t user = 0;
      while (user < problem_.ops.size() && problem_.ops[user].position < variable.begin) ++user;
      // Nobody uses what is malloc'ed behind the last op of all.
      if (user == problem_.ops.size() && !problem_.cyclic) continue;
      scratch_[user % problem_.ops.size()].push_back(static_cast<plan::VariableIndex>(v));
    }
  }

  /// What a variable is right before a moment, when all its accesses happen in program order.
  Tag TagAt(plan::VariableIndex v, plan::Position moment) const {
    const plan::Variable& variable = problem_.variables[At(v)];
    const plan::Position since = moment - variable.begin;
    std::int64_t lap = since / problem_.period;
    if (since < 0 && since % problem_.period != 0) --lap;
    Tag tag{v, lap, 0};
    std::int64_t all = 0;
    for (const Access& access : accesses_[At(v)]) {
      all += access.writes ? 1 : 0;
      if (access.writes && access.time < moment - lap * problem_.period) ++tag.version;
    }
    if (variable.persistent()) tag = {v, 0, tag.version + lap * all};
    return tag;
  }

  /// The iterations from a residency's beginning to its last op.
  std::int64_t Shift(const plan::Residency& r) const {
    plan::Position last = r.begin;
    for (const Access& access : accesses_[At(r.variable)]) {
      for (const std::int64_t lap : {0, 1}) {
        const plan::Position time = access.time % problem_.period + lap * problem_.period;
        if (r.begin <= time && time < r.end) last = std::max(last, time);
      }
    }
    return last / problem_.period;
  }

  /// Puts into memory what iterations before the first have left there.
  void SetTheScene() {
    for (const plan::Residency& r : plan_.residencies) {
      bool before = IsEternal(r) || r.copy_in >= 0;
      for (const Access& access : accesses_[At(r.variable)]) {
        before = before || access.time % problem_.period >= r.begin;
      }
      if (IsEternal(r) || (r.end > problem_.period && before && Shift(r) > 0)) {
        Fill(&arena_, r.offset, r.variable, TagAt(r.variable, 0));
      }
      if (r.copy_in >= 0) FillSaved(r);
    }
  }

  /// Puts into the slab what a copy in of the first iteration reads, if it was saved before: the
  /// version of that time, whether it is the right one or not. What nobody has ever saved is not
  /// there.
  void FillSaved(const plan::Residency& r) {
    const plan::Residency* saved = nullptr;
    plan::Position latest = -2 * problem_.period;
    std::int64_t iteration = 0;
    for (const plan::Residency& q : plan_.residencies) {
      for (const std::int64_t lap : {-2, -1, 0}) {
        const plan::Position end = q.end + lap * problem_.period;
        if (q.variable != r.variable || q.copy_out < 0 || end > r.begin || end <= latest) continue;
        saved = &q;
        latest = end;
        iteration = lap + Shift(q);
      }
    }
    if (saved == nullptr || iteration >= 0) return;
    Fill(&slab_, plan_.commands[At(saved->copy_out)].host_offset, r.variable,
         TagAt(r.variable, latest));
  }

  bool CanStart(std::size_t q) const {
    if (running_[q] || ended_[q] == iterations_ * Length(q)) return false;
    const std::int64_t iteration = ended_[q] / Length(q);
    for (const plan::Wait& wait :
         plan_.commands[At(plan_.queues[q][At(ended_[q] % Length(q))])].waits) {
      const auto other = static_cast<std::size_t>(plan_.commands[At(wait.command)].queue);
      const std::int64_t lap = iteration - wait.lag;
      if (lap < 0) continue;
      if (ended_[other] <= lap * Length(other) + static_cast<std::int64_t>(rank_[At(wait.command)]))
        return false;
    }
    return true;
  }

  void Step(std::size_t q, bool starts) {
    const std::int64_t iteration = ended_[q] / Length(q);
    const plan::CommandIndex c = plan_.queues[q][At(ended_[q] % Length(q))];
    running_[q] = starts;
    if (q == 0) {
      RunOp(c, iteration, starts);
    } else {
      RunCopy(c, iteration, starts);
    }
    if (!starts) ++ended_[q];
  }

  /// What a command's destination holds while it runs.
  Tag Making(plan::CommandIndex c, std::int64_t iteration, plan::VariableIndex v) const {
    return {-2 - c, iteration, v};
  }

  void RunCopy(plan::CommandIndex c, std::int64_t iteration, bool starts) {
    const plan::Command& command = plan_.commands[At(c)];
    const plan::Residency& r = plan_.residencies[At(command.residency)];
    const bool in = command.queue == plan::Queue::kCopyIn;
    const std::int64_t stay = in ? iteration : iteration - Shift(r);
    const plan::Position moment = (in ? r.begin : r.end) + stay * problem_.period;
    const Tag tag = TagAt(r.variable, moment);
    auto* source = in ? &slab_ : &arena_;
    auto* destination = in ? &arena_ : &slab_;
    const Bytes from = in ? command.host_offset : r.offset;
    const Bytes to = in ? r.offset : command.host_offset;
    const std::string who = "copy " + std::to_string(c);
    Expect(source, from, r.variable, tag, who);
    if (!starts) {
      Expect(destination, to, r.variable, Making(c, iteration, r.variable), who + " makes");
    }
    Fill(destination, to, r.variable, starts ? Making(c, iteration, r.variable) : tag);
  }

  void RunOp(plan::CommandIndex c, std::int64_t iteration, bool starts) {
    const plan::OpIndex index = plan_.commands[At(c)].op;
    const std::vector<Touch> touches = TouchesOf(index, iteration);
    const plan::Position now = problem_.ops[At(index)].position + iteration * problem_.period;
    const std::string who = "op " + std::to_string(index);
    for (const Touch& t : touches) {
      const Tag making = Making(c, iteration, t.residency->variable);
      if (starts && t.takes) {
        Fill(&arena_, t.residency->offset, t.residency->variable, t.scratch ? making : t.before);
      }
    }
    for (const Touch& t : touches) {
      const plan::VariableIndex v = t.residency->variable;
      const Tag making = Making(c, iteration, v);
      if (t.scratch) {
        if (t.alive) Expect(&arena_, t.residency->offset, v, making, who + " scratch");
      } else if (starts) {
        Expect(&arena_, t.residency->offset, v, t.before, who + " at its start");
      } else {
        Expect(&arena_, t.residency->offset, v, t.writes ? making : t.before, who + " at its end");
      }
    }
    for (const Touch& t : touches) {
      const plan::VariableIndex v = t.residency->variable;
      if (!t.writes || t.scratch) continue;
      Fill(&arena_, t.residency->offset, v, starts ? Making(c, iteration, v) : TagAt(v, now + 1));
    }
  }

  std::vector<Touch> TouchesOf(plan::OpIndex index, std::int64_t iteration) {
    const plan::Op& op = problem_.ops[At(index)];
    const plan::Position now = op.position + iteration * problem_.period;
    std::vector<Touch> touches;
    for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
      const plan::VariableIndex v = problem_.operands[At(op.first_operand + k)].variable;
      const bool writes = k >= op.read_count;
      const auto same = std::find_if(touches.begin(), touches.end(), [&](const Touch& touch) {
        return touch.residency->variable == v;
      });
      if (same != touches.end()) {
        same->writes = same->writes || writes;
      } else {
        touches.push_back(FindOperand(v, now));
        touches.back().writes = writes;
        if (touches.back().residency == nullptr) return {};
      }
    }
    for (const plan::VariableIndex v : scratch_[At(index)]) {
      for (const plan::Residency& r : plan_.residencies) {
        if (r.variable != v) continue;
        const plan::Position lap = r.begin > op.position ? iteration - 1 : iteration;
        touches.push_back({&r,
                           r.begin + lap * problem_.period,
                           {},
                           true,
                           true,
                           true,
                           now < problem_.variables[At(v)].end + lap * problem_.period});
      }
    }
    std::sort(touches.begin(), touches.end(),
              [](const Touch& a, const Touch& b) { return a.begin < b.begin; });
    return touches;
  }

  /// The one residency in which an op finds an operand.
  Touch FindOperand(plan::VariableIndex v, plan::Position now) {
    Touch touch;
    touch.before = TagAt(v, now);
    const plan::Variable& variable = problem_.variables[At(v)];
    for (const plan::Residency& r : plan_.residencies) {
      if (r.variable != v) continue;
      for (const std::int64_t lap : {0, 1}) {
        const plan::Position time = now % problem_.period + lap * problem_.period;
        if (time < r.begin || time >= r.end) continue;
        if (touch.residency != nullptr) Fail("two residencies of variable " + std::to_string(v));
        touch.residency = &r;
        touch.begin = now - time + r.begin;
        const plan::Position own_time = now - touch.before.instance * problem_.period;
        touch.takes = !variable.persistent() && accesses_[At(v)].front().time == own_time;
      }
    }
    if (touch.residency == nullptr) Fail("no residency of variable " + std::to_string(v));
    return touch;
  }

  void Fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  bool Reaches(const std::vector<Tag>& memory, Bytes offset, Bytes size) {
    const bool inside = offset >= 0 && offset + size <= static_cast<Bytes>(memory.size());
    if (!inside) Fail("out of memory");
    return inside;
  }

  void Fill(std::vector<Tag>* memory, Bytes offset, plan::VariableIndex v, const Tag& tag) {
    const Bytes size = SizeOf(v);
    if (size == 0 || !Reaches(*memory, offset, size)) return;
    std::fill_n(memory->begin() + offset, size, tag);
  }

  void Expect(std::vector<Tag>* memory, Bytes offset, plan::VariableIndex v, const Tag& tag,
              const std::string& who) {
    const Bytes size = SizeOf(v);
    if (size == 0 || !Reaches(*memory, offset, size)) return;
    for (Bytes b = offset; b < offset + size; ++b) {
      const Tag& found = (*memory)[At(b)];
      if (found == tag) continue;
      Fail(who + ": variable " + std::to_string(v) + " at " + std::to_string(b) + " should be " +
           Text(tag) + " and is " + Text(found));
      return;
    }
  }

  static std::string Text(const Tag& tag) {
    return std::to_string(tag.variable) + "/" + std::to_string(tag.instance) + "/" +
           std::to_string(tag.version);
  }

  const plan::Plan& plan_;
  const plan::Problem& problem_;
  plan::PlanRandom& random_;
  std::int64_t iterations_ = 1;
  std::vector<Tag> arena_;
  std::vector<Tag> slab_;
  std::vector<std::vector<Access>> accesses_;              // By variable, in order.
  std::vector<std::vector<plan::VariableIndex>> scratch_;  // By op: workspaces that it uses.
  std::vector<std::size_t> rank_;                          // By command.
  std::array<std::int64_t, 2 * plan::kQueues>
      weights_{};  // How eagerly each queue ends and starts.
  std::array<bool, plan::kQueues> running_{};
  std::array<std::int64_t, plan::kQueues> ended_{};  // Over all iterations.
  std::string wrong_;
};

}  // namespace plimsoll::sim
