// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/measure_link.h"

#include <algorithm>
#include <string>

#include "plimsoll/exec/link_bench_internal.h"

namespace plimsoll::exec {

plan::Machine MeasureLink(device::Backend* backend) {
  LinkBench bench(backend);
  const LinkBench::Times small_out = bench.Measure(true, false, LinkBench::kSmall);
  const LinkBench::Times small_in = bench.Measure(false, true, LinkBench::kSmall);
  const LinkBench::Times out = bench.Measure(true, false, LinkBench::kLarge);
  const LinkBench::Times in = bench.Measure(false, true, LinkBench::kLarge);
  const LinkBench::Times both = bench.Measure(true, true, LinkBench::kLarge);
  const auto rate = [](double seconds, double latency) {
    const double bytes_per_s =
        static_cast<double>(LinkBench::kLarge) / std::max(seconds - latency, 1e-9);
    return std::clamp(bytes_per_s, plan::kSlowestBytesPerS, plan::kFastestBytesPerS);
  };
  plan::Machine machine;
  machine.name = std::string(backend->name());
  machine.out_latency_ns = static_cast<Nanoseconds>(small_out.out_s * 1e9);
  machine.in_latency_ns = static_cast<Nanoseconds>(small_in.in_s * 1e9);
  machine.out_bytes_per_s = rate(out.out_s, small_out.out_s);
  machine.in_bytes_per_s = rate(in.in_s, small_in.in_s);
  machine.both_out_bytes_per_s =
      std::min(rate(both.out_s, small_out.out_s), machine.out_bytes_per_s);
  machine.both_in_bytes_per_s = std::min(rate(both.in_s, small_in.in_s), machine.in_bytes_per_s);
  return machine;
}

}  // namespace plimsoll::exec
