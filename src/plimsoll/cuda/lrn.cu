// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/vectors.cuh"

/// Local response normalization across channels. With s the sum of squares over a window of
/// channels and d = k + alpha / size * s:
///
///     y_i = x_i d_i^-beta
///     dx_i = dy_i d_i^-beta - 2 alpha beta / size x_i sum of dy_j x_j d_j^(-beta - 1)
///
/// the last sum over all channels j whose window has i in it. A block has some rows, or channels of
/// one, in shared memory, with what windows need on either side:
///
///     |  reach  | before or after |    tile    | after or before |  reach  |
///     x:   all of it;  terms: all but the outer two;  dx: the tile
namespace plimsoll::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMostTile = 256;
constexpr int kMostSize = 512;

struct Sizes {
  std::int64_t rows;
  int channels;
  int tile;  ///< Channels of a block.
  int rows_at_once;
  int before;  ///< Channels of a window before its own.
  int after;
  float scale;  ///< alpha / size.
  float beta;
  float k;

  /// On each side of the tile; a window reaches half of it.
  __host__ __device__ int halo() const { return before + after; }
  __host__ __device__ int padded() const { return tile + 2 * halo(); }
};

template <typename T, bool kBackward>
__global__ void __launch_bounds__(kThreads)
    Respond(const T* x, const T* dy, T* out, __grid_constant__ const Sizes sizes) {
  extern __shared__ float shared[];
  const int padded = sizes.padded();
  const int halo = sizes.halo();
  float* xs = shared;                                   // rows_at_once * padded.
  float* firsts = xs + sizes.rows_at_once * padded;     // dy d^-beta; backward only.
  float* terms = firsts + sizes.rows_at_once * padded;  // dy x d^(-beta - 1); backward only.
  const int begin = static_cast<int>(blockIdx.y) * sizes.tile;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * sizes.rows_at_once;
  const int items = sizes.rows_at_once * padded;
  // Channel of an item, or -1 if there is none.
  const auto channel_of = [&](int item) {
    const int channel = begin - halo + item % padded;
    const bool there =
        first_row + item / padded < sizes.rows && channel >= 0 && channel < sizes.channels;
    return there ? channel : -1;
  };
  const auto offset_of = [&](int item, int channel) {
    return (first_row + item / padded) * sizes.channels + channel;
  };
  for (int item = static_cast<int>(threadIdx.x); item < items; item += kThreads) {
    const int channel = channel_of(item);
    xs[item] = channel < 0 ? 0 : LoadOne(x + offset_of(item, channel));
  }
  __syncthreads();
  const auto denominator = [&](int item) {
    float sum = 0;
    for (int j = item - sizes.before; j <= item + sizes.after; ++j) sum += xs[j] * xs[j];
    return sizes.k + sizes.scale * sum;
  };
  const auto in_tile = [&](int item) {
    const int at = item % padded;
    return at >= halo && at < halo + sizes.tile;
  };
  if constexpr (!kBackward) {
    for (int item = static_cast<int>(threadIdx.x); item < items; item += kThreads) {
      const int channel = channel_of(item);
      if (channel < 0 || !in_tile(item)) continue;
      StoreOne(out + offset_of(item, channel),
               xs[item] * exp2f(-sizes.beta * log2f(denominator(item))));
    }
  } else {
    for (int item = static_cast<int>(threadIdx.x); item < items; item += kThreads) {
      const int channel = channel_of(item);
      const int at = item % padded;
      // What the tile needs: no more than the half of the halo whose windows are all there.
      const bool needed = at >= halo - sizes.after && at < halo + sizes.tile + sizes.before;
      float first = 0;
      float term = 0;
      if (channel >= 0 && needed) {
        const float d = denominator(item);
        first = LoadOne(dy + offset_of(item, channel)) * exp2f(-sizes.beta * log2f(d));
        term = first * xs[item] / d;
      }
      firsts[item] = first;
      terms[item] = term;
    }
    __syncthreads();
    for (int item = static_cast<int>(threadIdx.x); item < items; item += kThreads) {
      const int channel = channel_of(item);
      if (channel < 0 || !in_tile(item)) continue;
      // The windows that have a channel in them lie the other way round.
      float sum = 0;
      for (int j = item - sizes.after; j <= item + sizes.before; ++j) sum += terms[j];
      StoreOne(out + offset_of(item, channel),
               firsts[item] - 2 * sizes.scale * sizes.beta * xs[item] * sum);
    }
  }
}

}  // namespace

nn::Kernel PrepareLrn(const nn::OpSpec& spec) {
  const bool forward = spec.kind == nn::OpKind::kLrnForward;
  nn::RequireOperands(spec, forward ? 1 : 2, 1);
  const nn::Attributes& a = spec.attributes;
  const nn::ElementType type =
      ActivationType(spec, {&spec.reads.front(), &spec.reads.back(), &spec.writes[0]});
  for (const nn::Tensor& tensor : spec.reads) {
    nn::RequireShape(spec, tensor, spec.writes[0].shape);
  }
  if (a.lrn_size < 1 || !(a.lrn_k > 0)) nn::Refuse(spec, "size and k must be positive");
  if (a.lrn_size > kMostSize) nn::Refuse(spec, "a window has at most 512 channels");
  Sizes sizes{.rows = nn::Rows(spec, spec.reads[0]),
              .channels = static_cast<int>(nn::Columns(spec, spec.reads[0])),
              .tile = 0,
              .rows_at_once = 0,
              .before = static_cast<int>(a.lrn_size / 2),
              .after = static_cast<int>((a.lrn_size - 1) / 2),
              .scale = a.lrn_alpha / static_cast<float>(a.lrn_size),
              .beta = a.lrn_beta,
              .k = a.lrn_k};
  sizes.tile = std::min(sizes.channels, kMostTile);
  sizes.rows_at_once = std::max(1024 / sizes.padded(), 1);
  const std::size_t bytes = sizeof(float) * sizes.rows_at_once * sizes.padded() * (forward ? 1 : 3);
  const dim3 grid(static_cast<unsigned>(CeilDiv(sizes.rows, sizes.rows_at_once)),
                  static_cast<unsigned>(CeilDiv(sizes.channels, sizes.tile)));
  if (grid.y > 65535) nn::Refuse(spec, "there are too many channels");
  return {.run = [=](const exec::Launch& launch, const nn::StepScalars&) {
    WithType(type, [&](auto element) {
      using T = decltype(element);
      if (forward) {
        Respond<T, false><<<grid, kThreads, bytes, StreamOf(launch)>>>(In<T>(launch, 0), nullptr,
                                                                       Out<T>(launch, 0), sizes);
        CheckLaunch("lrn_forward");
      } else {
        Respond<T, true><<<grid, kThreads, bytes, StreamOf(launch)>>>(
            In<T>(launch, 0), In<T>(launch, 1), Out<T>(launch, 0), sizes);
        CheckLaunch("lrn_backward");
      }
    });
  }};
}

}  // namespace plimsoll::cuda
