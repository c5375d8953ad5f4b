// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/fractional.h"
#include "plimsoll/chain/model.h"

namespace plimsoll::chain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ChainModelTest, SumsWhatExistsDuringEachOp) {
  const Model model = MakeModel(SmallChain(), kByteLink);
  // F_0 F_1 F_2 B_2 B_1 B_0. During B_2: x_0 .. x_3, y_2 and y_3, no temporaries.
  EXPECT_THAT(model.total_bytes, ElementsAre(11, 12, 13, 15, 18, 16));
  EXPECT_THAT(model.own_bytes, ElementsAre(11, 8, 3, 5, 14, 16));
  EXPECT_THAT(model.op_ns, ElementsAre(3, 2, 1, 2, 4, 5));
  EXPECT_EQ(model.compute_ns, 17);
  EXPECT_EQ(model.peak_bytes, 18);
  EXPECT_EQ(model.smallest_limit_bytes, 16);
  EXPECT_EQ(OpName(SmallChain(), model.smallest_limit_op), "backward of a");
}

TEST(ChainModelTest, RoundsTransferTimesUp) {
  EXPECT_EQ(TransferTime(0, 3), 0);
  EXPECT_EQ(TransferTime(1, 3), 333'333'334);
  EXPECT_EQ(TransferTime(3, 3), 1'000'000'000);
  EXPECT_EQ(TransferTime(Bytes{1} << 40, 12'200'000'000), 90'123'903'917);
}

TEST(ChainModelTest, BoundsByComputeOrByTheLink) {
  const Model fast = MakeModel(SmallChain(), kByteLink);
  EXPECT_EQ(LowerBound(fast, 18), 17);
  EXPECT_EQ(LowerBound(fast, 16), 17);
  const Model slow = MakeModel(SmallChain(), kByteLink / 10);
  EXPECT_EQ(LowerBound(slow, 16), 2 * 20);
}

TEST(ChainModelTest, FractionalOptimumWaitsForTheLinkWhereProposition3DoesNot) {
  // One byte in 10 ns. Two bytes of x_0 must be away during B_1, where 18 bytes exist. Their way
  // out starts at 0 and ends at 20, under F_0 F_1 F_2 B_2 (8 ns) and a wait of 12 ns; B_1 runs
  // from 20 to 24, the bytes come back by 44, and B_0 ends at 49.
  const Chain chain = SmallChain();
  const Model model = MakeModel(chain, kByteLink / 10);
  EXPECT_EQ(LowerBound(model, 16), 40);
  EXPECT_NEAR(static_cast<double>(FractionalOptimum(chain, model, 16)), 49, 1);
  EXPECT_EQ(FractionalOptimum(chain, model, 18), 17);
}

TEST(ChainModelTest, ScalesTimesAndNothingElse) {
  const Chain slow = ScaleTimes(SmallChain(), 6);
  EXPECT_EQ(slow.stages[0].forward_ns, 18);
  EXPECT_EQ(slow.stages[2].backward_ns, 12);
  EXPECT_EQ(slow.stages[1].kept_bytes, 2);
}

TEST(ChainModelTest, RefusesWhatIsNoChain) {
  const auto message = [](const Chain& chain) -> std::string {
    try {
      CheckWellFormed(chain, "file");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(SmallChain()), "");
  EXPECT_THAT(message(Chain{}), HasSubstr("no stages"));
  Chain negative = SmallChain();
  negative.stages[1].backward_temp_bytes = -1;
  EXPECT_THAT(message(negative), HasSubstr("stage 1 (\"b\"): backward_temp_bytes is negative"));
  Chain large = SmallChain();
  large.stages[0].kept_bytes = kMaxBytes - 1;
  EXPECT_THAT(message(large), HasSubstr("the sum reaches"));
  Chain slow = SmallChain();
  slow.stages[2].forward_ns = Nanoseconds{1} << 53;
  EXPECT_THAT(message(slow), HasSubstr("with forward_ms the sum reaches"));
}

}  // namespace
}  // namespace plimsoll::chain
