// SPDX-License-Identifier: Apache-2.0
// What an interrupt leaves behind.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli_for_test.h"
#include "tests/plan_row_for_test.h"

namespace plimsoll {
namespace {

class InterruptCliTest : public CliTest {
 protected:
  /// Interrupts a command that prints rows as JSON, and returns those that it has.
  Json InterruptForRows(const class Child& child) const;
};

/// A command line in a process of its own.
class Child {
 public:
  Child(const std::vector<std::string>& arguments, const std::string& out, const std::string& err) {
    pid_ = fork();
    if (pid_ != 0) return;
    std::vector<char*> argv = {const_cast<char*>(PLIMSOLL_BINARY)};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    execv(PLIMSOLL_BINARY, argv.data());
    _exit(127);
  }

  /// Waits until the process has a handler of its own for SIGINT, or, once it has been interrupted,
  /// until it has none any more. False if it ended first.
  bool WaitForHandler(bool present) const {
    while (true) {
      std::ifstream status(fmt::format("/proc/{}/status", pid_));
      std::string word;
      while (status >> word && word != "SigCgt:") {
        if (word == "State:" && status >> word && word == "Z") return false;
      }
      if (!(status >> word)) return false;
      const std::uint64_t caught = std::stoull(word, nullptr, 16);
      if (((caught >> (SIGINT - 1) & 1) != 0) == present) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void Signal() const { kill(pid_, SIGINT); }
  int Wait() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return status;
  }

 private:
  pid_t pid_ = -1;
};

Json InterruptCliTest::InterruptForRows(const Child& child) const {
  child.Signal();
  const int status = child.Wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << Read("stderr");
  EXPECT_NE(Read("stderr").find("interrupted"), std::string::npos);
  return Json::parse(Read("stdout"));
}

TEST_F(InterruptCliTest, AnInterruptKeepsTheBestPlanSoFar) {
  if (!fs::exists("/proc/self/status")) GTEST_SKIP() << "needs /proc";
  const Child child({"plan", kVgg, "--limit", "60%", "--json", "-o", Path("a.plan")},
                    Path("stdout"), Path("stderr"));
  ASSERT_TRUE(child.WaitForHandler(true));
  child.Signal();
  const int status = child.Wait();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << Read("stderr");
  EXPECT_NE(Read("stderr").find("interrupted: the best plan so far is kept"), std::string::npos);
  ExpectRow(Json::parse(Read("stdout")));
  EXPECT_EQ(Run("check " + Path("a.plan") + " --trace " + kVgg).exit_code, 0);
}

TEST_F(InterruptCliTest, AnInterruptedTrainingKeepsThePlanAndTheWeights) {
  if (!fs::exists("/proc/self/status")) GTEST_SKIP() << "needs /proc";
  const Child child({"plan", kVgg, "--limit", "60%", "--planner", "dqn", "--budget", "600",
                     "--json", "-o", Path("a.plan"), "--weights-out", Path("a.weights")},
                    Path("stdout"), Path("stderr"));
  ASSERT_TRUE(child.WaitForHandler(true));
  child.Signal();
  const int status = child.Wait();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << Read("stderr");
  ExpectRow(Json::parse(Read("stdout")));
  EXPECT_EQ(Run("check " + Path("a.plan") + " --trace " + kVgg).exit_code, 0);
  EXPECT_EQ(FileCount(), 4U) << "the plan, the weights and what was printed";
  const Result again = Run("plan " + kVgg + " --limit 60% --planner dqn --evaluations 50 --json" +
                           " --weights-in " + Path("a.weights"));
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(InterruptCliTest, InterruptedChainsShowTheirRows) {
  if (!fs::exists("/proc/self/status")) GTEST_SKIP() << "needs /proc";
  const std::string chain = PLIMSOLL_DATA_DIR "/chains/resnet18_b32_s224.json";
  const Child child({"chain", chain, "--limits", "100000", "--planners", "rotor", "--json"},
                    Path("stdout"), Path("stderr"));
  ASSERT_TRUE(child.WaitForHandler(true));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Json rows = InterruptForRows(child);
  EXPECT_GE(rows.size(), 1U);
  EXPECT_LT(rows.size(), 100'000U);
}

TEST_F(InterruptCliTest, AnInterruptedComparisonShowsItsRows) {
  if (!fs::exists("/proc/self/status")) GTEST_SKIP() << "needs /proc";
  const Child child(
      {"compare", kVgg, "--limits", "70%,60%", "--planners", "autoswap-bo,autoswap-aoa", "--json"},
      Path("stdout"), Path("stderr"));
  ASSERT_TRUE(child.WaitForHandler(true));
  const Json rows = InterruptForRows(child);
  ASSERT_EQ(rows.size(), 1U);
  ExpectRow(rows[0]);
}

TEST_F(InterruptCliTest, ASecondInterruptKills) {
  if (!fs::exists("/proc/self/status")) GTEST_SKIP() << "needs /proc";
  const std::string trace = PLIMSOLL_DATA_DIR "/traces/resnet50_b64.trace.gz";
  const Child child({"plan", trace, "--limit", "60%"}, Path("stdout"), Path("stderr"));
  ASSERT_TRUE(child.WaitForHandler(true));
  child.Signal();
  ASSERT_TRUE(child.WaitForHandler(false));
  child.Signal();
  const int status = child.Wait();
  EXPECT_TRUE(WIFSIGNALED(status)) << Read("stderr");
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

}  // namespace
}  // namespace plimsoll
