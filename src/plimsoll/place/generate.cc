// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "plimsoll/base/check.h"

namespace plimsoll::place {
namespace {

/// Makes the buffers one by one, growing to the peak and shrinking by turns. Sizes are counted in
/// units of the alignment.
class StackGenerator {
 public:
  explicit StackGenerator(const StackOptions& options)
      : options_(options),
        peak_units_(options.peak_bytes / options.alignment),
        random_(options.seed) {
    problem_.buffers.reserve(static_cast<std::size_t>(options.count));
  }

  Problem Run() {
    while (!done()) {
      while (!done() && load_units_ < peak_units_) Push();
      if (!done()) Shrink();
    }
    while (!stack_.empty()) Pop();
    return std::move(problem_);
  }

 private:
  bool done() const { return std::ssize(problem_.buffers) == options_.count; }

  /// Returns a number below `bound`; the standard distributions differ between platforms.
  std::int64_t Below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }

  /// Draws a size: small ones are as likely as large ones on a logarithmic scale.
  std::int64_t DrawUnits() {
    constexpr std::int64_t kShareOfPeak = 16;
    const std::int64_t largest = std::max<std::int64_t>(peak_units_ / kShareOfPeak, 1);
    constexpr std::int64_t kOctaves = 10;
    return 1 + Below(std::max<std::int64_t>(largest >> Below(kOctaves), 1));
  }

  void Push() {
    const std::int64_t free_units = peak_units_ - load_units_;
    const std::int64_t index = std::ssize(problem_.buffers);
    // The last buffer of all completes a peak, wherever the load is.
    const bool is_last = index + 1 == options_.count;
    const std::int64_t units = is_last ? free_units : std::min(DrawUnits(), free_units);
    Buffer buffer;
    buffer.id = fmt::to_string(index);
    buffer.lifetime.lower = now_++;
    buffer.size_bytes = units * options_.alignment;
    buffer.alignment = options_.alignment;
    problem_.buffers.push_back(std::move(buffer));
    stack_.push_back(static_cast<std::size_t>(index));
    load_units_ += units;
  }

  /// Frees buffers from the top until the load has fallen to a random level, low ones being rarer.
  void Shrink() {
    const std::int64_t level = std::max(Below(peak_units_), Below(peak_units_));
    do {
      Pop();
    } while (load_units_ > level);
  }

  /// Frees the top of the stack, or sometimes one just below it.
  void Pop() {
    constexpr std::int64_t kDisorderOneIn = 8;
    constexpr std::int64_t kDisorderDepth = 4;
    const std::int64_t depth = std::min<std::int64_t>(kDisorderDepth, std::ssize(stack_));
    const std::int64_t below_top = Below(kDisorderOneIn) == 0 ? Below(depth) : 0;
    const auto victim = stack_.end() - 1 - below_top;
    Buffer& buffer = problem_.buffers[*victim];
    stack_.erase(victim);
    buffer.lifetime.upper = now_++;
    load_units_ -= buffer.size_bytes / options_.alignment;
  }

  StackOptions options_;
  std::int64_t peak_units_;
  std::mt19937_64 random_;
  Problem problem_;
  std::vector<std::size_t> stack_;  // Buffers alive, oldest first.
  std::int64_t load_units_ = 0;
  Time now_ = 0;
};

}  // namespace

Problem GenerateStack(const StackOptions& options) {
  PLIMSOLL_CHECK(options.count >= 1, fmt::format("{} buffers", options.count));
  PLIMSOLL_CHECK(options.alignment >= 1, fmt::format("an alignment of {}", options.alignment));
  PLIMSOLL_CHECK(
      options.peak_bytes >= 1 && options.peak_bytes < kMaxBytes &&
          options.peak_bytes % options.alignment == 0,
      fmt::format("a peak of {} bytes, aligned to {}", options.peak_bytes, options.alignment));
  return StackGenerator(options).Run();
}

}  // namespace plimsoll::place
