// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

/// Indices are 32 bits wide; the last value is left free for whoever needs a sentinel.
constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max() - 2;
/// Positions, ages and lags are so bounded that products of a position and an age, and sums of a
/// few of those, fit 64 bits.
constexpr Position kMaxPosition = Position{1} << 40;
constexpr std::int64_t kMaxBack = std::int64_t{1} << 20;
constexpr std::int64_t kAnything = std::numeric_limits<std::int64_t>::max();

/// The fields of a line of a plan file, which a reader takes one after the other. Whatever is not
/// as it should be is an InputError that says where.
class PlanFields {
 public:
  explicit PlanFields(std::string source) : source_(std::move(source)) {}

  /// Goes on to the next line.
  void Begin(std::string_view line) {
    ++line_number_;
    line_ = line;
  }
  const std::string& source() const { return source_; }
  std::int64_t line_number() const { return line_number_; }
  std::string_view rest() const { return line_; }
  bool IsAtEnd() const { return line_.empty(); }
  [[noreturn]] void Fail(const std::string& reason) const {
    throw InputError(source_, line_number_, reason);
  }

  // Each takes the next field of the line.
  std::string_view Field(const char* what);
  std::int64_t Number(const char* what, std::int64_t low, std::int64_t high);
  std::int32_t Index(const char* what) {
    return static_cast<std::int32_t>(Number(what, 0, kMaxIndex));
  }
  Bytes Size(const char* what) { return Number(what, 0, kMaxBytes); }
  double Rate(const char* what);
  std::uint64_t Hexadecimal(const char* what);
  std::string Text(const char* what);
  trace::Phase ReadPhase();
  VariableKind ReadKind();
  OpTraits ReadTraits();
  /// An index, or - for none.
  CommandIndex ReadCopyIndex(const char* what);
  /// Calls `add` with each index of a list and what it is back by; - is none.
  template <typename Add>
  void ReadList(const char* what, Add add) {
    std::string_view list = Field(what);
    if (list == "-") return;
    if (list.back() == ',') Fail(fmt::format("{} ends in a comma", what));
    while (!list.empty()) {
      std::string_view item = TakeField(&list, ',');
      const bool back = item.find('@') != std::string_view::npos;
      const std::int64_t index = ToNumber(TakeField(&item, '@'), what, 0, kMaxIndex);
      const std::int64_t by = back ? ToNumber(item, what, 1, kMaxBack) : 0;
      add(static_cast<std::int32_t>(index), static_cast<std::int32_t>(by));
    }
  }

 private:
  std::int64_t ToNumber(std::string_view text, const char* what, std::int64_t low,
                        std::int64_t high) const;

  std::string source_;
  std::int64_t line_number_ = 0;
  std::string_view line_;  // What is left of it.
};

}  // namespace plimsoll::plan
