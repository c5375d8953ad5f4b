// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/cuda/add_rows.cuh"
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/tiles.cuh"

/// Rows of a table by their ids.
///
/// The gradient of a table sums, for each id, what came down to the tokens that have it, in the
/// order of the tokens, whatever the order in which threads run: tokens are put into a list for
/// each id with integer atomics, which is a counting sort that does not keep their order, and the
/// block that sums a row of the table sorts its own list before. Lists are short, but for a few
/// ids. No float is added by an atomic, and every row is written once, zeros too.
namespace plimsoll::cuda {
namespace {

/// An id that is none of the table's gives a row of what is not a number: it must not be missed,
/// and a kernel cannot throw.
template <typename T, int kVector>
__global__ void __launch_bounds__(kTileThreads)
    LookUp(const std::int32_t* ids, const float* table, std::int64_t vocabulary, T* y,
           Tiling tiling) {
  const Place<kVector> place(tiling, blockIdx.x);
  if (!place.active) return;
  const std::int64_t begin = blockIdx.y * tiling.chunk;
  const std::int64_t end = min(begin + tiling.chunk, tiling.rows);
#pragma unroll 4
  for (std::int64_t row = begin + place.y; row < end; row += place.step) {
    const std::int64_t id = ids[row];
    float values[kVector];
    if (id >= 0 && id < vocabulary) {
      LoadFloats(table + id * tiling.channels + place.channel, values);
    } else {
#pragma unroll
      for (int k = 0; k < kVector; ++k) values[k] = __int_as_float(0x7fc00000);
    }
    Store(y + row * tiling.channels + place.channel, values);
  }
}

/// The workspace of the gradient: integers.
struct Lists {
  std::int64_t tokens;
  std::int64_t vocabulary;
  std::int32_t* counts;    ///< Of each id; then how many tokens have a place so far.
  std::int32_t* offsets;   ///< Of each id's list.
  std::int32_t* arrivals;  ///< Of each token: how many of its id came before, in any order.
  std::int32_t* list;      ///< Tokens by id.

  static Bytes BytesOf(std::int64_t tokens, std::int64_t vocabulary) {
    return 4 * (2 * vocabulary + 1 + 2 * tokens);
  }
  Lists(std::int64_t token_count, std::int64_t row_count, std::int32_t* workspace)
      : tokens(token_count),
        vocabulary(row_count),
        counts(workspace),
        offsets(counts + vocabulary + 1),
        arrivals(offsets + vocabulary),
        list(arrivals + tokens) {}

  __device__ std::int32_t* placed() const { return counts + vocabulary; }
};

constexpr int kListThreads = 256;

__device__ __forceinline__ std::int64_t GlobalThread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void CountIds(const std::int32_t* ids, Lists lists) {
  const std::int64_t token = GlobalThread();
  if (token >= lists.tokens) return;
  const std::int64_t id = ids[token];
  if (id < 0 || id >= lists.vocabulary) return;
  lists.arrivals[token] = atomicAdd(&lists.counts[id], 1);
}

/// Gives each id its place, in any order: one atomic a warp.
__global__ void PlaceLists(Lists lists) {
  const std::int64_t id = GlobalThread();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int32_t count = id < lists.vocabulary ? lists.counts[id] : 0;
  std::int32_t sum = count;  // Of this lane and those before.
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const std::int32_t other = __shfl_up_sync(kAllLanes, sum, offset);
    if (lane >= offset) sum += other;
  }
  std::int32_t base = 0;
  if (lane == kWarp - 1 && sum > 0) base = atomicAdd(lists.placed(), sum);
  base = __shfl_sync(kAllLanes, base, kWarp - 1);
  if (id < lists.vocabulary) lists.offsets[id] = base + sum - count;
}

__global__ void FillLists(const std::int32_t* ids, Lists lists) {
  const std::int64_t token = GlobalThread();
  if (token >= lists.tokens) return;
  const std::int64_t id = ids[token];
  if (id < 0 || id >= lists.vocabulary) return;
  lists.list[lists.offsets[id] + lists.arrivals[token]] = static_cast<std::int32_t>(token);
}

constexpr int kRowThreads = 128;
constexpr int kRowWarps = kRowThreads / kWarp;
/// Tokens whose order is found at once: a bit for each, 32 to a thread.
constexpr int kWindow = kRowThreads * 32;

/// A block's list, sorted, a window of tokens after the other.
struct SortedList {
  std::int32_t tokens[kWindow];
  std::uint32_t bits[kRowThreads];
  int warp_sums[kRowWarps];
};

/// Puts those of `list` that are from `window` to `window + kWindow` into order, and returns how
/// many they are. Every thread of the block calls it.
__device__ int SortWindow(const std::int32_t* list, int count, std::int64_t window,
                          SortedList* sorted) {
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarp;
  const int warp = thread / kWarp;
  sorted->bits[thread] = 0;
  __syncthreads();
  for (int i = thread; i < count; i += kRowThreads) {
    const std::int64_t at = list[i] - window;
    if (at >= 0 && at < kWindow) atomicOr(&sorted->bits[at / 32], 1U << (at % 32));
  }
  __syncthreads();
  std::uint32_t bits = sorted->bits[thread];
  const int own = __popc(bits);
  int sum = own;
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const int other = __shfl_up_sync(kAllLanes, sum, offset);
    if (lane >= offset) sum += other;
  }
  if (lane == kWarp - 1) sorted->warp_sums[warp] = sum;
  __syncthreads();
  int before = sum - own;
  int total = 0;
  for (int i = 0; i < kRowWarps; ++i) {
    if (i < warp) before += sorted->warp_sums[i];
    total += sorted->warp_sums[i];
  }
  while (bits != 0) {
    const int bit = __ffs(static_cast<int>(bits)) - 1;
    bits &= bits - 1;
    sorted->tokens[before++] = static_cast<std::int32_t>(window) + thread * 32 + bit;
  }
  __syncthreads();
  return total;
}

/// Puts a list of at most a block's threads into order: the place of each is how many are smaller.
__device__ int SortShort(const std::int32_t* list, int count, SortedList* sorted) {
  const int thread = static_cast<int>(threadIdx.x);
  std::int32_t token = 0;
  if (thread < count) {
    token = list[thread];
    sorted->bits[thread] = static_cast<std::uint32_t>(token);
  }
  __syncthreads();
  if (thread < count) {
    int place = 0;
    for (int i = 0; i < count; ++i) {
      place += sorted->bits[i] < static_cast<std::uint32_t>(token) ? 1 : 0;
    }
    sorted->tokens[place] = token;
  }
  __syncthreads();
  return count;
}

/// One row of the table a block. Columns are taken kRowThreads vectors at a time.
template <typename T, int kVector>
__global__ void __launch_bounds__(kRowThreads)
    SumTokens(const T* dy, Lists lists, std::int64_t width, float* dtable) {
  constexpr int kUnroll = 4;
  __shared__ SortedList sorted;
  const std::int64_t id = blockIdx.x;
  const int count = lists.counts[id];
  float* to = dtable + id * width;
  // Of the block, as all of it sorts.
  for (std::int64_t begin = 0; begin < width; begin += kRowThreads * kVector) {
    const std::int64_t column = begin + static_cast<std::int64_t>(threadIdx.x) * kVector;
    float sums[kVector] = {};
    const std::int32_t* list = lists.list + (count > 0 ? lists.offsets[id] : 0);
    const std::int64_t windows_end = count == 0 ? 0 : (count <= kRowThreads ? 1 : lists.tokens);
    for (std::int64_t window = 0; window < windows_end; window += kWindow) {
      const int found = count <= kRowThreads ? SortShort(list, count, &sorted)
                                             : SortWindow(list, count, window, &sorted);
      for (int i = 0; i < found && column < width; i += kUnroll) {
        Raw<T, kVector> raws[kUnroll] = {};
#pragma unroll
        for (int j = 0; j < kUnroll; ++j) {
          if (i + j < found) raws[j] = LoadRaw<kVector>(dy + sorted.tokens[i + j] * width + column);
        }
#pragma unroll
        for (int j = 0; j < kUnroll; ++j) {
          if (i + j >= found) continue;
          float values[kVector];
          Unpack<T, kVector>(raws[j], values);
#pragma unroll
          for (int k = 0; k < kVector; ++k) sums[k] += values[k];
        }
      }
      __syncthreads();  // Before the next window is sorted into the same place.
    }
    if (column < width) Store(to + column, sums);
  }
}

nn::Kernel PrepareLookUp(const nn::OpSpec& spec, nn::ElementType type) {
  const std::int64_t vocabulary = spec.reads[1].shape[0];
  const std::int64_t width = spec.reads[1].shape[1];
  const std::int64_t tokens = spec.reads[0].count();
  return {.run = [=](const exec::Launch& launch, const nn::StepScalars&) {
    WithType(type, [&](auto element) {
      using T = decltype(element);
      WithVector<T>(width, [&](auto v) {
        const Tiling tiling = Tile(tokens, width, v(), kProcessors * 16);
        LookUp<T, v()><<<tiling.grid(), kTileThreads, 0, StreamOf(launch)>>>(
            In<std::int32_t>(launch, 0), In<float>(launch, 1), vocabulary, Out<T>(launch, 0),
            tiling);
        CheckLaunch("embedding_forward");
      });
    });
  }};
}

nn::Kernel PrepareLookUpBackward(const nn::OpSpec& spec, nn::ElementType type) {
  const std::int64_t vocabulary = spec.writes[0].shape[0];
  const std::int64_t width = spec.writes[0].shape[1];
  const std::int64_t tokens = spec.reads[0].count();
  if (tokens >= (1LL << 31) - kWindow) nn::Refuse(spec, "there are too many tokens");
  return {.workspace_bytes = Lists::BytesOf(tokens, vocabulary),
          .run = [=](const exec::Launch& launch, const nn::StepScalars&) {
            const cudaStream_t stream = StreamOf(launch);
            const auto* ids = In<std::int32_t>(launch, 0);
            const Lists lists(tokens, vocabulary, Out<std::int32_t>(launch, 1));
            const auto blocks = [](std::int64_t count) {
              return static_cast<unsigned>(CeilDiv(count, kListThreads));
            };
            Check(cudaMemsetAsync(lists.counts, 0, static_cast<std::size_t>(vocabulary + 1) * 4,
                                  stream),
                  "embedding_backward: counts");
            CountIds<<<blocks(tokens), kListThreads, 0, stream>>>(ids, lists);
            PlaceLists<<<blocks(vocabulary), kListThreads, 0, stream>>>(lists);
            FillLists<<<blocks(tokens), kListThreads, 0, stream>>>(ids, lists);
            CheckLaunch("embedding_backward: lists");
            WithType(type, [&](auto element) {
              using T = decltype(element);
              WithVector<T>(width, [&](auto v) {
                SumTokens<T, v()><<<static_cast<unsigned>(vocabulary), kRowThreads, 0, stream>>>(
                    In<T>(launch, 1), lists, width, Out<float>(launch, 0));
              });
            });
            CheckLaunch("embedding_backward: sums");
          }};
}

}  // namespace

nn::Kernel PrepareEmbedding(const nn::OpSpec& spec) {
  if (spec.kind == nn::OpKind::kAddRowsForward || spec.kind == nn::OpKind::kAddRowsBackward) {
    return PrepareAddRows(spec);
  }
  const bool forward = spec.kind == nn::OpKind::kEmbeddingForward;
  nn::RequireOperands(spec, 2, 1);
  nn::RequireType(spec, spec.reads[0], nn::ElementType::kInt);
  const nn::Tensor& table = forward ? spec.reads[1] : spec.writes[0];
  const nn::Tensor& y = forward ? spec.writes[0] : spec.reads[1];
  nn::RequireRank(spec, table, 2);
  nn::RequireType(spec, table, nn::ElementType::kFloat);
  const nn::ElementType type = ActivationType(spec, {&y});
  const std::int64_t width = table.shape[1];
  if (nn::Columns(spec, y) != width) nn::Refuse(spec, "rows should be as wide as the table's");
  nn::RequireCount(spec, y, spec.reads[0].count() * width);
  return forward ? PrepareLookUp(spec, type) : PrepareLookUpBackward(spec, type);
}

}  // namespace plimsoll::cuda
