// SPDX-License-Identifier: Apache-2.0
#include "cli/timeline_file.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/plan/plan_file.h"

namespace plimsoll::cli {
namespace {

std::string NameOf(const plan::Plan& plan, const plan::Command& command) {
  if (command.queue != plan::Queue::kCompute) {
    return fmt::format("variable {}",
                       plan.residencies[static_cast<std::size_t>(command.residency)].variable);
  }
  const auto op = static_cast<std::size_t>(command.op);
  const auto name = static_cast<std::size_t>(plan.problem.ops[op].name);
  const bool replay = plan.rewriting && plan.rewriting->is_replay[op] != 0;
  return fmt::format("{}{}", replay ? "replay of " : "", plan.problem.op_names[name]);
}

constexpr std::string_view kHeader =
    "queue,command,name,predicted_start_ns,predicted_end_ns,measured_start_ns,measured_end_ns";

/// A line of the file. The name, which may contain anything, is what is left in the middle.
struct Line {
  std::string_view queue;
  std::int64_t command = 0;
  sim::Span measured;
};

std::optional<Line> ParseLine(std::string_view text) {
  Line line;
  line.queue = TakeField(&text, ',');
  const auto command = ParseInteger(TakeField(&text, ','));
  const std::size_t end = text.rfind(',');
  if (!command || end == std::string_view::npos || end == 0) return std::nullopt;
  const std::size_t start = text.rfind(',', end - 1);
  if (start == std::string_view::npos) return std::nullopt;
  const auto start_ns = ParseInteger(text.substr(start + 1, end - start - 1));
  const auto end_ns = ParseInteger(text.substr(end + 1));
  // Copies may have begun in the iteration before; beyond these, sums would not fit 64 bits.
  constexpr auto kMost = static_cast<Nanoseconds>(plan::kMaxIterationNs);
  if (!start_ns || !end_ns || *start_ns < -kMost || *end_ns < *start_ns || *end_ns > kMost) {
    return std::nullopt;
  }
  line.command = *command;
  line.measured = {*start_ns, *end_ns};
  return line;
}

}  // namespace

void WriteTimeline(const std::string& path, const plan::Plan& plan, const sim::Timeline& predicted,
                   const sim::Timeline& measured) {
  FileReplacer file(path);
  file.Write(fmt::format("{}\n", kHeader));
  for (const auto& queue : plan.queues) {
    for (const plan::CommandIndex c : queue) {
      const auto k = static_cast<std::size_t>(c);
      file.Write(fmt::format("{},{},{},{},{},{},{}\n", plan::Name(plan.commands[k].queue), c,
                             NameOf(plan, plan.commands[k]), predicted.spans[k].start_ns,
                             predicted.spans[k].end_ns, measured.spans[k].start_ns,
                             measured.spans[k].end_ns));
    }
  }
  file.Commit();
}

sim::Timeline ReadMeasuredTimeline(const std::string& path, const plan::Plan& plan) {
  LineReader reader(path);
  if (!reader.Next() || reader.line() != kHeader) {
    throw InputError(path, 1, "not a timeline; \"plimsoll train --timeline-out\" writes them");
  }
  sim::Timeline timeline;
  timeline.iterations = 1;
  timeline.spans.resize(plan.commands.size());
  std::vector<bool> seen(plan.commands.size(), false);
  std::size_t count = 0;
  while (reader.Next()) {
    const std::optional<Line> line = ParseLine(reader.line());
    if (!line) throw InputError(path, reader.number(), "not a line of a timeline");
    const auto c = static_cast<std::size_t>(line->command);
    if (line->command < 0 || c >= plan.commands.size() || seen[c] ||
        line->queue != plan::Name(plan.commands[c].queue)) {
      throw InputError(path, reader.number(), "this command is not of the plan, or there twice");
    }
    seen[c] = true;
    ++count;
    timeline.spans[c] = line->measured;
  }
  if (count != plan.commands.size()) {
    throw InputError(path, reader.number(),
                     fmt::format("the plan has {} commands, the timeline {}; it is of another plan",
                                 plan.commands.size(), count));
  }
  const auto& compute = plan.queues[0];
  if (!compute.empty()) {
    timeline.iteration_ns = timeline.spans[static_cast<std::size_t>(compute.back())].end_ns -
                            timeline.spans[static_cast<std::size_t>(compute.front())].start_ns;
  }
  return timeline;
}

}  // namespace plimsoll::cli
