// SPDX-License-Identifier: Apache-2.0
//
// The dynamic program of `pofo`. As in DynProg (equations.h), forward is followed from its start
// and backward from its end, both up to stage i, and a state sums up what was decided below:
//
//      F_0 ─▶ ... F_{i-1} ─▶        memory:  on the device at the end of F_{i-1}, x_i included
//                            stages i .. n-1 are open
//      B_0 ◀─ ... B_{i-1} ◀─        to_send: still to leave then;
//                                   to_fetch: must come in before B_{i-1} starts
//
// and whether x_i is there with what F_{i-1} saved inside or as an output alone. From there, either
// stage i keeps everything, or a block of stages i .. j keeps x_i alone and is run again, by rotor
// in the memory that is left when its output's gradient is there; x_i stays or leaves. Times count
// in bytes that the link carries meanwhile. Transfers may be interrupted here. States are real
// numbers; of those that fall into one cell of memory only some are followed.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "plimsoll/chain/pofo_internal.h"

namespace plimsoll::chain {
namespace {

constexpr double kMemoryCells = 40;
/// States that are followed in each cell: fewer in long chains, where each has more to follow.
std::size_t StatesPerCell(std::size_t stages) {
  return std::clamp<std::size_t>(400 / stages, 3, 6);
}

struct State {
  double memory = 0;
  double to_send = 0;   ///< Negative: how long the link has had nothing to send.
  double to_fetch = 0;  ///< Negative: how long the link has nothing to fetch.
  double cost = 0;      ///< Idle time, and that of ops that run again.
  bool inside = false;  ///< Whether x_i has its inside.
  // How it came about.
  std::size_t from_stage = 0;
  std::size_t from_index = 0;
  bool offloads = false;  ///< Whether the input of the block before left.
  Block block;            ///< The one before.

  double sending() const { return std::max(0.0, to_send); }
  double fetching() const { return std::max(0.0, to_fetch); }
  /// What stays on the device once everything that is to leave has left.
  double kept() const { return memory - sending(); }
};

/// A state with the block that ends the chain, or without one if the state is past the last stage.
struct Ending {
  double cost = 0;
  std::size_t stage = 0;
  std::size_t index = 0;
  bool offloads = false;
  std::int64_t slots = -1;
};

class Program {
 public:
  Program(const Question& question, const RotorTable& table, Nanoseconds below_ns)
      : chain_(question.chain),
        table_(table),
        n_(question.model.stages),
        limit_(static_cast<double>(question.limit_bytes)),
        rate_(static_cast<double>(question.model.bandwidth_bytes_per_s) * 1e-9),
        bound_(static_cast<double>(below_ns - question.model.compute_ns) * rate_),
        layers_(n_ + 1),
        backward_ns_(n_ + 1, 0) {
    for (std::size_t i = 0; i < n_; ++i) {
      backward_ns_[i + 1] = backward_ns_[i] + static_cast<double>(chain_.stages[i].backward_ns);
    }
  }

  std::vector<Recipe> Run(std::size_t most) {
    State start;
    start.memory = static_cast<double>(chain_.input_bytes);
    layers_[0].push_back(start);
    for (std::size_t i = 0; i < n_; ++i) {
      Thin(&layers_[i]);
      for (std::size_t k = 0; k < layers_[i].size(); ++k) {
        Extend(i, k, false);
        if (i + 1 < n_) Extend(i, k, true);
      }
    }
    Thin(&layers_[n_]);
    for (std::size_t k = 0; k < layers_[n_].size(); ++k) {
      const State& state = layers_[n_][k];
      endings_.push_back({state.cost + IdleInTheMiddle(state), n_, k, false, -1});
    }
    std::stable_sort(endings_.begin(), endings_.end(),
                     [](const Ending& a, const Ending& b) { return a.cost < b.cost; });
    std::vector<Recipe> recipes;
    for (std::size_t k = 0; k < endings_.size() && recipes.size() < most; ++k) {
      recipes.push_back(RecipeOf(endings_[k]));
    }
    return recipes;
  }

 private:
  double Size(Bytes bytes) const { return static_cast<double>(bytes); }
  double InputSize(std::size_t i, bool inside) const {
    return Size(inside ? chain_.ActivationBytes(i) : chain_.OutputBytes(i));
  }

  /// About how long nothing runs between the last forward op and the first backward op.
  static double IdleInTheMiddle(const State& state) {
    if (state.to_send > 0 && state.to_fetch > 0) return state.to_send + state.to_fetch;
    return std::max(
        0.0, std::max(state.to_send, state.to_fetch) + std::min(state.to_send, state.to_fetch));
  }

  /// Keeps a few states for each amount of memory that is kept.
  void Thin(std::vector<State>* states) const {
    const auto cell = [this](const State& state) {
      return std::pair(state.inside, std::floor(state.kept() / limit_ * kMemoryCells));
    };
    // Backlogs may yet be hidden, in part.
    const auto worth = [](const State& state) {
      return state.cost + 0.3 * (state.sending() + state.fetching());
    };
    std::stable_sort(states->begin(), states->end(), [&](const State& a, const State& b) {
      return std::tuple(cell(a), worth(a)) < std::tuple(cell(b), worth(b));
    });
    std::vector<State> few;
    std::size_t begin = 0;  // Of the cell, in `few`.
    for (const State& state : *states) {
      if (!few.empty() && cell(few.back()) != cell(state)) begin = few.size();
      if (few.size() - begin >= StatesPerCell(n_)) continue;
      const bool dominated = std::any_of(
          few.begin() + static_cast<std::ptrdiff_t>(begin), few.end(), [&](const State& other) {
            return other.cost <= state.cost && other.to_send <= state.to_send &&
                   other.to_fetch <= state.to_fetch && other.kept() <= state.kept();
          });
      if (!dominated) few.push_back(state);
    }
    *states = std::move(few);
  }

  /// Adds every state that follows from state k of stage i.
  void Extend(std::size_t i, std::size_t k, bool offloads) {
    const State state = layers_[i][k];
    State next;
    next.from_stage = i;
    next.from_index = k;
    next.offloads = offloads;
    const double amount = offloads ? InputSize(i, state.inside) : 0;
    KeepAll(i, state, amount, next);
    RunAgain(i, state, amount, next);
    End(i, k, state, offloads);
  }

  void KeepAll(std::size_t i, const State& state, double amount, State next) {
    const Stage& stage = chain_.stages[i];
    const double made = Size(stage.kept_bytes);
    const double forward_excess = state.memory + Size(stage.forward_temp_bytes) + made - limit_;
    const double backward_excess =
        state.kept() + state.fetching() + made - limit_ +
        Size(stage.backward_temp_bytes + chain_.GradientBytes(i) + chain_.GradientBytes(i + 1));
    if (forward_excess > state.sending() || backward_excess > state.fetching()) return;
    const double forward_wait = std::max(0.0, forward_excess);
    const double backward_wait = std::max(0.0, backward_excess);
    next.block = {i, i, false, 0};
    next.inside = true;
    const double forward_time = forward_wait + static_cast<double>(stage.forward_ns) * rate_;
    const double backward_time = backward_wait + static_cast<double>(stage.backward_ns) * rate_;
    next.cost = state.cost + forward_wait + backward_wait;
    Move(state, amount, made, forward_time, backward_time, &next);
    Add(i + 1, next);
  }

  /// Equations 2 to 5, 7 and 8 of paper 002.
  static void Move(const State& state, double amount, double made, double forward_time,
                   double backward_time, State* next) {
    if (amount > 0) {
      next->to_send = state.sending() + amount - forward_time;
      next->to_fetch = amount + std::max(0.0, state.to_fetch - backward_time);
    } else {
      next->to_send = state.to_send - forward_time;
      next->to_fetch = state.to_fetch - backward_time;
    }
    next->memory = state.memory + made - std::min(state.sending() + amount, forward_time);
  }

  /// Blocks i .. j for all j but the last stage.
  void RunAgain(std::size_t i, const State& state, double amount, State next) {
    const double to_send = state.sending() + amount;
    double elapsed = 0;
    double waited = 0;
    for (std::size_t j = i; j + 1 < n_; ++j) {
      const Stage& stage = chain_.stages[j];
      const double sent = j == i ? 0 : std::min(to_send, elapsed);
      const double excess =
          state.memory - sent - limit_ +
          Size((j == i ? 0 : chain_.OutputBytes(j)) + stage.kept_bytes + stage.forward_temp_bytes);
      if (excess > (j == i ? state.sending() : to_send) - sent) return;
      waited += std::max(0.0, excess);
      elapsed += std::max(0.0, excess) + static_cast<double>(stage.forward_ns) * rate_;
      if (state.cost + waited > bound_) return;
      next.inside = false;
      // More memory for those who wait until less of what is below has to be there.
      const double held = state.kept() + state.fetching();
      double tried = RotorTable::kNever;
      for (const double share : {0.0, 0.5, 1.0}) {
        const double wait = share * state.fetching();
        if (share > 0 && wait <= 0) break;
        const auto slots = static_cast<std::int64_t>(
            std::floor((limit_ - held + wait) / static_cast<double>(table_.slot_bytes())));
        const double time = table_.Time(i, j, slots);
        if (time >= tried) continue;
        tried = time;
        next.block = {i, j, true, slots};
        next.cost =
            state.cost + waited + wait + (time - (backward_ns_[j + 1] - backward_ns_[i])) * rate_;
        Move(state, amount, Size(chain_.OutputBytes(j + 1)), elapsed, wait + time * rate_, &next);
        Add(j + 1, next);
      }
    }
  }

  void Add(std::size_t stage, const State& state) {
    if (state.cost <= bound_) layers_[stage].push_back(state);
  }

  /// The rest of the chain by rotor. How much of what is still to leave or to come is on the device
  /// meanwhile cannot be told; a few guesses are made, and judged later.
  void End(std::size_t i, std::size_t k, const State& state, bool offloads) {
    const double left = state.sending() + (offloads ? InputSize(i, state.inside) : 0);
    const double backlog = left + state.fetching();
    double ideal = 0;
    for (std::size_t j = i; j < n_; ++j) {
      ideal += static_cast<double>(chain_.stages[j].forward_ns + chain_.stages[j].backward_ns);
    }
    double tried = -1;
    for (const double share : {0.0, 0.25, 0.5, 1.0}) {
      const double free =
          limit_ - state.kept() - share * std::max(state.sending(), state.fetching());
      const auto slots =
          static_cast<std::int64_t>(std::floor(free / static_cast<double>(table_.slot_bytes())));
      const double time = table_.Time(i, n_ - 1, slots);
      if (time == RotorTable::kNever || time == tried) continue;
      tried = time;
      const double waits = (1 - share) * std::max(state.sending(), state.fetching());
      const double cost =
          state.cost + (time - ideal) * rate_ + std::max(0.5 * waits, backlog - time * rate_);
      if (cost <= bound_) endings_.push_back({cost, i, k, offloads, slots});
    }
  }

  Recipe RecipeOf(const Ending& ending) const {
    Recipe recipe;
    recipe.offloaded.assign(n_, 0);
    if (ending.slots >= 0) {
      recipe.blocks.push_back({ending.stage, n_ - 1, true, ending.slots});
      recipe.offloaded[ending.stage] = ending.offloads ? 1 : 0;
    }
    std::size_t stage = ending.stage;
    std::size_t index = ending.index;
    while (stage > 0) {
      const State& state = layers_[stage][index];
      recipe.blocks.push_back(state.block);
      stage = state.from_stage;
      index = state.from_index;
      recipe.offloaded[stage] = state.offloads ? 1 : 0;
    }
    std::reverse(recipe.blocks.begin(), recipe.blocks.end());
    return recipe;
  }

  const Chain& chain_;
  const RotorTable& table_;
  const std::size_t n_;
  const double limit_;
  const double rate_;  // Bytes that the link carries in a nanosecond.
  const double bound_;
  std::vector<std::vector<State>> layers_;  // By stage.
  std::vector<double> backward_ns_;         // Of all stages below.
  std::vector<Ending> endings_;
};

}  // namespace

std::vector<Recipe> ProposeRecipes(const Question& question, const RotorTable& table,
                                   Nanoseconds below_ns, std::size_t most) {
  return Program(question, table, below_ns).Run(most);
}

}  // namespace plimsoll::chain
