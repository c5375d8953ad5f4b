// SPDX-License-Identifier: Apache-2.0
//
// Plans built by hand, and what the judge says of them. For tests only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

/// Adds an op at the end of the compute queue.
inline void AddOp(Position position, std::initializer_list<Operand> reads,
                  std::initializer_list<Operand> writes, std::vector<Wait> waits, Plan* plan) {
  Problem& problem = plan->problem;
  Op op;
  op.name = static_cast<std::int32_t>(problem.ops.size());
  op.position = position;
  op.first_operand = static_cast<std::int64_t>(problem.operands.size());
  op.read_count = static_cast<std::int32_t>(reads.size());
  op.write_count = static_cast<std::int32_t>(writes.size());
  problem.operands.insert(problem.operands.end(), reads);
  problem.operands.insert(problem.operands.end(), writes);
  plan->queues[0].push_back(static_cast<CommandIndex>(plan->commands.size()));
  plan->commands.push_back(
      {Queue::kCompute, static_cast<OpIndex>(problem.ops.size()), -1, 0, std::move(waits)});
  problem.ops.push_back(op);
}

/// Adds a copy at the end of its queue, and to its residency.
inline void AddCopy(Queue queue, ResidencyIndex residency, Bytes host_offset,
                    std::vector<Wait> waits, Plan* plan) {
  const auto index = static_cast<CommandIndex>(plan->commands.size());
  plan->queues[static_cast<std::size_t>(queue)].push_back(index);
  plan->commands.push_back({queue, -1, residency, host_offset, std::move(waits)});
  Residency& r = plan->residencies[static_cast<std::size_t>(residency)];
  (queue == Queue::kCopyIn ? r.copy_in : r.copy_out) = index;
}

/// Expects one violation at least: of that law first, with these words in its message.
inline void ExpectRefused(const Plan& plan, PlanLaw law, std::initializer_list<std::string> words) {
  const std::vector<PlanViolation> violations = CheckPlan(plan);
  ASSERT_FALSE(violations.empty());
  EXPECT_EQ(violations[0].law, law) << violations[0].message;
  for (const std::string& word : words)
    EXPECT_THAT(violations[0].message, ::testing::HasSubstr(word));
}

inline void ExpectAccepted(const Plan& plan) {
  const std::vector<PlanViolation> violations = CheckPlan(plan);
  EXPECT_TRUE(violations.empty()) << Name(violations[0].law) << ": " << violations[0].message;
}

}  // namespace plimsoll::plan
