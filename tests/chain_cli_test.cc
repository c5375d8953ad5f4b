// SPDX-License-Identifier: Apache-2.0
// `plimsoll chain` as a contract: what every row holds, what is refused and how, and the chain as a
// trace.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli_for_test.h"

namespace plimsoll {
namespace {

const std::string kVit = PLIMSOLL_DATA_DIR "/chains/vit_b_16_b64_s224.json";
const std::string kResnet = PLIMSOLL_DATA_DIR "/chains/resnet18_b32_s224.json";

class ChainCliTest : public CliTest {
 protected:
  /// Expects a refusal without output that names all of `reasons`.
  void ExpectRefused(const std::string& arguments, int exit_code,
                     const std::vector<std::string>& reasons) const {
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "") << arguments;
    for (const std::string& reason : reasons) {
      EXPECT_NE(result.err.find(reason), std::string::npos) << arguments << "\n" << result.err;
    }
  }
};

/// A chain of two stages that is read as it is; the tests spoil one thing at a time.
Json GoodChain() {
  const Json stage = {{"name", "s"},
                      {"forward_ms", 1.5},
                      {"backward_ms", 3},
                      {"kept_bytes", 1000},
                      {"forward_temp_bytes", 10},
                      {"backward_temp_bytes", 20},
                      {"input_gradient_bytes", 500}};
  return {{"model", "tiny"},
          {"batch", 2},
          {"input_bytes", 400},
          {"stages", {stage, stage}},
          {"host_link_GBps", {{"one_way", 12.2}}}};
}

TEST_F(ChainCliTest, EveryRowHoldsWhatTheDocumentsSay) {
  const Result result =
      Run("chain " + kVit + " " + kResnet + " --limits 4 --json --time-budget 0.2");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 2U * 4U * 8U);
  for (const Json& row : rows) {
    for (const char* key :
         {"chain", "planner", "limit_bytes", "bandwidth_bytes_per_s", "iteration_ns_unlimited",
          "planning_seconds", "fits", "peak_load_bytes", "smallest_limit_bytes"}) {
      EXPECT_TRUE(row.contains(key)) << key;
    }
    if (!row.at("fits").get<bool>()) {
      EXPECT_EQ(row.at("planner"), "tflms");  // The only one that may give up.
      EXPECT_FALSE(row.contains("iteration_ns"));
      continue;
    }
    EXPECT_EQ(row.at("valid"), true);
    const bool recomputes = row.at("planner") == "rotor" || row.at("planner") == "pofo";
    if (!recomputes) {
      EXPECT_EQ(row.at("recomputed_bytes"), 0);
      EXPECT_GE(row.at("fractional_ratio"), 1);
    }
    const double iteration = row.at("iteration_ns");
    const double unlimited = row.at("iteration_ns_unlimited");
    EXPECT_NEAR(row.at("overhead"), iteration / unlimited - 1, 1e-9);
    EXPECT_NEAR(row.at("ratio"), iteration / row.at("bound_ns").get<double>(), 1e-9);
    EXPECT_NEAR(row.at("fractional_ratio"), iteration / row.at("fractional_ns").get<double>(),
                1e-9);
    EXPECT_LE(row.at("footprint_bytes"), row.at("limit_bytes"));
    EXPECT_LE(row.at("host_bytes"), row.at("swapped_bytes"));
  }
}

TEST_F(ChainCliTest, ChainSearchAndPofoAreNeverAboveOthers) {
  const Result result = Run("chain " + kVit + " --limits 5 --json --bandwidth 12.2GB/s");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 40U);
  for (std::size_t limit = 0; limit < 5; ++limit) {
    const Json& search = rows[8 * limit + 5];
    const Json& pofo = rows[8 * limit + 7];
    ASSERT_EQ(search.at("planner"), "chainsearch");
    ASSERT_EQ(pofo.at("planner"), "pofo");
    for (std::size_t p = 0; p < 8; ++p) {
      const Json& other = rows[8 * limit + p];
      if (!other.at("fits").get<bool>()) continue;
      EXPECT_LE(pofo.at("iteration_ns"), other.at("iteration_ns")) << other.at("planner");
      if (p >= 5) continue;
      EXPECT_LE(search.at("iteration_ns"), other.at("iteration_ns")) << other.at("planner");
    }
  }
  EXPECT_GT(rows[7].at("recomputed_bytes"), 0);
}

TEST_F(ChainCliTest, CsvHasAFieldForEveryColumn) {
  Json chain = GoodChain();
  chain["model"] = "a, \"b\"";
  const std::string file = Write("names.json", chain.dump());
  // The first limit is below every op's need; the second one fits.
  const Result result =
      Run("chain " + file + " --limits 1B,100% --planners greedy --csv " + Path("rows.csv"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::ifstream in(Path("rows.csv"));
  std::string header;
  std::getline(in, header);
  const auto columns = std::count(header.begin(), header.end(), ',');
  std::string line;
  int rows = 0;
  const std::string name = R"("a, ""b""_b2",)";
  while (std::getline(in, line)) {
    ASSERT_EQ(line.rfind(name, 0), 0U) << line;
    EXPECT_EQ(std::count(line.begin() + static_cast<std::ptrdiff_t>(name.size()), line.end(), ','),
              columns - 1)
        << line;
    ++rows;
  }
  EXPECT_EQ(rows, 2);
  for (const char* key : {"valid", "overhead", "recomputed_bytes", "bound_ns", "ratio"}) {
    EXPECT_NE(header.find(key), std::string::npos) << key;
  }
}

TEST_F(ChainCliTest, LimitsThatNothingMeetsEndWithOneOnlyIfNoRowFits) {
  const Result none = Run("chain " + kVit + " --limits 1B,2B --planners greedy,dynprog --json");
  EXPECT_EQ(none.exit_code, 1);
  const Json rows = Json::parse(none.out);
  ASSERT_EQ(rows.size(), 4U);
  for (const Json& row : rows) {
    EXPECT_EQ(row.at("fits"), false);
    EXPECT_GT(row.at("smallest_limit_bytes"), 2);
  }
  EXPECT_EQ(Run("chain " + kVit + " --limits 1B,100% --planners greedy").exit_code, 0);
}

TEST_F(ChainCliTest, RecomputingGoesBelowWhatOffloadingNeeds) {
  const Result result =
      Run("chain " + kResnet + " --limits 66% --planners greedy,rotor,pofo --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const Json& row : Json::parse(result.out)) {
    EXPECT_LT(row.at("limit_bytes"), row.at("smallest_limit_bytes"));
    EXPECT_EQ(row.at("fits"), row.at("planner") != "greedy") << row;
    if (!row.at("fits").get<bool>()) continue;
    EXPECT_LE(row.at("footprint_bytes"), row.at("limit_bytes"));
    EXPECT_TRUE(row.at("fractional_ratio").is_null()) << "there is no such optimum";
  }
}

TEST_F(ChainCliTest, LinksThatTakeForEverAreRefused) {
  ExpectRefused("chain " + kVit + " --bandwidth 1", 2, {"--bandwidth", "1000"});
  Json chain = GoodChain();
  chain["stages"][1]["kept_bytes"] = 1'000'000'000'000'000'000;
  ExpectRefused("chain " + Write("vast.json", chain.dump()) + " --bandwidth 1000", 3,
                {"vast.json", "x_2", "104 days"});
}

TEST_F(ChainCliTest, BadChainsAreRefusedWithFileAndField) {
  ASSERT_EQ(Run("chain " + Write("good.json", GoodChain().dump()) + " --limits 1").exit_code, 0);
  for (const char* key : {"name", "forward_ms", "backward_ms", "kept_bytes", "forward_temp_bytes",
                          "backward_temp_bytes", "input_gradient_bytes"}) {
    const auto refuse = [&](const Json& value, const std::string& reason) {
      Json chain = GoodChain();
      chain["stages"][1][key] = value;
      ExpectRefused("chain " + Write("bad.json", chain.dump()), 3,
                    {"bad.json", "stage 1", key, reason});
    };
    Json chain = GoodChain();
    chain["stages"][1].erase(key);
    ExpectRefused("chain " + Write("bad.json", chain.dump()), 3, {"bad.json", "stage 1", key});
    refuse(nullptr, "is not a");
    refuse(Json::array(), "is not a");
    if (std::string(key) == "name") continue;
    refuse("many", "is not a");
    refuse(-1, "negative");
    refuse(4'611'686'018'427'387'904, "");
  }
}

TEST_F(ChainCliTest, ChainsWithoutStagesOrLinkAreRefused) {
  Json chain = GoodChain();
  chain["stages"] = Json::array();
  ExpectRefused("chain " + Write("empty.json", chain.dump()), 3, {"empty.json", "stages"});
  for (const Json& rate : {Json(0), Json(-1), Json("fast"), Json(1e300)}) {
    chain = GoodChain();
    chain["host_link_GBps"]["one_way"] = rate;
    ExpectRefused("chain " + Write("link.json", chain.dump()), 3, {"link.json", "one_way"});
  }
  ExpectRefused("chain " + kVit + " --bandwidth -3GB/s", 2, {"--bandwidth"});
  ExpectRefused("chain " + kVit + " --time-scale -1", 2, {"--time-scale"});
  ExpectRefused("chain " + kVit + " --time-scale nan", 2, {"--time-scale"});
}

TEST_F(ChainCliTest, SumsThatOverflowAreRefused) {
  Json chain = GoodChain();
  for (Json& stage : chain["stages"]) stage["kept_bytes"] = 4'000'000'000'000'000'000;
  ExpectRefused("chain " + Write("huge.json", chain.dump()), 3,
                {"huge.json", "stage 1", "kept_bytes"});
  chain = GoodChain();
  for (Json& stage : chain["stages"]) stage["backward_ms"] = 86'000'000;
  ExpectRefused("chain " + Write("slow.json", chain.dump()) + " --time-scale 100000", 3,
                {"slow.json", "backward_ms"});
}

TEST_F(ChainCliTest, WritesTheChainAsATrace) {
  const std::string file = Path("resnet18.trace.gz");
  const Result written = Run("chain " + kResnet + " --trace-out " + file);
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out, "");
  const Result read = Run("trace " + file + " --json");
  ASSERT_EQ(read.exit_code, 0) << read.err;
  const Json trace = Json::parse(read.out);
  EXPECT_EQ(trace.at("iterations"), 3);
  EXPECT_EQ(trace.at("ops"), 22);
  EXPECT_EQ(trace.at("peak_load_bytes"), 754749952);  // M_peak of the chain.
  ExpectRefused("chain " + kResnet + " " + kVit + " --trace-out " + file, 2, {"one chain"});
  ExpectRefused("chain " + kResnet + " --json --trace-out " + file, 2, {"--trace-out"});
  ExpectRefused("chain " + kResnet + " --trace-out " + Path("none/x.trace"), 4, {"none/x.trace"});
}

}  // namespace
}  // namespace plimsoll
