// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/trace/writer.h"

#include <fmt/format.h>

#include <iterator>
#include <span>
#include <string_view>

#include "plimsoll/base/check.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/parse.h"

namespace plimsoll::trace {
namespace {

char PhaseLetter(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return 'F';
    case Phase::kBackward:
      return 'B';
    case Phase::kUpdate:
      return 'U';
  }
  PLIMSOLL_CHECK(false, fmt::format("phase {}", static_cast<int>(phase)));
  return '?';
}

/// Appends a duration in microseconds, without a detour through floating point.
void AppendDuration(Nanoseconds duration_ns, std::string* text) {
  const Nanoseconds whole = duration_ns / 1000;
  const Nanoseconds rest = duration_ns % 1000;
  if (rest % 10 == 0) {
    fmt::format_to(std::back_inserter(*text), "{}.{:02}", whole, rest / 10);
  } else {
    fmt::format_to(std::back_inserter(*text), "{}.{:03}", whole, rest);
  }
}

void AppendOperands(const Trace& trace, std::span<const VariableIndex> operands,
                    std::string* text) {
  if (operands.empty()) {
    *text += '-';
    return;
  }
  const char* separator = "";
  for (const VariableIndex index : operands) {
    fmt::format_to(std::back_inserter(*text), "{}{}", separator,
                   trace.variables[static_cast<std::size_t>(index)].id);
    separator = ",";
  }
}

void AppendOp(const Trace& trace, const Op& op, std::string* text) {
  *text += "x ";
  AppendDuration(op.duration_ns, text);
  fmt::format_to(std::back_inserter(*text), " {} {} ", PhaseLetter(op.phase),
                 trace.op_names[static_cast<std::size_t>(op.name)]);
  AppendOperands(trace, trace.reads(op), text);
  *text += ' ';
  AppendOperands(trace, trace.writes(op), text);
  *text += '\n';
}

void AppendEvent(const Trace& trace, const Event& event, std::string* text) {
  const auto slot = static_cast<std::size_t>(event.index);
  if (event.kind == EventKind::kExec) {
    AppendOp(trace, trace.ops[slot], text);
    return;
  }
  const Variable& variable = trace.variables[slot];
  if (event.kind == EventKind::kMalloc) {
    fmt::format_to(std::back_inserter(*text), "m {} {}\n", variable.id, variable.size_bytes);
  } else {
    fmt::format_to(std::back_inserter(*text), "f {}\n", variable.id);
  }
}

void CheckWritable(const Trace& trace) {
  PLIMSOLL_CHECK(trace.metadata.find('\n') == std::string::npos,
                 "metadata of several lines: " + Quote(trace.metadata));
  for (const std::string& name : trace.op_names) {
    PLIMSOLL_CHECK(!name.empty() && name.find_first_of(" \t\r\n") == std::string::npos,
                   "op name that cannot be written: " + Quote(name));
  }
}

}  // namespace

namespace {

/// Writes the trace piece by piece to `sink`, which takes a std::string* and may empty it.
template <typename Sink>
void Stream(const Trace& trace, Sink sink) {
  CheckWritable(trace);
  std::string text = "trace 1\n";
  text += trace.metadata.empty() ? "{}" : trace.metadata;
  text += '\n';
  for (const Variable& variable : trace.variables) {
    if (!variable.preexisting) continue;
    fmt::format_to(std::back_inserter(text), "p {} {}\n", variable.id, variable.size_bytes);
    sink(&text);
  }
  std::size_t mark = 0;
  const auto append_marks_up_to = [&](EventIndex position) {
    for (; mark < trace.iteration_marks.size() && trace.iteration_marks[mark] <= position; ++mark) {
      fmt::format_to(std::back_inserter(text), "i {}\n", mark);
    }
  };
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    append_marks_up_to(static_cast<EventIndex>(i));
    AppendEvent(trace, trace.events[i], &text);
    sink(&text);
  }
  append_marks_up_to(static_cast<EventIndex>(trace.events.size()));
  sink(&text);
}

}  // namespace

std::string FormatTrace(const Trace& trace) {
  std::string whole;
  Stream(trace, [&](std::string* text) {
    whole += *text;
    text->clear();
  });
  return whole;
}

void WriteTrace(const Trace& trace, const std::string& path) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 16;
  FileReplacer file(path);
  std::string block;
  Stream(trace, [&](std::string* text) {
    block += *text;
    text->clear();
    if (block.size() < kBlockBytes) return;
    file.Write(block);
    block.clear();
  });
  file.Write(block);
  file.Commit();
}

}  // namespace plimsoll::trace
