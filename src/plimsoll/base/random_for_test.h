// SPDX-License-Identifier: Apache-2.0
//
// Random cases that are the same everywhere. For tests only.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace plimsoll {

/// Returns how many random cases a test runs: the environment variable PLIMSOLL_CASES if it is set
/// to a positive number, as in a soak run, else `usual`.
inline int CaseCount(int usual) {
  const char* text = std::getenv("PLIMSOLL_CASES");
  const int asked = text == nullptr ? 0 : std::atoi(text);
  return asked > 0 ? asked : usual;
}

/// SplitMix64: the same numbers on every platform.
class TestRandom {
 public:
  explicit TestRandom(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U) {}

  /// Returns a number from `low` to `high`, both included.
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    x ^= x >> 31;
    return low + static_cast<std::int64_t>(x % static_cast<std::uint64_t>(high - low + 1));
  }
  bool OneIn(std::int64_t count) { return Between(1, count) == 1; }
  template <typename T>
  const T& OneOf(const std::vector<T>& choices) {
    return choices[Index(choices.size())];
  }

  std::size_t Index(std::size_t count) {
    return static_cast<std::size_t>(Between(0, static_cast<std::int64_t>(count) - 1));
  }

 private:
  std::uint64_t state_;
};

}  // namespace plimsoll
