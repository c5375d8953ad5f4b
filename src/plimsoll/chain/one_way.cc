// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/one_way.h"

#include <algorithm>

namespace plimsoll::chain {

bool AddUndominated(const Label& label, std::vector<Label>* front) {
  const auto dominates = [&label](const Label& other) { return other.Dominates(label); };
  if (std::any_of(front->begin(), front->end(), dominates)) return false;
  std::erase_if(*front, [&label](const Label& other) { return label.Dominates(other); });
  front->push_back(label);
  return true;
}

OneWay::OneWay(const Model& model, Bytes limit_bytes, Half half)
    : model_(model),
      limit_(limit_bytes),
      made_by_(half == Half::kForward ? 0 : 1),
      op_ns_(model.op_ns),
      total_bytes_(model.total_bytes),
      after_(model.ops() + 1, 0) {
  // Reversed, the ops are B_0 .. B_{n-1}, F_{n-1} .. F_0: the stages come in the same order.
  if (half == Half::kBackward) {
    std::reverse(op_ns_.begin(), op_ns_.end());
    std::reverse(total_bytes_.begin(), total_bytes_.end());
  }
  for (std::size_t op = op_ns_.size(); op-- > 0;) after_[op] = after_[op + 1] + op_ns_[op];
}

bool OneWay::CanStart(std::size_t op, Mask set, Bytes away) const {
  const std::size_t stage = model_.StageOf(op);
  const bool gone = (set >> stage & 1U) != 0;
  if (gone) {
    // The first op of a stage keeps its input to its end; the second one finds it missing.
    if (op >= model_.stages) return false;
    away -= model_.activation_bytes[stage];
  }
  return total_bytes_[op] - away <= limit_;
}

bool OneWay::Extend(Mask set, Bytes away, const Label& label, std::size_t i, Label* result) const {
  Label next = label;
  const auto run_one = [&] {
    const auto op = static_cast<std::size_t>(next.ops);
    next.compute_ns = std::max(next.compute_ns, next.link_ns) + op_ns_[op];
    ++next.ops;
  };
  const auto ops = [&next] { return static_cast<std::size_t>(next.ops); };
  const std::size_t made = i + made_by_;
  while (ops() < made) {
    if (!CanStart(ops(), set, away)) return false;
    run_one();
  }
  if (ops() > 2 * model_.stages - 1 - i) return false;
  const Nanoseconds start = ops() == made ? std::max(next.link_ns, next.compute_ns) : next.link_ns;
  const Nanoseconds end = start + model_.transfer_ns[i];
  const std::size_t reader = 2 * model_.stages - 1 - i;  // Waits for x_i to be back.
  while (ops() < reader && std::max(next.compute_ns, next.link_ns) < end &&
         CanStart(ops(), set, away)) {
    run_one();
  }
  next.link_ns = end;
  next.last = static_cast<std::int16_t>(i);
  *result = next;
  return true;
}

bool OneWay::Run(std::size_t count, const std::function<bool(Mask, const Label&)>& hopeless,
                 const std::function<bool()>& late) {
  const Mask all = (Mask{1} << count) - 1;
  labels_.assign(std::size_t{all} + 1, {});
  labels_[0].push_back({});
  for (Mask set = 0; set < all; ++set) {
    if (set % 4096 == 0 && late()) return false;
    if (labels_[set].empty()) continue;
    Bytes away = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if ((set >> i & 1U) != 0) away += model_.activation_bytes[i];
    }
    for (std::size_t i = 0; i < count; ++i) {
      if ((set >> i & 1U) != 0) continue;
      const Mask larger = set | Mask{1} << i;
      for (std::size_t k = 0; k < labels_[set].size(); ++k) {
        Label next;
        if (!Extend(set, away, labels_[set][k], i, &next) || hopeless(larger, next)) continue;
        next.parent = static_cast<std::int32_t>(k);
        AddUndominated(next, &labels_[larger]);
      }
    }
  }
  return true;
}

std::vector<std::int32_t> OneWay::Order(Mask set, const Label& label) const {
  std::vector<std::int32_t> order;
  Label current = label;
  while (current.last >= 0) {
    order.push_back(current.last);
    set &= ~(Mask{1} << current.last);
    current = labels_[set][static_cast<std::size_t>(current.parent)];
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace plimsoll::chain
