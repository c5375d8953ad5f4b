// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/arena_drawing.h"

#include <gtest/gtest.h>

namespace plimsoll::report {
namespace {

place::Buffer Make(place::Time lower, place::Time upper, Bytes size) {
  place::Buffer buffer;
  buffer.lifetime = {lower, upper};
  buffer.size_bytes = size;
  return buffer;
}

TEST(ArenaDrawingTest, ShowsWhereBuffersAre) {
  const place::Problem problem{{Make(0, 4, 10), Make(2, 4, 10)}};
  EXPECT_EQ(DrawArena(problem, {0, 10}, {.columns = 4, .rows = 2}),
            "20 B ┤  ██\n"
            " 0 B ┤████\n");
}

TEST(ArenaDrawingTest, LeavesGapsOpen) {
  place::Problem problem{{Make(0, 4, 10)}};
  problem.buffers[0].gaps = {{1, 3}};
  EXPECT_EQ(DrawArena(problem, {0}, {.columns = 4, .rows = 1}), "10 B ┤█  █\n");
}

TEST(ArenaDrawingTest, ShadesWhatIsPartlyCovered) {
  const place::Problem problem{{Make(0, 2, 10), Make(2, 8, 5), Make(7, 8, 5)}};
  EXPECT_EQ(DrawArena(problem, {0, 0, 5}, {.columns = 4, .rows = 1}), "10 B ┤█▒▒▓\n");
}

TEST(ArenaDrawingTest, SurvivesAnEmptyArena) {
  EXPECT_EQ(DrawArena({}, {}, {}), "the arena is empty\n");
  EXPECT_EQ(DrawLoad({}, {}), "nothing is ever allocated\n");
}

TEST(ArenaDrawingTest, DrawsALoadCurve) {
  EXPECT_EQ(DrawLoad({1, 2, 4, 2}, {.columns = 4, .rows = 2}),
            "4 B ┤  █\n"
            "0 B ┤▒███\n");
}

}  // namespace
}  // namespace plimsoll::report
