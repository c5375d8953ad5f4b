// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::plan {

/// The link between the device's memory and the host's, as copies see it, and what copies cost the
/// ops beside them. A copy costs its latency plus its bytes over the bandwidth, which is lower
/// while the other direction is busy too.
struct Machine {
  std::string name = "custom";
  Nanoseconds out_latency_ns = 0;
  Nanoseconds in_latency_ns = 0;
  double out_bytes_per_s = 0;       ///< Positive.
  double in_bytes_per_s = 0;        ///< Positive.
  double both_out_bytes_per_s = 0;  ///< Out, while a copy in is running; at most out_bytes_per_s.
  double both_in_bytes_per_s = 0;   ///< In, while a copy out is running; at most in_bytes_per_s.
  double slowdown_by_out = 1;       ///< Of an op, while a copy out moves its bytes; at least 1.
  double slowdown_by_in = 1;        ///< And while a copy in does. With both, their product.
  Nanoseconds handover_ns = 0;  ///< What an op loses that waits for copies, even if these are over.

  bool slows_ops() const { return slowdown_by_out > 1 || slowdown_by_in > 1; }
  /// Time of a copy that has the link for itself.
  Nanoseconds out_ns(Bytes bytes) const;
  Nanoseconds in_ns(Bytes bytes) const;

  friend bool operator==(const Machine&, const Machine&) = default;
};

/// Links beyond these are refused: no copy is meant by them, and times would not fit 64 bits.
inline constexpr double kSlowestBytesPerS = 1e3;
inline constexpr double kFastestBytesPerS = 1e18;
inline constexpr Nanoseconds kLongestLatency = 1'000'000'000'000;
inline constexpr double kWorstSlowdown = 10;

/// The machines known by name: `h200` (PCIe 5, measured), `v100` (paper 002's 12.2 GB/s) and
/// `gtx1080ti` (the transfer times of paper 001).
const std::vector<Machine>& MachinePresets();

/// Returns the preset of that name, or nothing.
std::optional<Machine> FindMachine(std::string_view name);

/// Reads a machine from a JSON file (docs/formats.md). Throws InputError.
Machine ReadMachine(const std::string& path);

/// Throws InputError, naming `source` and its line, unless bandwidths, latencies and slowdowns are
/// within the limits above, and nothing is faster with both directions busy.
void CheckMachine(const Machine& machine, const std::string& source, std::int64_t line = 0);

}  // namespace plimsoll::plan
