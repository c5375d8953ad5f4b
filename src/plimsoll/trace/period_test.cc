// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/trace/period.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/trace/generate.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::trace {
namespace {

/// Writes a trace by hand: variables get numbers as they come.
class Script {
 public:
  VariableIndex Preexisting(Bytes size_bytes) { return Declare(size_bytes, true); }
  VariableIndex Malloc(Bytes size_bytes) {
    const VariableIndex variable = Declare(size_bytes, false);
    trace_.events.push_back({EventKind::kMalloc, variable});
    return variable;
  }
  void Free(VariableIndex variable) { trace_.events.push_back({EventKind::kFree, variable}); }
  void Exec(const std::string& name, const std::vector<VariableIndex>& reads,
            const std::vector<VariableIndex>& writes) {
    Op op;
    op.name = static_cast<std::int32_t>(trace_.op_names.size());
    trace_.op_names.push_back(name);
    op.first_operand = static_cast<std::int64_t>(trace_.operands.size());
    op.read_count = static_cast<std::int32_t>(reads.size());
    op.write_count = static_cast<std::int32_t>(writes.size());
    trace_.operands.insert(trace_.operands.end(), reads.begin(), reads.end());
    trace_.operands.insert(trace_.operands.end(), writes.begin(), writes.end());
    trace_.events.push_back({EventKind::kExec, static_cast<OpIndex>(trace_.ops.size())});
    trace_.ops.push_back(op);
  }
  EventIndex now() const { return static_cast<EventIndex>(trace_.events.size()); }
  const Trace& trace() const { return trace_; }

 private:
  VariableIndex Declare(Bytes size_bytes, bool preexisting) {
    const auto index = static_cast<VariableIndex>(trace_.variables.size());
    trace_.variables.push_back({index, size_bytes, preexisting});
    return index;
  }

  Trace trace_;
};

/// Feeds the first `count` events of a trace to a detector, and calls `after` after each of them.
void Watch(const Trace& trace, std::size_t count, PeriodDetector* detector,
           const std::function<void(EventIndex)>& after = {}) {
  for (std::size_t v = 0; v < trace.variables.size() && trace.variables[v].preexisting; ++v) {
    detector->Declare(static_cast<VariableIndex>(v), trace.variables[v].size_bytes);
  }
  for (std::size_t e = 0; e < count; ++e) {
    const Event& event = trace.events[e];
    const auto index = static_cast<std::size_t>(event.index);
    switch (event.kind) {
      case EventKind::kMalloc:
        detector->Malloc(event.index, trace.variables[index].size_bytes);
        break;
      case EventKind::kFree:
        detector->Free(event.index);
        break;
      case EventKind::kExec: {
        const Op& op = trace.ops[index];
        const std::string& name = trace.op_names[static_cast<std::size_t>(op.name)];
        detector->Exec(std::hash<std::string>{}(name), trace.reads(op), trace.writes(op));
        break;
      }
    }
    if (after) after(static_cast<EventIndex>(e));
  }
}

EventIndex Count(const Trace& trace) { return static_cast<EventIndex>(trace.events.size()); }

/// The distance of the last two marks, or of a mark and the end of the trace.
EventIndex Distance(const Trace& trace, std::size_t mark) {
  const auto& marks = trace.iteration_marks;
  return (mark + 1 < marks.size() ? marks[mark + 1] : Count(trace)) - marks[mark];
}

TEST(PeriodTest, NothingHasNoPeriod) {
  EXPECT_FALSE(FindPeriod({}));
  PeriodDetector detector;
  EXPECT_FALSE(detector.Current());
  EXPECT_FALSE(detector.Longest());
  EXPECT_EQ(detector.event_count(), 0);
}

TEST(PeriodTest, IsTheDistanceOfTheMarksInGeneratedTraces) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const int layers : {1, 2, 7, 30}) {
      for (const int iterations : {2, 3, 6}) {
        const Trace trace =
            GenerateTrace({.seed = seed, .layers = layers, .iterations = iterations});
        const std::optional<Period> period = FindPeriod(trace);
        ASSERT_TRUE(period) << "seed " << seed << ", " << layers << " layers";
        EXPECT_EQ(*period, (Period{Distance(trace, 0), 0, Count(trace)}));
        EXPECT_EQ(period->iterations(), iterations);
      }
    }
  }
}

TEST(PeriodTest, OneIterationIsNoPeriod) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_FALSE(FindPeriod(GenerateTrace({.seed = seed, .layers = 12, .iterations = 1})))
        << "seed " << seed;
  }
}

TEST(PeriodTest, BeginsAfterADifferingFirstIteration) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = GenerateTrace({.seed = seed, .iterations = 4, .differing_first = true});
    const std::optional<Period> period = FindPeriod(trace);
    ASSERT_TRUE(period) << "seed " << seed;
    EXPECT_EQ(period->length, Distance(trace, 1)) << "seed " << seed;
    EXPECT_EQ(period->end, Count(trace));
    // What the first iteration does after setting up is like the others.
    EXPECT_LE(period->begin, trace.iteration_marks[1]);
    EXPECT_GE(period->begin, Distance(trace, 0) - Distance(trace, 1));
  }
}

TEST(PeriodTest, EndsBeforeADifferingLastIteration) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = GenerateTrace({.seed = seed, .iterations = 4, .differing_last = true});
    const std::optional<Period> period = FindPeriod(trace);
    ASSERT_TRUE(period) << "seed " << seed;
    EXPECT_EQ(period->length, Distance(trace, 0));
    EXPECT_EQ(period->iterations(), 3);
    EXPECT_EQ(period->begin, 0);
    EXPECT_GE(period->end, trace.iteration_marks[3]);
    EXPECT_LT(period->end, Count(trace));
  }
}

TEST(PeriodTest, TwoAlikeIterationsBetweenDifferingOnesAreEnough) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = GenerateTrace(
        {.seed = seed, .iterations = 4, .differing_first = true, .differing_last = true});
    const std::optional<Period> period = FindPeriod(trace);
    ASSERT_TRUE(period) << "seed " << seed;
    EXPECT_EQ(period->length, Distance(trace, 1));
    EXPECT_GE(period->iterations(), 2);
  }
}

TEST(PeriodTest, IsNoneIfNoTwoIterationsAreAlike) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace =
        GenerateTrace({.seed = seed, .layers = 30, .iterations = 6, .stochastic = true});
    EXPECT_FALSE(FindPeriod(trace)) << "seed " << seed;
  }
}

TEST(PeriodTest, SeesThroughARotatingVariable) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const int iterations : {2, 3, 5}) {
      const Trace trace =
          GenerateTrace({.seed = seed, .layers = 6, .iterations = iterations, .rotating = true});
      const std::optional<Period> period = FindPeriod(trace);
      ASSERT_TRUE(period) << "seed " << seed;
      EXPECT_EQ(*period, (Period{Distance(trace, 0), 0, Count(trace)})) << "seed " << seed;
    }
  }
}

TEST(PeriodTest, TwoIterationsAreEnoughEvenIfTheFirstFreesWhatWasThereBefore) {
  const Trace trace = ParseTrace(
      "trace 1\n{}\np 0 1\np 3 3\np 6 3\n"
      "x 1.00 F op 0 0\nm 1 3\nf 6\nm 7 3\nf 3\nm 4 3\nf 1\n"
      "x 1.00 F op 0 0\nm 2 3\nf 7\nm 8 3\nf 4\nm 5 3\nf 2\n",
      "test");
  EXPECT_EQ(FindPeriod(trace), (Period{7, 0, 14}));
}

TEST(PeriodTest, IsNotFooledByEqualLayers) {
  // Forty layers that differ in nothing but their weights.
  Script script;
  std::vector<VariableIndex> weights;
  for (int layer = 0; layer < 40; ++layer) weights.push_back(script.Preexisting(100));
  const VariableIndex input = script.Preexisting(1000);
  for (int iteration = 0; iteration < 3; ++iteration) {
    std::vector<VariableIndex> outputs = {input};
    for (const VariableIndex weight : weights) {
      const VariableIndex output = script.Malloc(1000);
      script.Exec("layer", {outputs.back(), weight}, {output});
      outputs.push_back(output);
    }
    for (std::size_t layer = weights.size(); layer > 0; --layer) {
      script.Exec("backward", {outputs[layer]}, {weights[layer - 1]});
      script.Free(outputs[layer]);
    }
  }
  EXPECT_EQ(FindPeriod(script.trace()), (Period{160, 0, 480}));
}

TEST(PeriodTest, NeedsNoOpsEvenIfEverySizeOccursTwice) {
  // The last event of the same make is never a whole iteration ago.
  Script script;
  for (int iteration = 0; iteration < 4; ++iteration) {
    for (const Bytes size : {100, 200, 300, 100, 300, 200}) {
      const VariableIndex first = script.Malloc(size);
      const VariableIndex second = script.Malloc(size);
      script.Free(first);
      script.Free(second);
    }
  }
  EXPECT_EQ(FindPeriod(script.trace()), (Period{24, 0, 96}));
}

/// Four micro-batches and one update an iteration, with `layers` layers.
Trace AccumulateGradients(int iterations, int layers) {
  Script script;
  std::vector<VariableIndex> weights;
  std::vector<VariableIndex> gradients;
  for (int layer = 0; layer < layers; ++layer) {
    weights.push_back(script.Preexisting(4000 + 4 * layer));
    gradients.push_back(script.Preexisting(4000 + 4 * layer));
  }
  const VariableIndex input = script.Preexisting(8000);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
      std::vector<VariableIndex> outputs = {input};
      for (const VariableIndex weight : weights) {
        const VariableIndex output = script.Malloc(1000);
        script.Exec("forward", {outputs.back(), weight}, {output});
        outputs.push_back(output);
      }
      for (std::size_t layer = weights.size(); layer > 0; --layer) {
        script.Exec("backward", {outputs[layer], weights[layer - 1]}, {gradients[layer - 1]});
        script.Free(outputs[layer]);
      }
    }
    for (std::size_t layer = 0; layer < weights.size(); ++layer) {
      script.Exec("update", {gradients[layer]}, {weights[layer]});
    }
  }
  return script.trace();
}

TEST(PeriodTest, OfAccumulatedGradientsIsTheOuterOne) {
  for (const int layers : {1, 3, 10, 40}) {
    for (const int iterations : {2, 3, 5}) {
      const EventIndex length = 17 * layers;
      EXPECT_EQ(FindPeriod(AccumulateGradients(iterations, layers)),
                (Period{length, 0, iterations * length}))
          << layers << " layers, " << iterations << " iterations";
    }
  }
}

TEST(PeriodTest, ALeakIsNoPeriod) {
  for (const Bytes leaked_bytes : {8, 0}) {
    Script script;
    const VariableIndex weight = script.Preexisting(100);
    for (int iteration = 0; iteration < 5; ++iteration) {
      const VariableIndex output = script.Malloc(1000);
      script.Exec("forward", {weight}, {output});
      script.Malloc(leaked_bytes);
      script.Exec("backward", {output}, {weight});
      script.Free(output);
    }
    EXPECT_FALSE(FindPeriod(script.trace())) << "leaks " << leaked_bytes << " bytes";
  }
}

TEST(PeriodTest, WhatIsUsedElsewhereDoesNotCorrespond) {
  // The same ops on the same sizes, but every iteration reads another weight.
  Script script;
  std::vector<VariableIndex> weights;
  for (int i = 0; i < 6; ++i) weights.push_back(script.Preexisting(100));
  for (const VariableIndex weight : weights) {
    const VariableIndex output = script.Malloc(1000);
    script.Exec("forward", {weight}, {output});
    script.Free(output);
  }
  EXPECT_FALSE(FindPeriod(script.trace()));
}

TEST(PeriodTest, AShortLoopInALongStreamIsNoPeriod) {
  Script script;
  const VariableIndex weight = script.Preexisting(100);
  for (Bytes size = 1; size <= 100; ++size) script.Free(script.Malloc(size));
  for (int iteration = 0; iteration < 10; ++iteration) {
    const VariableIndex output = script.Malloc(1000);
    script.Exec("forward", {weight}, {output});
    script.Free(output);
  }
  EXPECT_FALSE(FindPeriod(script.trace()));
}

TEST(PeriodTest, CurrentAppearsWithTheEndOfTheSecondIteration) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Trace trace = GenerateTrace({.seed = seed, .layers = 20, .iterations = 5});
    const EventIndex length = Distance(trace, 0);
    PeriodDetector detector;
    EventIndex appeared = -1;
    Watch(trace, trace.events.size(), &detector, [&](EventIndex e) {
      const std::optional<Period> current = detector.Current();
      if (appeared < 0 && current) appeared = e;
      if (appeared < 0) return;
      ASSERT_TRUE(current) << "lost at event " << e;
      ASSERT_EQ(current->length, length) << "at event " << e;
      ASSERT_EQ(current->end, e + 1);
      ASSERT_GE(current->begin, 0);
      ASSERT_GE(current->iterations(), 2);
    });
    EXPECT_GE(appeared, 2 * length - 1) << "seed " << seed;
    EXPECT_LT(appeared, 2 * length + length / 4) << "seed " << seed;
  }
}

TEST(PeriodTest, CurrentDisappearsWithTheFirstEventThatDiffers) {
  const Trace trace = GenerateTrace({.seed = 3, .iterations = 4});
  PeriodDetector detector;
  Watch(trace, static_cast<std::size_t>(trace.iteration_marks[3]), &detector);
  ASSERT_TRUE(detector.Current());
  const Period before = *detector.Current();
  detector.Malloc(static_cast<VariableIndex>(trace.variables.size()), 123457);
  EXPECT_FALSE(detector.Current());
  // What it was is not forgotten.
  ASSERT_TRUE(detector.Longest());
  EXPECT_EQ(detector.Longest()->length, before.length);
  EXPECT_EQ(detector.Longest()->end, before.end);
  EXPECT_LE(detector.Longest()->begin, before.begin);
}

TEST(PeriodTest, CurrentComesBackAfterADifferingIteration) {
  Script script;
  const VariableIndex weight = script.Preexisting(100);
  const auto train = [&] {
    std::vector<VariableIndex> outputs;
    for (int layer = 0; layer < 10; ++layer) {
      outputs.push_back(script.Malloc(1000 + layer));
      script.Exec("forward", {weight}, {outputs.back()});
    }
    for (const VariableIndex output : outputs) script.Free(output);
  };
  for (int iteration = 0; iteration < 3; ++iteration) train();
  script.Free(script.Malloc(77));
  const auto broken = static_cast<EventIndex>(script.now());
  for (int iteration = 0; iteration < 3; ++iteration) train();
  PeriodDetector detector;
  EventIndex back = -1;
  Watch(script.trace(), script.trace().events.size(), &detector, [&](EventIndex e) {
    if (e >= broken && back < 0 && detector.Current()) back = e;
  });
  EXPECT_GE(back, broken + 59);
  EXPECT_LE(back, broken + 65);
}

TEST(PeriodTest, OfRecordedTracesIsTheDistanceOfTheirMarks) {
  for (const char* name :
       {"alexnet_b256", "kmeans_1m", "lstm_b64_t512", "resnet18_b100", "resnet50_b64",
        "unet_b8_256", "vgg11_cifar_b100", "vgg16_cifar_b100", "vit_b_16_b32"}) {
    const Trace trace = ReadTrace(std::string(PLIMSOLL_DATA_DIR "/traces/") + name + ".trace.gz");
    ASSERT_GE(trace.iteration_marks.size(), 2U);
    const std::optional<Period> period = FindPeriod(trace);
    ASSERT_TRUE(period) << name;
    EXPECT_EQ(period->length, Distance(trace, 0)) << name;
    EXPECT_EQ(period->iterations(), static_cast<std::int64_t>(trace.iteration_marks.size()))
        << name;
  }
}

TEST(PeriodTest, OfStochasticDepthIsNone) {
  EXPECT_FALSE(FindPeriod(ReadTrace(PLIMSOLL_DATA_DIR "/traces/sdresnet110_cifar_b100.trace.gz")));
}

}  // namespace
}  // namespace plimsoll::trace
