// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "plimsoll/chain/chain.h"

namespace plimsoll::chain {

/// Which op runs at each place, if some run more than once: order.h.
using Order = std::vector<std::int32_t>;

inline constexpr std::size_t kNoOp = std::numeric_limits<std::size_t>::max();

/// What planning needs of a chain on a link: sums taken once. Paper 002, sections 3.1 and 3.2.
///
/// Ops are numbered in the order in which they run: F_0 .. F_{n-1} are 0 .. n-1, and B_{n-1} .. B_0
/// are n .. 2n-1. x_n is never offloaded: B_{n-1} needs it as soon as F_{n-1} has made it.
struct Model {
  std::size_t stages = 0;                  ///< n.
  std::int64_t bandwidth_bytes_per_s = 0;  ///< Of the one half-duplex link; beta.
  std::vector<Bytes> activation_bytes;     ///< |x_i|, n + 1 of them.
  std::vector<Nanoseconds> transfer_ns;    ///< Time of x_i on the link, n + 1 of them.
  std::vector<Nanoseconds> op_ns;          ///< u_F and u_B, 2n of them; more if some run again.
  /// m_F and m_B, 2n of them: bytes that exist while the op runs, on both sides of the link.
  std::vector<Bytes> total_bytes;
  /// The part of it that must be on the device whatever is offloaded: inputs, outputs, temporaries.
  std::vector<Bytes> own_bytes;
  /// For each of x_0 .. x_{n-1} the op that reads it next after F_i: until then it can be away.
  /// kNoOp if there is none, because it is made again. The higher i, the sooner.
  std::vector<std::size_t> return_op;
  Order order;                     ///< Empty if every op runs once (order.h).
  Nanoseconds compute_ns = 0;      ///< The iteration without a limit.
  Bytes peak_bytes = 0;            ///< M_peak: from this limit on, nothing is offloaded.
  Bytes smallest_limit_bytes = 0;  ///< The largest of own_bytes; any limit from here on can be met.
  std::size_t smallest_limit_op = 0;  ///< The op that asks for it.

  std::size_t ops() const { return op_ns.size(); }
  std::size_t ForwardOp(std::size_t stage) const { return stage; }
  std::size_t BackwardOp(std::size_t stage) const { return 2 * stages - 1 - stage; }
  bool IsForward(std::size_t op) const { return op < stages; }
  std::size_t StageOf(std::size_t op) const { return op < stages ? op : 2 * stages - 1 - op; }
};

/// REQUIRES: the chain is well-formed (see CheckWellFormed), bandwidth > 0.
Model MakeModel(const Chain& chain, std::int64_t bandwidth_bytes_per_s);

/// The name of an op for people: "forward of layer1.0".
std::string OpName(const Chain& chain, std::size_t op);

/// Time that `bytes` take on the link, rounded up to whole nanoseconds. REQUIRES: bytes >= 0.
Nanoseconds TransferTime(Bytes bytes, std::int64_t bandwidth_bytes_per_s);

/// Proposition 3: no schedule within the limit ends earlier. It has to run every op, and to carry
/// at least M_peak - limit out and in again. It knows nothing of when the link must idle.
Nanoseconds LowerBound(const Model& model, Bytes limit_bytes);

/// Throws InputError, naming `source` and the stage, unless the chain has a stage, no value is
/// negative, and the sums of all bytes and of all times stay below 2^62 and 2^53.
void CheckWellFormed(const Chain& chain, const std::string& source);

/// Throws InputError, naming `source` and the activation, unless all of them are carried once in
/// less than 2^53 ns.
void CheckTransfers(const Chain& chain, const Model& model, const std::string& source);

}  // namespace plimsoll::chain
