// SPDX-License-Identifier: Apache-2.0
// The command line of training as a contract.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plimsoll/report/page.h"
#include "tests/cli_for_test.h"

namespace plimsoll {
namespace {

using json = Json;

class TrainCliTest : public CliTest {
 protected:
  /// A small network, and a planner that does the same each time.
  static constexpr const char* kSmall =
      "train --model resnet20 --narrow 4 --image-size 16 --batch 4"
      " --evaluations 20 ";
  json Train(const std::string& arguments, int steps = 8) const {
    const Result result = Run(kSmall + arguments + " --steps " + std::to_string(steps) + " --json");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  }
};

TEST_F(TrainCliTest, ALimitChangesNoLoss) {
  const json unlimited = Train("");
  EXPECT_EQ(unlimited.at("losses").size(), 8U);
  EXPECT_TRUE(unlimited.at("limit_bytes").is_null());
  EXPECT_TRUE(unlimited.at("overhead_predicted").is_null());
  for (const std::string limit : {"80%", "50%", "35%"}) {
    const json limited = Train("--limit " + limit);
    EXPECT_EQ(limited.at("losses"), unlimited.at("losses")) << limit;
    EXPECT_LE(limited.at("peak_footprint_bytes"), limited.at("limit_bytes"));
    EXPECT_EQ(limited.at("peak_load_bytes"), unlimited.at("peak_load_bytes"));
    EXPECT_EQ(limited.at("planner"), "joint");
    EXPECT_GE(limited.at("planned_iterations"), 4);
    EXPECT_GT(limited.at("iteration_ms"), 0);
    for (const char* key : {"overhead_predicted", "overhead_measured", "drifts", "replans"}) {
      EXPECT_TRUE(limited.at(key).is_number()) << key;
    }
    EXPECT_EQ(limited.at("services").size(), 8U);
    EXPECT_EQ(limited.at("services").front(), "recording");
    EXPECT_EQ(limited.at("services").back(), "planned");
  }
}

TEST_F(TrainCliTest, WhenParametersAreUpdatedChangesNoLoss) {
  const json early = Train("");
  const json late = Train("--updates late");
  EXPECT_EQ(Train("--updates early").at("losses"), early.at("losses"));
  EXPECT_EQ(late.at("losses"), early.at("losses"));
  EXPECT_EQ(Train("--updates late --limit 60%").at("losses"), early.at("losses"));
  EXPECT_LE(early.at("peak_load_bytes"), late.at("peak_load_bytes"));
  EXPECT_NE(RunRefused(std::string(kSmall) + "--updates never", 2).find("--updates"),
            std::string::npos);
}

TEST_F(TrainCliTest, PatternsThatDoNotRecurAreServedOnDemand) {
  const auto train = [&](const std::string& limit) {
    const Result result =
        Run("train --model sd-resnet20 --batch 2 --narrow 4 --steps 12 --evaluations 20 --json" +
            limit);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  };
  const json limited = train(" --limit 60%");
  EXPECT_EQ(limited.at("losses"), train("").at("losses"));
  EXPECT_LE(limited.at("peak_footprint_bytes"), limited.at("limit_bytes"));
  const json services = limited.at("services");
  EXPECT_GT(std::count(services.begin(), services.end(), "recording"), 8) << services;
}

TEST_F(TrainCliTest, EvaluationsAreServedUnderTheLimitToo) {
  const json run = Train("--limit 60% --evaluate-every 2 --evaluation-batches 2");
  EXPECT_EQ(run.at("evaluations").size(), 4U);
  EXPECT_EQ(run.at("plans"), 2);
  EXPECT_EQ(run.at("replans"), 1);
  EXPECT_LE(run.at("peak_footprint_bytes"), run.at("limit_bytes"));
}

TEST_F(TrainCliTest, WhatItWritesOthersRead) {
  const std::string trace = Path("r.trace.gz");
  const std::string plan = Path("r.plan");
  const std::string timeline = Path("r.csv");
  Train("--limit 60% --trace-out " + trace + " --plan-out " + plan + " --timeline-out " + timeline);
  EXPECT_EQ(Run("check " + plan + " --trace " + trace).exit_code, 0);
  const Result summary = Run("trace " + trace + " --json");
  EXPECT_EQ(summary.exit_code, 0) << summary.err;
  EXPECT_TRUE(json::parse(summary.out).at("repeats"));
  EXPECT_NE(Read("r.csv").find("measured_end_ns"), std::string::npos);
  const Result compared = Run("simulate " + plan + " --measured " + timeline + " --json");
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  const json comparison = json::parse(compared.out);
  EXPECT_GT(comparison.at("measured_iteration_ns"), 0);
  EXPECT_NEAR(comparison.at("measured_over_predicted").get<double>(),
              comparison.at("measured_iteration_ns").get<double>() /
                  comparison.at("iteration_ns").get<double>(),
              1e-6);
  EXPECT_EQ(comparison.at("measured_busy_ns").size(), 3U);
  EXPECT_FALSE(comparison.at("differences").empty());
  EXPECT_EQ(Run("simulate " + plan + " --measured " + plan).exit_code, 3);
  const Result report = Run("report " + plan + " --trace " + trace + " --measured " + timeline +
                            " --format svg -o " + Path("r.svg") + " --json");
  ASSERT_EQ(report.exit_code, 0) << report.err;
  const json figures = json::parse(report.out);
  EXPECT_GT(figures.at("iteration_ns_measured"), 0);
  EXPECT_NE(figures.at("headline").get<std::string>().find("when measured"), std::string::npos);
}

TEST_F(TrainCliTest, ReportsOnItself) {
  if (!report::HasPage()) GTEST_SKIP() << "built without d3";
  Train("--limit 60% --report " + Path("r.html"));
  EXPECT_NE(Read("r.html").find("when measured"), std::string::npos);
}

TEST_F(TrainCliTest, OneBatchMayStay) {
  const json kept = Train("--limit 60% --keep-batch --wait-for-plan");
  // The same batch over and over is learned by heart.
  EXPECT_LT(kept.at("losses").back(), kept.at("losses").front());
  EXPECT_GE(kept.at("planned_iterations"), 4);
  EXPECT_EQ(Run(std::string(kSmall) + "--keep-batch --evaluate-every 2").exit_code, 2);
}

TEST_F(TrainCliTest, AGpuThatIsNotThereIsNamed) {
  const Result devices = Run("devices --json");
  ASSERT_EQ(devices.exit_code, 0) << devices.err;
  if (json::parse(devices.out).at("devices").size() > 1) GTEST_SKIP() << "there is one";
  const Result result = Run(std::string(kSmall) + "--device cuda");
  EXPECT_EQ(result.exit_code, 4) << result.out;
  EXPECT_NE(result.err.find("GPU"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("--device host"), std::string::npos) << result.err;
  EXPECT_EQ(Run(std::string(kSmall) + "--device tpu").exit_code, 2);
  EXPECT_EQ(Run(std::string(kSmall) + "--device cuda:x").exit_code, 2);
}

TEST_F(TrainCliTest, ACheckpointGoesOnWhereItWasLeft) {
  const json whole = Train("");
  const std::string file = Path("half.checkpoint");
  Train("--save " + file, 4);
  const json second = Train("--limit 60% --load " + file, 4);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(second.at("losses")[k], whole.at("losses")[k + 4]) << k;
  }
}

TEST_F(TrainCliTest, WithoutPlimsollTheLimitIsTheEnd) {
  const Result result = Run(std::string(kSmall) + "--limit 60% --plain");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.err.find("out of memory"), std::string::npos) << result.err;
}

TEST_F(TrainCliTest, ALimitBelowOneOpIsRefusedWithItsName) {
  const Result result = Run(std::string(kSmall) + "--limit 1% --json");
  EXPECT_EQ(result.exit_code, 1);
  const json answer = json::parse(result.out);
  EXPECT_FALSE(answer.at("fits"));
  EXPECT_GT(answer.at("smallest_limit_bytes"), answer.at("limit_bytes"));
  EXPECT_NE(result.err.find("needs by itself"), std::string::npos) << result.err;
}

TEST_F(TrainCliTest, KMeansTrainsToo) {
  const Result result =
      Run("train --model kmeans --batch 500 --steps 12 --limit 150%"
          " --evaluations 10 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json run = json::parse(result.out);
  EXPECT_LT(run.at("losses")[11], run.at("losses")[0]);
}

TEST_F(TrainCliTest, BadInputIsRefused) {
  EXPECT_EQ(Run("train").exit_code, 2);
  EXPECT_EQ(Run("train --model resnt20").exit_code, 2);
  EXPECT_EQ(Run("train --model resnet20 --batch 0").exit_code, 2);
  EXPECT_EQ(Run("train --model resnet20 --limit half").exit_code, 2);
  EXPECT_EQ(Run("train --model resnet20 --device tpu").exit_code, 2);
  EXPECT_EQ(Run(std::string(kSmall) + "--limit 60% --planner nobody").exit_code, 2);
  EXPECT_EQ(Run("train --model " + Write("bad.json", "{")).exit_code, 3);
  EXPECT_EQ(Run("train --model resnet20 --data " + Write("short.bin", "abc")).exit_code, 3);
  EXPECT_EQ(Run(std::string(kSmall) + "--load " + Write("bad.checkpoint", "?")).exit_code, 3);
}

}  // namespace
}  // namespace plimsoll
