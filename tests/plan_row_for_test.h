// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "plimsoll/base/bytes.h"
#include "tests/cli_for_test.h"

namespace plimsoll {

/// What holds for every row of a plan that fits.
inline void ExpectRow(const Json& row) {
  EXPECT_EQ(row.at("fits"), true) << row;
  EXPECT_EQ(row.at("valid"), true) << row;
  EXPECT_LE(row.at("footprint_bytes"), row.at("limit_bytes")) << row;
  EXPECT_GE(row.at("iteration_ns"), row.at("bound_ns")) << row;
  EXPECT_GE(row.at("bound_ns"), row.at("iteration_ns_unlimited")) << row;
  EXPECT_GE(row.at("overhead").get<double>(), 0) << row;
  EXPECT_GE(row.at("avoidable_overhead").get<double>(), 0) << row;
  EXPECT_LE(row.at("avoidable_overhead"), row.at("overhead")) << row;
  EXPECT_GE(row.at("planning_seconds").get<double>(), 0) << row;
  EXPECT_GE(row.at("swapped_bytes"), row.at("host_bytes").get<std::int64_t>() > 0 ? 1 : 0) << row;
  EXPECT_GE(row.at("recomputed_bytes").get<Bytes>(), 0) << row;
}

}  // namespace plimsoll
