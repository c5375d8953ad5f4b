// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/recorder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "plimsoll/base/checksum.h"
#include "plimsoll/base/index.h"

namespace plimsoll::exec {
namespace {

using trace::EventKind;

/// The traits of all ops as the header of a trace has them (docs/formats.md).
std::string FormatTraits(const std::map<std::string, trace::OpTraits, std::less<>>& by_name) {
  nlohmann::json traits = nlohmann::json::object();
  for (const auto& [name, own] : by_name) {
    nlohmann::json& entry = traits[name] = nlohmann::json::object();
    if (own.replayable) entry["replayable"] = true;
    if (own.random) entry["random"] = true;
    for (int k = 0; k < 32; ++k) {
      if ((own.state_reads >> k & 1) != 0) entry["state_reads"].push_back(k);
    }
  }
  return nlohmann::json{{"traits", traits}}.dump();
}

}  // namespace

void Recorder::Begin(const std::map<Block, Bytes>& live) {
  trace_ = {};
  variables_.clear();
  births_.clear();
  names_.clear();
  plain_names_.clear();
  traits_.clear();
  preexisting_ = std::ssize(live);
  balance_ = 0;
  freed_older_ = false;
  traits_changed_ = true;
  hash_ = 0;
  for (const auto& [block, size_bytes] : live) {
    variables_[block] = static_cast<trace::VariableIndex>(trace_.variables.size());
    trace_.variables.push_back({static_cast<std::int64_t>(block), size_bytes, true});
    births_.push_back(-1);
    Mix(static_cast<std::uint64_t>(block));
  }
}

void Recorder::Malloc(Block block, Bytes size_bytes) {
  const auto index = static_cast<trace::VariableIndex>(trace_.variables.size());
  variables_[block] = index;
  trace_.variables.push_back({static_cast<std::int64_t>(block), size_bytes, false});
  births_.push_back(event_count());
  trace_.events.push_back({EventKind::kMalloc, index});
  ++balance_;
  Mix(1);
  Mix(static_cast<std::uint64_t>(size_bytes));
}

void Recorder::Free(Block block) {
  const trace::VariableIndex index = IndexOf(block);
  trace_.events.push_back({EventKind::kFree, index});
  variables_.erase(block);
  --balance_;
  freed_older_ = freed_older_ || index < preexisting_;
  Mix(2);
  Mix(static_cast<std::uint64_t>(index));
}

std::string Recorder::NameOf(const OpInfo& info) {
  std::string name(info.name);
  for (int copy = 2;; ++copy) {
    const auto known = traits_.find(name);
    if (known == traits_.end()) {
      traits_[name] = info.traits;
      traits_changed_ = true;
      return name;
    }
    if (known->second == info.traits) return name;
    name = fmt::format("{}#{}", info.name, copy);
  }
}

trace::OpIndex Recorder::Exec(const OpInfo& info, std::span<const Block> reads,
                              std::span<const Block> writes) {
  const std::string name = NameOf(info);
  const auto [entry, is_new] = names_.try_emplace(name, std::ssize(trace_.op_names));
  if (is_new) {
    trace_.op_names.push_back(name);
    plain_names_.emplace_back(info.name);
  }
  trace::Op op;
  op.name = entry->second;
  op.phase = info.phase;
  op.first_operand = std::ssize(trace_.operands);
  op.read_count = static_cast<std::int32_t>(reads.size());
  op.write_count = static_cast<std::int32_t>(writes.size());
  for (const Block block : reads) trace_.operands.push_back(IndexOf(block));
  for (const Block block : writes) trace_.operands.push_back(IndexOf(block));
  const auto index = static_cast<trace::OpIndex>(trace_.ops.size());
  trace_.ops.push_back(op);
  trace_.events.push_back({EventKind::kExec, index});
  Mix(3);
  Mix(ChecksumOf(name));
  MixOperands(reads);
  MixOperands(writes);
  return index;
}

void Recorder::SetDuration(trace::OpIndex op, Nanoseconds duration_ns) {
  trace_.ops[At(op)].duration_ns = duration_ns;
}

void Recorder::Mark() { trace_.iteration_marks.push_back(event_count()); }

const trace::Trace& Recorder::trace() {
  if (traits_changed_) trace_.metadata = FormatTraits(traits_);
  traits_changed_ = false;
  return trace_;
}

void Recorder::Mix(std::uint64_t value) {
  hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15;
  hash_ ^= hash_ >> 29;
}

void Recorder::MixOperands(std::span<const Block> blocks) {
  Mix(blocks.size());
  for (const Block block : blocks) Mix(static_cast<std::uint64_t>(IndexOf(block)));
}

trace::Trace Repeat(const trace::Trace& iteration, int times) {
  trace::Trace result = iteration;
  result.iteration_marks = {0};
  std::int64_t next_id = 0;
  for (const trace::Variable& variable : iteration.variables) {
    next_id = std::max(next_id, variable.id + 1);
  }
  for (int lap = 1; lap < times; ++lap) {
    std::unordered_map<trace::VariableIndex, trace::VariableIndex> fresh;
    const auto now = [&](trace::VariableIndex v) {
      const auto known = fresh.find(v);
      return known == fresh.end() ? v : known->second;
    };
    result.iteration_marks.push_back(std::ssize(result.events));
    for (trace::Event event : iteration.events) {
      if (event.kind == EventKind::kMalloc) {
        trace::Variable variable = iteration.variables[At(event.index)];
        variable.id = next_id++;
        fresh[event.index] = static_cast<trace::VariableIndex>(result.variables.size());
        result.variables.push_back(variable);
        event.index = fresh[event.index];
      } else if (event.kind == EventKind::kFree) {
        event.index = now(event.index);
      } else {
        trace::Op op = iteration.ops[At(event.index)];
        const std::int64_t first = op.first_operand;
        op.first_operand = std::ssize(result.operands);
        for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
          result.operands.push_back(now(iteration.operands[At(first + k)]));
        }
        event.index = static_cast<trace::OpIndex>(result.ops.size());
        result.ops.push_back(op);
      }
      result.events.push_back(event);
    }
  }
  return result;
}

}  // namespace plimsoll::exec
