// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/trace_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plimsoll/base/error.h"

namespace plimsoll::exec {

void TraceRecorder::Start() {
  recorder_.Begin(live_);
  recording_ = true;
}

trace::Trace TraceRecorder::Finish(const std::string& metadata) {
  trace::Trace trace = recorder_.trace();
  nlohmann::json header = nlohmann::json::parse(metadata);
  header.update(nlohmann::json::parse(trace.metadata));
  header["op_count"] = trace.ops.size();
  trace.metadata = header.dump();
  recorder_ = {};
  recording_ = false;
  return trace;
}

Block TraceRecorder::Malloc(Bytes size_bytes) {
  if (size_bytes < 0 || size_bytes >= kMaxBytes - stats_.live_bytes) {
    throw Error(fmt::format("cannot allocate {} bytes", size_bytes));
  }
  const Block block{next_++};
  live_.emplace_hint(live_.end(), block, size_bytes);
  if (recording_) recorder_.Malloc(block, size_bytes);
  stats_.live_bytes += size_bytes;
  stats_.peak_live_bytes = std::max(stats_.peak_live_bytes, stats_.live_bytes);
  return block;
}

void TraceRecorder::Free(Block block) {
  CheckLive(block);
  if (recording_) recorder_.Free(block);
  stats_.live_bytes -= live_.at(block);
  live_.erase(block);
}

void TraceRecorder::Exec(const OpInfo& info, std::span<const Block> reads,
                         std::span<const Block> writes, Function /*function*/) {
  std::for_each(reads.begin(), reads.end(), [this](Block block) { CheckLive(block); });
  std::for_each(writes.begin(), writes.end(), [this](Block block) { CheckLive(block); });
  ++stats_.execs;
  if (!recording_) return;
  recorder_.SetDuration(recorder_.Exec(info, reads, writes), info.expected_ns);
}

void TraceRecorder::EndIteration(std::string_view /*next*/) {
  ++stats_.iterations;
  if (recording_) recorder_.Mark();
}

void TraceRecorder::CopyToDevice(std::byte* /*device*/, const void* /*data*/,
                                 Bytes /*size_bytes*/) {}
void TraceRecorder::CopyToProgram(void* /*data*/, const std::byte* /*device*/,
                                  Bytes /*size_bytes*/) {}

void TraceRecorder::CheckLive(Block block) const {
  if (!live_.contains(block)) {
    throw Error(fmt::format("block {} is not live", static_cast<std::int64_t>(block)));
  }
}

}  // namespace plimsoll::exec
