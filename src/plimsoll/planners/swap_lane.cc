// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/swap_lane_internal.h"

namespace plimsoll::planners {
SwapLane::SwapLane(const Question& question) : question_(question), starts_(1, 0) {
  for (const plan::Op& op : question.problem.ops) {
    starts_.push_back(starts_.back() + op.duration_ns);
  }
}

SwapLane::Copy SwapLane::MakeCopy(const plan::Gap& gap) const {
  Copy copy;
  copy.bytes = question_.problem.variables[At(gap.variable)].size_bytes;
  copy.idle_ns = starts_[At(gap.after) + 1];
  copy.needed_ns = starts_[At(gap.before)];
  copy.out_ns = question_.machine.out_ns(copy.bytes);
  copy.in_ns = question_.machine.in_ns(copy.bytes);
  return copy;
}

Nanoseconds SwapLane::FreeTime(const plan::Gap& gap) const {
  const Copy copy = MakeCopy(gap);
  return copy.needed_ns - copy.idle_ns - copy.out_ns - copy.in_ns;
}

/// Says when every copy is gone and back; returns how late the latest is.
Nanoseconds SwapLane::Settle(std::vector<Copy>* copies) {
  Nanoseconds free_ns = 0;
  for (Copy& copy : *copies) {
    free_ns = std::max(free_ns, copy.idle_ns) + copy.out_ns;
    copy.gone_ns = free_ns;
  }
  // Mostly what is idle first is needed last, so that this is nearly sorted already.
  std::vector<std::pair<Nanoseconds, std::size_t>> order;
  order.reserve(copies->size());
  for (std::size_t k = 0; k < copies->size(); ++k) order.emplace_back(-(*copies)[k].needed_ns, k);
  if (!std::is_sorted(order.begin(), order.end())) std::sort(order.begin(), order.end());
  Nanoseconds lateness = 0;
  free_ns = std::numeric_limits<Nanoseconds>::max();
  for (const auto& [needed_ns, k] : order) {
    Copy& copy = (*copies)[k];
    free_ns = std::min(free_ns, copy.needed_ns) - copy.in_ns;
    copy.back_ns = free_ns;
    lateness = std::max(lateness, copy.gone_ns - copy.back_ns);
  }
  return lateness;
}

Nanoseconds SwapLane::LatenessWith(const plan::Gap& gap) const {
  std::vector<Copy> copies = copies_;
  Insert(MakeCopy(gap), &copies);
  return Settle(&copies);
}

void SwapLane::Add(const plan::Gap& gap) {
  Insert(MakeCopy(gap), &copies_);
  lateness_ = Settle(&copies_);
}

void SwapLane::Insert(const Copy& copy, std::vector<Copy>* copies) {
  const auto place =
      std::upper_bound(copies->begin(), copies->end(), copy,
                       [](const Copy& a, const Copy& b) { return a.idle_ns < b.idle_ns; });
  copies->insert(place, copy);
}

void SwapLane::Relieve(std::vector<Bytes>* load) const {
  std::vector<Bytes> change(load->size() + 1, 0);
  for (const Copy& copy : copies_) {
    const auto first = std::lower_bound(starts_.begin(), starts_.end(), copy.gone_ns);
    const auto last = std::upper_bound(first, starts_.end(), copy.back_ns);
    if (last - first < 2) continue;  // An op is relieved if it begins and ends in between.
    change[At(first - starts_.begin())] -= copy.bytes;
    change[At(last - starts_.begin()) - 1] += copy.bytes;
  }
  Bytes sum = 0;
  for (std::size_t i = 0; i < load->size(); ++i) {
    sum += change[i];
    (*load)[i] += sum;
  }
}

}  // namespace plimsoll::planners
