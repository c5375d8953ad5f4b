// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plimsoll {

/// Takes the text up to the next `separator` off the front of `*rest`, and the separator with it.
inline std::string_view TakeField(std::string_view* rest, char separator) {
  const std::size_t end = rest->find(separator);
  const std::string_view field = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return field;
}

/// Reads all of `text` as a decimal integer; nothing if it is not one or does not fit.
inline std::optional<std::int64_t> ParseInteger(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Quotes a piece of input for a message: short, printable, whatever bytes it is made of.
std::string Quote(std::string_view text);

}  // namespace plimsoll
