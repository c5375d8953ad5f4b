// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/nn/graph.h"
#include "plimsoll/nn/op.h"
#include "plimsoll/trace/trace.h"

/// What a network asks of a device in one iteration: a flat list of mallocs, ops and frees.
namespace plimsoll::nn {

/// What a block is for.
enum class Role : std::uint8_t {
  kParameter,  ///< Persistent, as are the next four.
  kStatistics,
  kMomentum,  ///< First moments of the optimizer.
  kVariance,  ///< Second moments.
  kBatch,     ///< Input and labels, where they stay on the device.
  kInput,
  kLabels,
  kActivation,
  kSaved,  ///< Of the forward pass, for the backward pass only: masks, indices, statistics.
  kGradient,
  kParameterGradient,
  kResult,  ///< The loss, and how many were right.
  kWorkspace,
};
constexpr bool IsPersistent(Role role) { return role <= Role::kBatch; }

using SlotIndex = std::int32_t;

/// A block by number.
struct Slot {
  Bytes size_bytes = 0;
  Role role = Role::kActivation;
  ParameterIndex parameter = -1;  ///< That it holds, or that it is the gradient or a moment of.
};

struct ProgramOp {
  OpSpec spec;
  Kernel kernel;
  trace::Phase phase = trace::Phase::kForward;
  LayerIndex layer = -1;                  ///< What it is part of; -1 for updates.
  std::vector<ParameterIndex> updates{};  ///< What it updates, in the order of its operands.
  std::vector<SlotIndex> reads;
  std::vector<SlotIndex> writes;  ///< The workspace, if there is one, is the last.
};

enum class StepKind : std::uint8_t {
  kMalloc,    ///< Of a slot.
  kFree,      ///< Of a slot.
  kExec,      ///< Of an op.
  kUpload,    ///< The program writes a slot: input or labels.
  kDownload,  ///< The program reads a slot: a result.
};

struct Step {
  StepKind kind = StepKind::kMalloc;
  std::int32_t index = 0;  ///< A SlotIndex, or an index into Program::ops.

  friend bool operator==(const Step&, const Step&) = default;
};

struct Program {
  std::int64_t batch = 0;
  std::vector<Slot> slots;  ///< Persistent ones first: equal for all programs of a network.
  std::vector<ProgramOp> ops;
  std::vector<Step> steps;
  SlotIndex input = -1;
  SlotIndex labels = -1;
  SlotIndex loss = -1;
  SlotIndex correct = -1;  ///< In evaluation.
};

/// What the shapes say about memory.
struct ProgramBytes {
  Bytes persistent = 0;
  Bytes kept = 0;  ///< Alive at the last op of the forward pass, besides what is persistent.
  Bytes peak = 0;  ///< The peak load: the largest sum of live sizes, persistent ones included.
};
ProgramBytes Measure(const Program& program);

}  // namespace plimsoll::nn
