// SPDX-License-Identifier: Apache-2.0
// The command line of networks as a contract: models, profile, maxbatch, and plans of a model that
// was never recorded.
#include <gtest/gtest.h>

#include <string>

#include "plimsoll/plan/load_profile.h"
#include "plimsoll/plan/problem.h"
#include "plimsoll/trace/reader.h"
#include "tests/cli_for_test.h"
#include "tests/plan_row_for_test.h"

namespace plimsoll {
namespace {

class ModelCliTest : public CliTest {};

const std::string kSmall = " --model resnet20 --batch 2";

TEST_F(ModelCliTest, ModelsAreListedWithWhatTheyTake) {
  const Result result = Run("models --batch 2 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const Json rows = Json::parse(result.out);
  EXPECT_GT(rows.size(), 30U);
  for (const Json& row : rows) {
    EXPECT_EQ(row.at("batch"), 2) << row;
    EXPECT_GT(row.at("parameters"), 0) << row;
    EXPECT_GT(row.at("activation_bytes"), 0) << row;
    EXPECT_GT(row.at("peak_load_bytes"), row.at("persistent_bytes")) << row;
  }
  EXPECT_EQ(rows.back().at("model"), "kmeans");
}

TEST_F(ModelCliTest, WhatIsNoNetworkIsListedInItsOwnTerms) {
  const Result result = Run("models kmeans --batch 1000 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json row = Json::parse(result.out).at(0);
  EXPECT_EQ(row.at("data"), "points");
  EXPECT_EQ(row.at("batch"), 1000);
  EXPECT_EQ(row.at("parameters"), 160);
  EXPECT_EQ(row.at("persistent_bytes"), 1000 * 16 * 4 + 160 * 4);
  EXPECT_EQ(row.at("activation_bytes"), 1000 * 10 * 4 + 1000 * 4 + 8)
      << "distances, labels and their mean";
}

TEST_F(ModelCliTest, FamiliesHaveModelsThatAreNotListed) {
  const Result result = Run("models resnet10001 wrn40-4 --batch 1 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("model"), "resnet10001");
  EXPECT_GT(rows[0].at("ops"), 50'000);
}

TEST_F(ModelCliTest, AnUnknownModelIsBadUsageWithNearNames) {
  for (const std::string command :
       {"models resnt50", "plan --model resnt50 --limit 1GiB", "compare --model resnt50",
        "curve --model resnt50", "profile --model resnt50", "maxbatch --model resnt50 --limit 1GiB",
        "train --model resnt50"}) {
    EXPECT_NE(RunRefused(command, 2).find("resnet50"), std::string::npos) << command;
  }
}

TEST_F(ModelCliTest, ABatchOfNothingIsBadUsage) {
  for (const std::string command :
       {"models --batch 0", "plan --model lenet --batch 0 --limit 1GiB",
        "profile --model lenet --batch -1", "compare --model lenet --batch x"}) {
    RunRefused(command, 2);
  }
}

TEST_F(ModelCliTest, AModelIsPlannedWithoutATrace) {
  // Of smaller batches, a group of updates takes more than half.
  const Result result = Run(
      "plan --model resnet20 --batch 16 --limit 50% --evaluations 100 --json -o " + Path("a.plan"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json row = Json::parse(result.out);
  ExpectRow(row);
  EXPECT_EQ(row.at("limit_bytes"), row.at("peak_load_bytes").get<std::int64_t>() / 2);
  EXPECT_EQ(Run("check " + Path("a.plan")).exit_code, 0);
  const Result list = Run("models resnet20 --batch 16 --json");
  EXPECT_EQ(Json::parse(list.out).at(0).at("peak_load_bytes"), row.at("peak_load_bytes"));
}

TEST_F(ModelCliTest, TimesComeFromTheMachineAsked) {
  const auto time = [&](const std::string& speed) {
    const Result result =
        Run("plan" + kSmall + " --limit 200% --planner none --json --speed " + speed);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out).at("iteration_ns").get<std::int64_t>();
  };
  EXPECT_GT(time("host"), time("h200-fp32"));
  EXPECT_GE(time("h200-fp32"), time("h200-tf32"));
  EXPECT_GT(time("measured"), 0);
  RunRefused("plan" + kSmall + " --limit 1GiB --speed fast", 2);
}

TEST_F(ModelCliTest, MixedPrecisionIsPlannedAndTakesAboutHalf) {
  const auto peak = [&](const std::string& command) {
    const Result result = Run(command + " --json");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const Json json = Json::parse(result.out);
    return (json.is_array() ? json.at(0) : json).at("peak_load_bytes").get<std::int64_t>();
  };
  const std::string plan =
      "plan --model resnet20 --batch 64 --limit 200% --planner none --speed h200-bf16";
  const std::int64_t full = peak(plan);
  const std::int64_t mixed = peak(plan + " --precision bf16");
  EXPECT_EQ(peak(plan + " --precision fp32"), full);
  EXPECT_LT(mixed, full * 6 / 10);
  EXPECT_GT(mixed, full * 4 / 10);
  EXPECT_EQ(peak("models resnet20 --batch 64 --precision bf16"), mixed);
  EXPECT_EQ(Run("compare" + kSmall + " --precision bf16 --limits 90% --planners lru").exit_code, 0);
  EXPECT_EQ(Run("curve" + kSmall + " --precision bf16 --limits 90% --planners lru").exit_code, 0);
  EXPECT_EQ(Run("maxbatch --model lenet --limit 8MiB --planner none --precision bf16").exit_code,
            0);
  RunRefused("plan" + kSmall + " --limit 1GiB --precision fp8", 2);
  RunRefused("plan " + kVgg + " --limit 1GiB --precision bf16", 2);
}

TEST_F(ModelCliTest, TheHostHasNoMixedPrecision) {
  for (const std::string command : {"train", "profile", "plan --limit 1GiB --speed host",
                                    "maxbatch --limit 1GiB --device host"}) {
    EXPECT_NE(RunRefused(command + " --model resnet20 --precision bf16", 4).find("bfloat16"),
              std::string::npos)
        << command;
  }
  EXPECT_NE(RunRefused("train --model kmeans --precision bf16", 4).find("fp32"), std::string::npos);
  EXPECT_NE(RunRefused("train --model kmeans --updates late", 4).find("--updates"),
            std::string::npos);
}

TEST_F(ModelCliTest, CompareAndCurveTakeAModelToo) {
  const Result compare =
      Run("compare" + kSmall + " --limits 90% --planners vdnn-all,layrub-hybrid,none --json");
  EXPECT_LE(compare.exit_code, 1) << compare.err;
  EXPECT_EQ(Json::parse(compare.out).size(), 3U);
  const Result curve = Run("curve" + kSmall + " --limits 90% --planners autoswap-doa --json");
  EXPECT_EQ(curve.exit_code, 0) << curve.err;
  EXPECT_EQ(Json::parse(curve.out).at("rows").size(), 1U);
}

TEST_F(ModelCliTest, ATraceOrAModelAndNotBoth) {
  EXPECT_NE(RunRefused("plan --limit 1GiB", 2).find("--model"), std::string::npos);
  RunRefused("plan " + kVgg + " --model lenet --limit 1GiB", 2);
  RunRefused("plan " + kVgg + " --batch 3 --limit 1GiB", 2);
  RunRefused("plan " + kVgg + " --speed host --limit 1GiB", 2);
}

TEST_F(ModelCliTest, ALimitThatIsTooSmallSaysWhatFits) {
  const Result plan = Run("plan" + kSmall + " --limit 1KiB --json");
  EXPECT_EQ(plan.exit_code, 1);
  const Json row = Json::parse(plan.out);
  EXPECT_EQ(row.at("fits"), false);
  EXPECT_GT(row.at("smallest_limit_bytes"), 1024);
  const Result batch = Run("maxbatch --model lenet --limit 1KiB --json");
  EXPECT_EQ(batch.exit_code, 1);
  EXPECT_EQ(Json::parse(batch.out).at("fits"), false);
  EXPECT_GT(Json::parse(batch.out).at("smallest_limit_bytes"), 1024);
  EXPECT_NE(batch.err, "");
}

TEST_F(ModelCliTest, AProfileHasEveryKindOfOpAndWritesATrace) {
  const Result result = Run("profile" + kSmall + " --repeats 1 --json -o " + Path("a.trace"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_LE(json.at("measured_ops"), json.at("ops"));
  EXPECT_LT(json.at("profile_bytes"), json.at("peak_load_bytes"));
  std::int64_t count = 0;
  std::int64_t sum_ns = 0;
  for (const Json& kind : json.at("kinds")) {
    count += kind.at("count").get<std::int64_t>();
    sum_ns += kind.at("time_ns").get<std::int64_t>();
    EXPECT_GE(kind.at("gflops_per_s"), 0.0) << kind;
  }
  EXPECT_EQ(count, json.at("ops"));
  EXPECT_EQ(sum_ns, json.at("iteration_ns"));
  const plan::Problem problem = plan::MakeProblem(trace::ReadTrace(Path("a.trace")));
  EXPECT_EQ(problem.iteration_ns(), sum_ns);
  EXPECT_EQ(plan::ProfileLoad(problem).peak_bytes, json.at("peak_load_bytes"));
  EXPECT_EQ(Run("plan " + Path("a.trace") + " --limit 90% --planner autoswap-doa").exit_code, 0);
}

TEST_F(ModelCliTest, TheLargestBatchFitsAndOneMoreDoesNot) {
  const std::string limit = " --limit 8MiB";
  const Result result =
      Run("maxbatch --model lenet" + limit + " --planner vdnn-all --least-bytes 1 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("model"), "lenet");
  EXPECT_EQ(json.at("planner"), "vdnn-all");
  EXPECT_EQ(json.at("limit_bytes"), 8 << 20);
  EXPECT_LE(json.at("peak_footprint_bytes"), 8 << 20);
  EXPECT_GE(json.at("batch"), json.at("batch_unlimited"));
  EXPECT_GT(json.at("batch_unlimited"), 0);
  EXPECT_GT(json.at("samples_per_second"), 0.0);
  const auto plan = [&](const char* key, int more, const std::string& planner) {
    const std::int64_t batch = json.at(key).get<std::int64_t>() + more;
    return Run("plan --model lenet --batch " + std::to_string(batch) + limit +
               " --least-bytes 1 --planner " + planner)
        .exit_code;
  };
  EXPECT_EQ(plan("batch", 0, "vdnn-all"), 0);
  EXPECT_EQ(plan("batch", 1, "vdnn-all"), 1);
  EXPECT_EQ(plan("batch_unlimited", 0, "none"), 0);
  EXPECT_EQ(plan("batch_unlimited", 1, "none"), 1);
}

TEST_F(ModelCliTest, EarlyUpdatesTakeLessWhereWeightsAreLarge) {
  const auto peak = [&](const std::string& updates) {
    const Result result =
        Run("plan --model alexnet --batch 8 --limit 200% --planner none --json" + updates);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out).at("peak_load_bytes").get<std::int64_t>();
  };
  EXPECT_LT(peak(""), peak(" --updates late"));
}

TEST_F(ModelCliTest, TheLargestBatchKnowsItsDevices) {
  const std::string command = "maxbatch --model lenet --limit 7MiB ";
  EXPECT_NE(RunRefused(command + "--device tpu", 2).find("cuda"), std::string::npos);
  EXPECT_NE(RunRefused(command + "--device cuda --speed host", 2).find("GPU"), std::string::npos);
  EXPECT_NE(RunRefused(command + "--device cuda --speed measured", 2).find("GPU"),
            std::string::npos);
}

TEST_F(ModelCliTest, TheLargestBatchFitsOnTheHostToo) {
  const auto batch = [&](const std::string& host_limit) {
    const Result result =
        Run("maxbatch --model resnet20 --narrow 4 --image-size 16 --shorten 3 --limit 1MiB"
            " --evaluations 5 --json" +
            host_limit);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out).at("batch").get<std::int64_t>();
  };
  const std::int64_t largest = batch("");
  EXPECT_EQ(batch(" --host-limit 10GiB"), largest);
  EXPECT_LT(batch(" --host-limit 64KiB"), largest);
}

TEST_F(ModelCliTest, TheLargestBatchReallyTrains) {
  const Result result =
      Run("maxbatch --model lenet --limit 7MiB --steps 4 --evaluations 50 --most 64 --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("speed"), "host");
  EXPECT_GT(json.at("samples_per_second"), 0.0);
  EXPECT_GT(json.at("peak_footprint_bytes"), 0);
  EXPECT_LE(json.at("peak_footprint_bytes"), 7 << 20);
}

}  // namespace
}  // namespace plimsoll
