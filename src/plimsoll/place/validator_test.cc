// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/validator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/place/brute_force_for_test.h"

namespace plimsoll::place {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// A buffer as a literal; what is left out has its default.
Buffer Live(std::string id, Interval lifetime, Bytes size_bytes, Bytes alignment = 1,
            std::optional<Bytes> fixed_offset = {}, std::vector<Interval> gaps = {}) {
  return {std::move(id), lifetime, size_bytes, alignment, fixed_offset, std::move(gaps)};
}

/// Returns the message of the only violation, or an empty string if there is not exactly one.
std::string OnlyViolation(const Problem& problem, const std::vector<Bytes>& offsets,
                          Bytes capacity = -1) {
  const std::vector<Violation> violations = FindViolations(problem, offsets, capacity);
  EXPECT_THAT(violations, SizeIs(1));
  return violations.size() == 1 ? violations.front().message : "";
}

TEST(ValidatorTest, AcceptsAnEmptyProblem) { EXPECT_THAT(FindViolations({}, {}), SizeIs(0)); }

TEST(ValidatorTest, RejectsTheWrongNumberOfOffsets) {
  const Problem problem = {{Live("a", {0, 1}, 4), Live("b", {0, 1}, 4)}};
  EXPECT_EQ(OnlyViolation(problem, {0}), "1 offsets for 2 buffers");
  EXPECT_EQ(OnlyViolation(problem, {0, 4, 8}), "3 offsets for 2 buffers");
}

TEST(ValidatorTest, RejectsANegativeOffset) {
  const Problem problem = {{Live("a", {0, 1}, 4), Live("b", {0, 1}, 4)}};
  EXPECT_THAT(OnlyViolation(problem, {0, -4}), AllOf(HasSubstr("buffer b"), HasSubstr("-4")));
}

TEST(ValidatorTest, RejectsAnOffsetBeyondAllMemory) {
  EXPECT_THAT(OnlyViolation({{Live("a", {0, 1}, 4)}}, {kMaxBytes}), HasSubstr("buffer a"));
}

TEST(ValidatorTest, RejectsAMisalignedOffset) {
  const Problem problem = {{Live("a", {0, 1}, 4, 512)}};
  EXPECT_THAT(FindViolations(problem, {1024}), SizeIs(0));
  EXPECT_THAT(OnlyViolation(problem, {1000}), HasSubstr("not aligned to 512"));
}

TEST(ValidatorTest, RejectsAMovedFixedBuffer) {
  const Problem problem = {{Live("a", {0, 1}, 4, 1, 8), Live("empty", {0, 1}, 0, 1, 16)}};
  EXPECT_THAT(FindViolations(problem, {8, 16}), SizeIs(0));
  EXPECT_THAT(OnlyViolation(problem, {0, 16}), HasSubstr("must stay at 8"));
  EXPECT_THAT(OnlyViolation(problem, {8, 0}), HasSubstr("must stay at 16"));
}

TEST(ValidatorTest, RejectsOverlapAndNamesBothBuffersAndTheTime) {
  const Problem problem = {{Live("first", {0, 5}, 10), Live("second", {3, 9}, 10)}};
  EXPECT_THAT(OnlyViolation(problem, {0, 9}),
              AllOf(HasSubstr("buffer first (time [0, 5), bytes [0, 10))"),
                    HasSubstr("buffer second (time [3, 9), bytes [9, 19))"),
                    HasSubstr("overlap at time 3")));
  EXPECT_THAT(OnlyViolation(problem, {9, 0}), HasSubstr("overlap at time 3"));
}

TEST(ValidatorTest, RejectsEqualPlacesAndOneBufferInsideAnother) {
  const Problem problem = {{Live("outer", {0, 5}, 10), Live("inner", {1, 2}, 4)}};
  EXPECT_THAT(FindViolations(problem, {0, 0}), SizeIs(1));
  EXPECT_THAT(FindViolations(problem, {0, 6}), SizeIs(1));
  EXPECT_THAT(FindViolations(problem, {0, 3}), SizeIs(1));
}

TEST(ValidatorTest, AcceptsBuffersThatTouchInSpaceOrTime) {
  const Problem in_space = {{Live("a", {0, 5}, 10), Live("b", {0, 5}, 10)}};
  EXPECT_THAT(FindViolations(in_space, {0, 10}), SizeIs(0));
  EXPECT_THAT(FindViolations(in_space, {0, 9}), SizeIs(1));
  const Problem in_time = {{Live("a", {0, 5}, 10), Live("b", {5, 9}, 10)}};
  EXPECT_THAT(FindViolations(in_time, {0, 0}), SizeIs(0));
  const Problem not_quite = {{Live("a", {0, 6}, 10), Live("b", {5, 9}, 10)}};
  EXPECT_THAT(FindViolations(not_quite, {0, 0}), SizeIs(1));
}

TEST(ValidatorTest, LetsEmptyBuffersBeAnywhere) {
  const Problem problem = {{Live("a", {0, 5}, 10), Live("empty", {0, 5}, 0)}};
  EXPECT_THAT(FindViolations(problem, {0, 5}, 10), SizeIs(0));
  EXPECT_THAT(FindViolations(problem, {0, 50}, 10), SizeIs(0));
}

TEST(ValidatorTest, LetsABufferUseTheGapOfAnother) {
  const Problem problem = {{Live("a", {0, 9}, 10, 1, {}, {{3, 6}}), Live("b", {3, 6}, 10)}};
  EXPECT_THAT(FindViolations(problem, {0, 0}), SizeIs(0));
}

TEST(ValidatorTest, RejectsOverlapInALaterLiveInterval) {
  const Problem after_gap = {{Live("a", {0, 9}, 10, 1, {}, {{3, 6}}), Live("b", {4, 7}, 10)}};
  EXPECT_THAT(OnlyViolation(after_gap, {0, 5}), HasSubstr("overlap at time 6"));
  const Problem both = {{
      Live("a", {0, 12}, 10, 1, {}, {{2, 4}, {6, 10}}),
      Live("b", {2, 13}, 10, 1, {}, {{4, 8}, {9, 11}}),
  }};
  EXPECT_THAT(OnlyViolation(both, {0, 5}), HasSubstr("overlap at time 11"));
}

TEST(ValidatorTest, UnderstandsGapsThatTouchEachOtherOrTheEndsOfTheLifetime) {
  const Problem at_begin = {{Live("a", {0, 9}, 10, 1, {}, {{0, 5}}), Live("b", {0, 5}, 10)}};
  EXPECT_THAT(FindViolations(at_begin, {0, 0}), SizeIs(0));
  const Problem at_end = {{Live("a", {0, 9}, 10, 1, {}, {{5, 9}}), Live("b", {5, 12}, 10)}};
  EXPECT_THAT(FindViolations(at_end, {0, 0}), SizeIs(0));
  const Problem adjacent = {
      {Live("a", {0, 9}, 10, 1, {}, {{2, 4}, {4, 6}}), Live("b", {2, 6}, 10)}};
  EXPECT_THAT(FindViolations(adjacent, {0, 0}), SizeIs(0));
  const Problem never = {{Live("a", {0, 9}, 10, 1, {}, {{0, 9}}), Live("b", {0, 20}, 10)}};
  EXPECT_THAT(FindViolations(never, {0, 0}), SizeIs(0));
}

TEST(ValidatorTest, RejectsATopAboveTheCapacity) {
  const Problem problem = {{Live("a", {0, 1}, 4), Live("b", {0, 1}, 4)}};
  EXPECT_THAT(FindViolations(problem, {0, 4}, 8), SizeIs(0));
  EXPECT_THAT(OnlyViolation(problem, {0, 4}, 7),
              AllOf(HasSubstr("buffer b"), HasSubstr("above the capacity, 7")));
  EXPECT_THAT(FindViolations(problem, {0, 4}, 0), SizeIs(2));
  EXPECT_THAT(FindViolations(problem, {0, 4}, -1), SizeIs(0));
}

TEST(ValidatorTest, ReportsNoMoreThanItIsAskedFor) {
  Problem problem;
  for (int i = 0; i < 20; ++i) problem.buffers.push_back(Live("x", {0, 1}, 4));
  const std::vector<Bytes> offsets(20, 0);
  EXPECT_THAT(FindViolations(problem, offsets), SizeIs(10));
  EXPECT_THAT(FindViolations(problem, offsets, -1, 3), SizeIs(3));
  EXPECT_THAT(FindViolations(problem, offsets, 2, 3), SizeIs(3));
}

RC_GTEST_PROP(ValidatorTest, AgreesWithAJudgeThatLooksAtEveryPairAtEveryMoment,
              (std::uint64_t seed)) {
  TestRandom random(seed);
  for (int round = 0; round < 20; ++round) {
    const Problem problem = RandomProblem(&random, {.most_buffers = 4,
                                                    .alignments = {1, 1, 1, 2, 3},
                                                    .gaps = true,
                                                    .fixed = random.OneIn(3),
                                                    .zero_sizes = true});
    std::vector<Bytes> offsets;
    for (const Buffer& buffer : problem.buffers) {
      const Bytes offset = random.Between(random.OneIn(50) ? -1 : 0, 20);
      const bool aligned = offset < 0 || random.OneIn(10);
      offsets.push_back(aligned ? offset : offset / buffer.alignment * buffer.alignment);
      if (buffer.fixed_offset && !random.OneIn(10)) offsets.back() = *buffer.fixed_offset;
    }
    const Bytes capacity = random.OneIn(2) ? -1 : random.Between(10, 30);
    const bool valid = FindViolations(problem, offsets, capacity).empty();
    RC_LOG() << Show(problem, offsets) << "\n  capacity " << capacity << "\n";
    RC_ASSERT(valid == IsValidByDefinition(problem, offsets, capacity));
  }
}

}  // namespace
}  // namespace plimsoll::place
