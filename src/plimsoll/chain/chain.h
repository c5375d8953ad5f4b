// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"

/// Chains: a network is a row of stages, each run forward and backward. Activations may spend the
/// time in between in the host's memory, or be dropped and made again. Offloading is after "Optimal
/// GPU-CPU Offloading Strategies for Deep Neural Network Training" (Beaumont, Eyraud-Dubois,
/// Shilova), called paper 002 here; for recomputation see order.h.
///
///       x_0        x_1        x_2            x_n
///      ─────▶ F_0 ─────▶ F_1 ─────▶ ... F_n-1 ─────▶
///                                                    )
///      ◀───── B_0 ◀───── B_1 ◀───── ... B_n-1 ◀─────
///       y_0        y_1        y_2            y_n
///
/// F_i reads x_i and makes x_{i+1}. B_i reads x_i, x_{i+1} and y_{i+1} and makes y_i; then x_{i+1}
/// and y_{i+1} are gone. The link to the host is one, half-duplex, and the iteration starts cold:
/// with x_0 on the device and everything else unborn.
namespace plimsoll::chain {

struct Stage {
  std::string name;
  Nanoseconds forward_ns = 0;      ///< u_F.
  Nanoseconds backward_ns = 0;     ///< u_B.
  Bytes kept_bytes = 0;            ///< |x_{i+1}|: the output, and what is saved for backward.
  Bytes forward_temp_bytes = 0;    ///< ex_F: needed besides inputs and outputs while F_i runs.
  Bytes backward_temp_bytes = 0;   ///< ex_B: the same for B_i.
  Bytes input_gradient_bytes = 0;  ///< |y_i|: the gradient of this stage's input.
  /// Of kept_bytes, what is no output: saved by F_i for B_i, and read by nobody else.
  Bytes inside_bytes = 0;

  friend bool operator==(const Stage&, const Stage&) = default;
};

struct Chain {
  std::string name;
  std::int64_t batch = 0;  ///< Images in an iteration; 0 if unknown.
  std::int64_t image = 0;  ///< Pixels on a side of an image; 0 if unknown.
  /// Of the link that was measured with the chain, one way; 0 if unknown.
  std::int64_t bandwidth_bytes_per_s = 0;
  Bytes input_bytes = 0;            ///< |x_0|.
  Bytes output_gradient_bytes = 0;  ///< |y_n|; measured chains count it as 0.
  std::vector<Stage> stages;        ///< At least one.

  /// |x_i|. REQUIRES: i <= stages.size().
  Bytes ActivationBytes(std::size_t i) const {
    return i == 0 ? input_bytes : stages[i - 1].kept_bytes;
  }
  /// The part of x_i that F_i reads: the input, or the output of a stage. REQUIRES: as above.
  Bytes OutputBytes(std::size_t i) const {
    return i == 0 ? input_bytes : stages[i - 1].kept_bytes - stages[i - 1].inside_bytes;
  }
  /// |y_i|. REQUIRES: i <= stages.size().
  Bytes GradientBytes(std::size_t i) const {
    return i == stages.size() ? output_gradient_bytes : stages[i].input_gradient_bytes;
  }

  friend bool operator==(const Chain&, const Chain&) = default;
};

/// Returns the chain as a device `factor` times as slow would run it.
/// REQUIRES: factor >= 0, and the times stay below 2^62 ns in sum.
Chain ScaleTimes(Chain chain, double factor);

}  // namespace plimsoll::chain
