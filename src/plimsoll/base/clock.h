// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <limits>

namespace plimsoll {

/// Measures wall time from its construction.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// A moment after which an anytime algorithm returns the best that it has.
class Deadline {
 public:
  /// `seconds` from now; infinity for never.
  explicit Deadline(double seconds) : seconds_(seconds) {}
  static Deadline Never() { return Deadline(std::numeric_limits<double>::infinity()); }

  bool passed() const { return watch_.seconds() >= seconds_; }
  double remaining_seconds() const { return seconds_ - watch_.seconds(); }

 private:
  Stopwatch watch_;
  double seconds_;
};

}  // namespace plimsoll
