// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {
namespace {

using testing::ElementsAre;

constexpr Transfer Out(std::int32_t i) { return {i, Direction::kOut}; }
constexpr Transfer In(std::int32_t i) { return {i, Direction::kIn}; }

/// Plays a decision nanosecond by nanosecond, with every sum taken anew: slow, and obvious.
class SlowPlay {
 public:
  SlowPlay(const Chain& chain, Bytes limit, const Decision& decision)
      : chain_(chain), n_(chain.stages.size()), limit_(limit), decision_(decision) {
    place_.resize(n_ + 1, kUnborn);
    place_[0] = kHere;
    travels_.resize(n_ + 1, false);
    for (const Transfer& transfer : decision) travels_[transfer.activation] = true;
  }

  std::optional<Nanoseconds> Run() {
    for (Nanoseconds now = 0; now < 100'000; ++now) {
      if (op_ends_ == now) EndOp();
      if (transfer_ends_ == now) EndTransfer();
      while (TryTransfer(now) || TryOp(now)) {
      }
      if (next_op_ == 2 * n_ && op_ends_ < 0) return now;
      if (op_ends_ < 0 && transfer_ends_ < 0) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  enum Place { kUnborn, kHere, kLeaving, kAway, kComing, kDead };

  bool forward(std::size_t op) const { return op < n_; }
  std::size_t stage(std::size_t op) const { return op < n_ ? op : 2 * n_ - 1 - op; }

  /// Bytes on the device if `op` ran now, with what is away as it is now and x_without here too;
  /// what must have come back by then counts.
  Bytes Load(std::size_t op, std::size_t without) const {
    const std::size_t s = stage(op);
    Bytes sum = chain_.ActivationBytes(s + 1);
    for (std::size_t j = 0; j <= s; ++j) {
      const bool away = place_[j] == kAway && j < s && j != without;
      if (!away) sum += chain_.ActivationBytes(j);
    }
    if (forward(op)) return sum + chain_.stages[s].forward_temp_bytes;
    return sum + chain_.stages[s].backward_temp_bytes + chain_.GradientBytes(s) +
           chain_.GradientBytes(s + 1);
  }

  bool TryOp(Nanoseconds now) {
    if (op_ends_ >= 0 || next_op_ == 2 * n_) return false;
    const std::size_t s = stage(next_op_);
    if (!forward(next_op_) && (place_[s] != kHere || travels_[s])) return false;
    if (Load(next_op_, n_ + 1) > limit_) return false;
    const Stage& runs = chain_.stages[s];
    op_ends_ = now + (forward(next_op_) ? runs.forward_ns : runs.backward_ns);
    return true;
  }

  void EndOp() {
    const std::size_t s = stage(next_op_);
    place_[s + 1] = forward(next_op_) ? kHere : kDead;
    op_ends_ = -1;
    ++next_op_;
  }

  bool TryTransfer(Nanoseconds now) {
    if (transfer_ends_ >= 0 || next_transfer_ == decision_.size()) return false;
    const auto i = static_cast<std::size_t>(decision_[next_transfer_].activation);
    if (decision_[next_transfer_].direction == Direction::kOut) {
      if (place_[i] != kHere) return false;
      place_[i] = kLeaving;
    } else {
      if (place_[i] != kAway || next_op_ <= i) return false;
      for (std::size_t op = next_op_; op <= 2 * n_ - 1 - i; ++op) {
        if (Load(op, i) > limit_) return false;
      }
      place_[i] = kComing;
    }
    transfer_ends_ = now + chain_.ActivationBytes(i);
    return true;
  }

  void EndTransfer() {
    const auto i = static_cast<std::size_t>(decision_[next_transfer_].activation);
    const bool out = decision_[next_transfer_].direction == Direction::kOut;
    place_[i] = out ? kAway : kHere;
    if (!out) travels_[i] = false;
    transfer_ends_ = -1;
    ++next_transfer_;
  }

  const Chain& chain_;
  const std::size_t n_;
  const Bytes limit_;
  const Decision& decision_;
  std::vector<Place> place_;
  std::vector<bool> travels_;
  std::size_t next_op_ = 0;        // The one that runs, if one does.
  std::size_t next_transfer_ = 0;  // Likewise.
  Nanoseconds op_ends_ = -1;
  Nanoseconds transfer_ends_ = -1;
};

/// Some activations, in any order that brings each back after it has left.
Decision RandomDecision(const Model& model, std::mt19937_64* random) {
  std::vector<char> offloaded(model.stages, 0);
  for (char& mark : offloaded) mark = DrawBetween(0, 2, random) > 0 ? 1 : 0;
  Decision decision = OrderedDecision(offloaded);
  const auto swaps = DrawBetween(0, 3, random);
  for (std::int64_t k = 0; k < swaps && decision.size() > 1; ++k) {
    const auto last = static_cast<std::int64_t>(decision.size()) - 2;
    const auto place = static_cast<std::size_t>(DrawBetween(0, last, random));
    if (decision[place].activation == decision[place + 1].activation) continue;
    std::swap(decision[place], decision[place + 1]);
  }
  return decision;
}

TEST(ChainSimulateTest, RunsWithoutTransfersBackToBack) {
  const Chain chain = SmallChain();
  const Model model = MakeModel(chain, kByteLink);
  const auto schedule = Simulator(model, 18).Play({});
  ASSERT_TRUE(schedule);
  EXPECT_THAT(schedule->ops, ElementsAre(Span{0, 3}, Span{3, 5}, Span{5, 6}, Span{6, 8},
                                         Span{8, 12}, Span{12, 17}));
  ExpectValid({chain, model, 18}, *schedule, "no transfers");
  EXPECT_FALSE(Simulator(model, 17).Play({}));
}

TEST(ChainSimulateTest, WaitsForMemoryAndForInputs) {
  // Ten nanoseconds a byte. x_0 leaves during [0, 40) and is needed away by B_1 only; it comes back
  // once B_1 has ended, and B_0 waits for it.
  const Chain chain = SmallChain();
  const Model model = MakeModel(chain, kByteLink / 10);
  const auto schedule = Simulator(model, 16).Play({Out(0), In(0)});
  ASSERT_TRUE(schedule);
  EXPECT_THAT(schedule->ops, ElementsAre(Span{0, 3}, Span{3, 5}, Span{5, 6}, Span{6, 8},
                                         Span{40, 44}, Span{84, 89}));
  EXPECT_EQ(schedule->transfers[0].span, (Span{0, 40}));
  EXPECT_EQ(schedule->transfers[1].span, (Span{44, 84}));
  ExpectValid({chain, model, 16}, *schedule, "x_0");
  const Footprint footprint = MeasureFootprint(model, *schedule);
  EXPECT_EQ(footprint.device_bytes, 16);
  EXPECT_EQ(footprint.host_bytes, 4);
  EXPECT_EQ(footprint.out_bytes, 4);
}

TEST(ChainSimulateTest, AnActivationStaysForItsForwardOp) {
  // F_1 reads x_1 and needs x_0 away. If x_1 leaves first, its way out ends before F_1 starts, but
  // gives nothing to F_1.
  Chain chain;
  chain.input_bytes = 10;
  chain.stages = {{"a", 1, 1, 5, 0, 0, 0}, {"b", 1, 1, 5, 0, 0, 0}, {"c", 1, 1, 1, 0, 0, 0}};
  const Model model = MakeModel(chain, kByteLink);
  ASSERT_EQ(model.peak_bytes, 21);
  const Bytes limit = 15;
  const auto first = Simulator(model, limit).Play({Out(0), Out(1), In(1), In(0)});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->ops[1].start_ns, 10);
  const auto second = Simulator(model, limit).Play({Out(1), Out(0), In(1), In(0)});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->ops[1].start_ns, 16);
  ExpectValid({chain, model, limit}, *first, "first");
  ExpectValid({chain, model, limit}, *second, "second");
}

TEST(ChainSimulateTest, RefusesWhatLocksUp) {
  const Model model = MakeModel(SmallChain(), kByteLink);
  Simulator simulator(model, 16);
  EXPECT_FALSE(simulator.Makespan({In(0), Out(0)}));
  EXPECT_FALSE(simulator.Makespan({Out(0)}));
  EXPECT_FALSE(simulator.Makespan({Out(0), Out(0), In(0)}));
  EXPECT_FALSE(simulator.Makespan({Out(2), In(2)}));                 // Too little has left.
  EXPECT_FALSE(simulator.Makespan({Out(0), Out(1), In(0), In(1)}));  // No room for x_1 after x_0.
  EXPECT_TRUE(simulator.Makespan({Out(0), In(0)}));  // Usable again after a refusal.
}

TEST(ChainSimulateTest, SolvesTheThreePartitionOfTheorem1) {
  // {1, 2, 3, 1, 2, 3} into two sums of 6: m = 2, V = 6, as in figure 2. The order decides.
  Chain chain;
  const std::vector<Bytes> parts = {1, 2, 3, 1, 2, 3};
  chain.input_bytes = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) chain.stages.push_back({"p", 0, 0, parts[i]});
  chain.stages.push_back({"empty", 0, 0, 0});
  for (int k = 0; k < 2; ++k) {
    chain.stages.push_back({"wait", 6, 0, 0});
    chain.stages.push_back({"take", 0, 0, 6});
  }
  chain.stages[6].backward_ns = 12;
  const Model model = MakeModel(chain, kByteLink);
  const Bytes limit = 12;
  Simulator simulator(model, limit);
  const Decision in = {In(5), In(4), In(3), In(2), In(1), In(0)};
  Decision good = {Out(0), Out(1), Out(2), Out(3), Out(4), Out(5)};
  Decision bad = {Out(2), Out(5), Out(0), Out(3), Out(1), Out(4)};
  Decision late = {Out(2), Out(1), Out(4), Out(0), Out(3), Out(5)};
  for (Decision* decision : {&good, &bad, &late}) {
    decision->insert(decision->end(), in.begin(), in.end());
  }
  EXPECT_EQ(simulator.Makespan(good), 24);  // Sums of 6 and 6: no idle time.
  EXPECT_EQ(simulator.Makespan(bad), 24);
  EXPECT_EQ(simulator.Makespan(late), 25);  // 3 + 2 + 2 reaches 6 one nanosecond late.
}

TEST(ChainSimulateTest, AgreesWithASlowReference) {
  std::mt19937_64 random(1);
  int played = 0;
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Chain chain = RandomChain({.most_stages = 7}, &random);
    const Model model = MakeModel(chain, kByteLink);
    const Bytes limit = RandomLimit(model, &random);
    const Decision decision = RandomDecision(model, &random);
    const auto slow = SlowPlay(chain, limit, decision).Run();
    const auto fast = Simulator(model, limit).Play(decision);
    ASSERT_EQ(fast.has_value(), slow.has_value()) << "round " << round;
    if (!fast) {
      ++refused;
      continue;
    }
    ++played;
    ASSERT_EQ(fast->iteration_ns(), *slow) << "round " << round;
    ExpectValid({chain, model, limit}, *fast, "round");
  }
  EXPECT_GT(played, 5'000);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace plimsoll::chain
