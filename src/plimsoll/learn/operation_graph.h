// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/problem.h"

/// What a learned planner is made of (paper 000): the graph of an iteration, a network that values
/// actions on it, its weights and their file.
namespace plimsoll::learn {

using NodeIndex = std::int32_t;

/// What can be decided at an operation (section 4.5).
enum class ActionKind : std::uint8_t { kNothing, kSwap, kRemove };

/// A gap that may be swapped, or its variable removed and recomputed.
struct Candidate {
  plan::Gap gap;
  bool can_swap = true;
  bool can_remove = false;
  Nanoseconds recompute_ns = 0;  ///< Of the ops that wrote the variable up to the gap.
};

/// An action, and the node that stands for it. No node stands for two.
struct Action {
  ActionKind kind = ActionKind::kNothing;
  std::int32_t candidate = -1;  ///< Which gap it is about; -1 for nothing.
  NodeIndex node = 0;
};

/// The six features of a node (section 4.4.1). Every one is a ratio, so that weights learned on one
/// graph mean the same on another.
enum Feature : std::uint8_t {
  kSize,       ///< Of the variable, over the largest of all candidates.
  kTransfer,   ///< Time of both copies, over the mean of all candidates.
  kRecompute,  ///< Time of the ops that wrote it, in the same unit; at most kMostRecompute.
  kRevisit,    ///< Time to the next use, over that of the iteration.
  kAction,     ///< 1 if the node stands for a swap, -1 for a removal, 0 for neither.
  kValid,      ///< Whether the node's action can be taken now: the only one that ever changes.
};
inline constexpr int kFeatures = 6;
inline constexpr float kMostRecompute = 4;

/// The graph of an iteration (section 4.2). A node is a malloc, a write, a read or a free of one
/// variable; an op is as many nodes as it has operands. Only variables with a candidate are in it.
///
///     malloc x ── write x ── read x ── malloc y ── write y ── ... ── read x ── free x
///         └──────────┴─────────┴──────────────────────────────────────┴──────────┘
///
/// Edges join nodes that follow each other, and those of one variable: each with the next kReach of
/// them, which for most variables are all. Their weight is the time from the one to the other, over
/// that of the iteration.
struct OperationGraph {
  struct Node {
    plan::VariableIndex variable = 0;
    plan::Position position = 0;
  };
  static constexpr int kReach = 4;

  std::vector<Node> nodes;  ///< In the order of time.
  /// Per node, where its neighbours begin in `neighbours`; one more for the end. A node is its own
  /// neighbour.
  std::vector<std::int32_t> first_neighbour;
  std::vector<NodeIndex> neighbours;
  std::vector<float> weights;                          ///< Per neighbour; 0 for the node itself.
  std::vector<std::array<float, kFeatures>> features;  ///< Per node; kValid is 0.
  /// The first is to do nothing, on the first node.
  std::vector<Action> actions;

  std::size_t size() const { return nodes.size(); }
  /// Returns the last node at or before a position; the first one if there is none.
  NodeIndex NodeAt(plan::Position position) const;
};

/// Builds the graph. An action that finds no node of its variable free is left out.
/// REQUIRES: at least one candidate; every variable of the problem has one instance.
OperationGraph MakeOperationGraph(const plan::Problem& problem, const plan::Machine& machine,
                                  const std::vector<Candidate>& candidates);

}  // namespace plimsoll::learn
