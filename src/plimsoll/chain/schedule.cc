// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/schedule.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace plimsoll::chain {
namespace {

/// At a moment, so many bytes more (or fewer) are taken.
struct Change {
  Nanoseconds time;
  Bytes bytes;

  /// What ends makes room for what begins at the same moment.
  bool operator<(const Change& other) const {
    return std::tie(time, bytes) < std::tie(other.time, other.bytes);
  }
};

Bytes HighestSum(std::vector<Change> changes) {
  std::sort(changes.begin(), changes.end());
  Bytes sum = 0;
  Bytes highest = 0;
  for (const Change& change : changes) {
    sum += change.bytes;
    highest = std::max(highest, sum);
  }
  return highest;
}

void AddSpan(Nanoseconds start, Nanoseconds end, Bytes bytes, std::vector<Change>* changes) {
  if (start >= end || bytes == 0) return;
  changes->push_back({start, bytes});
  changes->push_back({end, -bytes});
}

}  // namespace

Decision OrderedDecision(const std::vector<char>& offloaded) {
  Decision decision;
  const auto n = static_cast<std::int32_t>(offloaded.size());
  for (std::int32_t i = 0; i < n; ++i) {
    if (offloaded[i] != 0) decision.push_back({i, Direction::kOut});
  }
  for (std::int32_t i = n - 1; i >= 0; --i) {
    if (offloaded[i] != 0) decision.push_back({i, Direction::kIn});
  }
  return decision;
}

Footprint MeasureFootprint(const Model& model, const Schedule& schedule) {
  const std::size_t n = model.stages;
  std::vector<Change> device;
  std::vector<Change> host;
  Footprint footprint;
  // While an op runs, everything that exists takes room; what is away is taken off again.
  for (std::size_t op = 0; op < model.ops(); ++op) {
    AddSpan(schedule.ops[op].start_ns, schedule.ops[op].end_ns, model.total_bytes[op], &device);
  }
  constexpr Span kNever = {-1, -1};
  std::vector<Span> out(n, kNever);
  std::vector<Span> in(n, kNever);
  for (const TimedTransfer& timed : schedule.transfers) {
    const auto i = static_cast<std::size_t>(timed.transfer.activation);
    (timed.transfer.direction == Direction::kOut ? out : in)[i] = timed.span;
  }
  std::vector<Change> away;
  for (std::size_t i = 0; i < n; ++i) {
    if (out[i] == kNever) continue;
    const Bytes bytes = model.activation_bytes[i];
    footprint.out_bytes += bytes;
    const Nanoseconds from = std::max(out[i].end_ns, schedule.ops[model.ForwardOp(i)].end_ns);
    AddSpan(from, in[i].start_ns, bytes, &away);
    AddSpan(out[i].start_ns, in[i].end_ns, bytes, &host);
  }
  for (const Change& change : away) device.push_back({change.time, -change.bytes});
  footprint.host_bytes = HighestSum(std::move(host));
  footprint.device_bytes = HighestSum(std::move(device));
  return footprint;
}

}  // namespace plimsoll::chain
