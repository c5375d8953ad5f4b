// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/problem.h"

/// What joint_relaxation.cc searches in.
namespace plimsoll::planners {

/// A set of contents.
using Mask = std::uint32_t;

inline Mask Bit(std::int32_t content) { return Mask{1} << content; }

/// Calls `visit` for every content of a mask.
template <typename Visit>
void ForEach(Mask mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::int32_t>(std::countr_zero(mask)));
}

/// What an op finds and leaves.
struct OpContents {
  Mask finds = 0;
  Mask leaves = 0;
  Mask changes = 0;  ///< Of what it finds: the version before one that it leaves.
  bool replayable = false;
};

/// A problem in contents.
struct ContentModel {
  ContentModel(const plan::Problem& problem, const plan::Machine& machine);

  std::vector<Bytes> bytes;           ///< Per content.
  std::vector<Nanoseconds> out_ns;    ///< Likewise.
  std::vector<Nanoseconds> in_ns;     ///< Likewise.
  std::vector<OpContents> ops;        ///< In program order.
  std::vector<Nanoseconds> op_ns;     ///< Likewise.
  std::vector<Nanoseconds> to_go_ns;  ///< Per op, and one behind: of recorded ops from it on.
  std::vector<Mask> useful;  ///< Likewise: contents that it or a later one may come to use.

 private:
  void SumUp();
};

}  // namespace plimsoll::planners
