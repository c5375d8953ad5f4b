// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/curve_drawing.h"

#include <gtest/gtest.h>

namespace plimsoll::report {
namespace {

TEST(CurveDrawingTest, DrawsALetterForEachPoint) {
  CurveChart chart;
  chart.curves = {{"joint", {{0.9, 0}, {0.5, 0.1}, {0.3, 0.3}}},
                  {"vdnn-all", {{0.9, 0}, {0.5, 1}}}};
  chart.bound = {{0.9, 0}, {0.5, 0.03}, {0.3, 0.1}};
  chart.smallest_limit = 0.2;
  EXPECT_EQ(DrawCurves(chart, {.columns = 15, .rows = 7}),
            "100 % ┤:     v\n"
            "      │:\n"
            " 30 % ┤: j\n"
            " 10 % ┤: ·   j\n"
            "  3 % ┤:     ·\n"
            "  1 % ┤:\n"
            "  0 % ┤:             *\n"
            "      └┴──────────────\n"
            "       20.0 %   90.0 %\n"
            "j joint   v vdnn-all   * several   · bound   : smallest limit\n");
}

TEST(CurveDrawingTest, ClipsWhatIsTooHigh) {
  CurveChart chart;
  chart.curves = {{"slow", {{0.2, 500}, {0.4, kHighestOverhead}, {0.6, 0}}}};
  EXPECT_EQ(DrawCurves(chart, {.columns = 13, .rows = 3}),
            "1000 % ┤s     s\n"
            "  30 % ┤\n"
            "   0 % ┤            s\n"
            "       └─────────────\n"
            "        20.0 % 60.0 %\n"
            "s slow\n");
}

TEST(CurveDrawingTest, DrawsOneLimitInTheMiddle) {
  CurveChart chart;
  chart.curves = {{"a", {{0.5, 0}}}};
  EXPECT_EQ(DrawCurves(chart, {.columns = 3, .rows = 2}),
            "1 % ┤\n"
            "0 % ┤ a\n"
            "    └───\n"
            "     50.0 %\n"
            "a a\n");
}

TEST(CurveDrawingTest, DrawsNothingOfNothing) {
  EXPECT_EQ(DrawCurves({{{"a", {}}}, {}, 0.5}, {}), "");
}

TEST(CurveDrawingTest, LettersDiffer) {
  EXPECT_EQ(ChooseLetters({"joint", "autoswap-swdoa", "autoswap-bo", "a", "-"}),
            (std::vector<char>{'j', 'a', 'u', '0', '1'}));
}

}  // namespace
}  // namespace plimsoll::report
