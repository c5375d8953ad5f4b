// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Copies of parameters in another type or order, on a stream of CUDA.
namespace plimsoll::cuda {

/// to = bfloat16(from), rounded to nearest. Addresses are multiples of 16.
void ToBfloat16(const float* from, void* to, std::int64_t count, void* stream);
/// to = float(from).
void ToFloats(const void* from, float* to, std::int64_t count, void* stream);

/// Weights of a transposed convolution are those of the convolution that it is the backward pass
/// of, with both kinds of channels exchanged: [groups, outer, window, inner] and
/// [groups, inner, window, outer].
struct ExchangedChannels {
  std::int64_t groups = 1;
  std::int64_t outer = 1;
  std::int64_t window = 1;  ///< Height times width.
  std::int64_t inner = 1;   ///< Next to each other in `from`.

  std::int64_t count() const { return groups * outer * window * inner; }
};
void Exchange(const ExchangedChannels& sizes, const float* from, void* to, bool to_bfloat16,
              void* stream);

/// Fills memory with numbers of about -0.1 or 0.1, whether they are read as floats or as bfloat16.
void FillRandom(void* memory, std::int64_t size_bytes, void* stream);

}  // namespace plimsoll::cuda
