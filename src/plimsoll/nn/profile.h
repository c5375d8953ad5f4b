// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "plimsoll/device/backend.h"
#include "plimsoll/nn/program.h"

/// How long ops take, measured one by one, also of a network that does not fit (paper 000, section
/// 4.7): only what an op touches is in memory while it runs.
///
///     allocate x, w, y ─▶ fill x, w ─▶ warm up ─▶ run, run, run: the smallest ─▶ free
namespace plimsoll::nn {

struct ProfileOptions {
  int repeats = 3;         ///< Timed runs of each op, after one that is not; at least one.
  std::uint64_t seed = 1;  ///< Of what operands hold.
};

/// Measures ops on a backend; ops of equal shapes and attributes, and with the same operands in
/// place, are measured once. Not thread-safe.
class Profiler {
 public:
  /// The backend outlives the profiler.
  explicit Profiler(device::Backend* backend, const ProfileOptions& options = {});

  /// Returns how long an op takes. One that does not run, because its kernel or the backend runs
  /// nothing, takes the time that its kernel expects. Throws OutOfMemory if its operands alone are
  /// too large, and what the kernel throws; nothing stays allocated then.
  Nanoseconds Measure(const ProgramOp& op);
  /// Returns how long an op takes that has been measured; 0 if it has not.
  Nanoseconds Find(const ProgramOp& op) const;

  /// How many different ops have been measured.
  std::int64_t measured() const { return measured_; }
  /// The most bytes that one of them had allocated.
  Bytes peak_bytes() const { return peak_bytes_; }

 private:
  struct Known {
    OpSpec spec;
    std::vector<std::int32_t> shared;
    Nanoseconds time_ns = 0;
  };

  static Nanoseconds FindIn(const std::vector<Known>& bucket, const OpSpec& spec,
                            const std::vector<std::int32_t>& shared);
  Nanoseconds Run(const ProgramOp& op, const std::vector<std::int32_t>& shared);

  device::Backend& backend_;
  const ProfileOptions options_;
  std::unordered_map<std::size_t, std::vector<Known>> known_;  // By a hash of their specs.
  std::int64_t measured_ = 0;
  Bytes peak_bytes_ = 0;
};

/// Returns the time of every op of a program, in their order.
std::vector<Nanoseconds> Profile(const Program& program, Profiler* profiler);

/// Makes what has been measured the times that the program's kernels are known to take.
void SetKnownTimes(const Profiler& profiler, Program* program);

/// Makes these the times that the program's kernels expect: what Record() then writes. REQUIRES: a
/// time for each op.
void SetTimes(const std::vector<Nanoseconds>& times, Program* program);

}  // namespace plimsoll::nn
