// SPDX-License-Identifier: Apache-2.0
//
// What copies cost the ops beside them, and ops the copies.
#include <algorithm>
#include <cmath>

#include "plimsoll/exec/link_bench_internal.h"
#include "plimsoll/exec/measure_link.h"

namespace plimsoll::exec {
namespace {

/// More than any cache holds.
constexpr Bytes kTraffic = Bytes{256} << 20;
/// What a cache holds, and what takes a moment.
constexpr Bytes kCached = Bytes{24} << 20;
constexpr Bytes kBrief = Bytes{1} << 20;
/// Copies beside traffic are to take about as long as it does: at most so many large ones, and none
/// where the link carries less than this meanwhile.
constexpr int kMostCopies = 8;
constexpr Bytes kLeastCopied = Bytes{64} << 10;
/// On links where a small copy takes longer, what else an op loses that waits for one is not
/// measured: that would take long, and makes no difference.
constexpr Nanoseconds kLongCopy = 1'000'000;
/// What is more is due to other programs, not to copies.
constexpr Nanoseconds kLongestHandover = 500'000;

/// How much larger a slowdown may be than the one seen, because the other was over before: where
/// that was soon, noise would be taken for much more than it is.
constexpr double kMostCorrection = 3;

/// How many times as long something takes beside something else as alone, while both run: next to
/// something that was over after `other_s`, it took `beside_s` in all.
double Slowdown(double alone_s, double beside_s, double other_s) {
  if (alone_s <= 0) return 1;
  const double most = 1 + kMostCorrection * (beside_s / alone_s - 1);
  const double both_s = std::min(beside_s, other_s);
  const double done_s = alone_s - (beside_s - both_s);  // Of the time alone, until one was over.
  const double slowdown = done_s > 0 ? std::min(both_s / done_s, most) : most;
  return std::clamp(slowdown, 1.0, plan::kWorstSlowdown);
}

/// Copies that take about so long.
LinkBench::Copies CopiesFor(double seconds, double bytes_per_s) {
  const double bytes = seconds * bytes_per_s;
  if (bytes < static_cast<double>(kLeastCopied)) return {};
  constexpr auto kLarge = static_cast<double>(LinkBench::kLarge);
  if (bytes < kLarge) return {1, static_cast<Bytes>(bytes)};
  return {static_cast<int>(std::min<double>(std::ceil(bytes / kLarge), kMostCopies))};
}

/// Raises the costs to those of copies beside this traffic.
void MeasureBeside(LinkBench* bench, const std::function<void(void*)>& traffic,
                   const plan::Machine& machine, Costs* costs) {
  const double alone_s = bench->MeasureTogether(traffic, {}, {}).compute_s;
  const LinkBench::Copies outs = CopiesFor(alone_s, machine.out_bytes_per_s);
  const LinkBench::Copies ins = CopiesFor(alone_s, machine.in_bytes_per_s);
  const auto raise = [](double* cost, double found) { *cost = std::max(*cost, found); };
  if (outs.count > 0) {
    const double out_s = bench->MeasureTogether({}, outs, {}).out_s;
    const LinkBench::Together beside = bench->MeasureTogether(traffic, outs, {});
    raise(&costs->op_by_out, Slowdown(alone_s, beside.compute_s, beside.out_s));
    raise(&costs->out_by_ops, Slowdown(out_s, beside.out_s, beside.compute_s));
  }
  if (ins.count > 0) {
    const double in_s = bench->MeasureTogether({}, {}, ins).in_s;
    const LinkBench::Together beside = bench->MeasureTogether(traffic, {}, ins);
    raise(&costs->op_by_in, Slowdown(alone_s, beside.compute_s, beside.in_s));
    raise(&costs->in_by_ops, Slowdown(in_s, beside.in_s, beside.compute_s));
  }
}

}  // namespace

Costs MeasureCosts(device::Backend* backend, const MakeTraffic& make_traffic,
                   const plan::Machine& machine) {
  LinkBench bench(backend);
  std::byte* const memory = bench.AllocateSpare(kTraffic);
  Costs costs;
  for (const Bytes size_bytes : {kTraffic, kCached}) {
    const auto once = make_traffic(memory, size_bytes);
    const auto traffic = [&](void* native_stream) {
      for (Bytes done = 0; done < kTraffic; done += size_bytes) once(native_stream);
    };
    MeasureBeside(&bench, traffic, machine, &costs);
  }
  const Nanoseconds copy_ns = machine.in_ns(LinkBench::kSmall);
  if (copy_ns > kLongCopy) return costs;
  const auto first = make_traffic(memory, kTraffic);
  const auto brief = make_traffic(memory, kBrief);
  // From compute to the copy, the copy, and from the copy to compute.
  const double handovers_ns =
      bench.MeasureHandover(first, brief) * 1e9 - static_cast<double>(copy_ns);
  costs.handover_ns =
      std::clamp(static_cast<Nanoseconds>(handovers_ns / 2), Nanoseconds{0}, kLongestHandover);
  return costs;
}

void CountCosts(const Costs& costs, plan::Machine* machine) {
  machine->slowdown_by_out = costs.op_by_out;
  machine->slowdown_by_in = costs.op_by_in;
  machine->handover_ns = costs.handover_ns;
}

void SlowCopies(const Costs& costs, plan::Machine* machine) {
  const auto slow = [](double* bytes_per_s, double slowdown) {
    *bytes_per_s = std::max(*bytes_per_s / slowdown, plan::kSlowestBytesPerS);
  };
  slow(&machine->out_bytes_per_s, costs.out_by_ops);
  slow(&machine->both_out_bytes_per_s, costs.out_by_ops);
  slow(&machine->in_bytes_per_s, costs.in_by_ops);
  slow(&machine->both_in_bytes_per_s, costs.in_by_ops);
}

Interference MeasureInterference(device::Backend* backend, const MakeTraffic& make_traffic) {
  LinkBench bench(backend);
  const auto traffic = make_traffic(bench.AllocateSpare(kTraffic), kTraffic);
  constexpr LinkBench::Copies kMany = {kMostCopies};
  const LinkBench::Together alone = bench.MeasureTogether(traffic, {}, {});
  const LinkBench::Together copies = bench.MeasureTogether({}, kMany, kMany);
  const LinkBench::Together both = bench.MeasureTogether(traffic, kMany, kMany);
  const auto ratio = [](double slow, double fast) {
    return fast > 0 ? std::max(1.0, slow / fast) : 1;
  };
  return {ratio(both.compute_s, alone.compute_s), ratio(both.out_s, copies.out_s),
          ratio(both.in_s, copies.in_s)};
}

}  // namespace plimsoll::exec
