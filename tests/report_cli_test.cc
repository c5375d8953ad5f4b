// SPDX-License-Identifier: Apache-2.0
// The command line of reports as a contract.
#include <gtest/gtest.h>

#include <string>

#include "plimsoll/report/page.h"
#include "tests/cli_for_test.h"

namespace plimsoll {
namespace {

class ReportCliTest : public CliTest {
 protected:
  std::string MakePlanFile() const {
    const Result result = Run("plan " + kVgg + " --limit 60% --planner autoswap-aoa -o " +
                              Path("a.plan") + " --json");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Path("a.plan");
  }
  /// Runs "report" for an SVG, which every build can write, and returns the figures.
  Json Figures(const std::string& arguments) const {
    const Result result =
        Run("report " + arguments + " --format svg -o " + Path("out.svg") + " --json");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? Json::parse(result.out) : Json();
  }
};

TEST_F(ReportCliTest, FiguresAreThoseOfSimulate) {
  const std::string plan = MakePlanFile();
  const Json figures = Figures(plan);
  const Json row = Json::parse(Run("simulate " + plan + " --json").out);
  for (const char* key : {"planner", "limit_bytes", "peak_load_bytes", "footprint_bytes",
                          "host_bytes", "iteration_ns", "iteration_ns_unlimited", "overhead",
                          "bound_ns", "swapped_bytes", "recomputed_bytes", "stall_ns"}) {
    EXPECT_EQ(figures.at(key), row.at(key)) << key;
  }
  EXPECT_LE(figures.at("peak_load_planned_bytes"), figures.at("limit_bytes"));
  EXPECT_TRUE(figures.at("overhead_measured").is_null());
}

TEST_F(ReportCliTest, ATraceIsShownAsItIsOrPlannedFirst) {
  const Json unlimited = Figures(kVgg);
  EXPECT_TRUE(unlimited.at("limit_bytes").is_null());
  EXPECT_EQ(unlimited.at("peak_load_bytes"), unlimited.at("peak_load_planned_bytes"));
  const Json limited = Figures(kVgg + " --limit 70% --planner autoswap-aoa");
  EXPECT_EQ(limited.at("planner"), "autoswap-aoa");
  EXPECT_EQ(limited.at("peak_load_bytes"), unlimited.at("peak_load_bytes"));
  EXPECT_LE(limited.at("footprint_bytes"), limited.at("limit_bytes"));
  // Two iterations together.
  EXPECT_GT(Figures(kKMeans).at("iterations_together"), 1);
}

TEST_F(ReportCliTest, WritesAPageThatCarriesTheFigures) {
  if (!report::HasPage()) {
    const Result result = Run("report " + kVgg + " -o " + Path("a.html"));
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_NE(result.err.find("node-d3"), std::string::npos) << result.err;
    EXPECT_FALSE(fs::exists(Path("a.html")));
    return;
  }
  const std::string plan = MakePlanFile();
  const Result result =
      Run("report " + plan + " --compare " + plan + " -o " + Path("a.html") + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string page = Read("a.html");
  EXPECT_LT(page.size(), 5'000'000U);
  const std::string open = "<script type=\"application/json\" id=\"figures\">";
  const std::size_t begin = page.find(open) + open.size();
  const Json embedded = Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  ASSERT_EQ(embedded.size(), 2U);
  EXPECT_EQ(embedded[0], Json::parse(result.out));
}

TEST_F(ReportCliTest, WritesForPerfetto) {
  const std::string plan = MakePlanFile();
  ASSERT_EQ(Run("report " + plan + " --format perfetto -o " + Path("a.json")).exit_code, 0);
  EXPECT_GT(Json::parse(Read("a.json")).at("traceEvents").size(), 100U);
}

TEST_F(ReportCliTest, TheTerminalGetsASmallVersion) {
  const Result result = Run("report " + MakePlanFile() + " --format svg -o " + Path("out.svg"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("Trains in "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("█"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("out.svg"), std::string::npos) << result.out;
}

TEST_F(ReportCliTest, ComparesAndDrawsCurvesOnPagesAlone) {
  const std::string plan = MakePlanFile();
  for (const std::string format : {"perfetto", "svg"}) {
    const std::string to = " --format " + format + " -o " + Path("out");
    const std::string compare = RunRefused("report " + plan + " --compare " + plan + to, 2);
    EXPECT_NE(compare.find("--compare: is for --format html; --format " + format),
              std::string::npos)
        << compare;
    const std::string curve = RunRefused("report " + plan + " --curve" + to, 2);
    EXPECT_NE(curve.find("--curve: is for --format html; --format " + format), std::string::npos)
        << curve;
  }
  EXPECT_FALSE(fs::exists(Path("out")));
}

TEST_F(ReportCliTest, ALimitIsForTheTraceOfTwo) {
  if (!report::HasPage()) GTEST_SKIP() << "built without d3";
  const std::string plan = MakePlanFile();
  const std::string options =
      " --limit 70% --planner autoswap-aoa --json -o " + Path("a.html") + " --compare ";
  for (const auto& [first, second] : {std::pair(plan, kVgg), std::pair(kVgg, plan)}) {
    std::string command = "report ";
    command.append(first).append(options).append(second);
    EXPECT_EQ(Run(command).exit_code, 0) << command;
  }
  RunRefused("report " + plan + options + plan, 2);
}

TEST_F(ReportCliTest, SaysWhatItCannotShowAndWritesNothing) {
  const std::string plan = MakePlanFile();
  const std::string to = " --format svg -o " + Path("out.svg");
  RunRefused("report " + Path("missing") + to, 3);
  RunRefused("report " + plan + " --limit 50%" + to, 2);
  RunRefused("report " + kVgg + " --measured x.csv" + to, 2);
  RunRefused("report " + kVgg + " --limit 1%" + to, 1);
  RunRefused("report " + plan + to + "/no/such/folder", 4);
  Write("bad.csv", "queue,command\n");
  EXPECT_NE(
      RunRefused("report " + plan + " --measured " + Path("bad.csv") + to, 3).find("bad.csv:1"),
      std::string::npos);
  EXPECT_FALSE(fs::exists(Path("out.svg")));
}

}  // namespace
}  // namespace plimsoll
