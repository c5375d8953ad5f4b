// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Attention of several heads, without a matrix of scores in memory: a block of threads keeps some
/// queries and goes through the keys, or the other way round.
///
///     scores = q k^T / sqrt(width)      probabilities = softmax(scores)      y = probabilities v
///
/// Backward rebuilds probabilities from the logarithm of each row's sum:
///
///     dv = probabilities^T dy           dscores = probabilities * (dy v^T - dot) / sqrt(width)
///     dq = dscores k                    dk = dscores^T q               dot = sum of dy * y
namespace plimsoll::cuda {

struct AttentionSizes {
  int sequences = 1;
  int length = 1;
  int heads = 1;
  int width = 1;  ///< Of a head.
  bool causal = true;
  bool bfloat16 = false;
  float scale = 1;
};

/// The widest head that there are kernels for.
inline constexpr int kWidestHead = 256;

/// Where operands are. Only `log_sum` may be null, forward.
struct AttentionForward {
  const void* qkv = nullptr;  ///< [n, t, 3, heads, width]
  void* y = nullptr;          ///< [n, t, heads, width]
  float* log_sum = nullptr;   ///< [n, heads, t]
};
struct AttentionBackward {
  const void* qkv = nullptr;
  const void* dy = nullptr;
  const float* log_sum = nullptr;
  const float* dots = nullptr;  ///< [n, heads, t]
  void* dqkv = nullptr;
};

/// dots = sum over a head's width of y * dy.
void AttentionDots(const AttentionSizes& sizes, const void* y, const void* dy, float* dots,
                   void* stream);

/// For any width of at most kWidestHead, and either type.
void RunPlainForward(const AttentionSizes& sizes, const AttentionForward& operands, void* stream);
void RunPlainBackward(const AttentionSizes& sizes, const AttentionBackward& operands, void* stream);

/// On tensor cores.
bool CanRunFlash(const AttentionSizes& sizes);
void RunFlashForward(const AttentionSizes& sizes, const AttentionForward& operands, void* stream);
void RunFlashBackward(const AttentionSizes& sizes, const AttentionBackward& operands, void* stream);

}  // namespace plimsoll::cuda
