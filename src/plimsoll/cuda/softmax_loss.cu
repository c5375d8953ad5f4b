// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cfloat>

#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/vectors.cuh"

/// Softmax and the loss of labels, a warp to a row, or a block if there are many classes. Forward
/// reads a row twice, the second time from the cache: first the largest and the sum of powers, in
/// one go, then what is written. A label that is no class gives a loss that is not a number: it
/// must not be missed, and a kernel cannot throw.
namespace plimsoll::cuda {
namespace {

constexpr int kBlockThreads = 512;  ///< Of a block that has one row.
constexpr int kWarpThreads = 256;   ///< Of one that has a row for each warp.
constexpr int kFinishThreads = 1024;
constexpr std::int64_t kMostForWarp = 2048;

/// A row in vectors: classes may not be a multiple of them, so that rows begin anywhere. `head`
/// elements come before the first whole vector, some after the last.
struct Row {
  template <int kVector>
  static __device__ Row Of(std::int64_t row, std::int64_t classes) {
    const std::int64_t before = (kVector - row * classes % kVector) % kVector;
    const std::int64_t head = min(before, classes);
    return {head, (classes - head) / kVector};
  }
  /// Elements that are in no vector, by number.
  template <int kVector>
  __device__ std::int64_t Single(std::int64_t i) const {
    return i < head ? i : i + vectors * kVector;
  }

  std::int64_t head;
  std::int64_t vectors;
};

/// Calls `body(values, first, is_vector)` for this thread's part of a row, where kThreads share
/// one: `body` gets kVector values, or one and zeros behind it.
template <int kThreads, typename T, typename Vectors, typename Singles>
__device__ __forceinline__ void ForRow(const T* x, std::int64_t row, std::int64_t classes,
                                       int thread, const Vectors& vectors, const Singles& singles) {
  constexpr int kVector = kFullVector<T>;
  constexpr int kUnroll = 4;
  const Row cut = Row::Of<kVector>(row, classes);
  const std::int64_t rest = classes - cut.vectors * kVector;
  for (std::int64_t i = thread; i < rest; i += kThreads) {
    const std::int64_t at = cut.Single<kVector>(i);
    singles(LoadOne(x + at), at);
  }
  for (std::int64_t i = thread; i < cut.vectors; i += kThreads * kUnroll) {
    Raw<T, kVector> raws[kUnroll] = {};
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) {
      const std::int64_t at = i + j * kThreads;
      if (at < cut.vectors) raws[j] = LoadRaw<kVector>(x + cut.head + at * kVector);
    }
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) {
      const std::int64_t at = i + j * kThreads;
      if (at >= cut.vectors) continue;
      float values[kVector];
      Unpack<T, kVector>(raws[j], values);
      vectors(values, cut.head + at * kVector);
    }
  }
}

/// The largest of some numbers, and the sum of e^(number - largest).
struct Powers {
  float largest = -FLT_MAX;
  float sum = 0;

  __device__ void Raise(float to) {
    if (!(to > largest)) return;
    sum *= expf(largest - to);
    largest = to;
  }
  __device__ void Merge(float other_largest, float other_sum) {
    const float to = fmaxf(largest, other_largest);
    sum = __fmul_rn(sum, expf(largest - to)) + __fmul_rn(other_sum, expf(other_largest - to));
    largest = to;
  }
};

/// What all threads of a row have together. Every thread of the block calls it.
template <int kThreads>
__device__ Powers Together(Powers own) {
  // Both of two lanes compute the same: a sum of two products, in either order.
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float largest = __shfl_xor_sync(kAllLanes, own.largest, offset);
    const float sum = __shfl_xor_sync(kAllLanes, own.sum, offset);
    own.Merge(largest, sum);
  }
  if constexpr (kThreads == kWarp) return own;
  constexpr int kWarps = kThreads / kWarp;
  __shared__ float largest[kWarps];
  __shared__ float sums[kWarps];
  if (threadIdx.x % kWarp == 0) {
    largest[threadIdx.x / kWarp] = own.largest;
    sums[threadIdx.x / kWarp] = own.sum;
  }
  __syncthreads();
  Powers all;
  for (int i = 0; i < kWarps; ++i) all.Merge(largest[i], sums[i]);
  return all;
}

struct Sizes {
  std::int64_t rows;
  std::int64_t classes;
};

/// The row that a thread works on, and which of the row's threads it is.
template <int kThreads>
struct At {
  __device__ At()
      : row(kThreads == kWarp ? static_cast<std::int64_t>(blockIdx.x) * (kWarpThreads / kWarp) +
                                    threadIdx.x / kWarp
                              : blockIdx.x),
        thread(static_cast<int>(threadIdx.x) % kThreads) {}
  std::int64_t row;
  int thread;
};

template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads == kWarp ? kWarpThreads : kThreads)
    Softmax(const T* logits, const std::int32_t* labels, T* probabilities, float* losses,
            Sizes sizes) {
  const At<kThreads> at;
  if (at.row >= sizes.rows) return;  // A whole warp, or none of a block.
  const std::int64_t offset = at.row * sizes.classes;
  const T* x = logits + offset;
  const std::int64_t label = labels[at.row];
  // Before it is written over, if it is.
  float at_label = __int_as_float(0x7fc00000);
  if (label >= 0 && label < sizes.classes) at_label = LoadOne(x + label);
  Powers own;
  ForRow<kThreads>(
      x, at.row, sizes.classes, at.thread,
      [&](const float(&values)[kFullVector<T>], std::int64_t) {
        float largest = values[0];
#pragma unroll
        for (int k = 1; k < kFullVector<T>; ++k) largest = fmaxf(largest, values[k]);
        own.Raise(largest);
#pragma unroll
        for (int k = 0; k < kFullVector<T>; ++k) own.sum += expf(values[k] - own.largest);
      },
      [&](float value, std::int64_t) {
        own.Raise(value);
        own.sum += expf(value - own.largest);
      });
  const Powers all = Together<kThreads>(own);
  const float factor = 1 / all.sum;
  T* y = probabilities + offset;
  if constexpr (kThreads == kWarp) __syncwarp();  // All have read; Together() waits for a block.
  ForRow<kThreads>(
      x, at.row, sizes.classes, at.thread,
      [&](float(&values)[kFullVector<T>], std::int64_t first) {
#pragma unroll
        for (int k = 0; k < kFullVector<T>; ++k) {
          values[k] = expf(values[k] - all.largest) * factor;
        }
        Store(y + first, values);
      },
      [&](float value, std::int64_t i) { StoreOne(y + i, expf(value - all.largest) * factor); });
  if (at.thread == 0) losses[at.row] = label < 0 ? 0 : logf(all.sum) + all.largest - at_label;
}

/// Adds over a block of kFinishThreads; the first thread gets the sum.
template <typename Number>
__device__ Number SumOfBlock(Number value) {
  __shared__ Number shared[kFinishThreads / kWarp];
  value = WarpSum(value);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
  __syncthreads();
  Number sum = 0;
  if (threadIdx.x == 0) {
    for (const Number& of_warp : shared) sum += of_warp;
  }
  return sum;
}

__device__ int CountLabels(const std::int32_t* labels, std::int64_t rows) {
  int counted = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += kFinishThreads) {
    counted += labels[row] >= 0 ? 1 : 0;
  }
  return SumOfBlock(counted);
}

__global__ void __launch_bounds__(kFinishThreads)
    MeanLoss(const float* losses, const std::int32_t* labels, std::int64_t rows, float* loss) {
  double sum = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += kFinishThreads) {
    sum += static_cast<double>(losses[row]);
  }
  sum = SumOfBlock(sum);
  const int counted = CountLabels(labels, rows);
  if (threadIdx.x == 0) *loss = counted > 0 ? static_cast<float>(sum / counted) : 0.0F;
}

__global__ void __launch_bounds__(kFinishThreads)
    ShareOfRow(const std::int32_t* labels, std::int64_t rows, float* share) {
  const int counted = CountLabels(labels, rows);
  if (threadIdx.x == 0) *share = counted > 0 ? 1 / static_cast<float>(counted) : 0.0F;
}

template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads == kWarp ? kWarpThreads : kThreads)
    SoftmaxBackward(const T* probabilities, const std::int32_t* labels, const float* share,
                    T* dlogits, Sizes sizes) {
  const At<kThreads> at;
  if (at.row >= sizes.rows) return;
  const std::int64_t offset = at.row * sizes.classes;
  const std::int64_t label = labels[at.row];
  const bool counts = label >= 0;
  const float factor = *share;
  T* dx = dlogits + offset;
  const auto slope = [&](float probability, std::int64_t i) {
    // Zero whatever the probability, even if it is not a number.
    return counts ? probability * factor - (i == label ? factor : 0.0F) : 0.0F;
  };
  ForRow<kThreads>(
      probabilities + offset, at.row, sizes.classes, at.thread,
      [&](float(&values)[kFullVector<T>], std::int64_t first) {
#pragma unroll
        for (int k = 0; k < kFullVector<T>; ++k) values[k] = slope(values[k], first + k);
        Store(dx + first, values);
      },
      [&](float value, std::int64_t i) { StoreOne(dx + i, slope(value, i)); });
}

/// Writes 1 for a row that is largest at its label, the first of equals.
template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads == kWarp ? kWarpThreads : kThreads)
    MarkCorrect(const T* logits, const std::int32_t* labels, std::int32_t* correct, Sizes sizes) {
  const At<kThreads> at;
  if (at.row >= sizes.rows) return;
  const T* x = logits + at.row * sizes.classes;
  const std::int64_t label = labels[at.row];
  const bool known = label >= 0 && label < sizes.classes;
  const float at_label = known ? LoadOne(x + label) : 0;
  bool beaten = !known || at_label != at_label;
  const auto compare = [&](float value, std::int64_t i) {
    beaten = beaten || value > at_label || (value == at_label && i < label);
  };
  ForRow<kThreads>(
      x, at.row, sizes.classes, at.thread,
      [&](const float(&values)[kFullVector<T>], std::int64_t first) {
#pragma unroll
        for (int k = 0; k < kFullVector<T>; ++k) compare(values[k], first + k);
      },
      compare);
  const bool any = kThreads == kWarp ? __any_sync(kAllLanes, beaten) != 0
                                     : __syncthreads_or(beaten ? 1 : 0) != 0;
  if (at.thread == 0) correct[at.row] = any ? 0 : 1;
}

__global__ void __launch_bounds__(kFinishThreads)
    CountMarked(const std::int32_t* correct, std::int64_t rows, float* count) {
  int sum = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += kFinishThreads) sum += correct[row];
  sum = SumOfBlock(sum);
  if (threadIdx.x == 0) *count = static_cast<float>(sum);
}

/// Calls `body(threads of a row, grid, threads of a block)`, the first as a constant.
template <typename Body>
void WithRows(const Sizes& sizes, const Body& body) {
  if (sizes.classes <= kMostForWarp) {
    body(std::integral_constant<int, kWarp>{},
         static_cast<unsigned>(CeilDiv(sizes.rows, kWarpThreads / kWarp)), kWarpThreads);
  } else {
    body(std::integral_constant<int, kBlockThreads>{}, static_cast<unsigned>(sizes.rows),
         kBlockThreads);
  }
}

nn::Kernel PrepareForward(nn::ElementType type, const Sizes& sizes) {
  return {.workspace_bytes = sizes.rows * 4,
          .run = [=](const exec::Launch& launch, const nn::StepScalars&) {
            const cudaStream_t stream = StreamOf(launch);
            const auto* labels = In<std::int32_t>(launch, 1);
            auto* losses = Out<float>(launch, 2);
            WithType(type, [&](auto element) {
              using T = decltype(element);
              WithRows(sizes, [&](auto threads, unsigned grid, int block) {
                Softmax<T, threads()><<<grid, block, 0, stream>>>(In<T>(launch, 0), labels,
                                                                  Out<T>(launch, 0), losses, sizes);
              });
            });
            CheckLaunch("softmax_loss_forward");
            MeanLoss<<<1, kFinishThreads, 0, stream>>>(losses, labels, sizes.rows,
                                                       Out<float>(launch, 1));
            CheckLaunch("softmax_loss_forward: mean");
          }};
}

nn::Kernel PrepareBackward(nn::ElementType type, const Sizes& sizes) {
  return {.workspace_bytes = 4, .run = [=](const exec::Launch& launch, const nn::StepScalars&) {
            const cudaStream_t stream = StreamOf(launch);
            const auto* labels = In<std::int32_t>(launch, 1);
            auto* share = Out<float>(launch, 1);
            ShareOfRow<<<1, kFinishThreads, 0, stream>>>(labels, sizes.rows, share);
            CheckLaunch("softmax_loss_backward: count");
            WithType(type, [&](auto element) {
              using T = decltype(element);
              WithRows(sizes, [&](auto threads, unsigned grid, int block) {
                SoftmaxBackward<T, threads()><<<grid, block, 0, stream>>>(
                    In<T>(launch, 0), labels, share, Out<T>(launch, 0), sizes);
              });
            });
            CheckLaunch("softmax_loss_backward");
          }};
}

nn::Kernel PrepareCount(nn::ElementType type, const Sizes& sizes) {
  return {.workspace_bytes = sizes.rows * 4,
          .run = [=](const exec::Launch& launch, const nn::StepScalars&) {
            const cudaStream_t stream = StreamOf(launch);
            auto* correct = Out<std::int32_t>(launch, 1);
            WithType(type, [&](auto element) {
              using T = decltype(element);
              WithRows(sizes, [&](auto threads, unsigned grid, int block) {
                MarkCorrect<T, threads()><<<grid, block, 0, stream>>>(
                    In<T>(launch, 0), In<std::int32_t>(launch, 1), correct, sizes);
              });
            });
            CheckLaunch("count_correct");
            CountMarked<<<1, kFinishThreads, 0, stream>>>(correct, sizes.rows,
                                                          Out<float>(launch, 0));
            CheckLaunch("count_correct: sum");
          }};
}

}  // namespace

nn::Kernel PrepareSoftmaxLoss(const nn::OpSpec& spec) {
  const nn::OpKind kind = spec.kind;
  nn::RequireOperands(spec, 2, kind == nn::OpKind::kSoftmaxLossForward ? 2 : 1);
  const Sizes sizes{nn::Rows(spec, spec.reads[0]), nn::Columns(spec, spec.reads[0])};
  nn::RequireType(spec, spec.reads[1], nn::ElementType::kInt);
  nn::RequireCount(spec, spec.reads[1], sizes.rows);
  if (sizes.rows >= 1LL << 31) nn::Refuse(spec, "there are too many rows");
  if (kind == nn::OpKind::kCountCorrect) {
    RequireFloats(spec, spec.writes[0], 1);
    return PrepareCount(ActivationType(spec, {&spec.reads[0]}), sizes);
  }
  const nn::ElementType type = ActivationType(spec, {&spec.reads[0], &spec.writes[0]});
  nn::RequireCount(spec, spec.writes[0], sizes.rows * sizes.classes);
  if (kind == nn::OpKind::kSoftmaxLossBackward) return PrepareBackward(type, sizes);
  RequireFloats(spec, spec.writes[1], 1);
  return PrepareForward(type, sizes);
}

}  // namespace plimsoll::cuda
