// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/exec/device.h"
#include "plimsoll/trace/trace.h"

namespace plimsoll::exec {

/// Writes down what a program asks of its device, as a trace whose variables have the numbers of
/// the program's blocks.
class Recorder {
 public:
  /// Begins anew; `live` are the blocks that are there already, with their sizes.
  void Begin(const std::map<Block, Bytes>& live);

  void Malloc(Block block, Bytes size_bytes);
  void Free(Block block);
  /// Returns the number of the op in the trace.
  trace::OpIndex Exec(const OpInfo& info, std::span<const Block> reads,
                      std::span<const Block> writes);
  void SetDuration(trace::OpIndex op, Nanoseconds duration_ns);
  /// Says that an iteration begins here.
  void Mark();

  /// Whether exactly the blocks of the beginning are live.
  bool is_closed() const { return balance_ == 0 && !freed_older_; }
  /// A number that tells recordings apart by all but durations and the numbers of blocks that came
  /// and went. Two equal ones in a row are an iteration that repeats.
  std::uint64_t hash() const { return hash_; }
  trace::EventIndex event_count() const { return std::ssize(trace_.events); }

  /// REQUIRES: the block is live.
  trace::VariableIndex IndexOf(Block block) const { return variables_.at(block); }
  /// The event at which a live block was malloc'ed; -1 if it was there before.
  trace::EventIndex BirthOf(Block block) const {
    return births_[static_cast<std::size_t>(IndexOf(block))];
  }
  /// By name in the trace: what the program calls such ops.
  const std::vector<std::string>& plain_names() const { return plain_names_; }

  /// The trace so far, with the traits of its ops.
  const trace::Trace& trace();

 private:
  /// What the trace calls an op: its name, with a number behind it where ops of one name have
  /// different traits.
  std::string NameOf(const OpInfo& info);
  void Mix(std::uint64_t value);
  void MixOperands(std::span<const Block> blocks);

  trace::Trace trace_;
  std::unordered_map<Block, trace::VariableIndex> variables_;
  std::vector<trace::EventIndex> births_;  // By variable.
  std::unordered_map<std::string, std::int32_t> names_;
  std::vector<std::string> plain_names_;
  std::map<std::string, trace::OpTraits, std::less<>> traits_;  // By the name in the trace.
  std::int64_t preexisting_ = 0;
  std::int64_t balance_ = 0;
  bool freed_older_ = false;
  bool traits_changed_ = false;
  std::uint64_t hash_ = 0;
};

/// Returns a trace that goes through the events of a closed one `times` times.
/// REQUIRES: whatever it mallocs it frees, and it frees nothing else.
trace::Trace Repeat(const trace::Trace& iteration, int times);

}  // namespace plimsoll::exec
