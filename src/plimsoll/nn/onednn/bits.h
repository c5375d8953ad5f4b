// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// Masks of one bit per element: bit i % 64 of word i / 64, as vectors like to make and read them.
namespace plimsoll::nn::onednn {

inline constexpr std::int64_t kWordBits = 64;

/// Packs 64 bytes, each 0 or 1, into a word.
inline std::uint64_t PackWord(const std::uint8_t* flags) {
  std::uint64_t word = 0;
  for (std::ptrdiff_t i = 0; i < 8; ++i) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, flags + 8 * i, 8);
    if constexpr (std::endian::native == std::endian::big) eight = __builtin_bswap64(eight);
    // Byte k of the product's sum ends up as bit 56 + k.
    word |= (eight * 0x0102040810204080U >> 56U) << (8U * static_cast<unsigned>(i));
  }
  return word;
}

/// y = x where the bit is set, times `scale`, else 0, for `count` elements of whole words but for
/// the last. In place too.
void KeepMarked(const float* x, const std::uint64_t* mask, float scale, float* y,
                std::int64_t count);

}  // namespace plimsoll::nn::onednn
