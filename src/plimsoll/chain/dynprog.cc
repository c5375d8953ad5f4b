// SPDX-License-Identifier: Apache-2.0
//
// DynProg, paper 002, section 5.3: Algorithm 1 finds the sets of activations with the least idle
// time if transfers could be interrupted, in memory cut into slots; the ordered, no-wait schedule
// of such a set is the answer, of several the one that ends first. Sizes are rounded as in section
// 5.3.2. An entry that another one dominates, or whose idle time cannot end below that of a known
// set, is not followed: the least idle time stays the same.
#include "plimsoll/chain/dynprog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/chain/fractional.h"
#include "plimsoll/chain/planner.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {
namespace {

using Slots = std::int64_t;
using SlotPhase = Phase<Slots>;

Slots RoundUp(double value) { return static_cast<Slots>(std::ceil(value - 1e-9)); }
Slots RoundDown(double value) { return static_cast<Slots>(std::floor(value + 1e-9)); }

/// Rounds a row of values so that every partial sum is off by less than one slot.
std::vector<Slots> RoundPartialSums(const std::vector<double>& values, double slot,
                                    Slots (*round)(double)) {
  std::vector<Slots> result;
  double sum = 0;
  Slots rounded_sum = 0;
  for (const double value : values) {
    sum += value;
    const Slots rounded = round(sum / slot);
    result.push_back(rounded - rounded_sum);
    rounded_sum = rounded;
  }
  return result;
}

std::vector<Slots> RoundEachUp(const std::vector<double>& values, double slot) {
  std::vector<Slots> result;
  result.reserve(values.size());
  for (const double value : values) result.push_back(RoundUp(value / slot));
  return result;
}

/// Rounding up must not make an op impossible that fits: then its temporaries give way.
void EaseOps(Terms<Slots>* terms) {
  for (std::size_t i = 0; i < terms->stages(); ++i) {
    const Slots read = terms->activation[i] + terms->activation[i + 1];
    const Slots gradients = terms->gradient[i] + terms->gradient[i + 1];
    Slots& forward = terms->forward_temp[i];
    Slots& backward = terms->backward_temp[i];
    forward = std::min(forward, terms->limit - read);
    backward = std::min(backward, terms->limit - read - gradients);
  }
}

struct Entry {
  SlotPhase phase;
  std::int32_t parent = -1;  // In the table before.
  bool offloads = false;     // Whether the stage between offloads its input.
};

/// What stays on the device once everything that is to leave has left.
Slots KeptSlots(const SlotPhase& phase) { return phase.memory - std::max(Slots{0}, phase.to_send); }

/// Pairs of which none is at most another one in both numbers.
class Staircase {
 public:
  /// Returns false if a pair before is at most this one in both.
  bool Add(Slots to_send, Slots to_fetch) {
    const auto above = steps_.upper_bound(to_send);
    if (above != steps_.begin() && std::prev(above)->second <= to_fetch) return false;
    auto step = steps_.lower_bound(to_send);
    while (step != steps_.end() && step->second >= to_fetch) step = steps_.erase(step);
    steps_.emplace(to_send, to_fetch);
    return true;
  }

 private:
  std::map<Slots, Slots> steps_;  // to_fetch falls as to_send grows.
};

/// Returns the entries that no other one dominates: one that keeps as much, and has no more idle
/// time, to send and to fetch. Equations 1 to 10 are monotone in all of these, so that whatever
/// follows the dominated entry ends no earlier. (The hash tables of the paper drop equal ones
/// only.)
std::vector<Entry> Undominated(std::vector<Entry> entries) {
  const auto key = [](const Entry& entry) {
    return std::tuple(KeptSlots(entry.phase), entry.phase.idle, entry.phase.to_send,
                      entry.phase.to_fetch);
  };
  std::stable_sort(entries.begin(), entries.end(),
                   [&key](const Entry& a, const Entry& b) { return key(a) < key(b); });
  std::vector<Entry> front;
  Staircase staircase;
  for (std::size_t k = 0; k < entries.size(); ++k) {
    const SlotPhase& phase = entries[k].phase;
    if (k > 0 && KeptSlots(phase) != KeptSlots(entries[k - 1].phase)) staircase = {};
    if (staircase.Add(phase.to_send, phase.to_fetch)) front.push_back(entries[k]);
  }
  return front;
}

/// Algorithm 1.
class Table {
 public:
  explicit Table(const Terms<Slots>& terms) : terms_(terms), n_(terms.stages()) {
    rest_.resize(n_ + 1, 0);
    Slots below = 0;
    for (std::size_t i = n_; i-- > 0;) {
      rest_[i] = rest_[i + 1] + terms.forward[i] + terms.backward[i];
    }
    for (std::size_t i = 0; i < n_; ++i) {
      const Slots read = below + terms.activation[i] + terms.activation[i + 1];
      peak_ = std::max({peak_, read + terms.forward_temp[i],
                        read + terms.backward_temp[i] + terms.gradient[i] + terms.gradient[i + 1]});
      below += terms.activation[i];
    }
  }

  /// Returns sets with the least idle time, all that were found; none if no set fits.
  std::vector<std::vector<char>> Solve() {
    const std::vector<std::vector<char>> prefixes = BestPrefixes();
    layers_.assign(1, {Entry{FirstPhase(terms_), -1, false}});
    Slots produced = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      produced += terms_.activation[i];
      Extend(i, produced);
    }
    Slots least = std::numeric_limits<Slots>::max();
    std::vector<std::vector<char>> sets;
    for (std::size_t k = 0; k < layers_[n_].size(); ++k) {
      const SlotPhase& phase = layers_[n_][k].phase;
      const Slots idle = phase.idle + IdleBetween(terms_, phase);
      if (idle > least) continue;
      if (idle < least) sets.clear();
      least = idle;
      sets.push_back(SetOf(k));
    }
    if (least == bound_) sets.insert(sets.end(), prefixes.begin(), prefixes.end());
    return sets;
  }

 private:
  std::vector<char> SetOf(std::size_t entry) const {
    std::vector<char> offloaded(n_, 0);
    auto index = static_cast<std::int32_t>(entry);
    for (std::size_t i = n_; i-- > 0;) {
      const Entry& last = layers_[i + 1][static_cast<std::size_t>(index)];
      offloaded[i] = last.offloads ? 1 : 0;
      index = last.parent;
    }
    return offloaded;
  }

  /// Sets the bound: the least idle time over the first k activations, for all k, which the best
  /// set does not exceed. Returns those that reach it.
  std::vector<std::vector<char>> BestPrefixes() {
    std::vector<std::vector<char>> best;
    for (std::size_t count = 0; count <= n_; ++count) {
      SlotPhase phase = FirstPhase(terms_);
      bool fits = true;
      for (std::size_t i = 0; i < n_ && fits; ++i) {
        const auto next = PassStage(terms_, i, phase, i < count ? terms_.activation[i] : Slots{0});
        fits = next.has_value();
        if (fits) phase = *next;
      }
      if (!fits) continue;
      const Slots idle = phase.idle + IdleBetween(terms_, phase);
      if (idle > bound_) continue;
      if (idle < bound_) best.clear();
      bound_ = idle;
      best.emplace_back(n_, 0);
      std::fill_n(best.back().begin(), count, 1);
    }
    return best;
  }

  /// No completion of the phase has less idle time: the link still has to carry what waits and
  /// what must yet leave to get under the limit, twice, and the ops that are left hide only so
  /// much.
  Slots LeastIdle(std::size_t i, const SlotPhase& phase, Slots produced) const {
    const Slots kept = phase.memory - std::max(Slots{0}, phase.to_send);  // With x_i.
    const Slots left = produced + terms_.activation[i] - kept;
    const Slots missing = std::max(Slots{0}, peak_ - terms_.limit - left);
    return phase.idle + std::max(Slots{0}, phase.to_send + phase.to_fetch + 2 * missing - rest_[i]);
  }

  /// `produced` is the sum of x_0 .. x_i.
  void Extend(std::size_t i, Slots produced) {
    const std::vector<Entry>& layer = layers_.back();
    std::vector<Entry> entries;
    for (std::size_t k = 0; k < layer.size(); ++k) {
      for (const bool offloads : {false, true}) {
        const Slots amount = offloads ? terms_.activation[i] : Slots{0};
        const auto next = PassStage(terms_, i, layer[k].phase, amount);
        if (!next || LeastIdle(i + 1, *next, produced) > bound_) continue;
        entries.push_back({*next, static_cast<std::int32_t>(k), offloads});
      }
    }
    layers_.push_back(Undominated(std::move(entries)));
  }

  const Terms<Slots>& terms_;
  const std::size_t n_;
  std::vector<Slots> rest_;  // What the link carries during stages i .. n-1, both phases.
  Slots peak_ = 0;           // M_peak in slots.
  Slots bound_ = std::numeric_limits<Slots>::max();
  std::vector<std::vector<Entry>> layers_;
};

/// Returns the set whose ordered schedule ends first, of equals the one that carries least; nothing
/// if none can be played. The dynamic program cannot tell its best sets apart, the simulator can.
std::optional<std::vector<char>> QuickestOf(const std::vector<std::vector<char>>& sets,
                                            const Model& model, Simulator* simulator) {
  const std::vector<char>* best = nullptr;
  std::pair<Nanoseconds, Bytes> least;
  for (const std::vector<char>& set : sets) {
    const std::optional<Nanoseconds> makespan = simulator->Makespan(OrderedDecision(set));
    if (!makespan) continue;
    Bytes carried = 0;
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (set[i] != 0) carried += model.activation_bytes[i];
    }
    const std::pair score(*makespan, carried);
    if (best != nullptr && score >= least) continue;
    best = &set;
    least = score;
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

}  // namespace

std::optional<std::vector<char>> DynProgSet(const Question& question, std::int64_t slots) {
  // Rounded up, even what fits might not.
  if (question.limit_bytes >= question.model.peak_bytes) {
    return std::vector<char>(question.model.stages, 0);
  }
  const Terms<double> real = RealTerms(question.chain, question.model, question.limit_bytes);
  const double slot = real.limit / static_cast<double>(slots);
  std::vector<Slots> activation = RoundPartialSums(real.activation, slot, RoundUp);
  Simulator simulator(question.model, question.limit_bytes);
  for (;;) {
    Terms<Slots> terms;
    terms.activation = activation;
    terms.gradient = RoundEachUp(real.gradient, slot);
    terms.forward_temp = RoundEachUp(real.forward_temp, slot);
    terms.backward_temp = RoundEachUp(real.backward_temp, slot);
    terms.forward = RoundPartialSums(real.forward, slot, RoundDown);
    terms.backward = RoundPartialSums(real.backward, slot, RoundDown);
    terms.limit = slots;
    EaseOps(&terms);
    std::optional<std::vector<char>> offloaded =
        QuickestOf(Table(terms).Solve(), question.model, &simulator);
    if (offloaded) return offloaded;
    // Section 5.3.2: what was rounded down the least is rounded up, and all is tried again.
    std::size_t closest = activation.size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < activation.size(); ++i) {
      const double below = real.activation[i] / slot - static_cast<double>(activation[i]);
      if (below <= 1e-9 || below >= least) continue;
      least = below;
      closest = i;
    }
    if (closest == activation.size()) return std::nullopt;
    ++activation[closest];
  }
}

std::optional<Schedule> PlanDynProg(const Question& question, const PlannerOptions& /*options*/) {
  const std::optional<std::vector<char>> offloaded = DynProgSet(question, kDynProgSlots);
  if (!offloaded) return std::nullopt;
  return Simulator(question.model, question.limit_bytes).Play(OrderedDecision(*offloaded));
}

}  // namespace plimsoll::chain
