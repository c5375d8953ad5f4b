// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <utility>

namespace plimsoll {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string FormatBytes(Bytes bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::optional<Bytes> ParseBytes(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 15> kSuffixes = {{
      {"B", 1},
      {"", 1},
      {"KiB", 1024.0},
      {"MiB", 1024.0 * 1024},
      {"GiB", 1024.0 * 1024 * 1024},
      {"TiB", 1024.0 * 1024 * 1024 * 1024},
      {"K", 1024.0},
      {"M", 1024.0 * 1024},
      {"G", 1024.0 * 1024 * 1024},
      {"T", 1024.0 * 1024 * 1024 * 1024},
      {"kB", 1e3},
      {"KB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
  }};
  text = Trim(text);
  if (text.empty() || text.front() == '-' || text.front() == '+') return std::nullopt;
  // A plain integer is read exactly, without a detour through floating point.
  Bytes whole = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error == std::errc() && end == text.data() + text.size()) {
    return whole < kMaxBytes ? std::optional<Bytes>(whole) : std::nullopt;
  }
  double value = 0;
  auto [rest, real_error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (real_error != std::errc() || !std::isfinite(value)) return std::nullopt;
  const std::string_view suffix =
      Trim({rest, static_cast<std::size_t>(text.data() + text.size() - rest)});
  for (const auto& [name, factor] : kSuffixes) {
    if (suffix != name) continue;
    const double bytes = value * factor;
    if (bytes >= static_cast<double>(kMaxBytes)) return std::nullopt;
    return static_cast<Bytes>(std::llround(bytes));
  }
  return std::nullopt;
}

}  // namespace plimsoll
