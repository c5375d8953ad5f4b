// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "plimsoll/chain/chain.h"
#include "plimsoll/trace/trace.h"

namespace plimsoll::chain {

/// Returns what a program that trains the chain would ask of its device, with paper 002's
/// accounting of memory, so that the peak load is the model's M_peak:
///
///     input                  makes x_0                                 0 ns
///     forward  of stage i    reads x_i, makes x_{i+1}; ex_F is scratch
///     loss                   reads x_n, makes y_n                      0 ns
///     backward of stage i    reads x_i, x_{i+1}, y_{i+1}, makes y_i; ex_B is scratch;
///                            then x_{i+1} and y_{i+1} are freed, and after stage 0 x_0 and y_0
///
/// x_i is two variables, its output and its inside. Forward reads outputs alone, as does backward
/// of the input; the inside is for its own backward. So a plan can do with the trace what an order
/// does with the chain (order.h): run a forward stage again, with or without keeping its inside.
///
/// The two ops of no time at all are what the paper leaves out: somebody has to write x_0 and y_n.
/// All iterations are alike and nothing lives from one to the next; weights are no part of a chain.
/// From three iterations on, the period is found.
/// REQUIRES: the chain is well-formed (CheckWellFormed), iterations >= 1.
trace::Trace ToTrace(const Chain& chain, int iterations = 3);

/// Where an iteration of ToTrace() has what: indices of ops and, in order of malloc, of variables.
struct TraceLayout {
  std::size_t stages = 0;

  std::size_t ops() const { return 2 * stages + 2; }
  /// The trace's op for an op of the model: `input` and `loss` come in between.
  std::size_t Op(std::size_t model_op) const { return model_op + (model_op < stages ? 1 : 2); }
  /// The output in x_i: each forward stage mallocs output and inside of x_{i+1}, then scratch.
  std::size_t Output(std::size_t i) const { return i == 0 ? 0 : 3 * i - 2; }
  /// The inside of x_i. REQUIRES: i > 0.
  std::size_t Inside(std::size_t i) const { return 3 * i - 1; }
};

}  // namespace plimsoll::chain
