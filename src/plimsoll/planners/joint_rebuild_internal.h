// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/plan/problem.h"

/// What recomputation takes at least: the R(r) of joint_bound.h.
namespace plimsoll::planners {

/// A variable that comes and goes within the iteration, or is persistent.
struct Touched {
  Bytes size_bytes = 0;
  std::vector<plan::OpIndex> touched;  ///< In program order.
  std::vector<plan::OpIndex> writers;
};

/// Bytes that can be rebuilt, and the time per byte.
struct Rebuildable {
  double ns_per_byte = 0;
  double bytes = 0;
};

/// R(r): the least time of replays that rebuild r bytes.
class RebuildTime {
 public:
  explicit RebuildTime(std::vector<Rebuildable> parts);

  double total_bytes() const { return bytes_.back(); }
  double operator()(double bytes) const;

 private:
  std::vector<double> bytes_{0};  // Of the parts so far, cheapest first.
  std::vector<double> ns_{0};
};

/// A dead variable that replays behind an op may read.
struct DeadInput {
  std::size_t variable = 0;
  double reader_bytes = 0;   ///< Of all candidates that are made of it.
  plan::OpIndex reader = 0;  ///< The first of their writers that reads it.
  plan::OpIndex needed = 0;  ///< The last op that may want one of them back.
  double rebuild_ns = 0;     ///< Its share of its writers' time; infinite: cannot be rebuilt.
};

/// What may be rebuilt behind an op, and from what.
class Rebuilder {
 public:
  /// Keeps references to both. `inside`: the variables that come and go within the iteration;
  /// `index`: per variable of the problem, its place among them, or -1.
  Rebuilder(const plan::Problem& problem, const std::vector<Touched>& inside,
            const std::vector<std::int32_t>& index);

  /// Lists the parts of R at an op, where `away` may be rebuilt. With `inputs`, the price of dead
  /// inputs is part of it, and dead_inputs() says which there are.
  std::vector<Rebuildable> List(const std::vector<std::size_t>& away, plan::OpIndex op,
                                bool inputs);
  const std::vector<DeadInput>& dead_inputs() const { return dead_; }

 private:
  struct Item {
    std::size_t variable = 0;
    std::vector<std::size_t> inputs;  ///< Into dead_.
  };

  bool CanRebuild(const Touched& inside, plan::OpIndex before) const;
  void ListDead(const Touched& inside, plan::OpIndex op, Item* item);
  void ShareOut(const std::vector<Item>& items, plan::OpIndex op);
  double ShareNs(const Touched& inside, plan::OpIndex before) const;
  void AddParts(const Item& item, plan::OpIndex op, std::vector<Rebuildable>* parts) const;

  const plan::Problem& problem_;
  const std::vector<Touched>& inside_;
  const std::vector<std::int32_t>& index_;
  std::vector<double> written_bytes_;  // Per op: of what may be rebuilt.
  std::vector<std::int32_t> dead_of_;  // Per inside variable: its place in dead_, or -1.
  std::vector<DeadInput> dead_;
};

}  // namespace plimsoll::planners
