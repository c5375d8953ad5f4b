// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/ledger.h"

#include <gtest/gtest.h>

namespace plimsoll::exec {
namespace {

TEST(LedgerTest, KeepsAccount) {
  Ledger ledger(4096, true);
  ledger.Enter(0, 1000, 1);
  ledger.Enter(3096, 1000, 2);
  ledger.Enter(1000, 2096, 3);
  ledger.Enter(17, 0, 4);
  EXPECT_EQ(ledger.used_bytes(), 4096);
  EXPECT_EQ(ledger.ranges(), 3);
  ledger.Leave(1000, 2096, 3);
  ledger.Leave(17, 0, 4);
  EXPECT_EQ(ledger.used_bytes(), 2000);
  EXPECT_EQ(ledger.peak_top_bytes(), 4096);
  EXPECT_EQ(ledger.events(), 4);
}

TEST(LedgerTest, OffItChecksNothing) {
  Ledger ledger(100, false);
  ledger.Enter(50, 1000, 1);
  ledger.Enter(50, 1000, 2);
  ledger.Leave(7, 7, 7);
  EXPECT_EQ(ledger.used_bytes(), 0);
  EXPECT_EQ(ledger.events(), 0);
}

TEST(LedgerDeathTest, CatchesWhatPassesTheLimit) {
  Ledger ledger(4096, true);
  EXPECT_DEATH(ledger.Enter(4000, 97, 5), R"(\[4000, 4097\) of 5 is outside of the limit, 4096)");
  EXPECT_DEATH(ledger.Enter(-1, 97, 5), "outside of the limit");
}

TEST(LedgerDeathTest, CatchesOverlaps) {
  Ledger ledger(4096, true);
  ledger.Enter(1000, 1000, 1);
  EXPECT_DEATH(ledger.Enter(1999, 10, 2), R"(\[1999, 2009\) of 2 overlaps \[1000, 2000\) of 1)");
  EXPECT_DEATH(ledger.Enter(500, 501, 2), "overlaps");
  EXPECT_DEATH(ledger.Enter(1000, 1, 2), "overlaps");
  EXPECT_DEATH(ledger.Enter(0, 4096, 2), "overlaps");
}

TEST(LedgerDeathTest, CatchesLeavingWhatWasNotEntered) {
  Ledger ledger(4096, true);
  ledger.Enter(1000, 1000, 1);
  EXPECT_DEATH(ledger.Leave(1001, 999, 1), "is not in use");
  EXPECT_DEATH(ledger.Leave(1000, 1000, 2), "was entered as");
  EXPECT_DEATH(ledger.Leave(1000, 999, 1), "was entered as");
}

}  // namespace
}  // namespace plimsoll::exec
