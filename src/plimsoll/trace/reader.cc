// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/trace/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/trace/traits.h"

namespace plimsoll::trace {
namespace {

/// Indices are 32 bits wide; the last value is left free for whoever needs a sentinel.
constexpr std::size_t kMaxCount = std::numeric_limits<std::int32_t>::max() - 1;

/// Finds the index of a variable by its number in the file. The numbers of real traces are small
/// and dense, so most live in a plain array; one that lies far above the count of variables goes to
/// a hash map, so that a hostile number costs no more memory than a decent one.
class IdTable {
 public:
  /// Returns the index, or -1 if the number was never inserted.
  VariableIndex Find(std::int64_t id) const {
    if (id < static_cast<std::int64_t>(dense_.size())) {
      const VariableIndex index = dense_[static_cast<std::size_t>(id)];
      if (index >= 0) return index;
    }
    if (sparse_.empty()) return -1;
    const auto found = sparse_.find(id);
    return found == sparse_.end() ? -1 : found->second;
  }

  /// REQUIRES: id >= 0, and it was not inserted before.
  void Insert(std::int64_t id, VariableIndex index) {
    if (id >= kSlack + kSpread * std::int64_t{index}) {
      sparse_.emplace(id, index);
      return;
    }
    const auto slot = static_cast<std::size_t>(id);
    if (slot >= dense_.size()) dense_.resize(std::max(slot + 1, dense_.size() * 2), -1);
    dense_[slot] = index;
  }

 private:
  static constexpr std::int64_t kSlack = 4096;
  static constexpr std::int64_t kSpread = 16;

  std::vector<VariableIndex> dense_;  // -1 where there is none.
  std::unordered_map<std::int64_t, VariableIndex> sparse_;
};

/// Lets a map of strings be searched by a view, without making a string.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

/// The fields of a line. The longest kind of line has six; a seventh shows that there are too many.
struct Fields {
  std::array<std::string_view, 7> text;
  std::size_t count = 0;
};

Fields SplitFields(std::string_view line) {
  Fields fields;
  while (fields.count < fields.text.size()) {
    const std::size_t end = line.find(' ');
    fields.text[fields.count++] = line.substr(0, end);
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  return fields;
}

/// Builds a trace from lines, fed in order.
class Parser {
 public:
  explicit Parser(std::string source) : source_(std::move(source)) {}

  /// `complete` says whether the line ended in a newline.
  void Feed(std::string_view line, bool complete);

  /// Returns the trace once every line has been fed.
  Trace Finish();

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw InputError(source_, line_number_, reason);
  }

  void ReadVersion(std::string_view line) const;
  void ReadMetadata(std::string_view line);
  void ReadEvent(std::string_view line);
  void Declare(const Fields& fields, bool preexisting);
  void ReadFree(const Fields& fields);
  void ReadMark(const Fields& fields);
  void ReadOp(const Fields& fields);
  void CheckState(const Op& op) const;

  Nanoseconds ParseDuration(std::string_view text) const;
  Phase ParsePhase(std::string_view text) const;
  std::int32_t InternName(std::string_view name);
  /// Appends the operands of a list to the trace and returns how many they are.
  std::int32_t ReadOperands(std::string_view list, const char* verb);
  /// Returns the index of the variable that is about to be freed, read or written.
  VariableIndex FindAlive(std::string_view text, const char* verb) const;
  std::int64_t ParseId(std::string_view text) const;

  std::string source_;
  std::int64_t line_number_ = 0;
  Trace trace_;
  IdTable indices_;
  std::vector<char> alive_;  // Per variable.
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> names_;
  Bytes live_bytes_ = 0;
  Nanoseconds total_duration_ns_ = 0;
  std::uint64_t promised_op_count_ = 0;
  std::map<std::string, int, std::less<>> state_reads_;  // How many reads an op must have.
};

void Parser::Feed(std::string_view line, bool complete) {
  ++line_number_;
  if (!complete)
    Fail("the last line has no newline: the file was cut off; copy or record it again");
  if (line_number_ == 1) {
    ReadVersion(line);
  } else if (line_number_ == 2) {
    ReadMetadata(line);
  } else {
    ReadEvent(line);
  }
}

Trace Parser::Finish() {
  if (line_number_ == 0) {
    throw InputError(source_, 0, "the file is empty; a trace begins with the line \"trace 1\"");
  }
  if (line_number_ == 1)
    Fail("the file ends before its second line, a JSON object; record it again");
  if (trace_.ops.size() < promised_op_count_) {
    Fail(
        fmt::format("the file ends after {} ops, but its header promises {} (\"op_count\"): it was "
                    "cut off; copy or record it again",
                    trace_.ops.size(), promised_op_count_));
  }
  return std::move(trace_);
}

void Parser::ReadVersion(std::string_view line) const {
  constexpr std::string_view kFormat = "trace ";
  if (!line.starts_with(kFormat)) {
    Fail(fmt::format("not a trace: the first line is {} instead of \"trace 1\"", Quote(line)));
  }
  const std::string_view version = line.substr(kFormat.size());
  if (version != "1") {
    Fail(fmt::format("unsupported version {} of the trace format; this program reads version 1",
                     Quote(version)));
  }
}

void Parser::ReadMetadata(std::string_view line) {
  constexpr int kDeepest = 32;
  bool too_deep = false;
  const auto json = nlohmann::json::parse(
      line,
      [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        too_deep = too_deep || depth > kDeepest;
        return !too_deep;
      },
      /*allow_exceptions=*/false);
  if (too_deep) Fail(fmt::format("the header is nested deeper than {} levels", kDeepest));
  if (!json.is_object()) {
    Fail(fmt::format("the second line must be a JSON object on one line, at least {{}}; found {}",
                     Quote(line)));
  }
  const auto count = json.find("op_count");
  if (count != json.end() && count->is_number_unsigned()) {
    promised_op_count_ = count->get<std::uint64_t>();
  }
  const std::size_t end = line.find_last_not_of(" \t\r");
  trace_.metadata = line.substr(0, end + 1);
  for (const auto& [name, traits] : ReadTraits(trace_.metadata, source_, line_number_)) {
    if (traits.state_reads != 0) state_reads_[name] = std::bit_width(traits.state_reads);
  }
}

void Parser::ReadEvent(std::string_view line) {
  const Fields fields = SplitFields(line);
  const std::string_view letter = fields.text[0];
  const auto expect = [&](std::size_t count, const char* form) {
    if (fields.count == count) return;
    Fail(fmt::format("wrong number of fields in {}; expected \"{}\", with single spaces",
                     Quote(line), form));
  };
  if (letter == "x") {
    expect(6, "x MICROSECONDS PHASE OP READS WRITES");
    ReadOp(fields);
  } else if (letter == "m") {
    expect(3, "m VAR BYTES");
    Declare(fields, /*preexisting=*/false);
  } else if (letter == "f") {
    expect(2, "f VAR");
    ReadFree(fields);
  } else if (letter == "p") {
    expect(3, "p VAR BYTES");
    Declare(fields, /*preexisting=*/true);
  } else if (letter == "i") {
    expect(2, "i K");
    ReadMark(fields);
  } else if (line.empty()) {
    Fail("blank line; remove it");
  } else {
    Fail(fmt::format("unknown event {}; a line begins with p, i, m, f or x", Quote(letter)));
  }
}

void Parser::Declare(const Fields& fields, bool preexisting) {
  if (preexisting && (!trace_.events.empty() || !trace_.iteration_marks.empty())) {
    Fail("\"p\" after the first event or mark; move it to the front, or make it an \"m\"");
  }
  const std::int64_t id = ParseId(fields.text[1]);
  const auto size = ParseInteger(fields.text[2]);
  if (!size || *size < 0 || *size >= kMaxBytes) {
    Fail(fmt::format("the size {} is not a whole number of bytes from 0 up to 2^62 (exclusive)",
                     Quote(fields.text[2])));
  }
  if (indices_.Find(id) >= 0) {
    Fail(fmt::format("variable {} is declared twice; every allocation needs a number of its own",
                     id));
  }
  if (trace_.variables.size() >= kMaxCount) Fail("too many variables; split the trace");
  live_bytes_ += *size;
  if (live_bytes_ >= kMaxBytes) {
    Fail("the sizes of the variables alive here add up to 2^62 bytes or more; check the sizes");
  }
  const auto index = static_cast<VariableIndex>(trace_.variables.size());
  indices_.Insert(id, index);
  trace_.variables.push_back({.id = id, .size_bytes = *size, .preexisting = preexisting});
  alive_.push_back(1);
  if (!preexisting) trace_.events.push_back({EventKind::kMalloc, index});
}

void Parser::ReadFree(const Fields& fields) {
  const VariableIndex index = FindAlive(fields.text[1], "frees");
  const auto slot = static_cast<std::size_t>(index);
  alive_[slot] = 0;
  live_bytes_ -= trace_.variables[slot].size_bytes;
  trace_.events.push_back({EventKind::kFree, index});
}

void Parser::ReadMark(const Fields& fields) {
  const auto expected = static_cast<std::int64_t>(trace_.iteration_marks.size());
  if (ParseInteger(fields.text[1]) != expected) {
    Fail(fmt::format("iteration mark {} where {} was expected; marks count 0, 1, 2, ...",
                     Quote(fields.text[1]), expected));
  }
  trace_.iteration_marks.push_back(static_cast<EventIndex>(trace_.events.size()));
}

void Parser::ReadOp(const Fields& fields) {
  if (trace_.ops.size() >= kMaxCount) Fail("too many ops; split the trace");
  Op op;
  op.duration_ns = ParseDuration(fields.text[1]);
  total_duration_ns_ += op.duration_ns;
  if (total_duration_ns_ >= kMaxTotalDuration) {
    Fail("the durations add up to more than 31 years; they must be microseconds");
  }
  op.phase = ParsePhase(fields.text[2]);
  op.name = InternName(fields.text[3]);
  op.first_operand = static_cast<std::int64_t>(trace_.operands.size());
  op.read_count = ReadOperands(fields.text[4], "reads");
  op.write_count = ReadOperands(fields.text[5], "writes");
  CheckState(op);
  trace_.events.push_back({EventKind::kExec, static_cast<OpIndex>(trace_.ops.size())});
  trace_.ops.push_back(op);
}

/// What the header says that an op updates on the side must be among what it reads.
void Parser::CheckState(const Op& op) const {
  if (state_reads_.empty()) return;
  const std::string& name = trace_.op_names[static_cast<std::size_t>(op.name)];
  const auto state = state_reads_.find(name);
  if (state == state_reads_.end() || state->second <= op.read_count) return;
  Fail(
      fmt::format("the op {} reads {} variables, but its traits in the header name operand {} in "
                  "\"state_reads\", where the first read is 0; correct the header or the op",
                  Quote(name), op.read_count, state->second - 1));
}

Nanoseconds Parser::ParseDuration(std::string_view text) const {
  double microseconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, microseconds);
  constexpr double kMaxMicroseconds = static_cast<double>(kMaxOpDuration) / 1000;
  // Written so that NaN fails too.
  if (error != std::errc() || stop != end || !(microseconds >= 0) ||
      !(microseconds <= kMaxMicroseconds)) {
    Fail(
        fmt::format("the duration {} is not a number of microseconds from 0 to 1e12", Quote(text)));
  }
  return std::llround(microseconds * 1000);
}

Phase Parser::ParsePhase(std::string_view text) const {
  if (text == "F") return Phase::kForward;
  if (text == "B") return Phase::kBackward;
  if (text == "U") return Phase::kUpdate;
  Fail(fmt::format("unknown phase {}; expected F, B or U", Quote(text)));
}

std::int32_t Parser::InternName(std::string_view name) {
  const auto found = names_.find(name);
  if (found != names_.end()) return found->second;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (name.empty() || std::any_of(name.begin(), name.end(), is_control)) {
    Fail(fmt::format("the op name {} is empty or has control characters", Quote(name)));
  }
  const auto index = static_cast<std::int32_t>(trace_.op_names.size());
  trace_.op_names.emplace_back(name);
  names_.emplace(name, index);
  return index;
}

std::int32_t Parser::ReadOperands(std::string_view list, const char* verb) {
  if (list == "-") return 0;
  if (list.empty()) Fail(fmt::format("the list of what the op {} is empty; write \"-\"", verb));
  std::int32_t count = 0;
  while (true) {
    const std::size_t end = list.find(',');
    trace_.operands.push_back(FindAlive(list.substr(0, end), verb));
    ++count;
    if (end == std::string_view::npos) return count;
    list.remove_prefix(end + 1);
  }
}

VariableIndex Parser::FindAlive(std::string_view text, const char* verb) const {
  const std::int64_t id = ParseId(text);
  const VariableIndex index = indices_.Find(id);
  if (index < 0) {
    Fail(
        fmt::format("this line {} variable {}, which was never allocated; declare it by \"p\" or "
                    "\"m\" first",
                    verb, id));
  }
  if (alive_[static_cast<std::size_t>(index)] == 0) {
    Fail(
        fmt::format("this line {} variable {}, which was freed before; an address that is used "
                    "again needs a new number",
                    verb, id));
  }
  return index;
}

std::int64_t Parser::ParseId(std::string_view text) const {
  const auto id = ParseInteger(text);
  if (!id || *id < 0) {
    Fail(fmt::format("the variable {} is not a non-negative integer", Quote(text)));
  }
  return *id;
}

}  // namespace

Trace ReadTrace(const std::string& path) {
  LineReader reader(path);
  Parser parser(path);
  while (reader.Next()) parser.Feed(reader.line(), reader.complete());
  return parser.Finish();
}

Trace ParseTrace(std::string_view text, const std::string& source) {
  Parser parser(source);
  FeedLines(text, source, "a trace",
            [&](std::string_view line, bool complete) { parser.Feed(line, complete); });
  return parser.Finish();
}

}  // namespace plimsoll::trace
