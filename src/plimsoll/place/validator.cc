// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>

namespace plimsoll::place {
namespace {

/// A moment at which a buffer begins or ceases to hold its bytes.
struct Change {
  Time time;
  bool begins;
  std::size_t buffer;

  /// Ends come first: a lifetime is half-open, so its bytes are free at its upper end.
  bool operator<(const Change& other) const {
    return std::tie(time, begins, buffer) < std::tie(other.time, other.begins, other.buffer);
  }
};

class Judge {
 public:
  Judge(const Problem& problem, const std::vector<Bytes>& offsets, Bytes capacity, std::size_t most)
      : problem_(problem), offsets_(offsets), capacity_(capacity), most_(most) {}

  std::vector<Violation> Run() {
    if (offsets_.size() != problem_.buffers.size()) {
      Report(fmt::format("{} offsets for {} buffers", offsets_.size(), problem_.buffers.size()));
      return std::move(violations_);
    }
    for (std::size_t i = 0; i < offsets_.size(); ++i) CheckAlone(i);
    if (violations_.empty()) CheckOverlaps();
    return std::move(violations_);
  }

 private:
  bool enough() const { return violations_.size() >= most_; }
  void Report(std::string message) {
    if (!enough()) violations_.push_back({std::move(message)});
  }

  std::string Describe(std::size_t i) const {
    const Buffer& buffer = problem_.buffers[i];
    return fmt::format("buffer {} (time [{}, {}), bytes [{}, {}))", buffer.id,
                       buffer.lifetime.lower, buffer.lifetime.upper, offsets_[i],
                       offsets_[i] + buffer.size_bytes);
  }

  /// The laws that concern one buffer at a time.
  void CheckAlone(std::size_t i) {
    const Buffer& buffer = problem_.buffers[i];
    const Bytes offset = offsets_[i];
    if (offset < 0 || offset >= kMaxBytes) {
      Report(fmt::format("buffer {} has offset {}", buffer.id, offset));
      return;
    }
    if (offset % buffer.alignment != 0) {
      Report(fmt::format("{} is not aligned to {}", Describe(i), buffer.alignment));
    }
    if (buffer.fixed_offset && *buffer.fixed_offset != offset) {
      Report(fmt::format("{} must stay at {}", Describe(i), *buffer.fixed_offset));
    }
    if (capacity_ >= 0 && buffer.size_bytes > 0 && offset + buffer.size_bytes > capacity_) {
      Report(fmt::format("{} reaches above the capacity, {}", Describe(i), capacity_));
    }
  }

  static void AddLive(Interval live, std::size_t buffer, std::vector<Change>* changes) {
    if (live.lower >= live.upper) return;
    changes->push_back({live.lower, true, buffer});
    changes->push_back({live.upper, false, buffer});
  }

  std::vector<Change> ListChanges() const {
    std::vector<Change> changes;
    changes.reserve(2 * offsets_.size());
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      const Buffer& buffer = problem_.buffers[i];
      if (buffer.size_bytes == 0) continue;
      Time from = buffer.lifetime.lower;
      for (const Interval& gap : buffer.gaps) {
        AddLive({from, gap.lower}, i, &changes);
        from = gap.upper;
      }
      AddLive({from, buffer.lifetime.upper}, i, &changes);
    }
    std::sort(changes.begin(), changes.end());
    return changes;
  }

  /// Sweeps over time. As long as no violation has been found, the live buffers are disjoint, so a
  /// new one overlaps any of them only if it overlaps its neighbour below or above.
  void CheckOverlaps() {
    std::set<std::pair<Bytes, std::size_t>> live;  // Offset and buffer.
    for (const Change& change : ListChanges()) {
      const std::size_t i = change.buffer;
      if (!change.begins) {
        live.erase({offsets_[i], i});
        continue;
      }
      const auto [place, inserted] = live.insert({offsets_[i], i});
      if (!inserted) continue;
      if (place != live.begin()) CheckPair(std::prev(place)->second, i, change.time);
      if (std::next(place) != live.end()) CheckPair(i, std::next(place)->second, change.time);
      if (enough()) return;
    }
  }

  void CheckPair(std::size_t below, std::size_t above, Time time) {
    if (offsets_[below] + problem_.buffers[below].size_bytes <= offsets_[above]) return;
    Report(fmt::format("{} and {} overlap at time {}", Describe(below), Describe(above), time));
  }

  const Problem& problem_;
  const std::vector<Bytes>& offsets_;
  const Bytes capacity_;
  const std::size_t most_;
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> FindViolations(const Problem& problem, const std::vector<Bytes>& offsets,
                                      Bytes capacity, std::size_t most) {
  return Judge(problem, offsets, capacity, most).Run();
}

}  // namespace plimsoll::place
