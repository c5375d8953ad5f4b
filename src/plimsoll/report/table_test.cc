// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/table.h"

#include <gtest/gtest.h>

namespace plimsoll::report {
namespace {

TEST(TableTest, AlignsColumns) {
  Table table({"name", "bytes", "note"});
  table.Left(2);
  table.Add({"a", "5", "x"});
  table.Add({"long name", "12345", "yes"});
  EXPECT_EQ(table.Render(),
            "name       bytes  note\n"
            "---------  -----  ----\n"
            "a              5  x\n"
            "long name  12345  yes\n");
}

TEST(TableTest, FillsMissingCells) {
  Table table({"a", "b"});
  table.Add({"1"});
  EXPECT_EQ(table.Render(), "a  b\n-  -\n1\n");
}

TEST(TableTest, CountsCodePointsNotBytes) {
  EXPECT_EQ(DisplayWidth("µs ┤"), 4U);
  Table table({"t", "µs"});
  table.Add({"x", "10"});
  EXPECT_EQ(table.Render(), "t  µs\n-  --\nx  10\n");
}

}  // namespace
}  // namespace plimsoll::report
