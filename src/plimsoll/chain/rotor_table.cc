// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/rotor_table.h"

#include <algorithm>

#include "plimsoll/base/check.h"

namespace plimsoll::chain {

RotorTable::RotorTable(const Chain& chain, Bytes slot_bytes, std::int64_t slots)
    : chain_(chain),
      n_(chain.stages.size()),
      slot_bytes_(slot_bytes),
      slots_(slots),
      times_(n_ * n_ * static_cast<std::size_t>(slots + 1), kNever) {
  for (std::size_t i = 0; i <= n_; ++i) {
    kept_.push_back(ToSlots(chain.ActivationBytes(i)));
    output_.push_back(ToSlots(chain.OutputBytes(i)));
  }
  for (std::size_t length = 1; length <= n_; ++length) {
    for (std::size_t first = 0; first + length <= n_; ++first) Fill(first, first + length - 1);
  }
}

std::int64_t RotorTable::ToSlots(Bytes bytes) const {
  return (bytes + slot_bytes_ / 2) / slot_bytes_;
}

Bytes RotorTable::GivenBytes(std::size_t last) const {
  // y_n comes with B_{n-1}.
  return last + 1 == n_ ? 0 : chain_.GradientBytes(last + 1);
}

std::int64_t RotorTable::NeedOfStage(std::size_t first, std::size_t last) const {
  const Stage& stage = chain_.stages[first];
  const Bytes forward = stage.forward_temp_bytes + GivenBytes(last);
  const Bytes backward =
      stage.backward_temp_bytes + chain_.GradientBytes(first) + chain_.GradientBytes(first + 1);
  return ToSlots(stage.kept_bytes + std::max(forward, backward));
}

double RotorTable::StageTime(std::size_t stage) const {
  return static_cast<double>(chain_.stages[stage].forward_ns + chain_.stages[stage].backward_ns);
}

void RotorTable::Fill(std::size_t first, std::size_t last) {
  double* row = times_.data() + (first * n_ + last) * static_cast<std::size_t>(slots_ + 1);
  const double all_time = StageTime(first);
  const std::int64_t kept = kept_[first + 1];
  for (std::int64_t m = NeedOfStage(first, last); m <= slots_; ++m) {
    if (first == last) {
      row[m] = all_time;
    } else if (m >= kept) {
      row[m] = all_time + Row(first + 1, last)[m - kept];
    }
  }
  double forward_time = 0;
  Bytes need = 0;
  for (std::size_t middle = first + 1; middle <= last; ++middle) {
    const Stage& stage = chain_.stages[middle - 1];
    forward_time += static_cast<double>(stage.forward_ns);
    const Bytes input = middle - 1 == first ? 0 : chain_.OutputBytes(middle - 1);
    need = std::max(need, input + stage.kept_bytes + stage.forward_temp_bytes);
    const std::int64_t output = output_[middle];
    const double* right = Row(middle, last);
    const double* left = Row(first, middle - 1);
    const std::int64_t begin = std::max(output, ToSlots(need + GivenBytes(last)));
    for (std::int64_t m = begin; m <= slots_; ++m) {
      row[m] = std::min(row[m], forward_time + right[m - output] + left[m]);
    }
  }
}

void RotorTable::Append(std::size_t first, std::size_t last, std::int64_t slots,
                        Order* order) const {
  slots = std::min(slots, slots_);
  const double best = Time(first, last, slots);
  PLIMSOLL_CHECK(best < kNever, "the stages do not fit");
  const auto backward = static_cast<std::int32_t>(2 * n_ - 1 - first);
  const bool fits = slots >= NeedOfStage(first, last);
  if (fits && (first == last ||
               best == StageTime(first) + Time(first + 1, last, slots - kept_[first + 1]))) {
    order->push_back(static_cast<std::int32_t>(first));
    if (first < last) Append(first + 1, last, slots - kept_[first + 1], order);
    order->push_back(backward);
    return;
  }
  double forward_time = 0;
  Bytes need = 0;
  for (std::size_t middle = first + 1; middle <= last; ++middle) {
    const Stage& stage = chain_.stages[middle - 1];
    forward_time += static_cast<double>(stage.forward_ns);
    const Bytes input = middle - 1 == first ? 0 : chain_.OutputBytes(middle - 1);
    need = std::max(need, input + stage.kept_bytes + stage.forward_temp_bytes);
    if (slots < ToSlots(need + GivenBytes(last))) break;
    const double right = Time(middle, last, slots - output_[middle]);
    if (best != forward_time + right + Time(first, middle - 1, slots)) continue;
    for (std::size_t i = first; i < middle; ++i) order->push_back(static_cast<std::int32_t>(i));
    Append(middle, last, slots - output_[middle], order);
    Append(first, middle - 1, slots, order);
    return;
  }
  PLIMSOLL_CHECK(false, "no choice gives the time of the table");
}

}  // namespace plimsoll::chain
