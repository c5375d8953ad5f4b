// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

/// What a warp does with tiles of bfloat16 in shared memory. For device code only.
///
/// Tensor cores take a product in pieces: 16 rows times 16 of what is summed over, times 8 columns.
/// A thread with number `lane` of a warp holds, of 16 x 8 sums, columns 2 (lane % 4) and the next
/// one of rows lane / 4 (sums 0 and 1) and lane / 4 + 8 (sums 2 and 3).
///
/// Rows of a tile are 16 bytes longer than they need to be: eight of them, one below the other, are
/// then in different banks.
namespace plimsoll::cuda {

template <int kWidth>
inline constexpr int kTileStride = kWidth + 8;

/// Left operands: 16 x 16. Right operands of two neighbours: 16 x 8 each.
using Fragment = std::uint32_t[4];
/// Sums of kTiles times 16 rows, and kColumns columns.
template <int kTiles, int kColumns>
using Sums = float[kTiles][kColumns / 8][4];

__device__ inline std::uint32_t SharedAddress(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

/// Copies 16 bytes to shared memory without waiting, or zeros.
__device__ inline void CopyAsync(void* to, const void* from, bool there) {
  const int size_bytes = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)), "l"(from),
               "r"(size_bytes)
               : "memory");
}
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits for all groups of copies but the last kLast.
template <int kLast>
__device__ inline void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLast) : "memory");
}

__device__ inline void LoadFragment(Fragment& to, const __nv_bfloat16* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(SharedAddress(from))
               : "memory");
}
__device__ inline void LoadTransposed(Fragment& to, const __nv_bfloat16* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(SharedAddress(from))
               : "memory");
}

__device__ inline void MultiplyAdd(float (&sums)[4], const Fragment& left, std::uint32_t right0,
                                   std::uint32_t right1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
}

__device__ inline std::uint32_t Pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

/// Starts to copy kRows rows of a matrix to a tile, with zeros from row `length` on.
template <int kWidth, int kRows, int kThreads>
__device__ void CopyTile(const __nv_bfloat16* from, std::int64_t stride, int begin, int length,
                         __nv_bfloat16* tile) {
  constexpr int kPieces = kWidth / 8;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kPieces; i += kThreads) {
    const int row = i / kPieces;
    const int column = i % kPieces * 8;
    const bool there = begin + row < length;
    CopyAsync(tile + row * kTileStride<kWidth> + column,
              from + (there ? begin + row : 0) * stride + column, there);
  }
}

/// Rows of a tile as the left side of a product.
template <int kWidth, int kTiles>
struct LeftRows {
  Fragment fragments[kTiles][kWidth / 16];

  /// From there on in a tile.
  __device__ void Load(const __nv_bfloat16* rows) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int k = 0; k < kWidth / 16; ++k) {
        LoadFragment(fragments[tile][k],
                     rows + (tile * 16 + lane % 16) * kTileStride<kWidth> + k * 16 + lane / 16 * 8);
      }
    }
  }
};

/// One piece of the products below.
template <int kWidth, int kTiles, int kColumns>
__device__ inline void MultiplyPiece(const Fragment (&left)[kTiles], const __nv_bfloat16* right,
                                     int k, Sums<kTiles, kColumns>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int pair = 0; pair < kColumns / 16; ++pair) {
    Fragment columns;
    LoadFragment(columns, right + (pair * 16 + lane % 8 + lane / 16 * 8) * kTileStride<kWidth> +
                              k * 16 + lane / 8 % 2 * 8);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      MultiplyAdd(sums[tile][2 * pair], left[tile], columns[0], columns[1]);
      MultiplyAdd(sums[tile][2 * pair + 1], left[tile], columns[2], columns[3]);
    }
  }
}

/// sums = left * right^T, of kColumns rows of a tile.
template <int kWidth, int kTiles, int kColumns>
__device__ void MultiplyRows(const LeftRows<kWidth, kTiles>& left, const __nv_bfloat16* right,
                             Sums<kTiles, kColumns>& sums) {
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int column = 0; column < kColumns / 8; ++column) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[tile][column][i] = 0;
    }
  }
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) {
    Fragment piece[kTiles];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) piece[tile][i] = left.fragments[tile][k][i];
    }
    MultiplyPiece<kWidth, kTiles, kColumns>(piece, right, k, sums);
  }
}

/// The same, with the left side taken from a tile piece by piece: slower, with fewer registers.
template <int kWidth, int kTiles, int kColumns>
__device__ void MultiplyRows(const __nv_bfloat16* left, const __nv_bfloat16* right,
                             Sums<kTiles, kColumns>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int column = 0; column < kColumns / 8; ++column) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[tile][column][i] = 0;
    }
  }
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) {
    Fragment piece[kTiles];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      LoadFragment(piece[tile],
                   left + (tile * 16 + lane % 16) * kTileStride<kWidth> + k * 16 + lane / 16 * 8);
    }
    MultiplyPiece<kWidth, kTiles, kColumns>(piece, right, k, sums);
  }
}

/// sums += weights * rows: weights as a product left them, rounded, and kInner rows of a tile.
template <int kWidth, int kTiles, int kInner>
__device__ void AddWeighted(const Sums<kTiles, kInner>& weights, const __nv_bfloat16* rows,
                            Sums<kTiles, kWidth>& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int k = 0; k < kInner / 16; ++k) {
    Fragment left[kTiles];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const auto& first = weights[tile][2 * k];
      const auto& second = weights[tile][2 * k + 1];
      left[tile][0] = Pack(first[0], first[1]);
      left[tile][1] = Pack(first[2], first[3]);
      left[tile][2] = Pack(second[0], second[1]);
      left[tile][3] = Pack(second[2], second[3]);
    }
#pragma unroll
    for (int pair = 0; pair < kWidth / 16; ++pair) {
      Fragment columns;
      LoadTransposed(columns,
                     rows + (k * 16 + lane % 16) * kTileStride<kWidth> + pair * 16 + lane / 16 * 8);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        MultiplyAdd(sums[tile][2 * pair], left[tile], columns[0], columns[1]);
        MultiplyAdd(sums[tile][2 * pair + 1], left[tile], columns[2], columns[3]);
      }
    }
  }
}

/// Writes a warp's sums, times factors for each half of 16 rows, to rows of a matrix by way of its
/// own rows of a tile. Rows from `length` on are left out.
template <int kWidth, int kTiles>
__device__ void StoreRows(const Sums<kTiles, kWidth>& sums, const float (&factors)[kTiles][2],
                          __nv_bfloat16* tile_rows, __nv_bfloat16* to, std::int64_t stride,
                          int begin, int length) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  __syncwarp();
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int column = 0; column < kWidth / 8; ++column) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* x = &sums[tile][column][2 * half];
        const int row = tile * 16 + half * 8 + lane / 4;
        *reinterpret_cast<std::uint32_t*>(tile_rows + row * kTileStride<kWidth> + column * 8 +
                                          lane % 4 * 2) =
            Pack(x[0] * factors[tile][half], x[1] * factors[tile][half]);
      }
    }
  }
  __syncwarp();
  constexpr int kPieces = kWidth / 8;
  for (int i = lane; i < kTiles * 16 * kPieces; i += 32) {
    const int row = i / kPieces;
    const int column = i % kPieces * 8;
    if (begin + row >= length) continue;
    *reinterpret_cast<uint4*>(to + (begin + row) * stride + column) =
        *reinterpret_cast<const uint4*>(tile_rows + row * kTileStride<kWidth> + column);
  }
}

}  // namespace plimsoll::cuda
