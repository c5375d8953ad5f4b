// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plimsoll/base/index.h"
#include "plimsoll/report/memory_view.h"

namespace plimsoll::report {
namespace {

/// A text in quotes, in ASCII.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// Times are in microseconds, with all their digits. REQUIRES: not negative.
std::string Microseconds(Nanoseconds ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

constexpr int kStallTrack = plan::kQueues;

class Writer {
 public:
  explicit Writer(const Subject& subject) : subject_(subject), plan_(subject.plan) {
    NoteBeginning(subject.predicted);
    if (subject.measured) NoteBeginning(*subject.measured);
  }

  std::string Render() {
    AddProcess(1, "predicted", subject_.predicted);
    if (subject_.measured) AddProcess(2, "measured", *subject_.measured);
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

 private:
  void Add(const std::string& event) {
    if (!events_.empty()) events_ += ",\n";
    events_ += event;
  }

  void Name(int process, const char* what, int thread, const std::string& name) {
    Add(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":{}}}}})", process,
                    thread, what, Quoted(name)));
  }

  /// Copies may have begun in the iteration before, but no time may be negative.
  void NoteBeginning(const Lanes& lanes) {
    for (const Nanoseconds start : lanes.times.start_ns) origin_ns_ = std::min(origin_ns_, start);
    for (const StallMark& stall : lanes.stalls) origin_ns_ = std::min(origin_ns_, stall.start_ns);
  }

  void NameTrack(int process, int thread, const std::string& name) {
    Name(process, "thread_name", thread, name);
    Add(fmt::format(
        R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
        process, thread, thread));
  }

  void AddProcess(int process, const std::string& name, const Lanes& lanes) {
    Name(process, "process_name", 0, fmt::format("{}, {}", subject_.figures.name, name));
    for (int q = 0; q < plan::kQueues; ++q) {
      NameTrack(process, q + 1, std::string(plan::Name(static_cast<plan::Queue>(q))));
    }
    for (const auto& queue : plan_.queues) {
      for (const plan::CommandIndex c : queue) AddCommand(process, lanes, c);
    }
    AddCounters(process, lanes.times);
    if (lanes.stalls.empty()) return;
    NameTrack(process, kStallTrack + 1, "stalls");
    for (const StallMark& stall : lanes.stalls) AddStall(process, stall);
  }

  std::string NameOf(plan::CommandIndex c) const {
    const plan::Command& command = plan_.commands[At(c)];
    if (command.queue != plan::Queue::kCompute) {
      const auto v = At(plan_.residencies[At(command.residency)].variable);
      return fmt::format("variable {}", plan_.problem.variables[v].id);
    }
    const plan::Op& op = plan_.problem.ops[At(command.op)];
    return (IsReplay(plan_, command.op) ? "again: " : "") + plan_.problem.op_names[At(op.name)];
  }

  void AddCommand(int process, const Lanes& lanes, plan::CommandIndex c) {
    const plan::Command& command = plan_.commands[At(c)];
    const int thread = static_cast<int>(command.queue) + 1;
    const Nanoseconds start = lanes.times.start_ns[At(c)];
    std::string detail = fmt::format(R"("command":{})", c);
    if (command.residency >= 0) {
      const auto v = At(plan_.residencies[At(command.residency)].variable);
      detail += fmt::format(R"(,"bytes":{})", plan_.problem.variables[v].size_bytes);
    } else {
      detail += fmt::format(R"(,"op":{})", SourceOf(plan_, command.op));
    }
    Add(fmt::format(
        R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{{}}}}})",
        process, thread, Microseconds(start - origin_ns_),
        Microseconds(lanes.times.end_ns[At(c)] - start), Quoted(NameOf(c)),
        plan::Name(command.queue), detail));
    for (const plan::Wait& wait : command.waits) {
      if (wait.lag == 0 && plan_.commands[At(wait.command)].queue != command.queue) {
        AddArrow(process, lanes, wait.command, c);
      }
    }
  }

  /// An arrow is bound to the slices around its ends.
  void AddArrow(int process, const Lanes& lanes, plan::CommandIndex from, plan::CommandIndex to) {
    ++arrows_;
    const auto end = [&](const char* phase, plan::CommandIndex c, Nanoseconds time) {
      Add(fmt::format(
          R"({{"ph":"{}","pid":{},"tid":{},"ts":{},"id":{},"name":"waits","cat":"wait","bp":"e"}})",
          phase, process, static_cast<int>(plan_.commands[At(c)].queue) + 1,
          Microseconds(time - origin_ns_), arrows_));
    };
    end("s", from, lanes.times.start_ns[At(from)]);
    end("f", to, lanes.times.start_ns[At(to)]);
  }

  void AddStall(int process, const StallMark& stall) {
    const StallReason reason = ReasonOf(plan_, stall);
    const char* name = reason == StallReason::kData     ? "waits for data"
                       : reason == StallReason::kMemory ? "waits for memory"
                                                        : "waits";
    const std::string awaited = stall.awaited < 0 ? "" : NameOf(stall.awaited);
    Add(fmt::format(
        R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{}","cat":"stall","args":{{"op":{},"for":{}}}}})",
        process, kStallTrack + 1, Microseconds(stall.start_ns - origin_ns_),
        Microseconds(stall.length_ns), name, Quoted(NameOf(stall.command)), Quoted(awaited)));
  }

  void AddCounters(int process, const CommandTimes& times) {
    const auto add = [&](const char* name, Nanoseconds time, Bytes bytes) {
      Add(fmt::format(R"({{"ph":"C","pid":{},"ts":{},"name":"{}","args":{{"bytes":{}}}}})", process,
                      Microseconds(time - origin_ns_), name, bytes));
    };
    const std::vector<Rectangle> rectangles = ListRectangles(subject_, times);
    for (const MemoryStep& step : ListSteps(plan_, times, rectangles)) {
      add("load", step.time_ns, step.load_bytes);
      add("footprint in use", step.time_ns, step.top_bytes);
    }
    for (const MemoryStep& step : ListStepsWithout(subject_, times)) {
      add("load without a plan", step.time_ns, step.load_bytes);
    }
    if (!subject_.figures.limit_bytes) return;
    for (const Nanoseconds time : {Nanoseconds{0}, times.iteration_ns}) {
      add("limit", time, *subject_.figures.limit_bytes);
    }
  }

  const Subject& subject_;
  const plan::Plan& plan_;
  std::string events_;
  std::int64_t arrows_ = 0;
  Nanoseconds origin_ns_ = 0;  // Of all times; 0 or less.
};

}  // namespace

std::string RenderPerfetto(const Subject& subject) { return Writer(subject).Render(); }

}  // namespace plimsoll::report
