// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/rotor.h"

#include <gtest/gtest.h>

#include <map>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/reader.h"

namespace plimsoll::chain {
namespace {

/// What is on the device between two ops: outputs that stay until they are used, of which some with
/// their insides, and maybe the output of the op before, which goes if the next op does not read
/// it.
struct Stock {
  std::uint32_t outputs = 1;  ///< Bit i: x_i, or its output.
  std::uint32_t insides = 0;
  std::size_t passing = 0;  ///< x_i for the next op only; 0 for none.
  std::size_t left = 0;     ///< Backward ops.

  bool Has(std::size_t i) const { return (outputs >> i & 1U) != 0; }
  bool HasInside(std::size_t i) const { return (insides >> i & 1U) != 0; }
  auto Key() const { return std::tie(outputs, insides, passing, left); }
  bool operator<(const Stock& other) const { return Key() < other.Key(); }
};

/// The least time of any row of ops in which what is kept stays until it is used, by a search over
/// all that can be on the device (Dijkstra). Knows nothing of blocks, tables or orders.
class Walker {
 public:
  Walker(const Chain& chain, Bytes limit) : chain_(chain), n_(chain.stages.size()), limit_(limit) {}

  std::optional<Nanoseconds> Run() {
    Stock start;
    start.left = n_;
    Reach(start, 0);
    while (!queue_.empty()) {
      const auto [time, stock] = queue_.top();
      queue_.pop();
      if (time > best_.at(stock)) continue;
      if (stock.left == 0) return time;
      for (std::size_t i = 0; i < stock.left; ++i) TryForward(i, stock, time);
      TryBackward(stock, time);
    }
    return std::nullopt;
  }

 private:
  struct Later {
    bool operator()(const std::pair<Nanoseconds, Stock>& a,
                    const std::pair<Nanoseconds, Stock>& b) const {
      return a.first > b.first;
    }
  };

  void Reach(const Stock& stock, Nanoseconds time) {
    const auto [place, is_new] = best_.try_emplace(stock, time);
    if (!is_new && place->second <= time) return;
    place->second = time;
    queue_.emplace(time, stock);
  }

  Bytes Held(const Stock& stock) const {
    Bytes held = 0;
    for (std::size_t i = 0; i <= n_; ++i) {
      if (stock.Has(i)) held += chain_.OutputBytes(i);
      if (stock.HasInside(i)) held += chain_.stages[i - 1].inside_bytes;
    }
    return held + (stock.left < n_ ? chain_.GradientBytes(stock.left) : 0);
  }

  void TryForward(std::size_t i, const Stock& stock, Nanoseconds time) {
    const bool passes = stock.passing == i && i > 0;
    if ((!stock.Has(i) && !passes) || stock.Has(i + 1)) return;
    const Stage& stage = chain_.stages[i];
    const Bytes needed = Held(stock) + (passes ? chain_.OutputBytes(i) : 0) + stage.kept_bytes +
                         stage.forward_temp_bytes;
    if (needed > limit_) return;
    Stock next = stock;
    next.passing = i + 1;
    Reach(next, time + stage.forward_ns);
    next.passing = 0;
    next.outputs |= 1U << (i + 1);
    Reach(next, time + stage.forward_ns);
    if (!stock.Has(i)) return;  // F_all keeps its input: the literature's class of schedules.
    next.insides |= 1U << (i + 1);
    Reach(next, time + stage.forward_ns);
  }

  void TryBackward(const Stock& stock, Nanoseconds time) {
    const std::size_t i = stock.left - 1;
    if (!stock.Has(i) || !stock.HasInside(i + 1)) return;
    const Stage& stage = chain_.stages[i];
    const Bytes given = stock.left == n_ ? chain_.GradientBytes(n_) : 0;
    if (Held(stock) + given + stage.backward_temp_bytes + chain_.GradientBytes(i) > limit_) return;
    Stock next = stock;
    next.passing = 0;
    next.left = i;
    next.outputs &= ~(1U << (i + 1));
    next.insides &= ~(1U << (i + 1));
    // An output without its inside has to be made again.
    if (i > 0 && !next.HasInside(i)) next.outputs &= ~(1U << i);
    Reach(next, time + stage.backward_ns);
  }

  const Chain& chain_;
  const std::size_t n_;
  const Bytes limit_;
  std::map<Stock, Nanoseconds> best_;
  std::priority_queue<std::pair<Nanoseconds, Stock>, std::vector<std::pair<Nanoseconds, Stock>>,
                      Later>
      queue_;
};

TEST(RotorTest, IsOptimalOnRandomSmallChains) {
  std::mt19937_64 random(21);
  int fits = 0;
  int recomputes = 0;
  for (int round = 0; round < 1'500; ++round) {
    SCOPED_TRACE(round);
    Chain chain = RandomChain(
        {.most_stages = round % 10 == 0 ? 7U : 5U, .most_bytes = 12, .insides = true}, &random);
    chain.output_gradient_bytes = DrawBetween(0, 6, &random);
    const Model model = MakeModel(chain, kByteLink);
    const Bytes limit = DrawBetween(model.smallest_limit_bytes / 2, model.peak_bytes, &random);
    const Question question = {chain, model, limit};
    const auto schedule = PlanRotor(question, {});
    const auto least = Walker(chain, limit).Run();
    ASSERT_EQ(schedule.has_value(), least.has_value());
    if (!schedule) continue;
    ExpectValid(question, *schedule, "rotor");
    EXPECT_EQ(schedule->iteration_ns(), *least);
    ++fits;
    recomputes += schedule->iteration_ns() > model.compute_ns ? 1 : 0;
  }
  EXPECT_GT(fits, 400);
  EXPECT_GT(recomputes, 150);
}

/// Four stages that keep 4 bytes each, of which 1 is the output; forward 1 ns, backward 2 ns.
Chain EvenChain() {
  Chain chain;
  chain.name = "even";
  chain.input_bytes = 1;
  chain.stages.assign(4, {"s", 1, 2, 4, 0, 0, 0, 3});
  return chain;
}

TEST(RotorTest, RunsAsFewStagesAgainAsItMust) {
  const Chain chain = EvenChain();
  const Model model = MakeModel(chain, kByteLink);
  const auto time = [&](Bytes limit) {
    const auto schedule = PlanRotor({chain, model, limit}, {});
    if (!schedule) return Nanoseconds{0};
    ExpectValid({chain, model, limit}, *schedule, "even");
    return schedule->iteration_ns();
  };
  EXPECT_EQ(model.peak_bytes, 17);
  EXPECT_EQ(time(17), 12);
  EXPECT_EQ(time(14), 13);  // The inside of one stage is made again,
  EXPECT_EQ(time(13), 14);  // of two,
  EXPECT_EQ(time(11), 14);
  EXPECT_EQ(time(8), 15);  // of three: x_0 .. x_3 as outputs, and x_4 whole.
  EXPECT_EQ(time(7), 16);  // x_1 .. x_3 do not all fit beside x_0 any more.
  EXPECT_EQ(time(4), 0);   // Not even x_0 and x_1.
}

TEST(RotorTest, RoundedSlotsAreCloseToExactOnes) {
  std::mt19937_64 random(23);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Chain chain = RandomChain(
        {.least_stages = 4, .most_stages = 9, .most_bytes = 200, .insides = true}, &random);
    const Model model = MakeModel(chain, kByteLink);
    const Question question = {chain, model, RandomLimit(model, &random)};
    const auto exact = RotorOrder(question, MakeRotorTable(question, 10'000));
    const auto rounded = RotorOrder(question, MakeRotorTable(question, 100));
    if (!exact) continue;
    const auto time = [&](const Order& order) {
      const Model ordered = MakeModel(chain, kByteLink, order);
      EXPECT_LE(ordered.peak_bytes, question.limit_bytes);
      return static_cast<double>(ordered.compute_ns);
    };
    if (!rounded) continue;
    EXPECT_GE(time(*rounded), time(*exact));
    EXPECT_LE(time(*rounded), 1.25 * time(*exact));
  }
}

TEST(RotorTest, MeasuredChainsFitAtTheSmallestLimitOfOffloading) {
  for (const char* name : {"resnet18_b32_s224", "densenet121_b32_s224", "vit_b_16_b64_s224"}) {
    const Chain chain = ReadChain(std::string(PLIMSOLL_DATA_DIR "/chains/") + name + ".json");
    const Model model = MakeModel(chain, 12'200'000'000);
    const Question question = {chain, model, model.smallest_limit_bytes};
    const auto schedule = PlanRotor(question, {});
    ASSERT_TRUE(schedule) << name;
    ExpectValid(question, *schedule, name);
    // Recomputing everything once would be a third more.
    EXPECT_LT(static_cast<double>(schedule->iteration_ns()),
              1.5 * static_cast<double>(model.compute_ns))
        << name;
  }
}

}  // namespace
}  // namespace plimsoll::chain
