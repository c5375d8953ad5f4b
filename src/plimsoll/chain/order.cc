// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/order.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "plimsoll/base/check.h"

namespace plimsoll::chain {
namespace {

/// Where the ops of a stage stand in an order.
struct Places {
  std::vector<std::size_t> forward;  ///< One or more.
  std::size_t backward = 0;
};

std::vector<Places> FindPlaces(const Order& order, std::size_t stages) {
  std::vector<Places> places(stages);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto op = static_cast<std::size_t>(order[k]);
    if (op < stages) {
      places[op].forward.push_back(k);
    } else {
      places[2 * stages - 1 - op].backward = k;
    }
  }
  return places;
}

/// Adds up what lives when. Bytes are held from one place of the order to another, both inclusive.
class Accountant {
 public:
  Accountant(const Chain& chain, Model* model)
      : chain_(chain),
        model_(*model),
        n_(chain.stages.size()),
        places_(FindPlaces(model->order, n_)),
        total_(model->order.size() + 1, 0) {}

  void Run() {
    Hold(0, places_[0].backward, chain_.input_bytes);
    model_.return_op[0] = NextReader(0, 0, model_.order.size()).value_or(kNoOp);
    for (std::size_t i = 1; i <= n_; ++i) HoldActivation(i);
    for (std::size_t i = 0; i <= n_; ++i) {
      // y_i from the op that makes it to the end of the op that reads it; y_n is there for B_{n-1}.
      const std::size_t made = places_[std::min(i, n_ - 1)].backward;
      const std::size_t read = places_[i == 0 ? 0 : i - 1].backward;
      Hold(made, read, chain_.GradientBytes(i));
    }
    for (std::size_t i = 0; i < n_; ++i) {
      for (const std::size_t k : places_[i].forward) {
        Hold(k, k, chain_.stages[i].forward_temp_bytes);
      }
      Hold(places_[i].backward, places_[i].backward, chain_.stages[i].backward_temp_bytes);
    }
    Finish();
  }

 private:
  void Hold(std::size_t from, std::size_t to, Bytes bytes) {
    total_[from] += bytes;
    total_[to + 1] -= bytes;
  }

  /// The first place after F_i's first one, and before `end`, at which x_i is read.
  std::optional<std::size_t> NextReader(std::size_t i, std::size_t after, std::size_t end) const {
    std::size_t next = places_[i].backward;
    for (const std::size_t k : places_[i].forward) {
      if (k > after) next = std::min(next, k);
    }
    if (next < end) return next;
    return std::nullopt;
  }

  /// The last place in (begin, end) at which x_i is read, or `begin`.
  std::size_t LastReader(std::size_t i, std::size_t begin, std::size_t end) const {
    std::size_t last = begin;
    const auto look = [&](std::size_t k) {
      if (k > begin && k < end) last = std::max(last, k);
    };
    look(places_[i - 1].backward);
    if (i == n_) return last;
    look(places_[i].backward);
    for (const std::size_t k : places_[i].forward) look(k);
    return last;
  }

  void HoldActivation(std::size_t i) {
    const Places& maker = places_[i - 1];
    const Bytes inside = chain_.stages[i - 1].inside_bytes;
    for (std::size_t a = 0; a < maker.forward.size(); ++a) {
      const bool last = a + 1 == maker.forward.size();
      const std::size_t begin = maker.forward[a];
      const std::size_t end = last ? model_.order.size() : maker.forward[a + 1];
      Hold(begin, LastReader(i, begin, end), chain_.OutputBytes(i));
      Hold(begin, last ? maker.backward : begin, inside);
    }
    const bool again = maker.forward.size() > 1;
    model_.activation_bytes[i] = chain_.ActivationBytes(i) - (again ? inside : 0);
    if (i == n_) return;
    const std::size_t end = again ? maker.forward[1] : model_.order.size();
    model_.return_op[i] = NextReader(i, i, end).value_or(kNoOp);
    if (model_.return_op[i] == kNoOp) model_.activation_bytes[i] = 0;
  }

  void Finish() {
    std::vector<Bytes> away(model_.order.size() + 1, 0);  // Changes of what can be away, by place.
    for (std::size_t i = 0; i < n_; ++i) {
      if (model_.return_op[i] == kNoOp) continue;
      away[i + 1] += model_.activation_bytes[i];
      away[model_.return_op[i]] -= model_.activation_bytes[i];
    }
    Bytes held = 0;
    Bytes most_away = 0;
    for (std::size_t k = 0; k < model_.order.size(); ++k) {
      held += total_[k];
      most_away += away[k];
      model_.total_bytes[k] = held;
      model_.peak_bytes = std::max(model_.peak_bytes, held);
      const Bytes own = held - most_away;
      model_.own_bytes[k] = own;
      if (own > model_.smallest_limit_bytes) {
        model_.smallest_limit_bytes = own;
        model_.smallest_limit_op = static_cast<std::size_t>(model_.order[k]);
      }
    }
  }

  const Chain& chain_;
  Model& model_;
  const std::size_t n_;
  const std::vector<Places> places_;
  std::vector<Bytes> total_;  // Changes, by place.
};

}  // namespace

Order PlainOrder(std::size_t stages) {
  Order order(2 * stages);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool IsOrder(const Order& order, std::size_t stages) {
  const auto n = static_cast<std::int32_t>(stages);
  std::int32_t next_backward = n;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::int32_t op = order[k];
    if (op < 0 || op >= 2 * n) return false;
    if (k < stages) {
      if (op != static_cast<std::int32_t>(k)) return false;
    } else if (op < n) {
      if (2 * n - 1 - op < next_backward) return false;  // Its backward op has run.
    } else if (op != next_backward++) {
      return false;
    }
  }
  return next_backward == 2 * n && (order.empty() || order.back() == 2 * n - 1);
}

Model MakeModel(const Chain& chain, std::int64_t bandwidth_bytes_per_s, Order order) {
  const std::size_t n = chain.stages.size();
  PLIMSOLL_CHECK(IsOrder(order, n), "not an order of the chain's ops");
  Model model;
  model.stages = n;
  model.bandwidth_bytes_per_s = bandwidth_bytes_per_s;
  model.order = std::move(order);
  model.activation_bytes.assign(n + 1, chain.input_bytes);
  model.return_op.assign(n, kNoOp);
  model.total_bytes.resize(model.order.size());
  model.own_bytes.resize(model.order.size());
  for (const std::int32_t op : model.order) {
    const auto index = static_cast<std::size_t>(op);
    model.op_ns.push_back(index < n ? chain.stages[index].forward_ns
                                    : chain.stages[2 * n - 1 - index].backward_ns);
    model.compute_ns += model.op_ns.back();
  }
  Accountant(chain, &model).Run();
  for (const Bytes bytes : model.activation_bytes) {
    model.transfer_ns.push_back(TransferTime(bytes, bandwidth_bytes_per_s));
  }
  return model;
}

Model ModelOf(const Chain& chain, const Model& model, const Schedule& schedule) {
  if (schedule.order.empty()) return MakeModel(chain, model.bandwidth_bytes_per_s);
  return MakeModel(chain, model.bandwidth_bytes_per_s, schedule.order);
}

Bytes RecomputedBytes(const Chain& chain, const Order& order) {
  const std::size_t n = chain.stages.size();
  if (order.empty()) return 0;
  Bytes sum = 0;
  const std::vector<Places> all = FindPlaces(order, n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto again = static_cast<Bytes>(all[i].forward.size()) - 1;
    if (again > 0) sum += again * chain.OutputBytes(i + 1) + chain.stages[i].inside_bytes;
  }
  return sum;
}

}  // namespace plimsoll::chain
