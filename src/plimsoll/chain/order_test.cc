// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {
namespace {

using ::testing::HasSubstr;

/// Three stages that keep 4 bytes each, of which 1 is the output; x_0 is 1 byte.
Chain EvenChain() {
  Chain chain;
  chain.name = "even";
  chain.input_bytes = 1;
  chain.stages.assign(3, {"s", 1, 2, 4, 0, 0, 0, 3});
  return chain;
}

// F_0 F_1 F_2 B_2 B_1 F_0 B_0: what F_0 saves inside is made again.
const Order kFirstAgain = {0, 1, 2, 3, 4, 0, 5};

TEST(OrderTest, KnowsOrders) {
  EXPECT_TRUE(IsOrder(PlainOrder(3), 3));
  EXPECT_TRUE(IsOrder(kFirstAgain, 3));
  EXPECT_TRUE(IsOrder({0, 1, 2, 3, 0, 1, 4, 0, 5}, 3));
  EXPECT_FALSE(IsOrder({0, 1, 2, 3, 4, 1, 5}, 3));     // F_1 after B_1.
  EXPECT_FALSE(IsOrder({0, 1, 2, 4, 3, 5}, 3));        // B_1 before B_2.
  EXPECT_FALSE(IsOrder({0, 1, 0, 1, 2, 3, 4, 5}, 3));  // Not forward at once.
  EXPECT_FALSE(IsOrder({0, 1, 2, 3, 4}, 3));
  EXPECT_FALSE(IsOrder({0, 1, 2, 3, 4, 5, 6}, 3));
  EXPECT_FALSE(IsOrder({}, 3));
}

TEST(OrderTest, ThePlainOrderIsThePlainModel) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    const Chain chain = RandomChain({.insides = true}, &random);
    const Model plain = MakeModel(chain, kByteLink);
    const Model model = MakeModel(chain, kByteLink, PlainOrder(chain.stages.size()));
    EXPECT_EQ(model.total_bytes, plain.total_bytes);
    EXPECT_EQ(model.own_bytes, plain.own_bytes);
    EXPECT_EQ(model.op_ns, plain.op_ns);
    EXPECT_EQ(model.return_op, plain.return_op);
    EXPECT_EQ(model.activation_bytes, plain.activation_bytes);
    EXPECT_EQ(model.peak_bytes, plain.peak_bytes);
    EXPECT_EQ(model.smallest_limit_bytes, plain.smallest_limit_bytes);
  }
}

TEST(OrderTest, WhatIsMadeAgainIsNotKept) {
  const Chain chain = EvenChain();
  EXPECT_EQ(MakeModel(chain, kByteLink).peak_bytes, 13);
  const Model model = MakeModel(chain, kByteLink, kFirstAgain);
  // F_0 with its inside; then x_0, the output x_1 alone, and x_2 and x_3 whole.
  EXPECT_EQ(model.total_bytes, (std::vector<Bytes>{5, 6, 10, 10, 6, 5, 5}));
  EXPECT_EQ(model.compute_ns, 10);
  EXPECT_EQ(model.return_op, (std::vector<std::size_t>{5, 4, 3}));
  EXPECT_EQ(model.activation_bytes, (std::vector<Bytes>{1, 1, 4, 4}));
  EXPECT_EQ(RecomputedBytes(chain, kFirstAgain), 4);
}

TEST(OrderTest, TransfersFitBetweenTheReadersOfWhatTheyCarry) {
  const Chain chain = EvenChain();
  const Model model = MakeModel(chain, kByteLink, kFirstAgain);
  const auto schedule = Simulator(model, 9).Play({{0, Direction::kOut}, {0, Direction::kIn}});
  ASSERT_TRUE(schedule);
  // x_0 is away from the end of F_0 on, and back for the second F_0.
  EXPECT_EQ(schedule->iteration_ns(), 10);
  EXPECT_EQ(schedule->order, kFirstAgain);
  EXPECT_TRUE(FindViolations(chain, kByteLink, *schedule, 9).empty());
  EXPECT_FALSE(Simulator(model, 9).Play({}).has_value());
}

/// Any order: forward ops come again here and there.
Order RandomOrder(std::size_t stages, std::mt19937_64* random) {
  Order order;
  const auto n = static_cast<std::int32_t>(stages);
  for (std::int32_t i = 0; i < n; ++i) order.push_back(i);
  for (std::int32_t i = n; i-- > 0;) {
    for (int again = 0; again < 2 && (*random)() % 3 == 0; ++again) {
      const auto from = static_cast<std::int32_t>((*random)() % static_cast<std::uint64_t>(i + 1));
      for (std::int32_t j = from; j <= i; ++j) order.push_back(j);
    }
    order.push_back(2 * n - 1 - i);
  }
  return order;
}

TEST(OrderTest, TheJudgeAndTheModelCountTheSameBytes) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 2'000; ++round) {
    SCOPED_TRACE(round);
    const Chain chain = RandomChain({.most_stages = 6, .insides = true}, &random);
    const Model plain = MakeModel(chain, kByteLink);
    const Order order = RandomOrder(chain.stages.size(), &random);
    const Model model = MakeModel(chain, kByteLink, order);
    const auto schedule = Simulator(model, model.peak_bytes).Play({});
    ASSERT_TRUE(schedule);
    EXPECT_EQ(schedule->iteration_ns(), model.compute_ns);
    ExpectValid({chain, plain, model.peak_bytes}, *schedule, "at the peak");
    EXPECT_FALSE(FindViolations(chain, kByteLink, *schedule, model.peak_bytes - 1).empty());
    EXPECT_EQ(MeasureFootprint(model, *schedule).device_bytes, model.peak_bytes);
  }
}

TEST(OrderTest, OffloadsOfAnyOrderAreValid) {
  std::mt19937_64 random(7);
  int played = 0;
  for (int round = 0; round < 3'000; ++round) {
    SCOPED_TRACE(round);
    const Chain chain = RandomChain({.most_stages = 6, .insides = true}, &random);
    const Model plain = MakeModel(chain, kByteLink);
    const Model model = MakeModel(chain, kByteLink, RandomOrder(chain.stages.size(), &random));
    std::vector<char> offloaded(model.stages, 0);
    for (std::size_t i = 0; i < model.stages; ++i) {
      offloaded[i] = model.return_op[i] != kNoOp && random() % 2 == 0 ? 1 : 0;
    }
    const Bytes limit = RandomLimit(model, &random);
    const auto schedule = Simulator(model, limit).Play(OrderedDecision(offloaded));
    if (!schedule) continue;
    ++played;
    ExpectValid({chain, plain, limit}, *schedule, "any order");
  }
  EXPECT_GT(played, 1'000);
}

/// Returns what the judge says first of a schedule of kFirstAgain that was spoilt.
std::string Spoil(const std::function<void(Schedule*)>& spoil) {
  const Chain chain = EvenChain();
  const Model model = MakeModel(chain, kByteLink, kFirstAgain);
  Schedule schedule = *Simulator(model, 10).Play({{0, Direction::kOut}, {0, Direction::kIn}});
  spoil(&schedule);
  const auto violations = FindViolations(chain, kByteLink, schedule, 10);
  return violations.empty() ? "valid" : violations.front().message;
}

TEST(OrderTest, TheJudgeRejectsSpoiltOrders) {
  EXPECT_EQ(Spoil([](Schedule*) {}), "valid");
  EXPECT_THAT(Spoil([](Schedule* s) { s->order.clear(); }), HasSubstr("7 ops for 3 stages"));
  EXPECT_THAT(Spoil([](Schedule* s) { s->order[0] = 1; }), HasSubstr("out of turn"));
  EXPECT_THAT(Spoil([](Schedule* s) { s->order[5] = 2; }), HasSubstr("F_2 runs again after B_2"));
  EXPECT_THAT(Spoil([](Schedule* s) { s->order[6] = 0; }), HasSubstr("1 backward ops early"));
  EXPECT_THAT(Spoil([](Schedule* s) { s->order[6] = -3; }), HasSubstr("out of turn"));
  EXPECT_THAT(Spoil([](Schedule* s) { s->ops[6].end_ns += 1; }), HasSubstr("should take 2 ns"));
  EXPECT_THAT(Spoil([](Schedule* s) {
                s->transfers[1].span.start_ns = s->ops[5].start_ns;
                s->transfers[1].span.end_ns = s->ops[5].start_ns + 1;
              }),
              HasSubstr("F_0 reads x_0 before it is back"));
  EXPECT_THAT(Spoil([](Schedule* s) { s->transfers.clear(); }), "valid");
}

}  // namespace
}  // namespace plimsoll::chain
