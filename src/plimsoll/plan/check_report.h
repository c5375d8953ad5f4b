// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

/// A command in one iteration, counted from a stay's own: see CheckPlan().
struct Moment {
  CommandIndex command = -1;  ///< -1: none.
  std::int64_t iteration = 0;

  bool exists() const { return command >= 0; }
};

/// Collects violations up to a number.
class CheckReport {
 public:
  CheckReport(const Plan& plan, std::size_t most) : plan_(plan), most_(most) {}

  void Add(PlanLaw law, std::string message) {
    clean_ = false;
    if (!full()) violations_.push_back({law, std::move(message)});
  }
  bool full() const { return violations_.size() >= most_; }
  /// Whether nothing was ever added, however few may be kept.
  bool clean() const { return clean_; }
  std::vector<PlanViolation> Take() { return std::move(violations_); }

  /// Names a command: "op 40 (convolution)", "copy-in 12 of variable 57".
  /// REQUIRES: the plan is in shape.
  std::string Describe(CommandIndex command) const;
  std::string DescribeOp(OpIndex op) const;

 private:
  const Plan& plan_;
  const std::size_t most_;
  bool clean_ = true;
  std::vector<PlanViolation> violations_;
};

/// Whether [offset, offset + size) is part of [0, limit).
inline bool IsWithin(Bytes offset, Bytes size, Bytes limit) {
  return offset >= 0 && offset <= limit && size <= limit - offset;
}

/// Judges what can be seen without any order: kShape, kBoundary and kLimit. Returns whether the
/// plan is in good enough shape to judge the rest: indices can be followed.
bool CheckShape(const Plan& plan, CheckReport* report);

}  // namespace plimsoll::plan
