// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plimsoll {

/// A number of bytes, an address inside an arena, or a difference of two of them.
using Bytes = std::int64_t;

/// A duration or a moment in nanoseconds.
using Nanoseconds = std::int64_t;

/// No variable, arena or sum of sizes may reach this many bytes (4 EiB): below it, two sizes can
/// always be added without overflow.
inline constexpr Bytes kMaxBytes = Bytes{1} << 62;

/// The alignment that GPU kernels and copy engines are happy with, and our default.
inline constexpr Bytes kDefaultAlignment = 512;

/// Returns the smallest multiple of `alignment` at or above `value`.
/// REQUIRES: value >= 0, alignment > 0, and the result is below kMaxBytes * 2.
constexpr Bytes AlignUp(Bytes value, Bytes alignment) {
  const Bytes remainder = value % alignment;
  return remainder == 0 ? value : value + (alignment - remainder);
}

/// Writes a size for people: "512 B", "4.34 GiB".
std::string FormatBytes(Bytes bytes);

/// Reads a size as people write it: "1048576", "512MiB", "1.5 GiB", "2GB" (decimal). Returns
/// nothing if the text is not a size, is negative or reaches kMaxBytes.
std::optional<Bytes> ParseBytes(std::string_view text);

}  // namespace plimsoll
