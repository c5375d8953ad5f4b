// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/engine.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace plimsoll::plan {
namespace {

/// 2 bytes/ns out and 4 in; 1 and 2 while both directions are busy.
Machine Link() { return {"test", 0, 0, 2e9, 4e9, 1e9, 2e9}; }

/// The same with latencies of 10 ns out and 20 ns in.
Machine SlowLink() { return {"test", 10, 20, 2e9, 4e9, 1e9, 2e9}; }

/// Advances, and returns the time, or -1 if nothing was running.
Nanoseconds Advance(Engine* engine) { return engine->Advance() ? engine->now_ns() : -1; }

TEST(EngineTest, DoesNothingIfNothingRuns) {
  const Machine machine = Link();
  Engine engine(machine);
  EXPECT_FALSE(engine.Advance());
  EXPECT_EQ(engine.now_ns(), 0);
  engine.StartOp(5);
  EXPECT_TRUE(engine.Advance());
  EXPECT_FALSE(engine.Advance());
  EXPECT_EQ(engine.now_ns(), 5);
  EXPECT_FALSE(engine.ended(Queue::kCompute));
}

TEST(EngineTest, AnOpTakesItsDuration) {
  const Machine machine = Link();
  Engine engine(machine);
  engine.StartOp(70);
  EXPECT_TRUE(engine.busy(Queue::kCompute));
  EXPECT_EQ(Advance(&engine), 70);
  EXPECT_FALSE(engine.busy(Queue::kCompute));
  EXPECT_TRUE(engine.ended(Queue::kCompute));
  EXPECT_FALSE(engine.ended(Queue::kCopyOut));
  engine.StartOp(30);
  EXPECT_EQ(Advance(&engine), 100);
}

TEST(EngineTest, ACopyTakesItsLatencyAndThenMovesItsBytes) {
  const Machine machine = SlowLink();
  for (const auto& [queue, end_ns] :
       {std::pair{Queue::kCopyOut, 10 + 100 / 2}, std::pair{Queue::kCopyIn, 20 + 100 / 4}}) {
    Engine engine(machine);
    engine.StartCopy(queue, 100);
    EXPECT_EQ(Advance(&engine), end_ns) << Name(queue);
    EXPECT_TRUE(engine.ended(queue));
    EXPECT_FALSE(engine.busy(queue));
  }
}

TEST(EngineTest, ACopyAloneTakesWhatTheMachineSays) {
  for (const Machine& machine : MachinePresets()) {
    for (const Bytes bytes :
         {Bytes{0}, Bytes{1}, Bytes{4096}, Bytes{123'456'789}, Bytes{1} << 40}) {
      Engine engine(machine);
      engine.StartCopy(Queue::kCopyOut, bytes);
      const Nanoseconds late = Advance(&engine) - machine.out_ns(bytes);
      EXPECT_TRUE(late == 0 || late == 1) << machine.name << " " << bytes << ": " << late;
    }
  }
}

TEST(EngineTest, CopiesInBothDirectionsSlowEachOther) {
  //     out   100 bytes   ├─ 1 byte/ns ───────┤├ 2 ┤      50 bytes are left when `in` ends
  //     in    100 bytes   ├─ 2 bytes/ns ──────┤
  //                       0                   50  75
  const Machine machine = Link();
  Engine engine(machine);
  engine.StartCopy(Queue::kCopyOut, 100);
  engine.StartCopy(Queue::kCopyIn, 100);
  EXPECT_EQ(Advance(&engine), 50);
  EXPECT_TRUE(engine.ended(Queue::kCopyIn));
  EXPECT_FALSE(engine.ended(Queue::kCopyOut));
  EXPECT_EQ(Advance(&engine), 75);
  EXPECT_TRUE(engine.ended(Queue::kCopyOut));
  EXPECT_FALSE(engine.ended(Queue::kCopyIn));
}

TEST(EngineTest, ALatencySlowsNobody) {
  //     out   ├lat 10┤├ 20 bytes ┤├──────── 1 byte/ns ───────┤├─ ...
  //     in    ├────── lat 20 ────┤├─ 80 bytes, 2 bytes/ns ───┤
  //           0      10          20                          60
  const Machine machine = SlowLink();
  Engine engine(machine);
  engine.StartCopy(Queue::kCopyOut, 100);
  engine.StartCopy(Queue::kCopyIn, 80);
  EXPECT_EQ(Advance(&engine), 60);
  EXPECT_TRUE(engine.ended(Queue::kCopyIn));
  // 20 + 40 bytes have gone; 40 are left, at full speed again.
  EXPECT_EQ(Advance(&engine), 80);
  EXPECT_TRUE(engine.ended(Queue::kCopyOut));
}

TEST(EngineTest, OpsNeitherSlowCopiesNorAreSlowedByThem) {
  const Machine machine = Link();
  Engine engine(machine);
  engine.StartCopy(Queue::kCopyOut, 100);
  std::vector<Nanoseconds> ends;
  for (int k = 0; k < 4; ++k) {
    engine.StartOp(11);
    ends.push_back(Advance(&engine));
    EXPECT_TRUE(engine.ended(Queue::kCompute));
    EXPECT_FALSE(engine.ended(Queue::kCopyOut));
  }
  EXPECT_EQ(ends, (std::vector<Nanoseconds>{11, 22, 33, 44}));
  engine.StartOp(11);
  EXPECT_EQ(Advance(&engine), 50);
  EXPECT_TRUE(engine.ended(Queue::kCopyOut));
  EXPECT_FALSE(engine.ended(Queue::kCompute));
  EXPECT_EQ(Advance(&engine), 55);
}

TEST(EngineTest, CopiesThatMoveBytesSlowOpsIfTheMachineSaysSo) {
  Machine machine = SlowLink();
  machine.both_out_bytes_per_s = 2e9;
  machine.both_in_bytes_per_s = 4e9;
  machine.slowdown_by_out = 2;
  machine.slowdown_by_in = 4;
  Engine engine(machine);
  engine.StartOp(100);
  engine.StartCopy(Queue::kCopyOut, 100);  // Latency to 10, bytes to 60.
  engine.StartCopy(Queue::kCopyIn, 80);    // Latency to 20, bytes to 40.
  EXPECT_EQ(Advance(&engine), 40);         // 10 ns, then 10 at a half, 20 at an eighth: 17.5 done.
  EXPECT_TRUE(engine.ended(Queue::kCopyIn));
  EXPECT_EQ(Advance(&engine), 60);  // 10 more.
  EXPECT_TRUE(engine.ended(Queue::kCopyOut));
  EXPECT_EQ(Advance(&engine), 133);  // 72.5 are left.
  EXPECT_TRUE(engine.ended(Queue::kCompute));
  engine.StartOp(0);
  EXPECT_EQ(Advance(&engine), 133);
}

TEST(EngineTest, ACopyOfNothingTakesItsLatency) {
  const Machine machine = SlowLink();
  Engine engine(machine);
  engine.StartCopy(Queue::kCopyIn, 0);
  EXPECT_EQ(Advance(&engine), 20);
  EXPECT_TRUE(engine.ended(Queue::kCopyIn));
  const Machine prompt = Link();
  Engine another(prompt);
  another.StartCopy(Queue::kCopyOut, 0);
  EXPECT_EQ(Advance(&another), 0);
  EXPECT_TRUE(another.ended(Queue::kCopyOut));
}

TEST(EngineTest, AnOpOfNoDurationEndsAtOnce) {
  const Machine machine = Link();
  Engine engine(machine);
  for (int k = 0; k < 3; ++k) {
    engine.StartOp(0);
    engine.StartCopy(Queue::kCopyIn, 40);
    EXPECT_EQ(Advance(&engine), 10 * k);
    EXPECT_TRUE(engine.ended(Queue::kCompute));
    EXPECT_FALSE(engine.ended(Queue::kCopyIn));
    EXPECT_EQ(Advance(&engine), 10 * (k + 1));
    EXPECT_TRUE(engine.ended(Queue::kCopyIn));
  }
}

TEST(EngineTest, WhatEndsTogetherIsSeenTogether) {
  const Machine machine = Link();
  Engine engine(machine);
  engine.StartOp(50);
  engine.StartCopy(Queue::kCopyOut, 50);
  engine.StartCopy(Queue::kCopyIn, 100);
  EXPECT_EQ(Advance(&engine), 50);
  for (const Queue queue : {Queue::kCompute, Queue::kCopyOut, Queue::kCopyIn}) {
    EXPECT_TRUE(engine.ended(queue)) << Name(queue);
  }
}

TEST(EngineTest, ACopyEndsNoEarlierBecauseSomethingElseEnds) {
  // A byte takes 10 ns. An op ends when less than one of them is left.
  const Machine machine = {"test", 0, 0, 1e8, 1e8, 1e8, 1e8};
  Engine engine(machine);
  engine.StartCopy(Queue::kCopyOut, 5);
  engine.StartOp(44);
  EXPECT_EQ(Advance(&engine), 44);
  EXPECT_FALSE(engine.ended(Queue::kCopyOut));
  EXPECT_EQ(Advance(&engine), 50);
}

TEST(EngineTest, WhatRepeatsRepeatsExactly) {
  // Rates that no binary fraction is equal to.
  const Machine machine = {"test", 7, 13, 1e9 / 3, 1e9 / 7, 1e9 / 11, 1e9 / 13};
  Engine engine(machine);
  std::vector<Nanoseconds> first;
  for (int lap = 0; lap < 50; ++lap) {
    const Nanoseconds begin = engine.now_ns();
    std::vector<Nanoseconds> ends;
    engine.StartCopy(Queue::kCopyOut, 12'345);
    engine.StartOp(1'000);
    engine.StartCopy(Queue::kCopyIn, 777);
    while (engine.Advance()) {
      ends.push_back(engine.now_ns() - begin);
      if (engine.ended(Queue::kCopyIn) && ends.size() < 6) engine.StartCopy(Queue::kCopyIn, 555);
    }
    if (lap == 0) first = ends;
    ASSERT_EQ(ends, first) << "lap " << lap;
  }
  EXPECT_GE(first.size(), 6U);
}

}  // namespace
}  // namespace plimsoll::plan
