// SPDX-License-Identifier: Apache-2.0
//
// `tight`, the default planner. Four stages, each of which stops as soon as the lower bound (or
// the capacity asked for) is reached:
//
//   1. Dives: greedy skylines in several orders, milliseconds each (skyline.h). First fit and best
//      fit in several orders, where there is something that dives cannot do.
//   2. Wheel: orders for first fit that are learned from what does not fit (wheel.h); only if the
//      budget is one of nodes, as it is when plans are made.
//   3. Search: exact search on the core of the problem, the sections that set the peak (search.h,
//      core.h), at the lower bound first and then at capacities between it and the best so far. A
//      placement of the core is completed first-fit; a core that is proved not to fit raises the
//      bound. Restarts with other orders and twice the nodes, until the time budget ends.
//   4. Rivals: every other planner, so that `tight` is never worse than any of them. They run even
//      when the time budget is spent; only beyond 200 thousand buffers, where some of them take
//      long, is half a percent over the bound good enough to go without (unless a capacity asks for
//      less).
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/place/core.h"
#include "plimsoll/place/load.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/reduced.h"
#include "plimsoll/place/search.h"
#include "plimsoll/place/skyline.h"
#include "plimsoll/place/smartpool.h"
#include "plimsoll/place/wheel.h"

namespace plimsoll::place {
namespace {

class TightPlanner {
 public:
  TightPlanner(const Problem& problem, const PlannerOptions& options)
      : problem_(problem),
        options_(options),
        deadline_(options.node_budget < 0 ? Deadline(options.time_budget_seconds)
                                          : Deadline::Never()),
        nodes_left_(options.node_budget < 0 ? kUnlimited : options.node_budget),
        reduced_(Reduce(problem)),
        bound_(reduced_.lower_bound) {}

  Placement Run() {
    best_.lower_bound_bytes = reduced_.has_padding ? LowerBound(problem_) : bound_ * reduced_.unit;
    if (!reduced_.has_fixed) TryDives();
    if (!Done() && MayTryInOrder()) TryInOrder();
    // Completing a core of so many is not counted in nodes, and takes minutes.
    const bool searchable = options_.node_budget < 0 || reduced_.items.size() <= kMostPerNode;
    if (!Done() && MayTurnWheel()) TurnWheel();
    if (!Done() && !GoodEnough() && BestHeight() > bound_ && searchable) SearchCores();
    if (!Done() && !GoodEnough() && options_.node_budget < 0) TryRivals();
    best_.lower_bound_bytes = BoundBytes();
    return std::move(best_);
  }

 private:
  /// Whether nothing better is wanted, or nothing better exists.
  bool Done() const {
    if (best_.offsets.empty() && !problem_.buffers.empty()) return false;
    // In a large problem, what the rounding of the topmost buffer might save is not worth the time.
    const bool exact = reduced_.items.size() <= kLarge;
    const Bytes least = exact ? BoundBytes() : bound_ * reduced_.unit;
    return best_.footprint_bytes <= std::max(options_.capacity_bytes, least);
  }

  /// The footprint that nothing can beat, as far as is proved.
  Bytes BoundBytes() const {
    if (!reduced_.has_padding) return bound_ * reduced_.unit;
    if (bound_ == reduced_.lower_bound) return best_.lower_bound_bytes;
    // The proof is in rounded units: a placement one unit lower does not exist.
    return std::max(best_.lower_bound_bytes, (bound_ - 1) * reduced_.unit + 1);
  }

  Units BestHeight() const { return (best_.footprint_bytes + reduced_.unit - 1) / reduced_.unit; }

  /// Keeps the placement if it is the best so far.
  bool Keep(std::vector<Bytes> offsets) {
    const Bytes footprint = HighestTop(problem_, offsets);
    if (!best_.offsets.empty() && footprint >= best_.footprint_bytes) return false;
    best_.offsets = std::move(offsets);
    best_.footprint_bytes = footprint;
    if (options_.on_progress) options_.on_progress(footprint, BoundBytes());
    return true;
  }

  /// Whether the problem is so large that what is left to gain is not worth the time.
  bool GoodEnough() const {
    const auto bound = static_cast<double>(bound_ * reduced_.unit);
    return reduced_.items.size() > kHuge && options_.capacity_bytes < 0 &&
           static_cast<double>(best_.footprint_bytes) <= kGoodEnough * bound;
  }

  void TryDives() {
    struct Attempt {
      DiveKey key;
      bool critical_first;
    };
    constexpr std::array<Attempt, 10> kAttempts = {{{DiveKey::kTime, false},
                                                    {DiveKey::kTimeArea, false},
                                                    {DiveKey::kTimeArea, true},
                                                    {DiveKey::kArea, false},
                                                    {DiveKey::kArea, true},
                                                    {DiveKey::kSize, false},
                                                    {DiveKey::kSize, true},
                                                    {DiveKey::kTime, true},
                                                    {DiveKey::kLength, false},
                                                    {DiveKey::kLength, true}}};
    // Where a dive takes long, the search makes more of the time than the weaker orders do.
    const std::size_t attempts = reduced_.items.size() > kLarge ? 5 : kAttempts.size();
    SkylineDiver diver(reduced_);
    for (std::size_t a = 0; a < attempts; ++a) {
      Keep(reduced_.Expand(problem_, diver.Dive(kAttempts[a].key, kAttempts[a].critical_first)));
      if (Done() || GoodEnough() || deadline_.passed()) return;
    }
  }

  /// Dives cannot step around fixed buffers, and use no gaps but those around the end of a cycle.
  /// To come under a capacity, the search is better at gaps than any order, and takes no longer.
  bool MayTryInOrder() const {
    if (reduced_.has_fixed) return true;
    return reduced_.has_gaps && reduced_.items.size() <= kLarge && !IsForPlans();
  }

  /// First fit and best fit, in several orders.
  void TryInOrder() {
    for (const auto key :
         {&Reduced::Item::size_key, &Reduced::Item::area_key, &Reduced::Item::length_key}) {
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < reduced_.items.size(); ++i) {
        if (reduced_.items[i].fixed_offset < 0) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
        return (reduced_.items[x].*key)() > (reduced_.items[y].*key)();
      });
      for (std::size_t& i : order) i = reduced_.items[i].buffer;
      for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
        std::vector<Bytes> offsets = FixedOffsets(problem_);
        const Bytes ceiling = best_.offsets.empty() ? kMaxBytes : best_.footprint_bytes;
        if (!PlaceInOrder(problem_, order, fit, &offsets, ceiling)) continue;
        std::replace(offsets.begin(), offsets.end(), kUnplaced, Bytes{0});
        Keep(std::move(offsets));
        if (Done() || deadline_.passed()) return;
      }
    }
  }

  /// In a large problem only to go as low as can be: to put the small ones around takes long.
  bool MayTurnWheel() const {
    return options_.node_budget > 0 && !reduced_.has_fixed && reduced_.uniform_alignment &&
           reduced_.items.size() <= (options_.capacity_bytes < 0 ? kMostPerNode : kLarge);
  }

  /// Looks for orders within the capacity that is asked for, or within less and less.
  void TurnWheel() {
    // With no room at all, it has never been seen to find a placement.
    const auto least = static_cast<Bytes>(kRoomForWheel * static_cast<double>(BoundBytes()));
    if (options_.capacity_bytes >= 0) {
      if (options_.capacity_bytes >= least) TurnWheel(options_.capacity_bytes);
      return;
    }
    Bytes low = least;
    for (int k = 0; k < kCapacities; ++k) {
      const Bytes capacity = (low + best_.footprint_bytes) / 2;
      if (capacity <= low || capacity >= best_.footprint_bytes) return;
      if (!TurnWheel(capacity)) low = capacity;
    }
  }

  /// Looks for an order in which the large items fit, and puts the small ones around them; if there
  /// is no room for these, an order that leaves some. True if all of it fits.
  bool TurnWheel(Bytes capacity_bytes) {
    Wheel wheel(reduced_, capacity_bytes / reduced_.unit, options_.seed);
    std::int64_t placements = kPlacementsPerNode * options_.node_budget;
    for (const double share : {0.0, 0.5, 1.0}) {
      const auto reserve = static_cast<Units>(share * static_cast<double>(wheel.small_load()));
      if (!wheel.Turn(reserve, &placements)) return false;
      std::vector<Bytes> offsets = FixedOffsets(problem_);
      for (std::size_t k = 0; k < wheel.items().size(); ++k) {
        offsets[reduced_.items[wheel.items()[k]].buffer] = wheel.offsets()[k] * reduced_.unit;
      }
      PlaceRest(std::move(offsets));
      if (best_.footprint_bytes <= capacity_bytes) return true;
    }
    return false;
  }

  void TryRivals() {
    // Also of buffers that hold nothing and so are not in the reduced problem.
    const bool has_fixed =
        std::any_of(problem_.buffers.begin(), problem_.buffers.end(),
                    [](const Buffer& buffer) { return buffer.fixed_offset.has_value(); });
    for (const Planner& rival : Planners()) {
      if (rival.place == &PlaceTight || rival.place == &PlaceCudaMalloc) continue;
      if (rival.online && has_fixed) continue;
      Keep(rival.place(problem_, options_).offsets);
      if (Done()) return;
    }
  }

  /// Rounds of growing patience; in each, capacities between the bound and the best so far.
  void SearchCores() {
    const bool has_capacity = options_.capacity_bytes >= 0;
    if (has_capacity && options_.capacity_bytes < BoundBytes()) return;  // Nothing would fit.
    // Rounded up: whatever lies on top needs no padding, so a placement within one unit more may
    // fit; Done() judges it in bytes.
    const Units wanted =
        has_capacity ? (options_.capacity_bytes + reduced_.unit - 1) / reduced_.unit : 0;
    cores_ = ExtractCores(reduced_, std::max(wanted, bound_));
    searches_.resize(cores_.size());
    for (int round = 0; !cores_.empty() && !Done() && !IsOver(); ++round) {
      Units low = std::max(bound_, wanted);
      while (low < BestHeight() && !Done() && !IsOver()) {
        if (TryCapacity(low, round)) continue;
        if (has_capacity && options_.capacity_bytes < BoundBytes()) return;  // Proved.
        if (has_capacity) break;
        // Not found is not proved, but this round gives the lower half up.
        low = std::max({low + 1, bound_, (low + BestHeight()) / 2});
      }
      if (round > kMostRounds) return;
    }
  }

  /// Looks for a placement within the capacity, with every strategy; true if one was found.
  bool TryCapacity(Units capacity, int round) {
    for (int s = 0; s < kSearchOrders * kSectionRules; ++s) {
      SearchStrategy strategy;
      strategy.order = static_cast<SearchOrder>(s / kSectionRules);
      strategy.rule = static_cast<SectionRule>(s % kSectionRules);
      strategy.noise = round == 0 ? 0 : 0.1;
      for (std::size_t c = first_core_; c < cores_.size(); ++c) {
        const SearchStatus status = SearchCore(c, capacity, strategy, round);
        if (IsOver() && status != SearchStatus::kFound) return false;
        if (status == SearchStatus::kInfeasible) {
          bound_ = std::max(bound_, capacity + 1);
          return false;
        }
        if (status == SearchStatus::kGaveUp) break;
        if (Complete(c, capacity)) return true;
        // The core fits but leaves no room for the rest: a thicker core must have it in view.
        first_core_ = std::min(c + 1, cores_.size() - 1);
      }
    }
    return false;
  }

  SearchStatus SearchCore(std::size_t c, Units capacity, const SearchStrategy& strategy,
                          int round) {
    const Core& core = cores_[c];
    if (capacity < core.base_height) return SearchStatus::kInfeasible;
    // Each node places one item: with fewer of them nothing can be found.
    if (nodes_left_ < static_cast<std::int64_t>(core.items.size())) return SearchStatus::kGaveUp;
    if (!searches_[c]) {
      searches_[c] = std::make_unique<SkylineSearch>(core.problem, options_.seed + c);
    }
    const auto patience = static_cast<std::int64_t>(2 * core.items.size() + 500) << round;
    const SearchStatus status = searches_[c]->Run(capacity - core.base_height, strategy,
                                                  std::min(patience, nodes_left_), deadline_);
    if (nodes_left_ != kUnlimited) nodes_left_ -= std::min(nodes_left_, searches_[c]->nodes());
    return status;
  }

  /// Puts the rest around the placed core; true if all of it is within the capacity.
  bool Complete(std::size_t c, Units capacity) {
    const Core& core = cores_[c];
    std::vector<Bytes> offsets = FixedOffsets(problem_);
    Units height = 0;
    for (const std::size_t i : core.base) {
      offsets[reduced_.items[i].buffer] = height * reduced_.unit;
      height += reduced_.items[i].size;
    }
    for (std::size_t k = 0; k < core.items.size(); ++k) {
      const Units offset = height + searches_[c]->offsets()[k];
      offsets[reduced_.items[core.items[k]].buffer] = offset * reduced_.unit;
    }
    if (!PlaceRest(std::move(offsets))) return false;
    return BestHeight() <= capacity;
  }

  /// Puts what is unplaced around the rest, first-fit by decreasing area, and keeps that if it is
  /// the best so far; false if it is not.
  bool PlaceRest(std::vector<Bytes> offsets) {
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < reduced_.items.size(); ++i) {
      if (offsets[reduced_.items[i].buffer] == kUnplaced) rest.push_back(i);
    }
    std::sort(rest.begin(), rest.end(), [&](std::size_t x, std::size_t y) {
      const double a = reduced_.items[x].area_key();
      const double b = reduced_.items[y].area_key();
      return a != b ? a > b : x < y;
    });
    for (std::size_t& i : rest) i = reduced_.items[i].buffer;
    // Where there are many, this takes longer than to search the core, again and again.
    if (nodes_left_ != kUnlimited && reduced_.items.size() > kLarge) {
      nodes_left_ -= std::min(nodes_left_, static_cast<std::int64_t>(rest.size()));
    }
    if (!PlaceInOrder(problem_, rest, Fit::kFirst, &offsets, Ceiling())) return false;
    std::replace(offsets.begin(), offsets.end(), kUnplaced, Bytes{0});
    Keep(std::move(offsets));
    return true;
  }

  /// What lies higher is of no use. Where plans are made one after the other, to see soon that one
  /// does not come close to the capacity is worth more than to know how close.
  Bytes Ceiling() const {
    if (!IsForPlans()) return best_.footprint_bytes;
    const auto capacity = static_cast<double>(options_.capacity_bytes);
    return std::min(best_.footprint_bytes, static_cast<Bytes>(kClose * capacity));
  }

  /// Whether a capacity is asked for, within a budget of nodes: so it is when plans are made.
  bool IsForPlans() const { return options_.capacity_bytes >= 0 && options_.node_budget > 0; }

  /// Whether the budget of the search is spent.
  bool IsOver() const { return nodes_left_ == 0 || deadline_.passed(); }

  static constexpr int kMostRounds = 40;
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  static constexpr std::size_t kLarge = 10'000;
  static constexpr std::size_t kHuge = 200'000;
  static constexpr std::size_t kMostPerNode = 100'000;
  static constexpr double kGoodEnough = 1.005;
  /// Of a capacity: what comes close to it.
  static constexpr double kClose = 1.0025;
  /// The wheel places so many in the time that a node of the search takes.
  static constexpr std::int64_t kPlacementsPerNode = 16;
  /// Of the bound: what it is asked for at least.
  static constexpr double kRoomForWheel = 1.002;
  /// How many capacities it is asked for, if none is given.
  static constexpr int kCapacities = 6;

  const Problem& problem_;
  const PlannerOptions& options_;
  const Deadline deadline_;
  std::int64_t nodes_left_;  // Of the search.
  const Reduced reduced_;
  Units bound_;  // In rounded units; raised by proofs.
  Placement best_;
  std::vector<Core> cores_;
  std::vector<std::unique_ptr<SkylineSearch>> searches_;  // Per core, made when first needed.
  std::size_t first_core_ = 0;
};

}  // namespace

Placement PlaceTight(const Problem& problem, const PlannerOptions& options) {
  return TightPlanner(problem, options).Run();
}

}  // namespace plimsoll::place
