// SPDX-License-Identifier: Apache-2.0
// The command line as a contract: exit codes, keys of --json, where output goes, and what happens
// to bad input.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plimsoll/place/csv.h"
#include "plimsoll/place/validator.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string kVgg = PLIMSOLL_DATA_DIR "/traces/vgg16_cifar_b100.trace.gz";
const std::string kKMeans = PLIMSOLL_DATA_DIR "/traces/kmeans_1m.trace.gz";
const std::string kStochastic = PLIMSOLL_DATA_DIR "/traces/sdresnet110_cifar_b100.trace.gz";

struct Result {
  int exit_code = -1;
  std::string out;
  std::string err;
};

class CliTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "plimsoll-cli-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Read(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return Path(name);
  }
  Result Run(const std::string& arguments) const {
    const std::string command = std::string(PLIMSOLL_BINARY) + " " + arguments + " >" +
                                Path("stdout") + " 2>" + Path("stderr") + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Read("stdout"), Read("stderr")};
  }
  /// Runs a command that must refuse its input, and returns the message.
  std::string RunRefused(const std::string& arguments, int exit_code) const {
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_NE(result.err, "") << arguments;
    return result.err;
  }

  fs::path folder_;
};

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

TEST_F(CliTest, PlannersAreListed) {
  const Json rows = Json::parse(Run("planners --json").out);
  ASSERT_EQ(rows.size(), 8U);
  EXPECT_EQ(rows.back().at("planner"), "tight");
  EXPECT_NE(Run("planners").out.find("bestfit"), std::string::npos);
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

}  // namespace
}  // namespace plimsoll
