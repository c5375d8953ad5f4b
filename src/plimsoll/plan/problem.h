// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/plan/traits.h"
#include "plimsoll/trace/period.h"
#include "plimsoll/trace/trace.h"

/// A problem is one steady iteration as a cycle. Logical time is the position of an event in the
/// iteration, [0, period). A variable is live from its malloc up to its free, which may come in a
/// later iteration:
///
///     position       0           period      2 * period
///     weights        ├───────────┤                          persistent: around the cycle
///     activation         ├────┤                             [2, 7)
///     carried over            ├──────┤                      [6, 12): around the end
///     centroids              ├─────────────┤                [5, 18): two live instances, which
///                                                           take two places, in turn
namespace plimsoll::plan {

using VariableIndex = std::int32_t;
using OpIndex = std::int32_t;
/// Position in the iteration.
using Position = std::int64_t;

/// What a variable is for, told from who touches it.
enum class VariableKind : std::uint8_t {
  kPersistent,  ///< Lives around the cycle: weights, optimizer state, inputs.
  kActivation,  ///< Made in the forward phase, used after it.
  kGradient,    ///< Made in the backward phase, used in the update.
  kTemporary,   ///< Made and used within one phase.
  kWorkspace,   ///< Touched by no op by name: scratch of the op that follows its malloc.
};
inline constexpr int kVariableKinds = 5;
std::string_view Name(VariableKind kind);
std::string_view Name(trace::Phase phase);

struct Variable {
  std::int64_t id = 0;  ///< The number that the trace calls it by, in the iteration shown.
  Bytes size_bytes = 0;
  Position begin = 0;
  Position end = 0;  ///< Exclusive; beyond the period if freed in a later iteration.
  VariableKind kind = VariableKind::kTemporary;
  trace::Phase phase = trace::Phase::kForward;  ///< In which it is allocated, or first touched.
  /// How many instances, of consecutive iterations, are live at once at most.
  std::int32_t instances = 1;

  bool persistent() const { return kind == VariableKind::kPersistent; }
  friend bool operator==(const Variable&, const Variable&) = default;
};

/// What an op touches: a variable of this iteration, or of `age` iterations ago.
struct Operand {
  VariableIndex variable = 0;
  std::int32_t age = 0;

  friend bool operator==(const Operand&, const Operand&) = default;
};

struct Op {
  std::int32_t name = 0;  ///< Index into Problem::op_names.
  trace::Phase phase = trace::Phase::kForward;
  Nanoseconds duration_ns = 0;  ///< The smallest over the recorded iterations.
  Position position = 0;
  std::int64_t first_operand = 0;  ///< Reads, then writes, from here on in Problem::operands.
  std::int32_t read_count = 0;
  std::int32_t write_count = 0;
  OpTraits traits{};

  friend bool operator==(const Op&, const Op&) = default;
};

struct Problem {
  /// Whether the end of the iteration is followed by its beginning. False for a trace in which
  /// nothing repeats: then all of it is taken, once.
  bool cyclic = true;
  Position period = 0;                ///< Events per iteration.
  std::int32_t laps = 1;              ///< Iterations of the program that it spans (Unroll()).
  std::int64_t iterations = 0;        ///< How many were found; 0 if nothing repeats.
  trace::EventIndex first_event = 0;  ///< Where in the trace the iteration shown begins.
  std::vector<Variable> variables;    ///< Persistent ones first, then in order of malloc.
  std::vector<Op> ops;                ///< In program order.
  std::vector<Operand> operands;
  std::vector<std::string> op_names;

  std::span<const Operand> reads(const Op& op) const {
    return {operands.data() + op.first_operand, static_cast<std::size_t>(op.read_count)};
  }
  std::span<const Operand> writes(const Op& op) const {
    return {operands.data() + op.first_operand + op.read_count,
            static_cast<std::size_t>(op.write_count)};
  }
  /// The iteration's time without a limit: the sum of its ops.
  Nanoseconds iteration_ns() const;

  friend bool operator==(const Problem&, const Problem&) = default;
};

/// Cuts one steady iteration out of a trace. It begins where the fewest bytes are live, so that as
/// little as possible lives around the end.
std::optional<Problem> CutIteration(const trace::Trace& trace, const trace::Period& period);

/// Takes the events [begin, end) of a trace as they are, once.
Problem TakeStretch(const trace::Trace& trace, trace::EventIndex begin, trace::EventIndex end);

/// CutIteration() if the trace repeats, else TakeStretch() of all of it; also if it repeats for so
/// short a time that the age of what an iteration frees remains unknown.
Problem MakeProblem(const trace::Trace& trace);

}  // namespace plimsoll::plan
