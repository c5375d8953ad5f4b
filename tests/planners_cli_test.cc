// SPDX-License-Identifier: Apache-2.0
// What single planners promise on the command line: joint, and those that learn.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/cli_for_test.h"
#include "tests/plan_row_for_test.h"

namespace plimsoll {
namespace {

class PlannersCliTest : public CliTest {};

TEST_F(PlannersCliTest, JointTakesWhatOthersFindWhereItFindsNothing) {
  // Only who drops and swaps nothing by size or age finds room here: `dtr` does.
  const std::string trace = Write(
      "odd.trace",
      "trace 1\n{}\np 0 3145728\np 1 0\ni 0\nx 5 F mm 1,0 -\nm 1000 8388608\n"
      "x 0.001 F relu_ 0,1,1000 -\nx 5 U cudnn_batch_norm 1 -\nx 3000 U relu_ - 1000\n"
      "m 1001 2097152\nm 1002 8388608\nx 0.001 U convolution_backward - 1001,0\nf 1001\nf 1002\n"
      "m 1003 3145728\nm 1004 0\nx 0.001 F convolution_backward 1003,1000,1004 0\nf 1004\n"
      "f 1000\nf 1003\n");
  const Result result = Run("plan " + trace + " --limit 19818086 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ExpectRow(Json::parse(result.out));
}

TEST_F(PlannersCliTest, JointTakesWhatOthersHaveOnlyWithLessLoad) {
  // At the limit itself, an op waits for ever for what autoswap-doa swaps.
  const Result result =
      Run("compare --model gpt2-tiny --limits 60% --least-bytes 1MiB --evaluations 200 --json "
          "--planners joint,autoswap-doa");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_LE(rows[0].at("overhead"), rows[1].at("overhead"));
}

TEST_F(PlannersCliTest, JointWalksWhereWhatItChoosesCannotBePlaced) {
  // A few vast weights that must travel: next to nothing that is chosen by its load alone has
  // addresses. Without steps that do it comes to 3.5.
  const Result result =
      Run("plan --model alexnet --limit 70% --link h200 --evaluations 40000 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(Json::parse(result.out).at("overhead"), 3.0);
}

TEST_F(PlannersCliTest, SmallNetworksHaveSmallThingsToChooseFrom) {
  const std::string ask = "plan --model gpt2-tiny --limit 50% --evaluations 2000 --json";
  const Result alone = Run(ask);
  const Result large = Run(ask + " --least-bytes 1MiB");
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  ASSERT_EQ(large.exit_code, 0) << large.err;
  EXPECT_LT(Json::parse(alone.out).at("overhead"), Json::parse(large.out).at("overhead"));
}

TEST_F(PlannersCliTest, JointRecomputesWhatTheHostHasNoRoomFor) {
  const std::string resnet = PLIMSOLL_DATA_DIR "/traces/resnet18_b100.trace.gz";
  const std::string ask = "plan " + resnet + " --limit 60% --evaluations 1500 --json --host-limit ";
  double before = 1e9;
  for (const std::int64_t host : {0, 200'000'000, 1'000'000'000}) {
    const Result result = Run(ask + std::to_string(host));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json row = Json::parse(result.out);
    ExpectRow(row);
    EXPECT_LE(row.at("host_bytes"), host);
    EXPECT_LT(row.at("overhead"), before) << "with more room on the host it takes less time";
    before = row.at("overhead");
  }
}

TEST_F(PlannersCliTest, JointPlansSizesThatRealNumbersDoNotTellApart) {
  // A chain of six layers, of 2^58 bytes each.
  std::string text = "trace 1\n{}\np 0 1048576\ni 0\n";
  const auto add = [&](int made, char phase, const std::string& op, const std::string& reads) {
    text += fmt::format("m {0} {1}\nx 50.0 {2} {3} {4} {0}\n", made, std::int64_t{1} << 58, phase,
                        op, reads);
  };
  for (int k = 1; k <= 6; ++k) add(k, 'F', "relu", std::to_string(k - 1));
  add(7, 'B', "threshold_backward", "6");
  text += "f 6\n";
  for (int k = 8; k <= 12; ++k) {
    add(k, 'B', "threshold_backward", fmt::format("{},{}", k - 1, 13 - k));
    text += fmt::format("f {}\nf {}\n", 13 - k, k - 1);
  }
  text += "f 12\n";
  const Result result =
      Run("plan " + Write("huge.trace", text) + " --limit 60% --evaluations 300 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ExpectRow(Json::parse(result.out));
}

TEST_F(PlannersCliTest, WeightsAreReadAndWritten) {
  const std::string plan = "plan " + kVgg + " --limit 60% --planner dqn-swap --evaluations 60 ";
  const Result result = Run(plan + "--weights-out " + Path("w") + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out).at("recomputed_bytes"), 0);
  const std::string written = Read("w");
  EXPECT_EQ(written.rfind("policy 1\n", 0), 0U);
  EXPECT_EQ(Run(plan + "--weights-in " + Path("w") + " --weights-out " + Path("v")).exit_code, 0);
  EXPECT_NE(Read("v"), "");
  EXPECT_EQ(Read("w"), written);
}

TEST_F(PlannersCliTest, BadWeightsAreRefused) {
  const std::string plan = "plan " + kVgg + " --limit 60% --evaluations 10 ";
  const std::string dqn = plan + "--planner dqn --weights-in ";
  Write("shape", "policy 1\nshape 99 6 4\n");
  EXPECT_NE(RunRefused(dqn + Path("shape"), 3).find("another shape"), std::string::npos);
  Write("other", "plan 2\n");
  EXPECT_NE(RunRefused(dqn + Path("other"), 3).find("--weights-out"), std::string::npos);
  Write("early", "policy 1\nshape 16 6 4\n3f800000\n");
  EXPECT_NE(RunRefused(dqn + Path("early"), 3).find("ends early"), std::string::npos);
  RunRefused(dqn + Path("absent"), 3);
  EXPECT_NE(RunRefused(plan + "--planner joint --weights-out " + Path("w"), 2).find("dqn-swap"),
            std::string::npos);
  RunRefused(plan + "--planner dqn --weights-out " + Path("w") + " -o " + Path("w"), 2);
  RunRefused(plan + "--planner dqn --weights-out " + Path("absent/w"), 4);
  EXPECT_FALSE(fs::exists(Path("w")));
}

}  // namespace
}  // namespace plimsoll
