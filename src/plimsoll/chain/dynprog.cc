// SPDX-License-Identifier: Apache-2.0
//
// DynProg, paper 002, section 5.3: Algorithm 1 with hash tables finds the set of activations with
// the least idle time if transfers could be interrupted, in memory cut into slots; the ordered,
// no-wait schedule of that set is the answer. Sizes are rounded as in section 5.3.2. An entry whose
// idle time cannot end below that of a known set is not followed, which changes no result.
#include "plimsoll/chain/dynprog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

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

struct PhaseKey {
  Slots memory;
  Slots to_send;
  Slots to_fetch;

  friend bool operator==(const PhaseKey&, const PhaseKey&) = default;
};

struct PhaseKeyHash {
  std::size_t operator()(const PhaseKey& key) const {
    std::uint64_t hash = static_cast<std::uint64_t>(key.memory);
    hash = (hash ^ (hash >> 31)) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(key.to_send);
    hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9U + static_cast<std::uint64_t>(key.to_fetch);
    hash = (hash ^ (hash >> 32)) * 0x94d049bb133111ebU;
    return static_cast<std::size_t>(hash ^ (hash >> 30));
  }
};

struct Entry {
  SlotPhase phase;
  std::int32_t parent = -1;  // In the table before.
  bool offloads = false;     // Whether the stage between offloads its input.
};

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

  /// Returns the set with the least idle time, or nothing if none fits.
  std::optional<std::vector<char>> Solve() {
    SetBound();
    layers_.assign(1, {Entry{FirstPhase(terms_), -1, false}});
    Slots produced = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      produced += terms_.activation[i];
      Extend(i, produced);
    }
    const std::vector<Entry>& last = layers_[n_];
    std::int32_t best = -1;
    Slots least = std::numeric_limits<Slots>::max();
    for (std::size_t k = 0; k < last.size(); ++k) {
      const Slots idle = last[k].phase.idle + IdleBetween(terms_, last[k].phase);
      if (idle >= least) continue;
      least = idle;
      best = static_cast<std::int32_t>(k);
    }
    if (best < 0) return std::nullopt;
    std::vector<char> offloaded(n_, 0);
    for (std::size_t i = n_; i-- > 0;) {
      const Entry& entry = layers_[i + 1][static_cast<std::size_t>(best)];
      offloaded[i] = entry.offloads ? 1 : 0;
      best = entry.parent;
    }
    return offloaded;
  }

 private:
  /// The first k activations, for every k, give an idle time that the best set does not exceed.
  void SetBound() {
    for (std::size_t count = 0; count <= n_; ++count) {
      SlotPhase phase = FirstPhase(terms_);
      bool fits = true;
      for (std::size_t i = 0; i < n_ && fits; ++i) {
        const auto next = PassStage(terms_, i, phase, i < count ? terms_.activation[i] : Slots{0});
        fits = next.has_value();
        if (fits) phase = *next;
      }
      if (fits) bound_ = std::min(bound_, phase.idle + IdleBetween(terms_, phase));
    }
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
    std::unordered_map<PhaseKey, std::int32_t, PhaseKeyHash> found;
    std::vector<Entry> next_layer;
    const std::vector<Entry>& layer = layers_.back();
    for (std::size_t k = 0; k < layer.size(); ++k) {
      for (const bool offloads : {false, true}) {
        const Slots amount = offloads ? terms_.activation[i] : Slots{0};
        const auto next = PassStage(terms_, i, layer[k].phase, amount);
        if (!next || LeastIdle(i + 1, *next, produced) > bound_) continue;
        const Entry entry = {*next, static_cast<std::int32_t>(k), offloads};
        const auto [place, inserted] =
            found.try_emplace({next->memory, next->to_send, next->to_fetch},
                              static_cast<std::int32_t>(next_layer.size()));
        if (inserted) {
          next_layer.push_back(entry);
        } else if (next->idle < next_layer[static_cast<std::size_t>(place->second)].phase.idle) {
          next_layer[static_cast<std::size_t>(place->second)] = entry;
        }
      }
    }
    layers_.push_back(std::move(next_layer));
  }

  const Terms<Slots>& terms_;
  const std::size_t n_;
  std::vector<Slots> rest_;  // What the link carries during stages i .. n-1, both phases.
  Slots peak_ = 0;           // M_peak in slots.
  Slots bound_ = std::numeric_limits<Slots>::max();
  std::vector<std::vector<Entry>> layers_;
};

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
    std::optional<std::vector<char>> offloaded = Table(terms).Solve();
    if (offloaded && simulator.Makespan(OrderedDecision(*offloaded))) return offloaded;
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
