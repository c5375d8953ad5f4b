// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/simulate.h"
#include "plimsoll/chain/validator.h"

namespace plimsoll::chain {
namespace {

using testing::HasSubstr;

/// The first violation of a schedule that was valid before it was spoilt; empty if none is found.
std::string Spoil(const std::function<void(Schedule*)>& spoil, Bytes limit = 16) {
  const Chain chain = SmallChain();
  const Model model = MakeModel(chain, kByteLink / 10);
  Schedule schedule = *Simulator(model, 16).Play(
      {{0, Direction::kOut}, {1, Direction::kOut}, {1, Direction::kIn}, {0, Direction::kIn}});
  ExpectValid({chain, model, 16}, schedule, "before");
  spoil(&schedule);
  const auto violations = FindViolations(chain, kByteLink / 10, schedule, limit);
  return violations.empty() ? "" : violations.front().message;
}

void Move(Span* span, Nanoseconds by) {
  span->start_ns += by;
  span->end_ns += by;
}

TEST(ChainValidatorTest, AcceptsWhatIsValid) {
  EXPECT_EQ(Spoil([](Schedule*) {}), "");
  EXPECT_EQ(Spoil([](Schedule* s) { Move(&s->ops.back(), 100); }), "");
}

TEST(ChainValidatorTest, RejectsOpsOutOfLine) {
  EXPECT_THAT(Spoil([](Schedule* s) { s->ops.pop_back(); }), HasSubstr("5 ops for 3 stages"));
  EXPECT_THAT(Spoil([](Schedule* s) { Move(&s->ops[1], -1); }), HasSubstr("F_1"));
  EXPECT_THAT(Spoil([](Schedule* s) { Move(&s->ops[0], -1); }), HasSubstr("F_0"));
  EXPECT_THAT(Spoil([](Schedule* s) { ++s->ops[4].end_ns; }), HasSubstr("should take 4 ns"));
  EXPECT_THAT(Spoil([](Schedule* s) { --s->ops[5].end_ns; }), HasSubstr("should take 5 ns"));
}

TEST(ChainValidatorTest, RejectsTransfersOfTheWrongLength) {
  EXPECT_THAT(Spoil([](Schedule* s) { --s->transfers[0].span.end_ns; }), HasSubstr("should take"));
  EXPECT_THAT(Spoil([](Schedule* s) { s->transfers[3].span.start_ns -= 2; }),
              HasSubstr("should take"));
}

TEST(ChainValidatorTest, RejectsTwoTransfersAtATime) {
  EXPECT_THAT(Spoil([](Schedule* s) { Move(&s->transfers[1].span, -1); }),
              HasSubstr("share the link"));
}

TEST(ChainValidatorTest, RejectsJourneysThatDoNotCloseUp) {
  EXPECT_THAT(Spoil([](Schedule* s) { s->transfers.pop_back(); }), HasSubstr("x_0 goes out only"));
  EXPECT_THAT(Spoil([](Schedule* s) { s->transfers.erase(s->transfers.begin()); }),
              HasSubstr("x_0 goes in only"));
  EXPECT_THAT(Spoil([](Schedule* s) { s->transfers[0].transfer.activation = 9; }),
              HasSubstr("no such activation"));
  EXPECT_THAT(Spoil([](Schedule* s) { s->transfers[1].transfer.activation = 0; }),
              HasSubstr("gone that way before"));
}

TEST(ChainValidatorTest, RejectsReadingWhatIsAway) {
  EXPECT_THAT(Spoil([](Schedule* s) { Move(&s->transfers[3].span, 1); }),
              HasSubstr("B_0 reads x_0 before it is back"));
  EXPECT_THAT(Spoil([](Schedule* s) {
                // x_1 leaves at once: before F_0 has made it.
                s->transfers[1].span = {0, 60};
                s->transfers[0].span = {60, 100};
              }),
              HasSubstr("x_1 leaves before it is made"));
  EXPECT_THAT(Spoil([](Schedule* s) { std::swap(s->transfers[0].span, s->transfers[3].span); }),
              HasSubstr("x_0 comes back before it has left"));
}

TEST(ChainValidatorTest, RejectsMemoryAboveTheLimitAtAnyInstant) {
  EXPECT_THAT(Spoil([](Schedule*) {}, 15), HasSubstr("the limit is 15"));
  // B_1 right after B_2, as it would run without a limit.
  const Chain chain = SmallChain();
  const Model model = MakeModel(chain, kByteLink);
  Schedule schedule = *Simulator(model, 18).Play({});
  EXPECT_TRUE(FindViolations(chain, kByteLink, schedule, 18).empty());
  EXPECT_THAT(FindViolations(chain, kByteLink, schedule, 17).front().message,
              HasSubstr("at 8 ns, 18 bytes"));
}

TEST(ChainValidatorTest, FindsEveryOpThatIsMovedForward) {
  // In a no-wait schedule nothing can start sooner without breaking a law, if its memory or its
  // input made it wait; and nothing at all may start before what precedes it.
  std::mt19937_64 random(3);
  int spoilt = 0;
  for (int round = 0; round < 500; ++round) {
    const Chain chain = RandomChain({.least_stages = 3}, &random);
    const Model model = MakeModel(chain, kByteLink);
    const Bytes limit = RandomLimit(model, &random);
    const auto schedule =
        Simulator(model, limit).Play(OrderedDecision(std::vector<char>(model.stages, 1)));
    ASSERT_TRUE(schedule);
    ExpectValid({chain, model, limit}, *schedule, "before");
    for (std::size_t op = 0; op < model.ops(); ++op) {
      Schedule moved = *schedule;
      Move(&moved.ops[op], -1);
      EXPECT_FALSE(FindViolations(chain, kByteLink, moved, limit).empty())
          << "round " << round << " op " << op;
      ++spoilt;
    }
  }
  EXPECT_GT(spoilt, 3'000);
}

}  // namespace
}  // namespace plimsoll::chain
