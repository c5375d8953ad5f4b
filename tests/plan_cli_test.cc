// SPDX-License-Identifier: Apache-2.0
// The command line of plans as a contract: plan, check, simulate and compare.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/base/checksum.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/plan_file.h"
#include "tests/cli_for_test.h"
#include "tests/plan_row_for_test.h"

namespace plimsoll {
namespace {

class PlanCliTest : public CliTest {
 protected:
  /// Plans a small trace under a limit that makes it swap, into a file, and returns its path.
  std::string MakePlanFile(const std::string& name = "a.plan") const {
    const Result result =
        Run("plan " + kVgg + " --limit 60% --planner autoswap-aoa -o " + Path(name) + " --json");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Path(name);
  }
  /// Writes a trace whose every iteration reads, to its end, what the one before has made, so that
  /// two instances are there at a time, and returns its path.
  std::string WriteDoubleBuffered() const {
    std::string text = "trace 1\n{\"model\": \"double_buffered\"}\np 0 1000000\n";
    for (int k = 1; k <= 6; ++k) {
      text += fmt::format("m {1} 1000000\nx 10.00 F step {0} {1}\nx 20.00 F measure {0} -\nf {0}\n",
                          k - 1, k);
    }
    return Write("double_buffered.trace", text);
  }
  /// Writes a plan file with a change, and a right checksum.
  std::string WriteChanged(const std::string& name, const std::string& from,
                           const std::string& to) const {
    std::string text = Read(name);
    const std::size_t place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    text.replace(place, from.size(), to);
    text.resize(text.rfind("checksum "));
    return Write("changed.plan", text + fmt::format("checksum {:016x}\n", ChecksumOf(text)));
  }
};

TEST_F(PlanCliTest, ATraceSaysWhichOfItsOpsMayRunAgain) {
  // Three large maps of an op that no table knows; backward needs them in reverse.
  const std::string body =
      "p 0 1000\n"
      "m 1 40000000\nx 1.00 F mine 0 1\nm 2 40000000\nx 1.00 F mine 1 2\n"
      "m 3 40000000\nx 1.00 F mine 2 3\nm 4 1000\nx 1.00 B loss 3 4\nf 3\n"
      "x 9.00 B back 2,4 4\nf 2\nx 9.00 B back 1,4 4\nf 1\nf 4\n";
  const std::string ask = " --limit 75% --planner memonger --json";
  const Result unknown = Run("plan " + Write("a.trace", "trace 1\n{}\n" + body) + ask);
  EXPECT_EQ(unknown.exit_code, 1) << unknown.out;
  const std::string header = R"({"traits": {"mine": {"replayable": true}}})";
  const Result known = Run("plan " + Write("b.trace", "trace 1\n" + header + "\n" + body) + ask);
  ASSERT_EQ(known.exit_code, 0) << known.err;
  EXPECT_GT(Json::parse(known.out).at("recomputed_bytes"), 0);
  const std::string wrong = R"({"traits": {"mine": {"random": true}}})";
  const Result refused = Run("plan " + Write("c.trace", "trace 1\n" + wrong + "\n" + body) + ask);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("c.trace:2: the traits of the op \"mine\""), std::string::npos)
      << refused.err;
}

TEST_F(PlanCliTest, BudgetsThatAreNoNumberAreRefused) {
  for (const char* budget : {"nan", "-1", "inf", "1x", "''"}) {
    const Result result = Run("plan " + kVgg + " --limit 60% --budget " + budget);
    EXPECT_EQ(result.exit_code, 2) << budget;
    EXPECT_NE(result.err.find("--budget"), std::string::npos) << result.err;
  }
}

TEST_F(PlanCliTest, PlanPrintsARowAndWritesAPlanThatIsValid) {
  const Result result =
      Run("plan " + kVgg + " --limit 60% --planner autoswap-aoa -o " + Path("a.plan") + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const Json row = Json::parse(result.out);
  ExpectRow(row);
  EXPECT_EQ(row.at("planner"), "autoswap-aoa");
  EXPECT_EQ(row.at("limit_bytes"), 435910671 * std::int64_t{60} / 100);
  EXPECT_GT(row.at("swapped_bytes"), 0);
  EXPECT_GT(row.at("load_min_bytes"), 0);
  EXPECT_LT(row.at("load_min_bytes"), row.at("peak_load_bytes"));
  const plan::Plan plan = plan::ReadPlan(Path("a.plan"));
  EXPECT_TRUE(plan::CheckPlan(plan).empty());
  EXPECT_EQ(plan.planner, "autoswap-aoa");
  EXPECT_EQ(plan.machine.name, "h200");
  EXPECT_EQ(plan.footprint_bytes, row.at("footprint_bytes"));
  EXPECT_NE(plan.signature, 0U);
}

TEST_F(PlanCliTest, SimulateRepeatsWhatPlanHasPredicted) {
  const Result planned = Run("plan " + kVgg + " --limit 250MiB --planner autoswap-aoa --link v100" +
                             " -o " + Path("a.plan.gz") + " --json");
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const Result simulated = Run("simulate " + Path("a.plan.gz") + " --trace " + kVgg + " --json");
  ASSERT_EQ(simulated.exit_code, 0) << simulated.err;
  Json expected = Json::parse(planned.out);
  Json row = Json::parse(simulated.out);
  ExpectRow(row);
  EXPECT_EQ(row.at("busy_ns").at("compute"), row.at("iteration_ns_unlimited"));
  EXPECT_EQ(row.at("stall_ns").get<std::int64_t>(),
            row.at("iteration_ns").get<std::int64_t>() -
                row.at("iteration_ns_unlimited").get<std::int64_t>());
  EXPECT_LE(row.at("stalls").size(), 10U);
  EXPECT_GT(row.at("stalls").size(), 0U);
  EXPECT_NE(row.at("stalls")[0].at("awaited").get<std::string>().find("of variable"),
            std::string::npos);
  EXPECT_EQ(row.at("planning_seconds"), 0);
  for (const char* key : {"busy_ns", "stall_ns", "stalls", "planning_seconds"}) row.erase(key);
  for (const char* key : {"planning_seconds", "load_min_bytes"}) expected.erase(key);
  // A plan knows lives as they are planned, not what the program holds on to beyond them.
  EXPECT_LE(row.at("peak_load_bytes"), expected.at("peak_load_bytes"));
  for (Json* x : {&row, &expected}) x->erase("peak_load_bytes");
  EXPECT_EQ(row, expected);
  const Result table = Run("simulate " + Path("a.plan.gz"));
  EXPECT_NE(table.out.find("copy-out"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("longest stalls"), std::string::npos) << table.out;
}

TEST_F(PlanCliTest, AutoIsTheSmallestLimitWithoutOverhead) {
  const std::string plan = "plan " + kVgg + " --planner autoswap-aoa --json --limit ";
  const Result result = Run(plan + "auto -o " + Path("a.plan"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json row = Json::parse(result.out);
  ExpectRow(row);
  EXPECT_EQ(row.at("overhead"), 0);
  EXPECT_LT(row.at("limit_bytes"), row.at("peak_load_bytes"));
  EXPECT_EQ(plan::ReadPlan(Path("a.plan")).limit_bytes, row.at("limit_bytes"));
  // It is what one would have got by asking for it.
  Json asked = Json::parse(Run(plan + row.at("limit_bytes").dump()).out);
  asked["planning_seconds"] = row.at("planning_seconds");
  EXPECT_EQ(asked, row);

  const Json more = Json::parse(Run(plan + "auto --max-overhead 50%").out);
  ExpectRow(more);
  EXPECT_LT(more.at("limit_bytes"), row.at("limit_bytes"));
  EXPECT_GT(more.at("overhead"), 0);
  EXPECT_LE(more.at("overhead"), 0.5);
}

TEST_F(PlanCliTest, AutoSaysWhenEveryLimitHasOverhead) {
  // It swaps everything, whatever the limit.
  const std::string plan = "plan " + kVgg + " --planner geeps --link v100 --limit auto";
  const std::string message = RunRefused(plan + " --max-overhead 1% -o " + Path("a.plan"), 1);
  EXPECT_NE(message.find("geeps has an overhead above 1% at every limit"), std::string::npos)
      << message;
  EXPECT_FALSE(fs::exists(Path("a.plan")));
}

TEST_F(PlanCliTest, TheDefaultsAreJointAndAnH200) {
  const std::string trace_file = WriteDoubleBuffered();
  const Result result =
      Run("plan " + trace_file + " --limit 110% -o " + Path("k.plan") + " --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json row = Json::parse(result.out);
  EXPECT_EQ(row.at("planner"), "joint");
  const plan::Plan plan = plan::ReadPlan(Path("k.plan"));
  EXPECT_EQ(plan.machine.name, "h200");
  EXPECT_EQ(plan.problem.laps, 2) << "what is made has two instances";
  // Speaks of one iteration of the program, as the trace does.
  const Json trace = Json::parse(Run("trace " + trace_file + " --json").out);
  EXPECT_EQ(row.at("iteration_ns_unlimited"), trace.at("iteration_ns"));
  EXPECT_EQ(row.at("peak_load_bytes"), trace.at("peak_load_bytes"));
  EXPECT_EQ(Run("check " + Path("k.plan") + " --trace " + trace_file).exit_code, 0);
}

TEST_F(PlanCliTest, CheckSaysWhatIsWrong) {
  const std::string file = MakePlanFile();
  const Result good = Run("check " + file + " --json");
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(Json::parse(good.out), Json::parse(R"({"valid": true, "violations": []})"));
  EXPECT_NE(Run("check " + file).out.find("valid: yes"), std::string::npos);

  const std::string limit = fmt::format("limit {}", plan::ReadPlan(file).limit_bytes);
  const std::string bad = WriteChanged("a.plan", limit, "limit 1000000");
  const Result result = Run("check " + bad + " --json");
  EXPECT_EQ(result.exit_code, 1);
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("valid"), false);
  ASSERT_GT(json.at("violations").size(), 0U);
  EXPECT_EQ(json.at("violations")[0].at("law"), "limit");
  EXPECT_NE(json.at("violations")[0].at("message"), "");
  const Result table = Run("check " + bad);
  EXPECT_EQ(table.exit_code, 1);
  EXPECT_NE(table.out.find("valid: no"), std::string::npos);
  EXPECT_NE(RunRefused("simulate " + bad, 1).find("not a valid plan"), std::string::npos);
}

TEST_F(PlanCliTest, APlanForAnotherTraceIsRefused) {
  const std::string file = MakePlanFile();
  EXPECT_EQ(Run("check " + file + " --trace " + kVgg).exit_code, 0);
  for (const std::string command : {"check ", "simulate "}) {
    const std::string message = RunRefused(command + file + " --trace " + kKMeans, 3);
    EXPECT_NE(message.find("made for another trace"), std::string::npos) << message;
    RunRefused(command + file + " --trace " + Path("missing"), 3);
  }
  // A file that only claims to be for a trace is found out as well.
  const std::string signature = fmt::format("{:016x}", plan::ReadPlan(file).signature);
  Run("plan " + kKMeans + " --limit 110% --planner none -o " + Path("k.plan"));
  const std::string other = fmt::format("{:016x}", plan::ReadPlan(Path("k.plan")).signature);
  const std::string forged = WriteChanged("a.plan", signature, other);
  EXPECT_NE(RunRefused("check " + forged + " --trace " + kKMeans, 3).find("another trace"),
            std::string::npos);
}

TEST_F(PlanCliTest, DamagedPlansAreRefusedWithTheLine) {
  const std::string file = MakePlanFile();
  const std::string text = Read("a.plan");
  for (const std::string command : {"check ", "simulate "}) {
    std::string changed = text;
    changed[text.size() / 2] ^= 1;
    RunRefused(command + Write("b.plan", changed), 3);
    changed = text;
    changed[text.find("limit ") + 6] ^= 1;
    const std::string message = RunRefused(command + Write("b.plan", changed), 3);
    EXPECT_NE(message.find("checksum mismatch"), std::string::npos) << message;
    EXPECT_NE(message.find("b.plan:"), std::string::npos) << message;
    RunRefused(command + Write("b.plan", text.substr(0, text.size() - 1)), 3);
    RunRefused(command + Write("b.plan", text + "\n"), 3);
    RunRefused(command + Write("b.plan", ""), 3);
    RunRefused(command + kVgg, 3);
    RunRefused(command + Path("missing.plan"), 3);
    RunRefused(command + folder_.string(), 3);
  }
  const std::string newer = WriteChanged("a.plan", "plan 2", "plan 3");
  EXPECT_NE(RunRefused("check " + newer, 3).find(":1: unsupported version"), std::string::npos);
}

TEST_F(PlanCliTest, APlanWithReplaysIsForTheTraceThatWasRecorded) {
  const Result planned = Run("plan " + kVgg + " --limit 45% --planner joint --evaluations 50 -o " +
                             Path("a.plan") + " --json");
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  ASSERT_GT(Json::parse(planned.out).at("recomputed_bytes"), 0);
  EXPECT_EQ(Run("check " + Path("a.plan") + " --trace " + kVgg).exit_code, 0);
  EXPECT_NE(RunRefused("check " + Path("a.plan") + " --trace " + kKMeans, 3).find("another trace"),
            std::string::npos);
  plan::Plan plan = plan::ReadPlan(Path("a.plan"));
  const auto replay =
      std::find(plan.rewriting->is_replay.begin(), plan.rewriting->is_replay.end(), 1) -
      plan.rewriting->is_replay.begin();
  const plan::Plan right = plan;
  plan.rewriting->op_source[static_cast<std::size_t>(replay)] += 1;
  plan::WritePlan(plan, Path("b.plan"));
  const Result checked = Run("check " + Path("b.plan") + " --json");
  EXPECT_EQ(Json::parse(checked.out).at("violations")[0].at("law"), "replay") << checked.out;
  // A file that only claims that an op may run again.
  plan = right;
  for (plan::Problem* problem : {&plan.problem, &plan.rewriting->original}) {
    for (plan::Op& op : problem->ops) op.traits.random = false;
    for (plan::Op& op : problem->ops) op.traits.replayable = true;
  }
  plan::WritePlan(plan, Path("b.plan"));
  EXPECT_EQ(Run("check " + Path("b.plan")).exit_code, 0);
  EXPECT_NE(RunRefused("check " + Path("b.plan") + " --trace " + kVgg, 3).find("another trace"),
            std::string::npos);
}

TEST_F(PlanCliTest, ALimitThatNothingMeetsIsAnAnswer) {
  const Result result = Run("plan " + kVgg + " --limit 5MiB --json -o " + Path("a.plan"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_FALSE(fs::exists(Path("a.plan")));
  const Json row = Json::parse(result.out);
  EXPECT_EQ(row.at("fits"), false);
  EXPECT_GT(row.at("smallest_limit_bytes"), 5 << 20);
  EXPECT_EQ(row.at("largest_op_name"), "convolution_backward");
  EXPECT_GE(row.at("smallest_limit_bytes"), row.at("largest_op_bytes"));
  const std::int64_t smallest = row.at("smallest_limit_bytes");
  const std::string message =
      fmt::format("no plan fits; the smallest limit that fits is {}", smallest);
  EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  const std::string op =
      fmt::format("op {} (convolution_backward) alone needs {} bytes",
                  row.at("largest_op").get<int>(), row.at("largest_op_bytes").get<std::int64_t>());
  EXPECT_NE(result.err.find(op), std::string::npos) << result.err;
  // There, one fits, whatever the budget is.
  for (const std::string budget : {"--budget 0.01", "--budget 1", "--evaluations 100"}) {
    EXPECT_EQ(Run(fmt::format("plan {} --limit {} {}", kVgg, smallest, budget)).exit_code, 0)
        << budget;
  }
}

TEST_F(PlanCliTest, APlannerThatFailsWhereOthersDoNotSaysSo) {
  const Result result = Run("plan " + kVgg + " --limit 60% --planner none");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("needs"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("--planner joint"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("no plan fits"), std::string::npos) << result.err;
}

TEST_F(PlanCliTest, TheHostHasALimitToo) {
  const std::string common = "plan " + kVgg + " --limit 60% --planner autoswap-aoa --json";
  const Json free = Json::parse(Run(common).out);
  const Result tight = Run(common + " --host-limit 1MiB");
  EXPECT_EQ(tight.exit_code, 1);
  const Json row = Json::parse(tight.out);
  EXPECT_EQ(row.at("fits"), false);
  EXPECT_GT(row.at("needed_host_bytes"), 1 << 20);
  EXPECT_NE(tight.err.find("on the host"), std::string::npos) << tight.err;
  const Result enough =
      Run(fmt::format("{} --host-limit {}", common, free.at("host_bytes").get<std::int64_t>()));
  EXPECT_EQ(enough.exit_code, 0) << enough.err;
}

TEST_F(PlanCliTest, BadUsageIsRefused) {
  const std::string plan = "plan " + kKMeans;
  for (const std::string& arguments : {plan,
                                       plan + " --limit much",
                                       plan + " --limit %",
                                       plan + " --limit nan%",
                                       plan + " --limit -5%",
                                       plan + " --limit 60% --planner tight",
                                       plan + " --limit 60% --link carrier-pigeon",
                                       plan + " --limit 60% --host-limit x",
                                       plan + " --limit 60% --least-bytes x",
                                       plan + " --limit 60% --seed x",
                                       plan + " --limit 60% --max-overhead 1%",
                                       plan + " --limit auto --max-overhead 1",
                                       plan + " --limit auto --max-overhead -1%",
                                       plan + " --limit automatic",
                                       std::string("plan"),
                                       std::string("check"),
                                       std::string("simulate"),
                                       "compare " + kKMeans + " --csv --json",
                                       "compare " + kKMeans + " --limits x%",
                                       "compare " + kKMeans + " --limits nan%",
                                       "compare " + kKMeans + " --limits much",
                                       "compare " + kKMeans + " --planners tight",
                                       "compare " + kKMeans + " --link carrier-pigeon"}) {
    RunRefused(arguments, 2);
  }
  RunRefused("plan " + Path("missing.trace") + " --limit 60%", 3);
  RunRefused("compare " + Path("missing.trace"), 3);
}

TEST_F(PlanCliTest, BadLinksAreRefused) {
  const struct {
    std::string content;
    std::string expected;
  } cases[] = {
      {R"({"out_bytes_per_s": 0, "in_bytes_per_s": 1e9})", "positive"},
      {R"({"out_bytes_per_s": -1e9, "in_bytes_per_s": 1e9})", "positive"},
      {R"({"out_bytes_per_s": 1e-300, "in_bytes_per_s": 1e9})", "positive"},
      {R"({"out_bytes_per_s": 1e9, "in_bytes_per_s": 1e9, "in_latency_ns": -1})", "negative"},
      {R"({"out_bytes_per_s": 1e9, "in_bytes_per_s": 1e9, "in_latency_ns": -0.25})", "negative"},
      {R"({"out_bytes_per_s": 1e9, "in_bytes_per_s": 1e9, "in_latency_ns": 1e300})", "latency"},
      {R"({"out_bytes_per_s": 1e9})", "in_bytes_per_s"},
      {R"({"out_bytes_per_s": "fast", "in_bytes_per_s": 1e9})", "out_bytes_per_s"},
      {R"({"out_bytes_per_s": 1e9, "in_bytes_per_s": 1e9, "name": 7})", "name"},
      {"[]", "JSON object"},
      {"", "JSON object"},
      {R"({"out_bytes_per_s": 1e3, "in_bytes_per_s": 1e3})", ""},  // Slow, and no fault.
  };
  for (const auto& [content, expected] : cases) {
    const std::string link = Write("link.json", content);
    const Result result =
        Run("plan " + kKMeans + " --limit 110% --planner none --link " + link + " --json");
    if (expected.empty()) {
      EXPECT_EQ(result.exit_code, 0) << result.err;
      continue;
    }
    EXPECT_EQ(result.exit_code, 3) << content << result.err;
    EXPECT_NE(result.err.find(expected), std::string::npos) << content << result.err;
    EXPECT_NE(result.err.find("link.json"), std::string::npos) << result.err;
  }
  const std::string huge = Write("huge.trace",
                                 "trace 1\n{}\np 1 2000000000000000000\nx 1.00 F a 1 -\n"
                                 "x 1.00 F a - -\nx 1.00 F a 1 -\n");
  const std::string slow = Write("slow.json", R"({"out_bytes_per_s": 1e3, "in_bytes_per_s": 1e3})");
  const std::string message = RunRefused("plan " + huge + " --limit 50% --link " + slow, 3);
  EXPECT_NE(message.find("15 years"), std::string::npos) << message;
}

TEST_F(PlanCliTest, AnUnwritableOutputLeavesEverythingAsItWas) {
  fs::create_directory(folder_ / "taken");
  const std::string plan = "plan " + kKMeans + " --limit 110% --planner none -o ";
  EXPECT_NE(RunRefused(plan + Path("taken"), 4).find("directory"), std::string::npos);
  EXPECT_NE(RunRefused(plan + Path("missing/a.plan"), 4).find("No such"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder_ / "taken"));
  if (fs::exists("/dev/full")) {
    EXPECT_NE(RunRefused(plan + "/dev/full", 4).find("No space"), std::string::npos);
  }
  EXPECT_EQ(FileCount(), 3U) << "the folder, stdout and stderr";
  // What was there before is replaced whole.
  Write("a.plan", "old");
  EXPECT_EQ(Run(plan + Path("a.plan")).exit_code, 0);
  EXPECT_TRUE(plan::CheckPlan(plan::ReadPlan(Path("a.plan"))).empty());
}

TEST_F(PlanCliTest, EmptyTracesAndZeroLimits) {
  const std::string head = "trace 1\n{}\n";
  for (const std::string body : {"", "p 1 0\n", "m 1 0\nx 1.00 F op - 1\nf 1\n"}) {
    const Result result =
        Run("plan " + Write("t", head + body) + " --limit 0 --json -o " + Path("t.plan"));
    ASSERT_EQ(result.exit_code, 0) << body << result.err;
    ExpectRow(Json::parse(result.out));
    EXPECT_EQ(Run("check " + Path("t.plan") + " --trace " + Path("t")).exit_code, 0) << body;
    EXPECT_EQ(Run("simulate " + Path("t.plan")).exit_code, 0) << body;
    EXPECT_EQ(Run("plan " + Path("t") + " --limit auto").exit_code, 0) << body;
  }
  const Result result =
      Run("plan " + Write("t", head + "p 1 700\nx 1.00 F op 1 -\n") + " --limit 0");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("op 0 (op) alone needs 700 bytes"), std::string::npos) << result.err;
}

TEST_F(PlanCliTest, CompareRowsHaveTheDocumentedKeys) {
  const Result result = Run("compare " + kVgg +
                            " --limits 100%,300MiB --planners none,autoswap-doa,geeps --link v100"
                            " --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].at("limit_bytes"), 435910671);
  EXPECT_EQ(rows[3].at("limit_bytes"), 300 << 20);
  EXPECT_EQ(rows[3].at("planner"), "none");
  EXPECT_EQ(rows[3].at("fits"), false);
  EXPECT_GE(rows[3].at("needed_bytes"), 435910671);
  EXPECT_GT(rows[3].at("smallest_limit_bytes"), 0);
  for (const Json& row : rows) {
    EXPECT_EQ(row.at("peak_load_bytes"), 435910671);
    if (row.at("fits").get<bool>()) ExpectRow(row);
  }
}

TEST_F(PlanCliTest, CompareSpeaksOfOneIterationWhereSeveralArePlanned) {
  const std::string trace_file = WriteDoubleBuffered();
  const Result result = Run("compare " + trace_file + " --limits 110% --planners none --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json row = Json::parse(result.out).at(0);
  EXPECT_EQ(row.at("iteration_ns"), row.at("iteration_ns_unlimited"));
  const Json trace = Json::parse(Run("trace " + trace_file + " --json").out);
  EXPECT_EQ(row.at("iteration_ns_unlimited"), trace.at("iteration_ns"));
  EXPECT_EQ(row.at("peak_load_bytes"), trace.at("peak_load_bytes"));
}

TEST_F(PlanCliTest, ComparePrintsCsvWithOneRowALine) {
  const Result result =
      Run("compare " + kVgg + " --limits 80%,60% --planners none,autoswap-aoa --csv");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> lines;
  std::istringstream text(result.out);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0].rfind("planner,limit_bytes,", 0), 0U);
  const auto commas = std::count(lines[0].begin(), lines[0].end(), ',');
  for (const std::string& line : lines) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), commas) << line;
  }
  EXPECT_EQ(lines[1].rfind("none,", 0), 0U);
  EXPECT_EQ(lines[2].rfind("autoswap-aoa,", 0), 0U);
}

TEST_F(PlanCliTest, CompareSaysWhenNothingFits) {
  const Result result = Run("compare " + kKMeans + " --limits 1MiB --planners none,geeps");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("needs"), std::string::npos);
  EXPECT_NE(result.err.find("no plan fits; the smallest limit that fits is"), std::string::npos);
  EXPECT_NE(result.err.find("alone needs"), std::string::npos) << result.err;
  const Result json = Run("compare " + kKMeans + " --limits 1MiB --planners none,geeps --json");
  EXPECT_EQ(json.exit_code, 1);
  for (const Json& row : Json::parse(json.out)) {
    EXPECT_EQ(row.at("fits"), false);
    EXPECT_GT(row.at("smallest_limit_bytes"), 1 << 20);
  }
}

}  // namespace
}  // namespace plimsoll
