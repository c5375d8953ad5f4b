// SPDX-License-Identifier: Apache-2.0
// The command line as a contract: curve.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli_for_test.h"

namespace plimsoll {
namespace {

const std::string kQuick = " --evaluations 50 --link v100";

class CurveCliTest : public CliTest {};

TEST_F(CurveCliTest, RowsAndBoundsHaveTheDocumentedKeys) {
  const Result result =
      Run("curve " + kVgg + " --limits 80%,50%,1% --planners joint,none --json" + kQuick);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  const Json& rows = json.at("rows");
  ASSERT_EQ(rows.size(), 6U);
  ASSERT_EQ(json.at("bound").size(), 3U);
  const std::vector<bool> fits = {true, false, true, false, false, false};
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Json& bound = json.at("bound")[k / 2];
    EXPECT_EQ(rows[k].at("planner"), k % 2 == 0 ? "joint" : "none");
    EXPECT_EQ(rows[k].at("limit_bytes"), bound.at("limit_bytes"));
    EXPECT_EQ(rows[k].at("fits"), fits[k]) << rows[k];
    EXPECT_GE(rows[k].at("bound_ns"), bound.at("bound_ns"));
    EXPECT_GE(bound.at("bound_ns"), rows[k].at("iteration_ns_unlimited"));
    if (fits[k]) {
      EXPECT_GE(rows[k].at("iteration_ns"), rows[k].at("bound_ns"));
      EXPECT_GE(rows[k].at("footprint_bytes"), json.at("smallest_limit_bytes"));
    } else {
      EXPECT_EQ(rows[k].at("bound_ns"), bound.at("bound_ns"));
    }
  }
  EXPECT_GT(json.at("bound")[2].at("bound_ns"), json.at("bound")[0].at("bound_ns"));
  EXPECT_GT(json.at("smallest_limit_bytes"), rows[5].at("limit_bytes"));
}

TEST_F(CurveCliTest, DrawsEveryPlannerAndTheBound) {
  const Result result = Run("curve " + kVgg + " --limits 80%,60%,40%" + kQuick);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* text : {"smallest limit ", "j joint   a autoswap-swdoa   v vdnn-all",
                           "· bound   : smallest limit", "┤", "80.0 %"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << "\n" << result.out;
  }
}

TEST_F(CurveCliTest, EqualQuestionsHaveEqualAnswers) {
  const std::string command = "curve " + kVgg + " --limits 60% --planners joint" + kQuick;
  const Result first = Run(command);
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_EQ(first.out, Run(command).out);
}

TEST_F(CurveCliTest, PrintsCsvWithOneRowALine) {
  const Result result =
      Run("curve " + kVgg + " --limits 80%,60% --planners none,autoswap-aoa --csv" + kQuick);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 5);
  EXPECT_EQ(result.out.rfind("planner,limit_bytes,", 0), 0U);
}

TEST_F(CurveCliTest, SaysWhenNothingFits) {
  const Result result = Run("curve " + kKMeans + " --limits 1MiB --planners none,geeps");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("no plan fits; the smallest limit that fits is"), std::string::npos);
}

TEST_F(CurveCliTest, RefusesWhatItCannotUse) {
  for (const char* options : {" --csv --json", " --limits x%", " --limits ,", " --planners tight",
                              " --link carrier-pigeon"}) {
    RunRefused("curve " + kKMeans + options, 2);
  }
  RunRefused("curve " + Path("missing.trace"), 3);
}

}  // namespace
}  // namespace plimsoll
