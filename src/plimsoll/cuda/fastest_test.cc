// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/fastest.h"

#include <gtest/gtest.h>

namespace plimsoll::cuda {
namespace {

struct FakePlan {
  Bytes workspace = 0;
  Nanoseconds takes_ns = 0;  ///< 0 if it cannot be run.
  Nanoseconds expected_ns = 0;

  Bytes workspace_bytes() const { return workspace; }
};

/// The workspace of the plan that is chosen; -1 if none is. Plans that take twice the best are not
/// timed to the end.
Bytes Choose(Bytes preferred_bytes, const std::vector<FakePlan>& plans) {
  std::vector<std::shared_ptr<FakePlan>> shared;
  for (const FakePlan& plan : plans) shared.push_back(std::make_shared<FakePlan>(plan));
  const auto chosen = FastestWithin(
      preferred_bytes, shared,
      [](const FakePlan& plan, std::optional<Nanoseconds> best) -> std::optional<Nanoseconds> {
        if (plan.takes_ns == 0 || (best && plan.takes_ns > 2 * *best)) return std::nullopt;
        return plan.takes_ns;
      });
  return chosen == nullptr ? -1 : chosen->workspace;
}

TEST(FastestTest, TakesTheFastestAndOfThoseThatAreAsFastTheLeastWorkspace) {
  EXPECT_EQ(Choose(kMaxBytes, {{500, 100}, {300, 102}, {100, 110}, {0, 1000}}), 300);
}

TEST(FastestTest, WhatIsPreferredIsTakenHoweverSlow) {
  EXPECT_EQ(Choose(200, {{500, 100}, {300, 102}, {100, 110}, {0, 1000}}), 100);
  EXPECT_EQ(Choose(50, {{500, 100}, {300, 102}, {100, 110}, {0, 1000}}), 0);
}

TEST(FastestTest, WhereAllNeedMoreTheLeastIsTaken) {
  EXPECT_EQ(Choose(50, {{500, 100}, {300, 5000}, {400, 110}}), 300);
  EXPECT_EQ(Choose(50, {{500, 100}, {300, 0}, {400, 110}}), 400) << "what can be run";
}

TEST(FastestTest, WhatCannotBeRunIsNotTaken) {
  EXPECT_EQ(Choose(kMaxBytes, {}), -1);
  EXPECT_EQ(Choose(10, {{0, 0}, {500, 0}}), -1);
  EXPECT_EQ(Choose(10, {{0, 0}, {500, 7}}), 500);
}

}  // namespace
}  // namespace plimsoll::cuda
