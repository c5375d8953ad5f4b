// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/plan_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "plimsoll/base/checksum.h"
#include "plimsoll/base/error.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/plan/replays_for_test.h"
#include "plimsoll/plan/signature.h"

namespace plimsoll::plan {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLarge = std::numeric_limits<std::int64_t>::max() - 1;

void HardenOp(PlanRandom* random, Op* op) {
  op->phase = static_cast<trace::Phase>(random->Between(0, 2));
  op->traits = {random->OneIn(2), random->OneIn(2), 0};
  if (random->OneIn(2)) {
    op->traits.state_reads = static_cast<std::uint32_t>(random->Between(0, 0xffffffff));
  }
}

/// Does the same to recorded ops, and to those that run them.
void HardenRecorded(PlanRandom* random, Plan* plan) {
  Problem& recorded = plan->rewriting->original;
  recorded.op_names = plan->problem.op_names;
  recorded.iterations = random->Between(0, 9);
  recorded.first_event = random->Between(0, kLarge);
  for (Variable& variable : recorded.variables) variable.id = random->Between(0, kLarge);
  for (Op& op : recorded.ops) op.phase = static_cast<trace::Phase>(random->Between(0, 2));
  for (std::size_t i = 0; i < plan->problem.ops.size(); ++i) {
    const OpIndex source = plan->rewriting->op_source[i];
    plan->problem.ops[i].phase = recorded.ops[static_cast<std::size_t>(source)].phase;
  }
}

/// Whether ops run again.
enum class Kind { kPlain, kReplays };

/// A random plan with everything in it that is hard to write.
Plan HardPlan(PlanRandom* random, Kind kind) {
  std::optional<Plan> plan;
  while (!plan) {
    plan = kind == Kind::kReplays ? replays::RandomReplayPlan(random) : RandomPlan(random);
  }
  plan->planner = "my planner\n100 %";
  plan->signature = static_cast<std::uint64_t>(random->Between(0, kLarge)) * 3;
  plan->machine.name = "";
  plan->machine.in_bytes_per_s = 1e9 / 0.0823;
  plan->machine.both_in_bytes_per_s = 1e9 / 0.0823 / 3;
  plan->problem.op_names = {"a b\tc", std::string("\0\r\n \x7f\xff", 6), "Größe%20"};
  plan->problem.iterations = random->Between(0, 9);
  plan->problem.first_event = random->Between(0, kLarge);
  for (Variable& variable : plan->problem.variables) variable.id = random->Between(0, kLarge);
  if (kind == Kind::kReplays) {
    HardenRecorded(random, &*plan);
  } else {
    for (Op& op : plan->problem.ops) HardenOp(random, &op);
  }
  return *std::move(plan);
}

Plan HardPlan(PlanRandom* random) {
  return HardPlan(random, random->OneIn(2) ? Kind::kReplays : Kind::kPlain);
}

/// Replaces the last line by a right checksum of all before it.
std::string Seal(const std::string& text) {
  const std::size_t end = text.rfind("checksum ");
  const std::string body = text.substr(0, end);
  return body + fmt::format("checksum {:016x}\n", ChecksumOf(body));
}

/// Returns the message with which a text is refused; empty if it is accepted.
std::string Refusal(const std::string& text) {
  try {
    ParsePlan(text, "file");
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(PlanFileTest, RandomPlansSurviveExactly) {
  PlanRandom random(1);
  for (int k = 0; k < PlanCaseCount(300); ++k) {
    Plan plan = HardPlan(&random);
    if (random.OneIn(2)) {
      plan.machine.slowdown_by_in = 1.25;
      plan.machine.handover_ns = k;
    }
    const std::string text = FormatPlan(plan);
    const Plan read = ParsePlan(text, "text");
    ASSERT_TRUE(read == plan) << text;
    ASSERT_EQ(FormatPlan(read), text);
    ASSERT_TRUE(CheckPlan(read).empty()) << text;
  }
}

TEST(PlanFileTest, EverySingleBitCounts) {
  PlanRandom random(2);
  for (const Kind kind : {Kind::kPlain, Kind::kReplays}) {
    const std::string text = FormatPlan(HardPlan(&random, kind));
    for (std::size_t i = 0; i < 8 * text.size(); ++i) {
      std::string changed = text;
      const unsigned char byte = static_cast<unsigned char>(changed[i / 8]) ^ (1U << i % 8);
      changed[i / 8] = static_cast<char>(byte);
      ASSERT_NE(Refusal(changed), "") << "byte " << i / 8 << ", bit " << i % 8 << " of\n" << text;
    }
  }
}

TEST(PlanFileTest, EveryTruncationIsRefused) {
  PlanRandom random(3);
  std::string text;
  for (const Kind kind : {Kind::kPlain, Kind::kReplays}) {
    text = FormatPlan(HardPlan(&random, kind));
    for (std::size_t length = 0; length < text.size(); ++length) {
      ASSERT_NE(Refusal(text.substr(0, length)), "") << length << " bytes of\n" << text;
    }
  }
  EXPECT_EQ(Refusal(""), "file: the file is empty; a plan begins with the line \"plan 2\"");
  EXPECT_NE(Refusal(text.substr(0, text.rfind("checksum"))).find("cut off"), std::string::npos);
}

TEST(PlanFileTest, TrailingGarbageIsRefused) {
  PlanRandom random(4);
  const std::string text = FormatPlan(HardPlan(&random));
  for (const std::string& more :
       {std::string("\n"), std::string("x"), std::string(1, '\0'), text}) {
    EXPECT_NE(Refusal(text + more).find("follows the checksum"), std::string::npos) << more;
  }
}

constexpr const char* kTiny =
    "plan 2\n"
    "planner none\n"
    "signature 0123456789abcdef\n"
    "machine h200 4000 4000 55000000000 55000000000 49000000000 49000000000\n"
    "limit 512 1024\n"
    "footprint 5 0\n"
    "iteration cyclic 3 1 4 100\n"
    "n relu\n"
    "v 7 5 0 2 activation F 1\n"
    "x 20 F 0 1 as:80000001 - 0\n"
    "r 0 0 2 0 - -\n"
    "e 0 -\n"
    "q compute 0\n"
    "checksum 0\n";

TEST(PlanFileTest, TheFormatIsAsDocumented) {
  const Plan plan = ParsePlan(Seal(kTiny), "tiny");
  EXPECT_TRUE(CheckPlan(plan).empty());
  EXPECT_EQ(plan.signature, 0x0123456789abcdefU);
  EXPECT_EQ(plan.problem.variables[0].id, 7);
  EXPECT_EQ(plan.problem.ops[0].traits, (OpTraits{true, true, 0x80000001}));
  EXPECT_EQ(plan.problem.op_names[0], "relu");
  EXPECT_EQ(plan.problem.writes(plan.problem.ops[0])[0].variable, 0);
  EXPECT_EQ(FormatPlan(plan), Seal(kTiny));
  EXPECT_NE(Refusal(kTiny).find(":14: the checksum is"), std::string::npos) << Refusal(kTiny);
}

TEST(PlanFileTest, TheExamplesInTheDocumentAreRight) {
  std::ifstream in(PLIMSOLL_DATA_DIR "/../docs/formats.md");
  const std::string document{std::istreambuf_iterator<char>(in), {}};
  std::size_t begin = 0;
  for (const bool replays : {false, true}) {
    begin = document.find("```\nplan 2\n", begin) + 4;
    const std::string text = document.substr(begin, document.find("```", begin) - begin);
    const Plan plan = ParsePlan(text, "formats.md");
    EXPECT_TRUE(CheckPlan(plan).empty());
    EXPECT_EQ(plan.rewriting.has_value(), replays);
    EXPECT_EQ(plan.signature, Signature(replays ? plan.rewriting->original : plan.problem));
    EXPECT_EQ(FormatPlan(plan), text);
  }
}

TEST(PlanFileTest, BadLinesAreNamed) {
  const std::string kRecorded = "recorded cyclic 3 1 4 100\n";
  const struct {
    std::string from;
    std::string to;
    std::string expected;
  } cases[] = {
      {"plan 2", "plan 1", ":1: unsupported version \"1\""},
      {"plan 2", "plan 3", ":1: unsupported version \"3\""},
      {"plan 2", "trace 1", ":1: not a plan"},
      {"planner none", "planner no%2", ":2:"},
      {"signature 0123456789abcdef", "signature 0123456789ABCDEF", ":3:"},
      {"h200 4000", "h200 -1", ":4: the latency out is \"-1\""},
      {" 55000000000 49", " 0 49", ":4: every bandwidth"},
      {" 55000000000 49", " nan 49", ":4: every bandwidth"},
      {" 55000000000 49", " x 49", ":4: the bandwidth in is"},
      {"49000000000\nlimit", "59000000000\nlimit", ":4: a direction cannot be faster"},
      {"49000000000\nlimit", "49000000000 0.5 1 0\nlimit", ":4: ops can only be slower"},
      {"49000000000\nlimit", "49000000000 1 11 0\nlimit", ":4: ops can only be slower"},
      {"49000000000\nlimit", "49000000000 1 1 -1\nlimit", ":4: the time of a handover is"},
      {"49000000000\nlimit", "49000000000 1 1\nlimit", ":4: the field for the time of a handover"},
      {"limit 512", "limit 4611686018427387905", ":5: the limit is"},
      {"limit 512 1024", "limit 512", ":5: the field for the limit on the host is missing"},
      {"limit 512 1024", "limit 512 1024 7", ":5: too many fields"},
      {"cyclic 3", "ever 3", ":7:"},
      {"cyclic 3 1", "cyclic 0 1", ":7: the period"},
      {"cyclic 3 1", "cyclic 3 0", ":7: the iterations planned"},
      {"cyclic 3 1", "cyclic 1099511627776 1", ":14: the iteration has 1099511627776 positions"},
      {"v 7 5", "v 7 4611686018427387904", ":9: the size"},
      {"v 7 5", "v 7 99999999999999999999999", ":9: the size"},
      {"v 7 5 0 2 activation", "v 7 5 0 2 creation", ":9: unknown kind"},
      {"x 20 F", "x 20 X", ":10: unknown phase"},
      {"x 20 F 0", "x 20 F 1", ":10: the op has name 1 of 1"},
      {"x 20 F", "x 999999999999999999 F", ":10: the durations"},
      {" - 0\n", " - 0,\n", ":10:"},
      {" - 0\n", " - 0@0\n", ":10:"},
      {" - 0\n", " - 0@9999999\n", ":10:"},
      {" - 0\n", " - \n", ":10:"},
      {"as:80000001", "sa:80000001", ":10: the traits are"},
      {"as:80000001", "as:8000000A", ":10: the traits are"},
      {"as:80000001", "as:1", ":10: the traits are"},
      {"as:80000001", "as:00000000", ":10: the traits are"},
      {"as:80000001", "as:", ":10: the traits are"},
      {"as:80000001", "a-", ":10: the traits are"},
      {"r 0 0", "s ops 0\nr 0 0", ":11: sources are in a recorded iteration"},
      {"r 0 0", "recorded ever 3 1 4 100\nr 0 0", ":11:"},
      {"r 0 0", kRecorded + kRecorded + "r 0 0", ":12: a plan is made from one recorded"},
      {"r 0 0", kRecorded + "s ops 0@2\nr 0 0", ":12: only ops run again"},
      {"r 0 0", kRecorded + "s variables 0@1\nr 0 0", ":12: only ops run again"},
      {"r 0 0", kRecorded + "s names 0\nr 0 0", ":12: unknown sources"},
      {"r 0 0", kRecorded + "x 20 F 0 1 - - 0\nr 0 0", ":12: the op has name 0 of 0"},
      {"r 0 0", kRecorded + "s ops 0\nn relu\nr 0 0", ":13: \"n\" comes too late"},
      {"r 0 0", "recorded once 100 1 0 0\nr 0 0", ":15: the iteration has 100 positions"},
      {"e 0 -\n", "e 0 -\n" + kRecorded, ":13: \"recorded\" comes too late"},
      {"r 0", "w 0", ":11: unknown line \"w\""},
      {"r 0", "r -1", ":11: the variable is"},
      {"r 0", "r 4294967296", ":11: the variable is"},
      {"e 0 -\n", "e 0 -\nv 8 5 0 2 activation F 1\n", ":13: \"v\" comes too late"},
      {"q compute", "q think", ":13: unknown queue"},
      {"q compute 0", "q compute 0@1", ":13:"},
      {"q compute", "\nq compute", ":13:"},
  };
  for (const auto& [from, to, expected] : cases) {
    std::string text = kTiny;
    const std::size_t place = text.find(from);
    ASSERT_NE(place, std::string::npos) << from;
    const std::string message = Refusal(Seal(text.replace(place, from.size(), to)));
    EXPECT_NE(message.find("file" + expected), std::string::npos) << to << ": " << message;
  }
}

TEST(PlanFileTest, EndlessCopiesAreRefused) {
  std::string text = kTiny;
  text.replace(text.find("55000000000 55000000000 49000000000 49000000000"), 47,
               "1000 1000 1000 1000");
  text.replace(text.find("v 7 5"), 5, "v 7 4000000000000000");
  text.replace(text.find("e 0 -\n"), 6, "e 0 -\no 0 0 -\n");
  EXPECT_NE(Refusal(Seal(text)).find("15 years"), std::string::npos);
}

/// Changes a number, a word or a line at random, and seals the result.
std::string Damage(std::string text, PlanRandom* random) {
  const std::vector<std::string> words = {"0",
                                          "1",
                                          "2",
                                          "3",
                                          "7",
                                          "40",
                                          "1048576",
                                          "2147483645",
                                          "1099511627776",
                                          "4611686018427387903",
                                          "-",
                                          "0@1",
                                          "1@1048576",
                                          "0,1,2,3,4,5",
                                          "0@1,1,2@1",
                                          "a:00000001",
                                          "once",
                                          "workspace"};
  const std::size_t body = text.find("\nlimit");
  const std::size_t end = text.rfind("checksum ");
  for (std::int64_t k = random->Between(1, 4); k > 0; --k) {
    const std::size_t at = text.find_first_of(" \n", body + random->Index(end - body));
    if (at >= text.rfind("checksum ") - 1) continue;
    if (random->OneIn(4)) {  // Doubles or removes a line.
      const std::size_t begin = text.rfind('\n', at) + 1;
      const std::size_t length = text.find('\n', at) + 1 - begin;
      const std::string line = text.substr(begin, length);
      text.replace(begin, length, random->OneIn(2) ? "" : line + line);
    } else if (text[at] == ' ') {
      const std::size_t length = text.find_first_of(" \n", at + 1) - at - 1;
      text.replace(at + 1, length, words[random->Index(words.size())]);
    }
  }
  return Seal(text);
}

TEST(PlanFileTest, WhateverIsReadCanBeChecked) {
  PlanRandom random(5);
  int read = 0;
  int with_replays = 0;
  for (int k = 0; k < PlanCaseCount(3000); ++k) {
    const std::string text = Damage(FormatPlan(HardPlan(&random)), &random);
    try {
      const Plan plan = ParsePlan(text, "damaged");
      ++read;
      with_replays += plan.rewriting ? 1 : 0;
      static_cast<void>(CheckPlan(plan));
    } catch (const InputError&) {
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_GT(with_replays, 0);
}

class PlanFileDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "plimsoll-plan-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string Content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

TEST_F(PlanFileDiskTest, PlainAndCompressedFilesRead) {
  PlanRandom random(6);
  const Plan plan = HardPlan(&random);
  WritePlan(plan, Path("a.plan"));
  WritePlan(plan, Path("a.plan.gz"));
  EXPECT_EQ(Content(Path("a.plan")), FormatPlan(plan));
  EXPECT_EQ(Content(Path("a.plan.gz")).substr(0, 2), "\x1f\x8b");
  EXPECT_TRUE(ReadPlan(Path("a.plan")) == plan);
  EXPECT_TRUE(ReadPlan(Path("a.plan.gz")) == plan);
  const std::string compressed = Content(Path("a.plan.gz"));
  for (std::size_t length = 2; length < compressed.size(); ++length) {
    std::ofstream(Path("cut.gz"), std::ios::binary) << compressed.substr(0, length);
    EXPECT_THROW(ReadPlan(Path("cut.gz")), InputError) << length;
  }
}

TEST_F(PlanFileDiskTest, AFailedWriteLeavesTheOldPlan) {
  PlanRandom random(7);
  const Plan plan = HardPlan(&random);
  fs::create_directory(folder_ / "taken");
  EXPECT_THROW(WritePlan(plan, Path("taken")), FileError);
  EXPECT_THROW(WritePlan(plan, Path("missing/a.plan")), FileError);
  EXPECT_THROW(ReadPlan(Path("missing")), InputError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  if (fs::exists("/dev/full")) {
    EXPECT_THROW(WritePlan(plan, "/dev/full"), FileError);
  }
}

}  // namespace
}  // namespace plimsoll::plan
