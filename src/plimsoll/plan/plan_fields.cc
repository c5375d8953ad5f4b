// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "plimsoll/base/escape.h"
#include "plimsoll/plan/plan_fields_internal.h"

namespace plimsoll::plan {

std::string_view PlanFields::Field(const char* what) {
  const std::string_view field = TakeField(&line_, ' ');
  if (field.empty()) Fail(fmt::format("the field for {} is missing", what));
  return field;
}

std::int64_t PlanFields::ToNumber(std::string_view text, const char* what, std::int64_t low,
                                  std::int64_t high) const {
  const std::optional<std::int64_t> value = ParseInteger(text);
  if (!value || *value < low || *value > high) {
    Fail(fmt::format("{} is {}, not a whole number from {} to {}", what, Quote(text), low, high));
  }
  return *value;
}

std::int64_t PlanFields::Number(const char* what, std::int64_t low, std::int64_t high) {
  return ToNumber(Field(what), what, low, high);
}

double PlanFields::Rate(const char* what) {
  const std::string_view field = Field(what);
  double value = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc() || stop != end) {
    Fail(fmt::format("{} is {}, not a number", what, Quote(field)));
  }
  return value;
}

std::uint64_t PlanFields::Hexadecimal(const char* what) {
  const std::string_view field = Field(what);
  std::uint64_t value = 0;
  std::from_chars(field.data(), field.data() + field.size(), value, 16);
  if (field != fmt::format("{:016x}", value)) {
    Fail(fmt::format("{} is {}, not 16 lower-case hexadecimal digits", what, Quote(field)));
  }
  return value;
}

std::string PlanFields::Text(const char* what) {
  const std::string_view field = Field(what);
  std::optional<std::string> text = Unescape(field);
  if (!text)
    Fail(fmt::format("{} is {}, which is not escaped as it should be", what, Quote(field)));
  return *std::move(text);
}

trace::Phase PlanFields::ReadPhase() {
  constexpr std::string_view kLetters = "FBU";
  const std::string_view field = Field("the phase");
  const std::size_t place = field.size() == 1 ? kLetters.find(field) : std::string_view::npos;
  if (place == std::string_view::npos) {
    Fail(fmt::format("unknown phase {}; expected F, B or U", Quote(field)));
  }
  return static_cast<trace::Phase>(place);
}

VariableKind PlanFields::ReadKind() {
  const std::string_view field = Field("the kind");
  for (int k = 0; k < kVariableKinds; ++k) {
    if (field == Name(static_cast<VariableKind>(k))) return static_cast<VariableKind>(k);
  }
  Fail(fmt::format("unknown kind of variable {}", Quote(field)));
}

OpTraits PlanFields::ReadTraits() {
  const std::string_view field = Field("the traits");
  std::string_view rest = field;
  const auto take = [&](char letter) {
    const bool there = rest.starts_with(letter);
    if (there) rest.remove_prefix(1);
    return there;
  };
  OpTraits traits;
  if (field == "-") return traits;
  traits.replayable = take('a');
  traits.random = take('s');
  bool right = true;
  if (take(':')) {
    std::from_chars(rest.data(), rest.data() + rest.size(), traits.state_reads, 16);
    right = traits.state_reads != 0 && rest == fmt::format("{:08x}", traits.state_reads);
    rest = "";
  }
  if (!right || !rest.empty()) {
    Fail(fmt::format("the traits are {}; expected -, or a, s, :STATE with 8 digits, in this order",
                     Quote(field)));
  }
  return traits;
}

CommandIndex PlanFields::ReadCopyIndex(const char* what) {
  const std::string_view field = Field(what);
  if (field == "-") return -1;
  return static_cast<CommandIndex>(ToNumber(field, what, 0, kMaxIndex));
}

}  // namespace plimsoll::plan
