// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/simulate.h"

#include <algorithm>

namespace plimsoll::chain {

Simulator::Simulator(const Model& model, Bytes limit_bytes)
    : model_(model),
      limit_(limit_bytes),
      op_count_(model.ops()),
      place_(model.stages, Place::kHere),
      op_start_(model.ops(), 0),
      awaits_(model.ops(), kNone),
      unread_(model.ops() + 1, 0) {
  for (std::size_t i = 0; i < model.stages; ++i) {
    if (model.return_op[i] == kNoOp) continue;
    awaits_[model.return_op[i]] = i;
    unread_[model.return_op[i]] = i + 1;
  }
  for (std::size_t op = op_count_; op-- > 0;) unread_[op] = std::max(unread_[op], unread_[op + 1]);
}

void Simulator::Reset() {
  mark_ = {};
  std::fill(place_.begin(), place_.end(), Place::kHere);
}

void Simulator::Prepare(const Decision& decision) {
  Reset();
  for (const Transfer& transfer : decision) {
    place_[static_cast<std::size_t>(transfer.activation)] = Place::kWaiting;
  }
}

bool Simulator::Step(Transfer transfer) {
  const auto i = static_cast<std::size_t>(transfer.activation);
  return transfer.direction == Direction::kOut ? Offload(i) : Prefetch(i);
}

std::optional<Nanoseconds> Simulator::Makespan(const Decision& decision) {
  Prepare(decision);
  for (const Transfer& transfer : decision) {
    if (!Step(transfer)) return std::nullopt;
  }
  if (!Finish()) return std::nullopt;
  return mark_.compute_end_ns;
}

std::optional<Schedule> Simulator::Play(const Decision& decision) {
  Prepare(decision);
  Schedule schedule;
  for (const Transfer& transfer : decision) {
    if (!Step(transfer)) return std::nullopt;
    schedule.transfers.push_back({transfer, last_transfer_});
  }
  if (!Finish()) return std::nullopt;
  for (std::size_t op = 0; op < op_count_; ++op) {
    schedule.ops.push_back({op_start_[op], op_start_[op] + model_.op_ns[op]});
  }
  schedule.order = model_.order;
  return schedule;
}

bool Simulator::CanStart(std::size_t op) const {
  Bytes away = mark_.away_bytes;
  if (op < model_.stages) {
    // x_i is read by F_i and stays for it, even if its way out has ended.
    if (place_[op] == Place::kAway) away -= model_.activation_bytes[op];
  } else if (awaits_[op] != kNone && place_[awaits_[op]] != Place::kHere) {
    return false;
  }
  return model_.total_bytes[op] - away <= limit_;
}

// Whatever could start before the last transfer ended has been run by then. So the next op starts
// now if it had to wait for that transfer, and after the op before it if it had not.
void Simulator::RunOne() {
  const Nanoseconds start = std::max(mark_.compute_end_ns, mark_.link_free_ns);
  op_start_[mark_.op] = start;
  mark_.compute_end_ns = start + model_.op_ns[mark_.op];
  ++mark_.op;
}

void Simulator::RunUntil(Nanoseconds moment) {
  while (mark_.op < op_count_ && std::max(mark_.compute_end_ns, mark_.link_free_ns) < moment &&
         CanStart(mark_.op)) {
    RunOne();
  }
}

bool Simulator::RunThrough(std::size_t last) {
  while (mark_.op <= last) {
    if (!CanStart(mark_.op)) return false;
    RunOne();
  }
  return true;
}

bool Simulator::Offload(std::size_t i) {
  if (place_[i] != Place::kHere && place_[i] != Place::kWaiting) return false;
  if (model_.return_op[i] == kNoOp || mark_.op > model_.return_op[i]) return false;
  if (i > 0 && !RunThrough(i - 1)) return false;
  // Only the newest op may end after the link has become free.
  const Nanoseconds made = mark_.op == i ? mark_.compute_end_ns : 0;
  const Nanoseconds start = std::max(mark_.link_free_ns, made);
  const Nanoseconds end = start + model_.transfer_ns[i];
  place_[i] = Place::kLeaving;
  RunUntil(end);
  place_[i] = Place::kAway;
  mark_.away_bytes += model_.activation_bytes[i];
  mark_.link_free_ns = end;
  last_transfer_ = {start, end};
  return true;
}

std::optional<std::ptrdiff_t> Simulator::LastOpWithoutRoom(std::size_t i) const {
  // Away when x_i is read is what is away of x_0 .. x_{i-1}: the rest must have come back by then.
  Bytes away = 0;
  bool in_order = true;
  const std::size_t unread = unread_[mark_.op];
  for (std::size_t j = i + 1; j < unread && in_order; ++j) in_order = place_[j] == Place::kHere;
  if (in_order) {
    away = mark_.away_bytes - model_.activation_bytes[i];
  } else {
    for (std::size_t j = 0; j < i; ++j) {
      if (place_[j] == Place::kAway) away += model_.activation_bytes[j];
    }
  }
  const auto first = static_cast<std::ptrdiff_t>(mark_.op) - 1;
  auto op = static_cast<std::ptrdiff_t>(model_.return_op[i]);
  if (model_.total_bytes[static_cast<std::size_t>(op)] - away > limit_) return std::nullopt;
  for (--op; op >= first && op >= 0; --op) {
    const auto index = static_cast<std::size_t>(op);
    const std::size_t next = awaits_[index + 1];  // May be away before the op that awaits it.
    if (next != kNone && next != i && place_[next] == Place::kAway) {
      away += model_.activation_bytes[next];
    }
    if (index < model_.stages && index != i && place_[index] == Place::kAway) {
      away -= model_.activation_bytes[index];
    }
    if (model_.total_bytes[index] - away > limit_) return op;
  }
  return -1;
}

bool Simulator::Prefetch(std::size_t i) {
  if (place_[i] != Place::kAway || !RunThrough(i)) return false;
  const std::optional<std::ptrdiff_t> last = LastOpWithoutRoom(i);
  if (!last) return false;
  if (*last >= 0 && !RunThrough(static_cast<std::size_t>(*last))) return false;
  Nanoseconds start = mark_.link_free_ns;
  const auto newest = static_cast<std::ptrdiff_t>(mark_.op) - 1;
  if (newest == *last || newest == static_cast<std::ptrdiff_t>(i)) {
    start = std::max(start, mark_.compute_end_ns);
  }
  const Nanoseconds end = start + model_.transfer_ns[i];
  place_[i] = Place::kComing;
  mark_.away_bytes -= model_.activation_bytes[i];
  RunUntil(end);
  place_[i] = Place::kHere;
  mark_.link_free_ns = end;
  last_transfer_ = {start, end};
  return true;
}

}  // namespace plimsoll::chain
