// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/trace/singa.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::trace {
namespace {

/// One line of the log.
struct Line {
  std::string_view event;
  std::uint64_t pointer = 0;
  Bytes size_bytes = 0;
  Nanoseconds moment_ns = 0;
};

/// A variable in order of appearance; preexisting ones move to the front at the end.
struct Block {
  Bytes size_bytes = 0;
  bool preexisting = false;
  std::int64_t last_read_op = -1;   // The last op that reads it,
  std::int64_t last_write_op = -1;  // and that writes it.
};

/// Builds a trace from the lines of a log, fed in order.
class Importer {
 public:
  explicit Importer(const LineReader& reader) : reader_(reader) {}

  void Feed();
  Trace Finish();

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw InputError(reader_.path(), reader_.number(), reason);
  }

  Line ParseLine() const;
  void Malloc(const Line& line);
  void Free(const Line& line);
  /// Counts the touch of the line before, if it was a Mutable that is not part of this line's Free.
  void CountHeld(const Line& line);
  void Count(VariableIndex index, Nanoseconds moment_ns, bool is_write);
  /// Ends the op in progress, if there is one.
  void EndOp();
  VariableIndex AddBlock(const Line& line, bool preexisting);
  /// Returns the block that a pointer stands for now; one never seen is made a preexisting block.
  VariableIndex FindTouched(const Line& line);
  void AddToTotal(Bytes size_bytes);
  Block& block(VariableIndex index) { return blocks_[static_cast<std::size_t>(index)]; }

  static constexpr VariableIndex kFreed = -1;

  const LineReader& reader_;
  std::vector<Block> blocks_;
  std::unordered_map<std::uint64_t, VariableIndex> pointers_;  // To its block, or kFreed.
  Bytes total_bytes_ = 0;
  std::optional<Nanoseconds> first_moment_ns_;
  Nanoseconds moment_ns_ = 0;  // Of the line before.
  Trace trace_;

  /// A Mutable that is not counted yet: the line after it says whether it was more than a Free.
  struct Held {
    VariableIndex index = 0;
    Nanoseconds moment_ns = 0;
  };
  std::optional<Held> held_;

  // The op in progress: none while both lists are empty.
  std::vector<VariableIndex> reads_;
  std::vector<VariableIndex> writes_;
  bool touched_by_last_line_ = false;
  Nanoseconds op_start_ns_ = 0;
  Nanoseconds op_end_ns_ = 0;
};

Line Importer::ParseLine() const {
  std::string_view rest = reader_.line();
  Line line;
  line.event = TakeField(&rest, ' ');
  const std::string_view pointer = TakeField(&rest, ' ');
  const auto size = ParseInteger(TakeField(&rest, ' '));
  const auto moment = ParseInteger(rest);
  const char* const end = pointer.data() + pointer.size();
  if (pointer.size() < 3 || !pointer.starts_with("0x")) {
    Fail(fmt::format("malformed line {}; expected \"EVENT POINTER BYTES NANOSECONDS\"",
                     Quote(reader_.line())));
  }
  const auto [stop, error] = std::from_chars(pointer.data() + 2, end, line.pointer, 16);
  if (error != std::errc() || stop != end) Fail("bad pointer " + Quote(pointer));
  if (!size || *size < 0 || *size >= kMaxBytes) {
    Fail(fmt::format("bad size in {}: not a number of bytes below 2^62", Quote(reader_.line())));
  }
  if (!moment || *moment < 0) {
    Fail(fmt::format("bad moment in {}: not a number of nanoseconds", Quote(reader_.line())));
  }
  line.size_bytes = *size;
  line.moment_ns = *moment;
  return line;
}

void Importer::Feed() {
  if (!reader_.complete()) Fail("the last line has no newline: the log was cut off; copy it again");
  // Every line makes at most one variable and one op, and those have 32-bit numbers.
  if (reader_.number() >= std::numeric_limits<std::int32_t>::max())
    Fail("too many lines; split it");
  const Line line = ParseLine();
  if (!first_moment_ns_) first_moment_ns_ = line.moment_ns;
  if (line.moment_ns < moment_ns_)
    Fail("the moment is before that of the line above; sort the log");
  if (line.moment_ns - *first_moment_ns_ >= kMaxTotalDuration) {
    Fail("the log spans more than 31 years; its moments must be nanoseconds");
  }
  moment_ns_ = line.moment_ns;
  CountHeld(line);
  if (touched_by_last_line_) op_end_ns_ = moment_ns_;
  touched_by_last_line_ = false;
  if (line.event == "Malloc") {
    EndOp();
    Malloc(line);
  } else if (line.event == "Free") {
    EndOp();
    Free(line);
  } else if (line.event == "Read") {
    Count(FindTouched(line), moment_ns_, /*is_write=*/false);
  } else if (line.event == "Mutable") {
    held_ = {FindTouched(line), moment_ns_};
  } else if (line.event != "Layer") {
    Fail(fmt::format("unknown event {}; expected Malloc, Free, Read, Mutable or Layer",
                     Quote(line.event)));
  }
}

void Importer::Malloc(const Line& line) {
  const auto found = pointers_.find(line.pointer);
  if (found != pointers_.end() && found->second != kFreed) {
    Fail(fmt::format("Malloc of {:#x}, which is still alive; its Free is missing", line.pointer));
  }
  const VariableIndex index = AddBlock(line, /*preexisting=*/false);
  trace_.events.push_back({EventKind::kMalloc, index});
}

void Importer::Free(const Line& line) {
  const auto found = pointers_.find(line.pointer);
  if (found == pointers_.end()) {
    Fail(fmt::format("Free of {:#x}, which was never allocated or touched", line.pointer));
  }
  if (found->second == kFreed) {
    Fail(fmt::format("Free of {:#x}, which was freed before", line.pointer));
  }
  if (line.size_bytes != block(found->second).size_bytes) {
    Fail(fmt::format("Free of {} bytes at {:#x}, where there are {}", line.size_bytes, line.pointer,
                     block(found->second).size_bytes));
  }
  trace_.events.push_back({EventKind::kFree, found->second});
  found->second = kFreed;
}

void Importer::CountHeld(const Line& line) {
  if (!held_) return;
  const auto [index, moment_ns] = *std::exchange(held_, std::nullopt);
  const auto found = pointers_.find(line.pointer);
  const bool frees = line.event == "Free" && found != pointers_.end() && found->second == index;
  if (!frees) Count(index, moment_ns, /*is_write=*/true);
}

void Importer::Count(VariableIndex index, Nanoseconds moment_ns, bool is_write) {
  const auto current_op = static_cast<std::int64_t>(trace_.ops.size());
  if (!is_write && block(index).last_write_op == current_op) EndOp();
  if (reads_.empty() && writes_.empty()) op_start_ns_ = moment_ns;
  op_end_ns_ = moment_ns;
  touched_by_last_line_ = true;
  // EndOp may have begun another op.
  const auto op = static_cast<std::int64_t>(trace_.ops.size());
  std::int64_t& last_op = is_write ? block(index).last_write_op : block(index).last_read_op;
  if (last_op == op) return;
  last_op = op;
  (is_write ? writes_ : reads_).push_back(index);
}

void Importer::EndOp() {
  if (reads_.empty() && writes_.empty()) return;
  Op op;
  op.duration_ns = op_end_ns_ - op_start_ns_;
  if (op.duration_ns > kMaxOpDuration) Fail("an op of more than eleven days ends here");
  op.first_operand = static_cast<std::int64_t>(trace_.operands.size());
  op.read_count = static_cast<std::int32_t>(reads_.size());
  op.write_count = static_cast<std::int32_t>(writes_.size());
  trace_.operands.insert(trace_.operands.end(), reads_.begin(), reads_.end());
  trace_.operands.insert(trace_.operands.end(), writes_.begin(), writes_.end());
  trace_.events.push_back({EventKind::kExec, static_cast<OpIndex>(trace_.ops.size())});
  trace_.ops.push_back(op);
  reads_.clear();
  writes_.clear();
}

VariableIndex Importer::AddBlock(const Line& line, bool preexisting) {
  const auto index = static_cast<VariableIndex>(blocks_.size());
  AddToTotal(line.size_bytes);
  blocks_.push_back({.size_bytes = line.size_bytes, .preexisting = preexisting});
  pointers_[line.pointer] = index;
  return index;
}

VariableIndex Importer::FindTouched(const Line& line) {
  const auto found = pointers_.find(line.pointer);
  if (found == pointers_.end()) return AddBlock(line, /*preexisting=*/true);
  if (found->second == kFreed) {
    Fail(fmt::format("{} of {:#x}, which was freed before; its Malloc is missing", line.event,
                     line.pointer));
  }
  Block& touched = block(found->second);
  if (line.size_bytes > touched.size_bytes) {
    if (!touched.preexisting) {
      Fail(fmt::format("{} of {} bytes at {:#x}, where only {} were allocated", line.event,
                       line.size_bytes, line.pointer, touched.size_bytes));
    }
    AddToTotal(line.size_bytes - touched.size_bytes);
    touched.size_bytes = line.size_bytes;
  }
  return found->second;
}

void Importer::AddToTotal(Bytes size_bytes) {
  total_bytes_ += size_bytes;
  if (total_bytes_ >= kMaxBytes) Fail("the sizes add up to 2^62 bytes or more; check them");
}

Trace Importer::Finish() {
  if (!first_moment_ns_) throw InputError(reader_.path(), 0, "the log is empty");
  if (held_) Count(held_->index, held_->moment_ns, /*is_write=*/true);
  EndOp();
  std::vector<VariableIndex> final_index(blocks_.size());
  for (const bool preexisting : {true, false}) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].preexisting != preexisting) continue;
      final_index[i] = static_cast<VariableIndex>(trace_.variables.size());
      trace_.variables.push_back(
          {.id = final_index[i], .size_bytes = blocks_[i].size_bytes, .preexisting = preexisting});
    }
  }
  for (VariableIndex& operand : trace_.operands) {
    operand = final_index[static_cast<std::size_t>(operand)];
  }
  for (Event& event : trace_.events) {
    if (event.kind == EventKind::kExec) continue;
    event.index = final_index[static_cast<std::size_t>(event.index)];
  }
  trace_.op_names = {"exec"};
  trace_.metadata =
      fmt::format(R"({{"framework": "SINGA", "imported_from": "event log", "op_count": {}}})",
                  trace_.ops.size());
  return std::move(trace_);
}

}  // namespace

Trace ReadSingaLog(const std::string& path) {
  LineReader reader(path);
  Importer importer(reader);
  while (reader.Next()) importer.Feed();
  return importer.Finish();
}

}  // namespace plimsoll::trace
