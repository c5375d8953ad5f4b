// SPDX-License-Identifier: Apache-2.0
#include "cli/timeline_file.h"

#include <fmt/format.h>

#include "plimsoll/base/file.h"

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

}  // namespace

void WriteTimeline(const std::string& path, const plan::Plan& plan, const sim::Timeline& predicted,
                   const sim::Timeline& measured) {
  FileReplacer file(path);
  file.Write(
      "queue,command,name,predicted_start_ns,predicted_end_ns,measured_start_ns,measured_end_ns\n");
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

}  // namespace plimsoll::cli
