// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/trace_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "plimsoll/base/error.h"

namespace plimsoll::exec {

void TraceRecorder::Start() {
  trace_ = {};
  names_.clear();
  traits_.clear();
  recording_ = true;
  std::vector<Block> live;
  for (const auto& [block, memory] : blocks_) live.push_back(block);
  std::sort(live.begin(), live.end());
  for (const Block block : live) {
    Memory& memory = Find(block);
    memory.variable = static_cast<trace::VariableIndex>(trace_.variables.size());
    trace_.variables.push_back({memory.variable, memory.size_bytes, /*preexisting=*/true});
  }
}

trace::Trace TraceRecorder::Finish(const std::string& metadata) {
  nlohmann::json header = nlohmann::json::parse(metadata);
  nlohmann::json traits = nlohmann::json::object();
  for (const auto& [name, of] : traits_) {
    nlohmann::json entry = nlohmann::json::object();
    if (of.replayable) entry["replayable"] = true;
    if (of.random) entry["random"] = true;
    for (int bit = 0; bit < 32; ++bit) {
      if ((of.state_reads >> bit & 1U) != 0) entry["state_reads"].push_back(bit);
    }
    traits[name] = std::move(entry);
  }
  header["traits"] = std::move(traits);
  header["op_count"] = trace_.ops.size();
  trace_.metadata = header.dump();
  recording_ = false;
  return std::exchange(trace_, {});
}

Block TraceRecorder::Malloc(Bytes size_bytes) {
  if (size_bytes < 0 || size_bytes >= kMaxBytes - stats_.live_bytes) {
    throw Error(fmt::format("cannot allocate {} bytes", size_bytes));
  }
  const Block block{next_++};
  Memory memory{size_bytes};
  if (recording_) {
    memory.variable = static_cast<trace::VariableIndex>(trace_.variables.size());
    trace_.variables.push_back({memory.variable, size_bytes});
    trace_.events.push_back({trace::EventKind::kMalloc, memory.variable});
  }
  blocks_.emplace(block, memory);
  stats_.live_bytes += size_bytes;
  stats_.peak_live_bytes = std::max(stats_.peak_live_bytes, stats_.live_bytes);
  return block;
}

void TraceRecorder::Free(Block block) {
  const Memory memory = Find(block);
  if (recording_) trace_.events.push_back({trace::EventKind::kFree, memory.variable});
  stats_.live_bytes -= memory.size_bytes;
  blocks_.erase(block);
}

void TraceRecorder::Exec(const OpInfo& info, std::span<const Block> reads,
                         std::span<const Block> writes, Function /*function*/) {
  ++stats_.execs;
  if (!recording_) return;
  trace::Op op{.name = NameOf(info),
               .phase = info.phase,
               .duration_ns = info.expected_ns,
               .first_operand = std::ssize(trace_.operands),
               .read_count = static_cast<std::int32_t>(reads.size()),
               .write_count = static_cast<std::int32_t>(writes.size())};
  for (const Block block : reads) trace_.operands.push_back(Find(block).variable);
  for (const Block block : writes) trace_.operands.push_back(Find(block).variable);
  trace_.events.push_back({trace::EventKind::kExec, static_cast<std::int32_t>(trace_.ops.size())});
  trace_.ops.push_back(op);
}

void TraceRecorder::EndIteration(std::string_view /*next*/) {
  ++stats_.iterations;
  if (recording_) trace_.iteration_marks.push_back(std::ssize(trace_.events));
}

void TraceRecorder::CopyToDevice(std::byte* /*device*/, const void* /*data*/,
                                 Bytes /*size_bytes*/) {}
void TraceRecorder::CopyToProgram(void* /*data*/, const std::byte* /*device*/,
                                  Bytes /*size_bytes*/) {}

TraceRecorder::Memory& TraceRecorder::Find(Block block) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) {
    throw Error(fmt::format("block {} is not live", static_cast<std::int64_t>(block)));
  }
  return found->second;
}

std::int32_t TraceRecorder::NameOf(const OpInfo& info) {
  const auto [entry, is_new] =
      names_.try_emplace(std::string(info.name), static_cast<std::int32_t>(trace_.op_names.size()));
  if (is_new) {
    trace_.op_names.emplace_back(info.name);
    traits_.emplace(info.name, info.traits);
  }
  return entry->second;
}

}  // namespace plimsoll::exec
