// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_set>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/parse.h"

namespace plimsoll::place {
namespace {

enum class Column { kId, kLower, kUpper, kSize, kAlignment, kGaps, kOffset };
constexpr std::size_t kColumnCount = 7;
constexpr std::array<std::string_view, kColumnCount> kColumnNames = {
    "id", "lower", "upper", "size", "alignment", "gaps", "offset"};
constexpr std::size_t kRequiredColumnCount = 4;  // The first ones.

/// Moments stay below this on both sides of zero, so that differences of them fit.
constexpr Time kMaxTime = Time{1} << 62;
constexpr Bytes kMaxAlignment = Bytes{1} << 40;

/// Returns the column that a header cell means, by its present or an old name.
std::optional<Column> FindColumn(std::string_view name) {
  if (name == "start" || name == "begin") return Column::kLower;
  if (name == "end") return Column::kUpper;
  if (name == "buffer" || name == "buffer_id") return Column::kId;
  for (std::size_t i = 0; i < kColumnCount; ++i) {
    if (name == kColumnNames[i]) return static_cast<Column>(i);
  }
  return std::nullopt;
}

std::vector<std::string_view> SplitCells(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t end = line.find(',');
    cells.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(end + 1);
  }
}

bool IsWritableId(std::string_view id) {
  return !id.empty() && std::none_of(id.begin(), id.end(), [](char c) {
    return c == ',' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

/// Builds a problem from lines, fed in order.
class Parser {
 public:
  explicit Parser(std::string source) : source_(std::move(source)) {}

  void Feed(std::string_view line);

  /// Returns the problem once every line has been fed.
  Problem Finish();

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw InputError(source_, line_number_, reason);
  }

  void ReadHeader(std::string_view line);
  void ReadRow(std::string_view line);
  void ReadGaps(std::string_view list, Buffer* buffer) const;
  void CheckSpace(const Buffer& buffer);

  /// Returns the cell of a column in the current row, or nothing where the column is absent.
  std::optional<std::string_view> Cell(Column column) const {
    const int position = positions_[static_cast<std::size_t>(column)];
    if (position < 0) return std::nullopt;
    return cells_[static_cast<std::size_t>(position)];
  }
  std::int64_t ParseNumber(std::string_view text, Column column) const;
  Time ParseTime(std::string_view text, Column column, Time addend) const;

  std::string source_;
  std::int64_t line_number_ = 0;
  bool has_header_ = false;
  std::int64_t blank_line_ = 0;  // The first of the blank lines seen, or 0.
  std::array<int, kColumnCount> positions_;
  std::size_t width_ = 0;
  Time upper_addend_ = 0;  // 1 where the ends are inclusive.
  std::vector<std::string_view> cells_;
  Bytes total_bytes_ = 0;
  std::unordered_set<std::string> ids_;
  Problem problem_;
};

void Parser::Feed(std::string_view line) {
  ++line_number_;
  if (line.empty()) {
    if (blank_line_ == 0) blank_line_ = line_number_;
    return;
  }
  if (blank_line_ != 0) {
    throw InputError(source_, blank_line_, "blank line before the end of the file; remove it");
  }
  if (has_header_) {
    ReadRow(line);
  } else {
    ReadHeader(line);
  }
}

Problem Parser::Finish() {
  if (!has_header_) {
    throw InputError(source_, 0, "the file is empty; expected a header: id,lower,upper,size");
  }
  return std::move(problem_);
}

void Parser::ReadHeader(std::string_view line) {
  positions_.fill(-1);
  for (const std::string_view name : SplitCells(line)) {
    const std::optional<Column> column = FindColumn(name);
    if (!column) {
      Fail(
          fmt::format("unknown column {}; known are id, lower, upper, size, alignment, gaps and "
                      "offset",
                      Quote(name)));
    }
    int& position = positions_[static_cast<std::size_t>(*column)];
    if (position >= 0) {
      Fail(fmt::format("duplicate column {}: {} appears twice, perhaps under its old name",
                       Quote(name), kColumnNames[static_cast<std::size_t>(*column)]));
    }
    position = static_cast<int>(width_++);
    if (name == "end") upper_addend_ = 1;
  }
  for (std::size_t i = 0; i < kRequiredColumnCount; ++i) {
    if (positions_[i] < 0) {
      Fail(fmt::format("missing column {}; the header must name id, lower, upper and size",
                       kColumnNames[i]));
    }
  }
  has_header_ = true;
}

void Parser::ReadRow(std::string_view line) {
  cells_ = SplitCells(line);
  if (cells_.size() != width_) {
    Fail(fmt::format("{} fields where the header has {}", cells_.size(), width_));
  }
  Buffer buffer;
  buffer.id = *Cell(Column::kId);
  if (!IsWritableId(buffer.id)) {
    Fail(fmt::format("the id {} is empty or has control characters", Quote(buffer.id)));
  }
  if (!ids_.insert(buffer.id).second) {
    Fail(fmt::format("duplicate id {}; every buffer needs one of its own", Quote(buffer.id)));
  }
  buffer.lifetime.lower = ParseTime(*Cell(Column::kLower), Column::kLower, 0);
  buffer.lifetime.upper = ParseTime(*Cell(Column::kUpper), Column::kUpper, upper_addend_);
  if (buffer.lifetime.lower >= buffer.lifetime.upper) {
    Fail(fmt::format("the lifetime [{}, {}) is empty; upper must be above lower",
                     buffer.lifetime.lower, buffer.lifetime.upper));
  }
  buffer.size_bytes = ParseNumber(*Cell(Column::kSize), Column::kSize);
  if (const auto cell = Cell(Column::kAlignment)) {
    buffer.alignment = ParseNumber(*cell, Column::kAlignment);
  }
  if (const auto cell = Cell(Column::kGaps)) ReadGaps(*cell, &buffer);
  if (const auto cell = Cell(Column::kOffset); cell && !cell->empty()) {
    buffer.fixed_offset = ParseNumber(*cell, Column::kOffset);
  }
  CheckSpace(buffer);
  problem_.buffers.push_back(std::move(buffer));
}

void Parser::ReadGaps(std::string_view list, Buffer* buffer) const {
  Time end_of_last = buffer->lifetime.lower;
  while (!list.empty()) {
    const std::string_view gap = TakeField(&list, ' ');
    if (gap.empty()) continue;
    const std::size_t at = gap.find('@');
    const std::string_view span = gap.substr(0, at);
    // The first character may be a minus sign.
    const std::size_t dash = span.find('-', 1);
    if (dash == std::string_view::npos) {
      Fail(fmt::format("the gap {} is not of the form lower-upper", Quote(gap)));
    }
    const Interval interval = {ParseTime(span.substr(0, dash), Column::kGaps, 0),
                               ParseTime(span.substr(dash + 1), Column::kGaps, upper_addend_)};
    if (interval.lower < end_of_last || interval.lower >= interval.upper ||
        interval.upper > buffer->lifetime.upper) {
      Fail(fmt::format("the gap {} is empty, out of order or outside the lifetime", Quote(gap)));
    }
    end_of_last = interval.upper;
    if (at == std::string_view::npos) {
      buffer->gaps.push_back(interval);
      continue;
    }
    // Part of the buffer stays occupied: not a gap for us, but it must still be well-formed.
    std::string_view window = gap.substr(at + 1);
    const auto lower = ParseInteger(TakeField(&window, ':'));
    const auto upper = ParseInteger(window);
    if (!lower || !upper || *lower > *upper) {
      Fail(fmt::format("the window of the gap {} is not of the form lower:upper", Quote(gap)));
    }
  }
}

void Parser::CheckSpace(const Buffer& buffer) {
  if (buffer.size_bytes < 0 || buffer.size_bytes >= kMaxBytes) {
    Fail(fmt::format("the size {} is negative or overflows 2^62", buffer.size_bytes));
  }
  if (buffer.alignment < 1 || buffer.alignment > kMaxAlignment) {
    Fail(fmt::format("the alignment {} is not between 1 and 2^40", buffer.alignment));
  }
  total_bytes_ += AlignUp(buffer.size_bytes, buffer.alignment);
  if (total_bytes_ >= kMaxBytes) Fail("the sizes up to here add up to an overflow of 2^62 bytes");
  if (!buffer.fixed_offset) return;
  const Bytes offset = *buffer.fixed_offset;
  if (offset < 0 || offset >= kMaxBytes - buffer.size_bytes) {
    Fail(fmt::format("the offset {} is negative or overflows 2^62", offset));
  }
  if (offset % buffer.alignment != 0) {
    Fail(fmt::format("the offset {} is not a multiple of the alignment {}", offset,
                     buffer.alignment));
  }
}

std::int64_t Parser::ParseNumber(std::string_view text, Column column) const {
  const auto value = ParseInteger(text);
  if (!value) {
    Fail(fmt::format("{} is not an integer of 64 bits, in column {}", Quote(text),
                     kColumnNames[static_cast<std::size_t>(column)]));
  }
  return *value;
}

Time Parser::ParseTime(std::string_view text, Column column, Time addend) const {
  const Time time = ParseNumber(text, column);
  if (time <= -kMaxTime || time >= kMaxTime - addend) {
    Fail(fmt::format("the moment {} in column {} overflows 2^62", time,
                     kColumnNames[static_cast<std::size_t>(column)]));
  }
  return time + addend;
}

std::string FormatGaps(const std::vector<Interval>& gaps) {
  std::string text;
  for (const Interval& gap : gaps) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}-{}", gap.lower, gap.upper);
  }
  return text;
}

}  // namespace

Problem ReadCsv(const std::string& path) {
  LineReader reader(path);
  Parser parser(path);
  while (reader.Next()) parser.Feed(reader.line());
  return parser.Finish();
}

Problem ParseCsv(std::string_view text, const std::string& source) {
  Parser parser(source);
  while (!text.empty()) {
    std::string_view line = TakeField(&text, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    parser.Feed(line);
  }
  return parser.Finish();
}

std::string FormatCsv(const Problem& problem, const std::vector<Bytes>* offsets) {
  const std::vector<Buffer>& buffers = problem.buffers;
  PLIMSOLL_CHECK(offsets == nullptr || offsets->size() == buffers.size(),
                 fmt::format("{} offsets for {} buffers", offsets->size(), buffers.size()));
  const auto any = [&](auto predicate) {
    return std::any_of(buffers.begin(), buffers.end(), predicate);
  };
  const bool has_alignment = any([](const Buffer& buffer) { return buffer.alignment != 1; });
  const bool has_gaps = any([](const Buffer& buffer) { return !buffer.gaps.empty(); });
  const bool has_offset = offsets != nullptr ||
                          any([](const Buffer& buffer) { return buffer.fixed_offset.has_value(); });

  std::string text = "id,lower,upper,size";
  if (has_alignment) text += ",alignment";
  if (has_gaps) text += ",gaps";
  if (has_offset) text += ",offset";
  text += '\n';
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (!IsWritableId(buffer.id)) {
      throw Error(
          fmt::format("the buffer id {} cannot be written to CSV: it must not be empty or "
                      "have commas or control characters",
                      Quote(buffer.id)));
    }
    const auto& [lower, upper] = buffer.lifetime;
    fmt::format_to(std::back_inserter(text), "{},{},{},{}", buffer.id, lower, upper,
                   buffer.size_bytes);
    if (has_alignment) fmt::format_to(std::back_inserter(text), ",{}", buffer.alignment);
    if (has_gaps) text += ',' + FormatGaps(buffer.gaps);
    if (has_offset) {
      text += ',';
      const std::optional<Bytes> offset = offsets ? (*offsets)[i] : buffer.fixed_offset;
      if (offset) text += fmt::to_string(*offset);
    }
    text += '\n';
  }
  return text;
}

}  // namespace plimsoll::place
