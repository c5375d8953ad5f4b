// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/report/subject.h"

/// Where memory goes over an iteration: figure 3 of paper 001, as data.
///
///     address ▲  ┌──────┐   ┌───┐            a rectangle for each residency,
///             │  └──────┘┌──┴───┴──┐         from the first to the last of its commands
///             │┌─────────┴─────────┴─┐
///             └┴─────────────────────┴▶ time
namespace plimsoll::report {

struct Rectangle {
  plan::VariableIndex variable = 0;
  Nanoseconds begin_ns = 0;  ///< In [0, iteration).
  Nanoseconds end_ns = 0;    ///< Beyond the iteration if it goes on at its beginning.
  Bytes offset = 0;
};

/// Returns a rectangle for each residency, in their order, at some times of the subject. Without a
/// limit they last as the variables live, used or not.
/// REQUIRES: the plan is valid, and the times are of its commands.
std::vector<Rectangle> ListRectangles(const Subject& subject, const CommandTimes& times);

/// What is on the device from some moment on.
struct MemoryStep {
  Nanoseconds time_ns = 0;
  Bytes load_bytes = 0;  ///< Bytes in use; those that pieces of scratch share count once.
  Bytes top_bytes = 0;   ///< The highest address in use: the arena's use.
};

/// Returns the steps of an iteration, the first at 0, from the rectangles at the same times.
/// O(n log n).
std::vector<MemoryStep> ListSteps(const plan::Plan& plan, const CommandTimes& times,
                                  const std::vector<Rectangle>& rectangles);

/// Returns for each recorded op the highest load at a malloc that comes right before it, or while
/// it runs: what the program needs there without a plan, scratch included.
std::vector<Bytes> LoadByOp(const plan::Problem& recorded);

/// Returns for each op of a plan the command that runs it.
std::vector<plan::CommandIndex> CommandsOfOps(const plan::Plan& plan);

/// Returns the recorded op that an op of the plan runs.
plan::OpIndex SourceOf(const plan::Plan& plan, plan::OpIndex op);
bool IsReplay(const plan::Plan& plan, plan::OpIndex op);

/// Returns for each variable of the plan the first op that writes it, or else reads it, or else the
/// op whose scratch it is; -1 if there is none.
std::vector<plan::OpIndex> FindMakers(const plan::Problem& problem);

/// Returns the load without a plan at times of the plan: a step at each recorded op.
std::vector<MemoryStep> ListStepsWithout(const Subject& subject, const CommandTimes& times);

}  // namespace plimsoll::report
