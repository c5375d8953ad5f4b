// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/smallest.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/base/check.h"
#include "plimsoll/base/index.h"
#include "plimsoll/plan/op_load.h"
#include "plimsoll/planners/autoswap.h"

namespace plimsoll::planners {
namespace {

/// In iterations no longer than this, all that `joint` tries for a first plan takes a second.
constexpr std::size_t kShortOps = 500;
/// How often what lies between is halved, and in long iterations, where a plan takes seconds.
constexpr int kHalvings = 4;
constexpr int kHalvingsIfLong = 2;
constexpr std::size_t kLongOps = 5'000;
/// In iterations longer than this, nothing is tried: one start may take minutes.
constexpr std::size_t kMostOps = 50'000;
/// One part in so many of a limit that is not worth another plan.
constexpr Bytes kFine = 100;

/// What no plan can do without: one op, by itself.
Bytes LargestOpBytes(const plan::Problem& problem) {
  const std::vector<plan::OpLoad> loads = plan::LoadOps(problem);
  const plan::OpIndex largest = plan::FindLargestOp(loads);
  return largest < 0 ? 0 : loads[At(largest)].needed_bytes();
}

int HalvingsFor(const plan::Problem& problem) {
  if (problem.ops.size() > kMostOps) return 0;
  return problem.ops.size() > kLongOps ? kHalvingsIfLong : kHalvings;
}

}  // namespace

Attempt MakeSmallest(const Question& question) {
  const std::vector<Bytes> least =
      plan::LeastLoad(question.problem, {plan::ListGaps(question.problem, 1)});
  const Bytes floor = least.empty() ? 0 : *std::max_element(least.begin(), least.end());
  plan::Decision decision = Choose(question, {}, {}, floor);
  plan::ScheduleOptions schedule = ToScheduleOptions(question.options);
  schedule.minimise = true;
  const std::vector<Bytes> load =
      plan::LeastLoad(question.problem, decision, question.options.alignment);
  schedule.load_limit_bytes = load.empty() ? 0 : *std::max_element(load.begin(), load.end());
  auto made = plan::MakePlan(question.problem, decision, question.machine, schedule);
  return {std::move(decision), std::move(made), *schedule.load_limit_bytes};
}

Bytes SmallestBySwapping(const plan::Problem& problem, const plan::Machine& machine,
                         const PlannerOptions& options) {
  PlannerOptions unlimited = options;
  unlimited.limit_bytes = kMaxBytes;
  unlimited.host_limit_bytes = kMaxBytes;
  const Attempt attempt = MakeSmallest({problem, machine, unlimited});
  PLIMSOLL_CHECK(attempt.plan() != nullptr, "no limit is large enough");
  return attempt.plan()->footprint_bytes;
}

std::optional<Attempt> MakeAtOnce(const Question& question) {
  if (question.problem.ops.size() > kMostOps) return std::nullopt;
  PlannerOptions options = question.options;
  options.evaluations = 1;
  options.on_progress = {};
  const Question at_once{question.problem, question.machine, options};
  if (question.problem.ops.size() > kShortOps) return PlanJointBriefly(at_once);
  if (question.options.evaluations == 1) return std::nullopt;
  Attempt attempt = PlanJoint(at_once);
  if (attempt.plan() == nullptr) return std::nullopt;
  return attempt;
}

Bytes SmallestLimit(const plan::Problem& problem, const plan::Machine& machine,
                    const PlannerOptions& options) {
  Bytes high = SmallestBySwapping(problem, machine, options);
  Bytes low = LargestOpBytes(problem) - 1;
  PlannerOptions tried = options;
  tried.host_limit_bytes = kMaxBytes;
  for (int k = 0; k < HalvingsFor(problem) && high - low > high / kFine; ++k) {
    if (options.stop && options.stop()) break;
    tried.limit_bytes = low + (high - low) / 2;
    (MakeAtOnce({problem, machine, tried}) ? high : low) = tried.limit_bytes;
  }
  return high;
}

}  // namespace plimsoll::planners
