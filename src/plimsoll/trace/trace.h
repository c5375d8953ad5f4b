// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"

/// A trace is what a training program asked of its device, in program order:
///
///     p 0 4096          variables alive before the first event (weights, inputs)
///     m 7 65536         malloc           ┐
///     x 12.5 F conv 0 7 exec of an op    ├ events, numbered 0, 1, 2, ... : logical time
///     f 7               free             ┘
///
/// docs/formats.md has the text format.
namespace plimsoll::trace {

/// Dense number of a variable: an index into Trace::variables.
using VariableIndex = std::int32_t;
/// Dense number of an op: an index into Trace::ops.
using OpIndex = std::int32_t;
/// Position in the stream of events; the logical time of a trace.
using EventIndex = std::int64_t;

enum class Phase : std::uint8_t { kForward, kBackward, kUpdate };

/// Something that takes device memory. An address that is used again is a new variable.
struct Variable {
  std::int64_t id = 0;       ///< The number that the file calls it by.
  Bytes size_bytes = 0;      ///< As asked for, not rounded; zero occurs.
  bool preexisting = false;  ///< Alive before the first event.
};

/// One execution of an op on the compute stream.
struct Op {
  std::int32_t name = 0;  ///< Index into Trace::op_names.
  Phase phase = Phase::kForward;
  Nanoseconds duration_ns = 0;
  std::int64_t first_operand = 0;  ///< Reads, then writes, from here on in Trace::operands.
  std::int32_t read_count = 0;
  std::int32_t write_count = 0;
};

enum class EventKind : std::uint8_t { kMalloc, kFree, kExec };

struct Event {
  EventKind kind = EventKind::kMalloc;
  std::int32_t index = 0;  ///< A VariableIndex for malloc and free, an OpIndex for exec.
};

struct Trace {
  std::string metadata;             ///< The JSON object of the header, as text.
  std::vector<Variable> variables;  ///< Preexisting ones first, then in order of malloc.
  std::vector<std::string> op_names;
  std::vector<Op> ops;
  std::vector<VariableIndex> operands;  ///< Operand lists of all ops, end to end.
  std::vector<Event> events;
  std::vector<EventIndex> iteration_marks;  ///< Where the file says that iterations begin.

  std::span<const VariableIndex> reads(const Op& op) const {
    return {operands.data() + op.first_operand, static_cast<std::size_t>(op.read_count)};
  }
  std::span<const VariableIndex> writes(const Op& op) const {
    return {operands.data() + op.first_operand + op.read_count,
            static_cast<std::size_t>(op.write_count)};
  }
};

}  // namespace plimsoll::trace
