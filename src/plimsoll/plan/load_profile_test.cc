// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/load_profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/place/brute_force_for_test.h"
#include "plimsoll/trace/generate.h"
#include "plimsoll/trace/reader.h"
#include "plimsoll/trace/writer.h"

namespace plimsoll::plan {
namespace {

const std::vector<std::string> kRepeating = {
    "alexnet_b256", "kmeans_1m",        "lstm_b64_t512",    "resnet18_b100", "resnet50_b64",
    "unet_b8_256",  "vgg11_cifar_b100", "vgg16_cifar_b100", "vit_b_16_b32"};

trace::Trace ReadRecorded(const std::string& name) {
  return trace::ReadTrace(PLIMSOLL_DATA_DIR "/traces/" + name + ".trace.gz");
}

/// The load after each event of a trace.
std::vector<Bytes> Replay(const trace::Trace& trace) {
  Bytes load = 0;
  for (const trace::Variable& variable : trace.variables) {
    if (variable.preexisting) load += variable.size_bytes;
  }
  std::vector<Bytes> loads;
  for (const trace::Event& event : trace.events) {
    if (event.kind != trace::EventKind::kExec) {
      const Bytes size = trace.variables[static_cast<std::size_t>(event.index)].size_bytes;
      load += event.kind == trace::EventKind::kMalloc ? size : -size;
    }
    loads.push_back(load);
  }
  return loads;
}

/// The part of the replay that the problem shows.
std::vector<Bytes> ReplaySteady(const trace::Trace& trace, const Problem& problem) {
  const std::vector<Bytes> loads = Replay(trace);
  const auto begin = loads.begin() + problem.first_event;
  return {begin, begin + problem.period};
}

/// What holds of every problem and its profile.
void CheckProfile(const Problem& problem) {
  const LoadProfile profile = ProfileLoad(problem);
  ASSERT_EQ(profile.load_bytes.size(), static_cast<std::size_t>(problem.period));
  ASSERT_EQ(profile.start_ns.size(), static_cast<std::size_t>(problem.period));
  const auto peak = std::max_element(profile.load_bytes.begin(), profile.load_bytes.end());
  ASSERT_EQ(profile.peak_bytes, *peak);
  ASSERT_EQ(profile.peak_position, peak - profile.load_bytes.begin());
  // A few positions, and always the first, the last and the peak.
  for (Position p = 0; p < problem.period; ++p) {
    if (p % 37 != 0 && p + 1 != problem.period && p != profile.peak_position) continue;
    Bytes sum = 0;
    Bytes last = kMaxBytes;
    for (const LiveVariable& live : LiveAt(problem, p)) {
      const Variable& v = problem.variables[static_cast<std::size_t>(live.variable)];
      ASSERT_GE(live.instances, 1);
      ASSERT_LE(live.instances, v.instances);
      ASSERT_LE(v.size_bytes * live.instances, last);
      last = v.size_bytes * live.instances;
      sum += last;
    }
    ASSERT_EQ(sum, profile.load_bytes[static_cast<std::size_t>(p)]) << "position " << p;
  }
  Nanoseconds time = 0;
  std::size_t next_op = 0;
  for (Position p = 0; p < problem.period; ++p) {
    ASSERT_EQ(profile.start_ns[static_cast<std::size_t>(p)], time) << "position " << p;
    if (next_op < problem.ops.size() && problem.ops[next_op].position == p) {
      time += problem.ops[next_op++].duration_ns;
    }
  }
  ASSERT_EQ(time, problem.iteration_ns());
}

void CheckBreakdown(const Problem& problem) {
  const LoadProfile profile = ProfileLoad(problem);
  const Breakdown breakdown = BreakDown(problem, profile);
  Group all;
  for (const Group& group : breakdown.kinds) {
    all.count += group.count;
    all.total_bytes += group.total_bytes;
    all.at_peak_bytes += group.at_peak_bytes;
  }
  Bytes total = 0;
  for (const Variable& variable : problem.variables) total += variable.size_bytes;
  EXPECT_EQ(all.count, static_cast<std::int64_t>(problem.variables.size()));
  EXPECT_EQ(all.total_bytes, total);
  EXPECT_EQ(all.at_peak_bytes, profile.peak_bytes);
  Group others = breakdown.kinds[static_cast<std::size_t>(VariableKind::kPersistent)];
  for (const Group& group : breakdown.phases) {
    others.count += group.count;
    others.total_bytes += group.total_bytes;
    others.at_peak_bytes += group.at_peak_bytes;
  }
  EXPECT_EQ(others.count, all.count);
  EXPECT_EQ(others.total_bytes, all.total_bytes);
  EXPECT_EQ(others.at_peak_bytes, all.at_peak_bytes);
  EXPECT_EQ(breakdown.phase_ops[0] + breakdown.phase_ops[1] + breakdown.phase_ops[2],
            static_cast<std::int64_t>(problem.ops.size()));
  EXPECT_EQ(breakdown.phase_ns[0] + breakdown.phase_ns[1] + breakdown.phase_ns[2],
            problem.iteration_ns());
}

TEST(LoadProfileTest, OfNothingIsZero) {
  const LoadProfile profile = ProfileLoad(MakeProblem({}));
  EXPECT_EQ(profile.load_bytes, (std::vector<Bytes>{0}));
  EXPECT_EQ(profile.peak_bytes, 0);
  EXPECT_TRUE(LiveAt({}, 0).empty());
}

TEST(LoadProfileTest, AddsUpWhatIsLive) {
  Problem problem;
  problem.period = 10;
  problem.variables = {
      {.id = 0, .size_bytes = 100, .begin = 0, .end = 10, .kind = VariableKind::kPersistent},
      {.id = 1, .size_bytes = 20, .begin = 2, .end = 7},
      {.id = 2, .size_bytes = 30, .begin = 6, .end = 12},                 // Around the end.
      {.id = 3, .size_bytes = 1, .begin = 5, .end = 18, .instances = 2},  // In two places.
      {.id = 4, .size_bytes = 4, .begin = 9, .end = 30, .instances = 3},
  };
  const LoadProfile profile = ProfileLoad(problem);
  EXPECT_EQ(profile.load_bytes,
            (std::vector<Bytes>{139, 139, 129, 129, 129, 130, 160, 140, 139, 143}));
  EXPECT_EQ(profile.peak_bytes, 160);
  EXPECT_EQ(profile.peak_position, 6);
  const std::vector<LiveVariable> live = LiveAt(problem, 6);
  ASSERT_EQ(live.size(), 5U);
  EXPECT_EQ(live[0].variable, 0);
  EXPECT_EQ(live[1].variable, 2);
  EXPECT_EQ(live[2].variable, 1);
  EXPECT_EQ(live[3].variable, 4);
  EXPECT_EQ(live[3].instances, 2);
  EXPECT_EQ(live[4].variable, 3);
  EXPECT_EQ(live[4].instances, 2);
  CheckProfile(problem);
}

TEST(LoadProfileTest, DoesNotGoAroundIfNothingRepeats) {
  Problem problem;
  problem.cyclic = false;
  problem.period = 4;
  problem.variables = {{.id = 0, .size_bytes = 5, .begin = 0, .end = 4},
                       {.id = 1, .size_bytes = 7, .begin = 2, .end = 3}};
  EXPECT_EQ(ProfileLoad(problem).load_bytes, (std::vector<Bytes>{5, 5, 12, 5}));
  EXPECT_EQ(LiveAt(problem, 2).size(), 2U);
  EXPECT_EQ(LiveAt(problem, 3).size(), 1U);
}

TEST(LoadProfileTest, IsThatOfTheReplayedEventsOfRecordedTraces) {
  for (const std::string& name : kRepeating) {
    SCOPED_TRACE(name);
    const trace::Trace trace = ReadRecorded(name);
    const Problem problem = MakeProblem(trace);
    ASSERT_TRUE(problem.cyclic);
    const LoadProfile profile = ProfileLoad(problem);
    EXPECT_TRUE(profile.load_bytes == ReplaySteady(trace, problem));
    // The recorder has counted too.
    const std::string key = "\"peak_load_bytes_all\": ";
    const std::size_t at = trace.metadata.find(key);
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(profile.peak_bytes, std::stoll(trace.metadata.substr(at + key.size())));
    CheckProfile(problem);
    CheckBreakdown(problem);
  }
}

TEST(LoadProfileTest, OfKMeansPeaksWhereItsPaperSays) {
  EXPECT_EQ(ProfileLoad(MakeProblem(ReadRecorded("kmeans_1m"))).peak_bytes, 2'308'065'536);
}

TEST(LoadProfileTest, IsThatOfAllEventsIfNothingRepeats) {
  const trace::Trace trace = ReadRecorded("sdresnet110_cifar_b100");
  const Problem problem = MakeProblem(trace);
  ASSERT_FALSE(problem.cyclic);
  EXPECT_TRUE(ProfileLoad(problem).load_bytes == Replay(trace));
  CheckProfile(problem);
  CheckBreakdown(problem);
}

TEST(LoadProfileTest, IsThatOfTheReplayedEventsOfGeneratedTraces) {
  for (unsigned flags = 0; flags < 16; ++flags) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE("flags " + std::to_string(flags) + ", seed " + std::to_string(seed));
      const trace::Trace trace = trace::GenerateTrace({.seed = seed,
                                                       .layers = 9,
                                                       .iterations = 5,
                                                       .differing_first = (flags & 1) != 0,
                                                       .differing_last = (flags & 2) != 0,
                                                       .stochastic = (flags & 4) != 0,
                                                       .rotating = (flags & 8) != 0});
      const Problem problem = MakeProblem(trace);
      EXPECT_TRUE(ProfileLoad(problem).load_bytes == ReplaySteady(trace, problem));
      CheckProfile(problem);
      CheckBreakdown(problem);
    }
  }
}

/// A trace of iterations that are all alike, in which variables live for up to three of them. What
/// was born before the first event is there from the beginning.
trace::Trace RandomRotation(place::TestRandom* random, int iterations) {
  const auto between = [&](int low, int high) {
    return static_cast<int>(random->Between(low, high));
  };
  const int count = between(1, 5);
  const int period = 2 * count + 1;
  std::vector<int> slots(static_cast<std::size_t>(2 * count));
  std::iota(slots.begin(), slots.end(), 1);
  for (std::size_t i = slots.size(); i > 1; --i) {
    std::swap(slots[i - 1], slots[static_cast<std::size_t>(between(0, static_cast<int>(i) - 1))]);
  }
  struct Line {
    int event;
    std::string text;
  };
  std::vector<Line> lines;
  std::string preexisting = "p 0 1\n";
  int id = 0;
  for (int v = 0; v < count; ++v) {
    const int born = slots[static_cast<std::size_t>(2 * v)];
    int freed = slots[static_cast<std::size_t>(2 * v + 1)];
    if (freed < born) freed += period;
    freed += period * (between(0, 3) == 0 ? between(0, 2) : 0);
    const std::string size = fmt::format(" {}\n", between(0, 3));
    for (int i = -4; i < iterations; ++i) {
      if (freed + i * period < 0) continue;
      const std::string name = std::to_string(++id);
      if (i < 0) {
        preexisting += "p " + name + size;
      } else {
        lines.push_back({born + i * period, "m " + name + size});
      }
      lines.push_back({freed + i * period, "f " + name + "\n"});
    }
  }
  for (int i = 0; i < iterations; ++i) lines.push_back({i * period, "x 1.00 F op 0 0\n"});
  std::sort(lines.begin(), lines.end(),
            [](const Line& a, const Line& b) { return a.event < b.event; });
  std::string text = "trace 1\n{}\n" + preexisting;
  for (const Line& line : lines) {
    if (line.event < iterations * period) text += line.text;
  }
  return trace::ParseTrace(text, "random");
}

TEST(LoadProfileTest, IsThatOfTheReplayedEventsWhateverRotates) {
  const int cases = place::CaseCount(4000);
  int cyclic = 0;
  for (int c = 0; c < cases; ++c) {
    place::TestRandom random(static_cast<std::uint64_t>(c));
    const trace::Trace trace = RandomRotation(&random, 2 + c % 7);
    SCOPED_TRACE("case " + std::to_string(c) + "\n" + trace::FormatTrace(trace));
    const Problem problem = MakeProblem(trace);
    ASSERT_TRUE(ProfileLoad(problem).load_bytes == ReplaySteady(trace, problem));
    CheckProfile(problem);
    ASSERT_FALSE(HasFatalFailure());
    cyclic += problem.cyclic ? 1 : 0;
  }
  EXPECT_GT(cyclic, cases / 2);
}

}  // namespace
}  // namespace plimsoll::plan
