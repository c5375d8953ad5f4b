// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "plimsoll/plan/script.h"

namespace plimsoll::plan {

/// Says what Perform() would say, roughly and many times faster: slot by slot, not event by event.
/// A copy that begins while the other direction is busy is slower for all of its time, and the
/// other one is not; ops are slower as long as copies that have been asked for would take. Where
/// copies out outlast the iteration, the next one counts, in which others wait for them. Keeps its
/// buffers from one run to the next.
class Estimator {
 public:
  /// Returns how long the iteration takes, with copies in that begin as early as `prefetch` says
  /// (script.h). Once that is sure to be more than `below_ns`, stops and returns something that is.
  Nanoseconds Run(const Script& script, const Machine& machine, Bytes load_limit_bytes,
                  double prefetch = kPrefetchJustInTime,
                  Nanoseconds below_ns = std::numeric_limits<Nanoseconds>::max());

  /// Exits that were needed again before they were gone.
  const std::vector<std::size_t>& useless() const { return useless_; }
  /// The highest load that an op has found, with what was still leaving, in the last run.
  Bytes highest_bytes() const { return highest_bytes_; }

 private:
  enum class State : std::uint8_t { kHere, kLeaving, kAway, kComing };
  struct Trip {
    State state = State::kHere;
    double latest_ns = 0;  ///< When it must begin to come, if nothing waits.
    Nanoseconds out_end_ns = 0;
    Nanoseconds in_end_ns = 0;
  };

  /// A copy out of the iteration before that has not ended when this one begins.
  struct Spilled {
    std::size_t exit;
    Nanoseconds out_end_ns;
  };

  void Prepare();
  bool RunLap(Nanoseconds below_ns);
  void SpillOver();
  void MakeRoom(Slot slot);
  void Await(Slot slot);
  void BringIn(Slot slot, Nanoseconds end_ns);
  bool HasRoom(Slot slot, std::size_t exit);
  void StartIn(std::size_t exit, Nanoseconds begin_ns);
  void Leave(Slot slot);
  void GiveBytes(std::size_t exit);
  Nanoseconds DurationOf(Slot slot);

  const Script* script_ = nullptr;
  const Machine* machine_ = nullptr;
  Bytes limit_bytes_ = 0;
  double prefetch_ = kPrefetchJustInTime;
  std::vector<Trip> trips_;            // Per exit.
  std::vector<std::uint64_t> order_;   // Exits in the order of the copy-in queue.
  std::vector<Bytes> load_bytes_;      // Per slot: what is needed, and what has come early.
  std::vector<Nanoseconds> begin_ns_;  // Per slot, and one behind: if nothing waits.
  std::vector<Nanoseconds> end_ns_;    // Per slot so far: when its op has ended.
  std::vector<std::size_t> useless_;
  std::vector<Spilled> spilled_;  // In the order of the copy-out queue.
  std::size_t next_spilled_ = 0;  // Those before have given their bytes.
  Nanoseconds now_ns_ = 0;
  Nanoseconds out_free_ns_ = 0;
  Nanoseconds in_free_ns_ = 0;
  Nanoseconds out_busy_ns_ = 0;
  Nanoseconds in_busy_ns_ = 0;
  Bytes highest_bytes_ = 0;
  Bytes leaving_bytes_ = 0;      // Of what is being copied out and still has its bytes.
  std::size_t next_leave_ = 0;   // The first exit whose op has not ended.
  std::size_t next_gone_ = 0;    // Those before have given their bytes.
  std::size_t next_in_ = 0;      // Into order_: the next to come in.
  std::size_t next_due_ = 0;     // Into order_: the next whose op comes.
  bool hands_over_ = false;      // Whether the next op waits for copies.
  std::size_t barred_exit_ = 0;  // For which the last slot is known
  Slot barred_until_ = 0;        // that has no room for it.
};

}  // namespace plimsoll::plan
