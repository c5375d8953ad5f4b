// SPDX-License-Identifier: Apache-2.0
// The command line as a contract: exit codes, keys of --json, where output goes, and what happens
// to bad input.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "plimsoll/place/csv.h"
#include "plimsoll/place/validator.h"
#include "tests/cli_for_test.h"

namespace plimsoll {
namespace {

TEST_F(CliTest, TraceFindsTheIteration) {
  const Result result = Run("trace " + kVgg + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("iterations"), 3);
  EXPECT_EQ(json.at("period_events"), 858);
  EXPECT_EQ(json.at("variables"), 160 + 278);
  EXPECT_EQ(json.at("ops"), 302);
  EXPECT_EQ(json.at("peak_load_bytes"), 435910671);
  EXPECT_GT(json.at("iteration_ns").get<std::int64_t>(), 4'000'000);
}

TEST_F(CliTest, TraceSaysWhenNothingRepeats) {
  const Result result = Run("trace " + kStochastic + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("repeats"), false);
  EXPECT_EQ(json.at("iterations"), 0);
  EXPECT_EQ(json.at("period_events"), 0);
  EXPECT_EQ(json.at("peak_load_bytes"), 1461618568);
  const Result one = Run("trace " + kStochastic + " --iteration 1 --json");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_LT(Json::parse(one.out).at("ops"), json.at("ops"));
  EXPECT_NE(RunRefused("trace " + kStochastic + " --iteration 3", 3).find("no iteration 3"),
            std::string::npos);
}

TEST_F(CliTest, TracePrintsATableForPeople) {
  const Result result = Run("trace " + kKMeans);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("repeats every 44 events, 3 iterations"), std::string::npos);
  EXPECT_NE(result.out.find("peak load 2.15 GiB"), std::string::npos);
}

TEST_F(CliTest, PoolPrintsOneObjectWithTheDocumentedKeys) {
  const Result result = Run("pool " + kVgg + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("planner"), "tight");
  EXPECT_EQ(json.at("variables"), 438);
  EXPECT_EQ(json.at("peak_load_bytes"), 435910671);
  EXPECT_GE(json.at("lower_bound_bytes"), json.at("peak_load_bytes"));
  EXPECT_GE(json.at("footprint_bytes"), json.at("lower_bound_bytes"));
  EXPECT_LE(json.at("ratio").get<double>(), 1.0005);
  EXPECT_GE(json.at("planning_seconds").get<double>(), 0);
  EXPECT_EQ(json.at("valid"), true);
}

TEST_F(CliTest, PoolComparesAllPlanners) {
  const Result result = Run("pool " + kVgg + " --planner all --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json rows = Json::parse(result.out);
  ASSERT_TRUE(rows.is_array());
  ASSERT_EQ(rows.size(), 8U);
  const Json& tight = rows.back();
  EXPECT_EQ(tight.at("planner"), "tight");
  for (const Json& row : rows) {
    EXPECT_EQ(row.at("valid"), true) << row;
    if (row.at("planner") == "cudamalloc") continue;
    EXPECT_LE(tight.at("footprint_bytes"), row.at("footprint_bytes")) << row;
  }
}

TEST_F(CliTest, PoolWritesAPlacementThatTheValidatorAccepts) {
  const Result result = Run("pool " + kKMeans + " -o " + Path("out.csv"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const place::Problem problem = place::ReadCsv(Path("out.csv"));
  std::vector<Bytes> offsets;
  for (const place::Buffer& buffer : problem.buffers) {
    ASSERT_TRUE(buffer.fixed_offset.has_value());
    offsets.push_back(*buffer.fixed_offset);
    EXPECT_EQ(buffer.alignment, 512);
  }
  EXPECT_EQ(offsets.size(), 1U + 2U * 14U) << "two iterations: the centroids have two instances";
  EXPECT_TRUE(place::FindViolations(problem, offsets).empty());
}

TEST_F(CliTest, PoolReadsMinimallocFilesWithTheirOwnAlignment) {
  const std::string file = Write("a.csv", "id,lower,upper,size\na,0,2,3\nb,1,3,5\nc,2,4,3\n");
  const Json json = Json::parse(Run("pool " + file + " --json").out);
  EXPECT_EQ(json.at("footprint_bytes"), 8);
  EXPECT_EQ(json.at("peak_load_bytes"), 8);
  const Json aligned = Json::parse(Run("pool " + file + " --alignment 16 --json").out);
  EXPECT_EQ(aligned.at("footprint_bytes"), 19) << "three bytes, padding, and three or five on top";
}

TEST_F(CliTest, PoolHonoursFixedOffsets) {
  const std::string file =
      Write("a.csv", "id,lower,upper,size,offset\na,0,9,4,6\nb,0,5,6,\nc,5,9,6,\n");
  const Json json = Json::parse(Run("pool " + file + " --json").out);
  EXPECT_EQ(json.at("footprint_bytes"), 10);
  EXPECT_EQ(json.at("valid"), true);
  RunRefused("pool " + file + " --planner cnmem", 2);
  const Result all = Run("pool " + file + " --planner all --json");
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(Json::parse(all.out).size(), 4U);
}

TEST_F(CliTest, PoolAnswersNoWithExitCodeOne) {
  const Result below = Run("pool " + kVgg + " --capacity 400MB --json");
  EXPECT_EQ(below.exit_code, 1);
  EXPECT_NE(below.err.find("lower bound of 4359"), std::string::npos) << below.err;
  const Json json = Json::parse(below.out);
  EXPECT_EQ(json.at("fits"), false);
  EXPECT_EQ(json.at("valid"), true);
  EXPECT_EQ(Run("pool " + kVgg + " --capacity 500MB").exit_code, 0);
  // Nothing is written for an answer of no.
  EXPECT_EQ(Run("pool " + kVgg + " --capacity 1 -o " + Path("out.csv")).exit_code, 1);
  EXPECT_FALSE(fs::exists(Path("out.csv")));
}

TEST_F(CliTest, DevicesAreListed) {
  const Json json = Json::parse(Run("devices --json").out);
  EXPECT_EQ(json.at("devices").at(0).at("device"), "host");
  EXPECT_GT(json.at("devices").at(0).at("total_bytes"), 0);
  EXPECT_TRUE(json.at("cuda").contains("built"));
  EXPECT_NE(Run("devices").out.find("host"), std::string::npos);
}

TEST_F(CliTest, ACalibrationIsALink) {
  const Result result = Run("calibrate -o " + Path("host.json") + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  for (const char* key : {"out_bytes_per_s", "in_bytes_per_s", "both_out_bytes_per_s",
                          "both_in_bytes_per_s", "compute_slowdown_by_copies"}) {
    EXPECT_GT(json.at(key), 0) << key;
  }
  EXPECT_EQ(Json::parse(Read("host.json")), json);
  const Result plan = Run("compare " + kVgg + " --limits 80% --planners autoswap-swdoa --link " +
                          Path("host.json"));
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
}

TEST_F(CliTest, PlannersAreListed) {
  const Json rows = Json::parse(Run("planners --json").out);
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(),
                          [](const Json& row) { return row.at("kind") == "placement"; }),
            8);
  EXPECT_EQ(rows.back().at("planner"), "tight");
  const std::string table = Run("planners").out;
  EXPECT_NE(table.find("bestfit"), std::string::npos);
  EXPECT_NE(table.find("autoswap-bo"), std::string::npos);
}

TEST_F(CliTest, GenerateMakesTracesThatRepeat) {
  ASSERT_EQ(Run("generate network --layers 5 --iterations 4 --seed 3 -o " + Path("t.gz")).exit_code,
            0);
  const Json json = Json::parse(Run("trace " + Path("t.gz") + " --json").out);
  EXPECT_EQ(json.at("iterations"), 4);
  EXPECT_EQ(Run("generate network --seed 9").out, Run("generate network --seed 9").out);
  const Result stack = Run("generate stack --count 50 --peak 1MiB -o " + Path("s.csv"));
  ASSERT_EQ(stack.exit_code, 0) << stack.err;
  const Json placed = Json::parse(Run("pool " + Path("s.csv") + " --json").out);
  EXPECT_EQ(placed.at("peak_load_bytes"), 1 << 20);
}

TEST_F(CliTest, HelpAndVersionGoToStandardOutput) {
  for (const std::string& arguments :
       std::vector<std::string>{"--help", "pool --help", "trace --help", "--version"}) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments;
    EXPECT_NE(result.out, "") << arguments;
    EXPECT_EQ(result.err, "") << arguments;
  }
}

TEST_F(CliTest, BadUsageEndsWithTwo) {
  for (const std::string& arguments : std::vector<std::string>{
           std::string(), std::string("fly"), std::string("pool"),
           "pool " + kVgg + " --planner none", "pool " + kVgg + " --capacity lots",
           "pool " + kVgg + " --capacity -5", "pool " + kVgg + " --time-budget -1",
           "pool " + kVgg + " --alignment x", "pool " + kVgg + " --planner all -o x.csv",
           "trace " + kVgg + " --unknown", std::string("generate stack --count 0"),
           std::string("generate stack --peak 1000"), std::string("generate network --scale 0")}) {
    RunRefused(arguments, 2);
  }
}

TEST_F(CliTest, BadInputEndsWithThreeAndNamesTheLine) {
  const std::string head = "trace 1\n{}\n";
  const std::string bytes(3000, '\x01');
  const struct {
    std::string content;
    std::string expected;
  } cases[] = {
      {"", "empty"},
      {std::string("\0\1\2\xff\xfe\n\n\0", 8), ":1:"},
      {bytes, ":1:"},
      {head + "m 1 100\nf 1\nf 1\n", ":5:"},
      {head + "m 1 -5\n", ":3:"},
      {head + "m 1 99999999999999999999999\n", ":3:"},
      {head + "m 1 4611686018427387903\nm 2 4611686018427387903\n", ":4:"},
      {head + "x 1.0 F op 7 -\n", ":3:"},
      {head + "m 1 100\nf 1", ":4:"},
      {"trace 9\n{}\n", ":1:"},
      {"id,lower,upper,size\na,0,1,-4\n", ":2:"},
      {"id,lower,upper,size\na,5,5,4\n", ":2:"},
      {"id,lower,upper,size\na,0,5,4,9\n", ":2:"},
      {"id,lower,upper\na,0,5\n", ":1:"},
      {"Malloc zero 5 7\n", ":1:"},
      {"id,lower,upper,size,offset\na,0,2,10,0\nb,1,3,10,5\n", "contradict"},
  };
  for (const auto& [content, expected] : cases) {
    const std::string message = RunRefused("pool " + Write("bad", content), 3);
    EXPECT_NE(message.find(expected), std::string::npos) << content.substr(0, 80) << message;
  }
  RunRefused("trace " + Path("missing"), 3);
  RunRefused("trace " + folder_.string(), 3);
  RunRefused("trace " + Write("a.csv", "id,lower,upper,size\na,0,1,4\n"), 3);
}

TEST_F(CliTest, PipesAreRefusedInPlainWords) {
  EXPECT_NE(RunRefused("trace /dev/null", 3).find("regular file"), std::string::npos);
}

TEST_F(CliTest, TheLoadCurveReachesThePeak) {
  const Json json = Json::parse(Run("trace " + kVgg + " --json").out);
  std::int64_t highest = 0;
  std::int64_t last_ns = -1;
  for (const Json& point : json.at("load")) {
    highest = std::max(highest, point.at("load_bytes").get<std::int64_t>());
    EXPECT_GE(point.at("time_ns"), last_ns);
    last_ns = point.at("time_ns");
  }
  EXPECT_EQ(highest, json.at("peak_load_bytes"));
  EXPECT_LE(last_ns, json.at("iteration_ns"));
  EXPECT_GE(json.at("sizes_bytes").at("most"), json.at("sizes_bytes").at("median"));
  EXPECT_EQ(json.at("lifetimes_events").at("least"), 1);
}

TEST_F(CliTest, TruncatedFilesAreRefused) {
  std::ifstream in(kVgg, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (const double share : {0.1, 0.5, 0.9, 0.999}) {
    const auto size = static_cast<std::size_t>(static_cast<double>(whole.size()) * share);
    RunRefused("trace " + Write("cut.gz", whole.substr(0, size)), 3);
  }
}

TEST_F(CliTest, ZeroSizesAndEmptyTracesAreFine) {
  const std::string head = "trace 1\n{}\n";
  for (const std::string& body :
       std::vector<std::string>{"", "p 1 0\n", "m 1 0\nx 1.00 F op - 1\nf 1\n"}) {
    const Result result = Run("pool " + Write("t", head + body) + " --json");
    ASSERT_EQ(result.exit_code, 0) << body << result.err;
    EXPECT_EQ(Json::parse(result.out).at("footprint_bytes"), 0);
    EXPECT_EQ(Run("trace " + Path("t")).exit_code, 0);
  }
}

TEST_F(CliTest, VariablesCountEvenIfNothingHappens) {
  const std::string file = Write("t", "trace 1\n{}\np 1 700\np 2 100\n");
  const Json json = Json::parse(Run("pool " + file + " --json").out);
  EXPECT_EQ(json.at("peak_load_bytes"), 800);
  EXPECT_EQ(json.at("footprint_bytes"), 1024 + 100);
}

TEST_F(CliTest, AnUnwritableOutputLeavesEverythingAsItWas) {
  fs::create_directory(folder_ / "taken");
  EXPECT_EQ(Run("pool " + kKMeans + " -o " + Path("taken")).exit_code, 4);
  EXPECT_EQ(Run("pool " + kKMeans + " -o " + Path("missing/out.csv")).exit_code, 4);
  EXPECT_TRUE(fs::is_empty(folder_ / "taken"));
  if (fs::exists("/dev/full")) {
    EXPECT_EQ(Run("pool " + kKMeans + " -o /dev/full").exit_code, 4);
    const std::string command =
        std::string(PLIMSOLL_BINARY) + " planners >/dev/full 2>" + Path("stderr");
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 4);
  }
}

const std::string kChain = PLIMSOLL_DATA_DIR "/chains/resnet18_b32_s224.json";

TEST_F(CliTest, ChainPrintsRowsWithTheDocumentedKeys) {
  const Result result = Run("chain " + kChain + " --limits 90%,700MiB --json --time-budget 0.2");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 16U);
  std::vector<std::string> planners;
  for (const Json& row : rows) {
    planners.push_back(row.at("planner"));
    EXPECT_EQ(row.at("chain"), "resnet18_b32_s224");
    EXPECT_EQ(row.at("peak_load_bytes"), 754749952);
    EXPECT_EQ(row.at("bandwidth_bytes_per_s"), 55000000000);
    EXPECT_EQ(row.at("smallest_limit_bytes"), 518261760);
    EXPECT_GE(row.at("planning_seconds").get<double>(), 0);
    if (!row.at("fits").get<bool>()) continue;
    EXPECT_EQ(row.at("valid"), true);
    EXPECT_LE(row.at("footprint_bytes"), row.at("limit_bytes"));
    EXPECT_GE(row.at("fractional_ns"), row.at("bound_ns"));
    EXPECT_GE(row.at("bound_ns"), row.at("iteration_ns_unlimited"));
    EXPECT_GE(row.at("ratio"), row.at("fractional_ratio"));
    EXPECT_GE(row.at("overhead"), 0);
    const bool recomputes = planners.back() == "rotor" || planners.back() == "pofo";
    EXPECT_EQ(row.at("recomputed_bytes").get<Bytes>() > 0, recomputes);
    if (recomputes) continue;
    EXPECT_GT(row.at("host_bytes"), 0);
    EXPECT_GT(row.at("swapped_bytes"), 0);
    EXPECT_GE(row.at("iteration_ns"), row.at("fractional_ns"));
  }
  EXPECT_EQ(planners[0], "vdnn");
  EXPECT_EQ(planners[5], "chainsearch");
  EXPECT_EQ(planners[6], "rotor");
  EXPECT_EQ(planners[7], "pofo");
  EXPECT_EQ(rows[7].at("limit_bytes"), 679274956);
  EXPECT_EQ(rows[15].at("limit_bytes"), 700 * 1024 * 1024);
}

TEST_F(CliTest, ChainSpreadsLimitsFromTheSmallestToThePeak) {
  const Result result = Run("chain " + kChain + " --limits 3 --planners greedy,dynprog --json " +
                            "--bandwidth 12.2GB/s --time-scale 6 --csv " + Path("rows.csv"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0].at("limit_bytes"), 518261760);
  EXPECT_EQ(rows[5].at("limit_bytes"), 754749952);
  EXPECT_EQ(rows[5].at("iteration_ns"), 45622200);
  EXPECT_EQ(rows[5].at("ratio"), 1.0);
  EXPECT_EQ(rows[0].at("bandwidth_bytes_per_s"), 12200000000);
  const std::string csv = Read("rows.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 7);
  EXPECT_EQ(csv.rfind("chain,planner,", 0), 0U);
}

TEST_F(CliTest, ChainSaysWhatTheSmallestLimitIs) {
  const Result result = Run("chain " + kChain + " --limits 10% --json --planners greedy");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("backward of layer1.0 alone needs 518261760 bytes"), std::string::npos)
      << result.err;
  const Json row = Json::parse(result.out).at(0);
  EXPECT_EQ(row.at("fits"), false);
  EXPECT_EQ(row.at("smallest_limit_bytes"), 518261760);
  EXPECT_EQ(row.at("smallest_limit_op"), "backward of layer1.0");
  // With one limit that can be met there is an answer.
  EXPECT_EQ(Run("chain " + kChain + " --limits 10%,90% --planners greedy").exit_code, 0);
}

TEST_F(CliTest, ChainRefusesBadUsageAndBadInput) {
  const auto refused = [this](const std::string& arguments, int code, const std::string& reason) {
    EXPECT_NE(RunRefused("chain " + arguments, code).find(reason), std::string::npos) << arguments;
  };
  refused(kChain + " --planners nobody", 2, "there is no chain planner");
  refused(kChain + " --limits many", 2, "not a size");
  refused(kChain + " --limits 0", 2, "--limits");
  refused(kChain + " --limits x%", 2, "not a percentage");
  refused(kChain + " --bandwidth 0", 2, "1000 bytes per second");
  refused(kChain + " --bandwidth fast", 2, "no bandwidth");
  refused(Path("none.json"), 3, "none.json");
  refused(Write("empty.json", "{}"), 3, "has no \"model\"");
  refused(Write("link.json", R"({"model": "m", "host_link_GBps": {"one_way": 0}})"), 3,
          "above zero");
  const std::string linkless =
      Write("linkless.json",
            R"({"model": "m", "input_bytes": 1, "stages": [{"name": "s", "forward_ms": 1,
          "backward_ms": 1, "kept_bytes": 1, "forward_temp_bytes": 0, "backward_temp_bytes": 0,
          "input_gradient_bytes": 0}]})");
  refused(linkless, 3, "--bandwidth");
  EXPECT_EQ(Run("chain " + linkless + " --bandwidth 1GB/s").exit_code, 0);
}

}  // namespace
}  // namespace plimsoll
