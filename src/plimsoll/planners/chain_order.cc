// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/chain_order.h"

#include <limits>

#include "plimsoll/chain/to_trace.h"

namespace plimsoll::planners {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// For each op, the transfer in that it waits for.
std::vector<std::size_t> ArrivalsByOp(const chain::Model& model, const chain::Schedule& schedule) {
  const chain::TraceLayout layout{model.stages};
  std::vector<std::size_t> arrivals(model.ops() + 2, kNone);
  for (std::size_t t = 0; t < schedule.transfers.size(); ++t) {
    const chain::Transfer& transfer = schedule.transfers[t].transfer;
    if (transfer.direction == chain::Direction::kOut) continue;
    arrivals[layout.Op(model.return_op[static_cast<std::size_t>(transfer.activation)])] = t;
  }
  return arrivals;
}

}  // namespace

ChainOrder::ChainOrder(const chain::Model& model, const chain::Schedule& schedule)
    : ops_(model.ops() + 2), transfers_(schedule.transfers.size()) {
  const chain::TraceLayout layout{model.stages};
  std::vector<chain::Span> spans(ops_.size());
  for (std::size_t op = 0; op < model.ops(); ++op) spans[layout.Op(op)] = schedule.ops[op];
  const Nanoseconds loss = schedule.ops[model.stages].start_ns;
  spans[layout.Op(model.stages) - 1] = {loss, loss};
  Merge(spans, schedule, ArrivalsByOp(model, schedule));
}

void ChainOrder::Merge(const std::vector<chain::Span>& spans, const chain::Schedule& schedule,
                       const std::vector<std::size_t>& arrivals) {
  std::size_t op = 0;
  std::size_t transfer = 0;
  for (std::int64_t rank = 0; op < spans.size() || transfer < transfers_.size(); ++rank) {
    bool takes_op = transfer == transfers_.size();
    if (!takes_op && op < spans.size()) {
      const bool op_runs = ops_[op].begin >= 0;
      const bool transfer_runs = transfers_[transfer].begin >= 0;
      const chain::Span& link = schedule.transfers[transfer].span;
      const Nanoseconds op_time = op_runs ? spans[op].end_ns : spans[op].start_ns;
      const Nanoseconds link_time = transfer_runs ? link.end_ns : link.start_ns;
      const bool waits = !op_runs && arrivals[op] != kNone && transfers_[arrivals[op]].end < 0;
      takes_op =
          op_time < link_time || (op_time == link_time && !waits && (op_runs || !transfer_runs));
    }
    if (takes_op) {
      Advance(rank, &ops_[op], &op);
    } else {
      Advance(rank, &transfers_[transfer], &transfer);
    }
  }
}

void ChainOrder::Advance(std::int64_t rank, Ranks* ranks, std::size_t* next) {
  if (ranks->begin < 0) {
    ranks->begin = rank;
  } else {
    ranks->end = rank;
    ++*next;
  }
}

}  // namespace plimsoll::planners
