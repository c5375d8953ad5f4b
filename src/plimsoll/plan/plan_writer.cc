// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>
#include <span>
#include <utility>

#include "plimsoll/base/checksum.h"
#include "plimsoll/base/escape.h"
#include "plimsoll/base/file.h"
#include "plimsoll/plan/plan_file.h"

namespace plimsoll::plan {
namespace {

constexpr std::string_view kPhaseLetters = "FBU";

/// Passes the text of a plan to `sink`, a block at a time.
template <typename Sink>
class PlanWriter {
 public:
  PlanWriter(const Plan& plan, Sink sink) : plan_(plan), sink_(std::move(sink)) {}

  void Run() {
    AddHeader();
    AddProblem(plan_.problem);
    if (plan_.rewriting) AddRewriting(*plan_.rewriting);
    for (const Residency& x : plan_.residencies) AddResidency(x);
    for (const Command& command : plan_.commands) AddCommand(command);
    for (int q = 0; q < kQueues; ++q) AddQueue(static_cast<Queue>(q));
    Flush();
    Add("checksum {:016x}\n", sum_.digest());
    sink_(text_);
  }

 private:
  template <typename... Values>
  void Add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  void EndLine() {
    text_ += '\n';
    if (text_.size() >= kBlockBytes) Flush();
  }

  void Flush() {
    sum_.Add(text_);
    sink_(text_);
    text_.clear();
  }

  void AddHeader() {
    const Machine& machine = plan_.machine;
    Add("plan 2\nplanner {}\nsignature {:016x}\n", Escape(plan_.planner), plan_.signature);
    Add("machine {} {} {} {} {} {} {}", Escape(machine.name), machine.out_latency_ns,
        machine.in_latency_ns, machine.out_bytes_per_s, machine.in_bytes_per_s,
        machine.both_out_bytes_per_s, machine.both_in_bytes_per_s);
    if (machine.slows_ops() || machine.handover_ns > 0) {
      Add(" {} {} {}", machine.slowdown_by_out, machine.slowdown_by_in, machine.handover_ns);
    }
    Add("\n");
    Add("limit {} {}\n", plan_.limit_bytes, plan_.host_limit_bytes);
    Add("footprint {} {}\n", plan_.footprint_bytes, plan_.host_bytes);
    AddIteration("iteration", plan_.problem);
  }

  void AddIteration(std::string_view keyword, const Problem& problem) {
    Add("{} {} {} {} {} {}", keyword, problem.cyclic ? "cyclic" : "once", problem.period,
        problem.laps, problem.iterations, problem.first_event);
    EndLine();
  }

  void AddProblem(const Problem& problem) {
    for (const std::string& name : problem.op_names) {
      Add("n {}", Escape(name));
      EndLine();
    }
    for (const Variable& x : problem.variables) {
      Add("v {} {} {} {} {} {} {}", x.id, x.size_bytes, x.begin, x.end, Name(x.kind),
          kPhaseLetters[static_cast<std::size_t>(x.phase)], x.instances);
      EndLine();
    }
    for (const Op& op : problem.ops) {
      Add("x {} {} {} {} ", op.duration_ns, kPhaseLetters[static_cast<std::size_t>(op.phase)],
          op.name, op.position);
      AddTraits(op.traits);
      text_ += ' ';
      AddOperands(problem.reads(op));
      text_ += ' ';
      AddOperands(problem.writes(op));
      EndLine();
    }
  }

  void AddTraits(const OpTraits& traits) {
    if (traits == OpTraits()) text_ += '-';
    if (traits.replayable) text_ += 'a';
    if (traits.random) text_ += 's';
    if (traits.state_reads != 0) Add(":{:08x}", traits.state_reads);
  }

  /// Adds what was recorded, and how the problem planned is made of it.
  void AddRewriting(const Rewriting& rewriting) {
    AddIteration("recorded", rewriting.original);
    AddProblem(rewriting.original);
    AddLines("s ops ", rewriting.op_source.size(), [&](std::size_t k) {
      AddBack(rewriting.op_source[k], k < rewriting.is_replay.size() ? rewriting.is_replay[k] : 0);
    });
    AddLines("s variables ", rewriting.variable_source.size(),
             [&](std::size_t k) { AddBack(rewriting.variable_source[k], 0); });
  }

  /// Adds `index`, and what it is back by unless that is nothing.
  void AddBack(std::int32_t index, std::int32_t back) {
    if (back == 0) {
      Add("{}", index);
    } else {
      Add("{}@{}", index, back);
    }
  }

  void AddOperands(std::span<const Operand> operands) {
    if (operands.empty()) text_ += '-';
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (k > 0) text_ += ',';
      AddBack(operands[k].variable, operands[k].age);
    }
  }

  void AddResidency(const Residency& x) {
    Add("r {} {} {} {} ", x.variable, x.begin, x.end, x.offset);
    AddCopy(x.copy_in);
    text_ += ' ';
    AddCopy(x.copy_out);
    EndLine();
  }

  void AddCopy(CommandIndex command) {
    if (command < 0) {
      text_ += '-';
    } else {
      Add("{}", command);
    }
  }

  void AddCommand(const Command& command) {
    if (command.queue == Queue::kCompute) {
      Add("e {} ", command.op);
    } else {
      Add("{} {} {} ", command.queue == Queue::kCopyOut ? 'o' : 'i', command.residency,
          command.host_offset);
    }
    if (command.waits.empty()) text_ += '-';
    for (std::size_t k = 0; k < command.waits.size(); ++k) {
      if (k > 0) text_ += ',';
      AddBack(command.waits[k].command, command.waits[k].lag);
    }
    EndLine();
  }

  void AddQueue(Queue queue) {
    const auto& commands = plan_.queues[static_cast<std::size_t>(queue)];
    AddLines(fmt::format("q {} ", Name(queue)), commands.size(),
             [&](std::size_t k) { Add("{}", commands[k]); });
  }

  /// Adds a long list, some of it a line, so that no line becomes too long.
  template <typename AddItem>
  void AddLines(std::string_view begin, std::size_t count, AddItem add_item) {
    constexpr std::size_t kPerLine = 16;
    for (std::size_t k = 0; k < count; ++k) {
      if (k % kPerLine == 0) text_ += begin;
      add_item(k);
      if (k % kPerLine == kPerLine - 1 || k + 1 == count) {
        EndLine();
      } else {
        text_ += ',';
      }
    }
  }

  static constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

  const Plan& plan_;
  Sink sink_;
  std::string text_;
  Checksum sum_;
};

}  // namespace

std::string FormatPlan(const Plan& plan) {
  std::string whole;
  PlanWriter(plan, [&](std::string_view text) { whole += text; }).Run();
  return whole;
}

void WritePlan(const Plan& plan, const std::string& path) {
  FileReplacer file(path);
  PlanWriter(plan, [&](std::string_view text) { file.Write(text); }).Run();
  file.Commit();
}

}  // namespace plimsoll::plan
