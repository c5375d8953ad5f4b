// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/device/backend.h"
#include "plimsoll/exec/device.h"
#include "plimsoll/exec/host_shortage.h"
#include "plimsoll/exec/iteration_watch.h"
#include "plimsoll/exec/on_demand.h"

namespace plimsoll::exec {

struct ManagedOptions {
  /// How iterations are watched and planned; the limit of planning is the size of the arena, which
  /// is allocated at once.
  WatchOptions watch;
  /// Whether every byte in use is accounted for at every event; for tests.
  bool ledger = false;
  /// Whether steady ops may be issued as graphs, where the backend keeps graphs.
  bool graphs = true;
};

/// Holds a limit: everything that the program asks for happens in one arena of the limit's size,
/// and what does not fit at a time waits in host memory or is made again.
///
///                ┌─────────────┐   a plan is there, at the beginning    ┌─────────┐
///     start ────▶│  on demand  │ ─────────── of an iteration ──────────▶│ planned │
///                │             │ ◀─── a call that the plan does not ────│         │
///                └─────────────┘      expect: drift, at that very call  └─────────┘
///
/// On demand, an op brings its blocks in, and the least recently used ones leave (on_demand.h);
/// meanwhile the iteration is recorded, and planned on a thread of its own (iteration_watch.h).
/// When planned service begins, what lives across the beginning of the iteration is moved to its
/// planned place; from then on every call is served by the plan (plan_runner.h). At a call that
/// does not match, whatever the plan has dropped is made again, and service goes on on demand.
///
/// Where the backend does not have the host memory that a plan needs, it is asked for less, and the
/// iteration planned again for what it has.
class ManagedDevice final : public Device {
 public:
  /// Keeps a reference to the backend, which outlives it. Throws OutOfMemory if there is no room
  /// for the arena, and Error if there is no such planner.
  ///
  /// A copy that fails is thrown by the call that waits for it. If contents were lost by it, every
  /// later call but Free() throws DeviceError.
  ManagedDevice(device::Backend* backend, ManagedOptions options);
  ~ManagedDevice() override;

  Block Malloc(Bytes size_bytes) override;
  void Free(Block block) override;
  void Exec(const OpInfo& info, std::span<const Block> reads, std::span<const Block> writes,
            Function function) override;
  void EndIteration(std::string_view next) override;
  using Device::EndIteration;
  /// Functions get constants only where they cannot hold them: if the program cannot address the
  /// device's memory.
  void SetConstants(std::span<const std::byte> constants) override;
  void Synchronize() override;
  DeviceStats stats() const override;

  /// The iteration that is served by a plan, or was last; null if none ever was.
  const Pattern* served() const { return served_.get(); }
  const IterationWatch& watch() const { return watch_; }
  /// Why planned service was last left; empty if it never was.
  const std::string& last_drift() const { return last_drift_; }
  /// What host memory was missing, and what came of it; nothing if none was.
  std::optional<HostShortage> host_shortage() const;
  /// Takes the times of all commands of the next iteration that is served by a plan from its
  /// beginning; does nothing while service is on demand. Nothing if that has not come to its end.
  void MeasureNextIteration();
  std::optional<sim::Timeline> TakeMeasured();
  /// Waits for the plans in the making. They serve from the next beginning on.
  void AwaitPlans() { watch_.AwaitPlans(); }

 protected:
  void CopyToDevice(std::byte* device, const void* data, Bytes size_bytes) override;
  void CopyToProgram(void* data, const std::byte* device, Bytes size_bytes) override;

 private:
  struct Held {
    Bytes size_bytes = 0;
    Block storage = kNoBlock;  // Its number in `memory_`; kNoBlock in planned service.
  };

  bool planned() const { return follower_.has_value(); }
  void CheckUsable() const;
  void Issue(const std::function<void()>& commands);
  const std::byte* constants() const { return has_constants_ ? constants_.get() : nullptr; }
  Held& Find(Block block);
  Block NewStorage() { return Block{next_storage_++}; }
  std::map<Block, Bytes> Live() const;

  Nanoseconds RunOnDemand(const OpInfo& info, std::span<const Block> reads,
                          std::span<const Block> writes, const Function& function);
  /// After a call that was served on demand.
  void EnterIfDue();
  /// After one that was served by the plan.
  void CountIfOver();
  void Enter(IterationWatch::Entry entry);
  std::vector<Target> TargetsOf(const IterationWatch::Entry& entry);
  void TakeSlab(const IterationWatch::Entry& entry);
  void PutOff(Pattern* pattern, const std::string& reason);
  void Leave();
  static void Add(const RunCounts& counts, DeviceStats* stats);
  void Drift(std::string reason);
  std::vector<Block> TakeBack(const std::vector<Whereabouts>& contents);
  void Rebuild(const std::vector<PlanRunner::PendingReplay>& replays, std::vector<Block>* storages,
               std::vector<Whereabouts>* contents);

  device::Backend& backend_;
  std::unique_ptr<std::byte, std::function<void(std::byte*)>> arena_;
  std::unique_ptr<std::byte, std::function<void(std::byte*)>> constants_;
  bool has_constants_ = false;  // Whether they were ever set.
  bool graphs_ = true;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<HostSlab> host_slab_;  // All host memory: of both services.
  std::byte* slab_ = nullptr;            // A range of it: where planned service copies to.
  std::unique_ptr<OnDemandMemory> memory_;
  std::unordered_map<Block, Held> blocks_;
  std::int64_t next_block_ = 0;
  std::int64_t next_storage_ = 0;
  device::EventId begun_ = 0;  // Around a function that is measured.
  device::EventId ended_ = 0;

  IterationWatch watch_;
  std::shared_ptr<Pattern> served_;
  std::optional<Follower> follower_;  // In planned service.
  std::string last_drift_;
  bool program_marks_ = false;  // Whether the program says where its iterations end.
  bool called_ = false;         // Whether an op was run since the last mark.
  bool broken_ = false;         // Contents are lost.
  std::optional<sim::Timeline> measured_;
  HostShortage shortage_;                         // Of plans,
  std::optional<std::uint64_t> short_of_memory_;  // of which that of this hash asked for most.
  DeviceStats stats_;
};

}  // namespace plimsoll::exec
