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
    AddProblem();
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
    const Problem& problem = plan_.problem;
    Add("plan 1\nplanner {}\nsignature {:016x}\n", Escape(plan_.planner), plan_.signature);
    Add("machine {} {} {} {} {} {} {}\n", Escape(machine.name), machine.out_latency_ns,
        machine.in_latency_ns, machine.out_bytes_per_s, machine.in_bytes_per_s,
        machine.both_out_bytes_per_s, machine.both_in_bytes_per_s);
    Add("limit {} {}\n", plan_.limit_bytes, plan_.host_limit_bytes);
    Add("footprint {} {}\n", plan_.footprint_bytes, plan_.host_bytes);
    Add("iteration {} {} {} {} {}", problem.cyclic ? "cyclic" : "once", problem.period,
        problem.laps, problem.iterations, problem.first_event);
    EndLine();
  }

  void AddProblem() {
    const Problem& problem = plan_.problem;
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
      AddOperands(problem.reads(op));
      text_ += ' ';
      AddOperands(problem.writes(op));
      EndLine();
    }
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

  /// Adds the order of a queue, some of it a line, so that no line becomes too long.
  void AddQueue(Queue queue) {
    constexpr std::size_t kPerLine = 16;
    const auto& commands = plan_.queues[static_cast<std::size_t>(queue)];
    for (std::size_t k = 0; k < commands.size(); ++k) {
      if (k % kPerLine == 0) Add("q {} ", Name(queue));
      Add("{}", commands[k]);
      if (k % kPerLine == kPerLine - 1 || k + 1 == commands.size()) {
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
