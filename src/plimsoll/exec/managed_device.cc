// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/managed_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"

namespace plimsoll::exec {
namespace {

/// What is limited is taken at once, within reason: between chunks, room is lost.
Bytes ChunkBytes(Bytes host_limit_bytes) {
  constexpr Bytes kMebibyte = Bytes{1} << 20;
  return host_limit_bytes == kMaxBytes ? 64 * kMebibyte
                                       : std::min(host_limit_bytes, 1024 * kMebibyte);
}

std::int64_t Number(Block block) { return static_cast<std::int64_t>(block); }

}  // namespace

ManagedDevice::ManagedDevice(device::Backend* backend, ManagedOptions options)
    : backend_(*backend), watch_(options.watch) {
  const PlanningOptions& planning = options.watch.planning;
  if (planners::FindPlanner(planning.planner) == nullptr) {
    throw Error(fmt::format("there is no planner called {}", planning.planner));
  }
  if (planning.limit_bytes <= 0) {
    throw Error(fmt::format("a limit of {} bytes leaves no room for anything; give more",
                            planning.limit_bytes));
  }
  arena_ = {backend_.AllocateDevice(planning.limit_bytes),
            [this](std::byte* arena) { backend_.FreeDevice(arena); }};
  ledger_ = std::make_unique<Ledger>(planning.limit_bytes, options.ledger);
  host_slab_ = std::make_unique<HostSlab>(&backend_, planning.host_limit_bytes,
                                          ChunkBytes(planning.host_limit_bytes));
  memory_ = std::make_unique<OnDemandMemory>(&backend_, arena_.get(), planning.limit_bytes,
                                             host_slab_.get(), ledger_.get());
  graphs_ = options.graphs;
  // On the host, functions hold what changes by value.
  if (!backend_.capabilities().host_addressable) {
    constants_ = {backend_.AllocateDevice(kMaxConstantBytes),
                  [this](std::byte* constants) { backend_.FreeDevice(constants); }};
  }
  begun_ = backend_.CreateEvent();
  ended_ = backend_.CreateEvent();
  stats_.service = Service::kRecording;
  stats_.limit_bytes = planning.limit_bytes;
  watch_.Begin({});
}

ManagedDevice::~ManagedDevice() {
  try {
    backend_.Synchronize();
  } catch (const Error&) {
    // Whoever waits for results has been told, or does not want to know.
  }
  backend_.DestroyEvent(begun_);
  backend_.DestroyEvent(ended_);
  memory_.reset();
  host_slab_.reset();
}

ManagedDevice::Held& ManagedDevice::Find(Block block) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) {
    throw Error(fmt::format("block {} is not live: used after it was freed, or never allocated",
                            Number(block)));
  }
  return found->second;
}

std::map<Block, Bytes> ManagedDevice::Live() const {
  std::map<Block, Bytes> live;
  for (const auto& [block, held] : blocks_) live.emplace(block, held.size_bytes);
  return live;
}

void ManagedDevice::CheckUsable() const {
  if (!broken_) return;
  throw DeviceError("the device", "contents were lost by an earlier failure; begin anew");
}

Block ManagedDevice::Malloc(Bytes size_bytes) {
  CheckUsable();
  if (size_bytes < 0) throw Error(fmt::format("cannot allocate {} bytes", size_bytes));
  if (size_bytes > stats_.limit_bytes) {
    throw OutOfMemory(size_bytes, stats_.limit_bytes,
                      "one block is larger than the limit; raise the limit");
  }
  const Block block{next_block_++};
  if (planned() && !follower_->Malloc(size_bytes, block)) {
    Drift(fmt::format("malloc of {} bytes", size_bytes));
  }
  Held& held = blocks_[block];
  held.size_bytes = size_bytes;
  stats_.live_bytes += size_bytes;
  stats_.peak_live_bytes = std::max(stats_.peak_live_bytes, stats_.live_bytes);
  if (planned()) {
    CountIfOver();
  } else {
    held.storage = NewStorage();
    memory_->Add(held.storage, size_bytes);
    watch_.Malloc(block, size_bytes);
    EnterIfDue();
  }
  return block;
}

void ManagedDevice::Free(Block block) {
  const Held held = Find(block);
  if (broken_) {
    stats_.live_bytes -= held.size_bytes;
    blocks_.erase(block);
    return;
  }
  if (planned() && !follower_->Free(block)) Drift(fmt::format("free of block {}", Number(block)));
  stats_.live_bytes -= held.size_bytes;
  if (planned()) {
    blocks_.erase(block);
    CountIfOver();
    return;
  }
  memory_->Remove(Find(block).storage);
  blocks_.erase(block);
  watch_.Free(block);
  EnterIfDue();
}

void ManagedDevice::Exec(const OpInfo& info, std::span<const Block> reads,
                         std::span<const Block> writes, Function function) {
  CheckUsable();
  for (const Block block : reads) Find(block);
  for (const Block block : writes) Find(block);
  if (planned() && !follower_->Expects(info, reads, writes)) Drift(fmt::format("op {}", info.name));
  ++stats_.execs;
  if (planned()) {
    Issue([&] { served_->runner().Run(follower_->op(), std::move(function), info.steady); });
    follower_->Pass();
    called_ = true;
    CountIfOver();
    return;
  }
  std::vector<Block> read_storages;
  std::vector<Block> write_storages;
  for (const Block block : reads) read_storages.push_back(Find(block).storage);
  for (const Block block : writes) write_storages.push_back(Find(block).storage);
  Nanoseconds duration = 0;
  try {
    duration = RunOnDemand(info, read_storages, write_storages, function);
  } catch (const DeviceError&) {
    // It may be of a move long ago, whose content is gone.
    broken_ = true;
    throw;
  }
  watch_.Exec(info, reads, writes, duration);
  EnterIfDue();
}

/// Returns how long the function takes: as far as is known, or as it took this time.
Nanoseconds ManagedDevice::RunOnDemand(const OpInfo& info, std::span<const Block> reads,
                                       std::span<const Block> writes, const Function& function) {
  std::vector<std::byte*> read_addresses;
  std::vector<std::byte*> write_addresses;
  memory_->Pin(reads, writes, info.name, &read_addresses, &write_addresses);
  const std::unique_ptr<OnDemandMemory, void (*)(OnDemandMemory*)> pinned(
      memory_.get(), [](OnDemandMemory* memory) { memory->Unpin(); });
  if (function) {
    backend_.PrepareToTime();
    backend_.Record(begun_, device::Stream::kCompute);
    backend_.Run([&](void* native_stream) {
      function({read_addresses, write_addresses, native_stream, constants()});
    });
    backend_.Record(ended_, device::Stream::kCompute);
    backend_.Synchronize(ended_);
  }
  if (!function || !backend_.capabilities().runs || info.is_measured) return info.expected_ns;
  return backend_.TimeOf(ended_) - backend_.TimeOf(begun_);
}

void ManagedDevice::EndIteration(std::string_view next) {
  CheckUsable();
  program_marks_ = true;
  ++stats_.iterations;
  if (!planned()) {
    // What comes now departs from nothing.
    stats_.service = Service::kRecording;
    watch_.EndIteration(next);
    EnterIfDue();
    return;
  }
  if (!watch_.marked()) return;
  if (!follower_->at_beginning()) {
    Drift("the end of the iteration");
    stats_.service = Service::kRecording;
    watch_.EndIteration(next);
    EnterIfDue();
    return;
  }
  if (!called_) return;
  ++stats_.planned_iterations;
  called_ = false;
  watch_.NoteHit(served_.get());
  if (watch_.Expected(next) == served_) return;
  Leave();
  watch_.Begin(Live());
  watch_.EndIteration(next);
  EnterIfDue();
}

/// Issues commands. If one cannot be, the books say that something is where it is not.
void ManagedDevice::Issue(const std::function<void()>& commands) {
  try {
    commands();
  } catch (const DeviceError&) {
    broken_ = true;
    throw;
  } catch (...) {
    if (planned() && served_->runner().has_lost()) broken_ = true;
    throw;
  }
}

void ManagedDevice::SetConstants(std::span<const std::byte> constants) {
  CheckUsable();
  if (constants.size() > kMaxConstantBytes) {
    throw Error(fmt::format("{} bytes of constants are too many; at most {} can be had",
                            constants.size(), kMaxConstantBytes));
  }
  if (constants_ == nullptr) return;
  // Ops that are run again would see what is new.
  if (planned() && !(follower_->at_beginning() && has_constants_)) Drift("other constants");
  has_constants_ = true;
  Issue([&] {
    if (planned()) served_->runner().Flush();
    backend_.Upload(constants_.get(), constants.data(), std::ssize(constants));
  });
}

void ManagedDevice::Synchronize() {
  CheckUsable();
  Issue([&] {
    if (planned()) served_->runner().Flush();
    backend_.Synchronize();
  });
}

void ManagedDevice::Add(const RunCounts& counts, DeviceStats* stats) {
  stats->replays += counts.replays;
  stats->copies_out += counts.copies_out;
  stats->copies_in += counts.copies_in;
  stats->copied_out_bytes += counts.copied_out_bytes;
  stats->copied_in_bytes += counts.copied_in_bytes;
  stats->graph_launches += counts.graph_launches;
}

DeviceStats ManagedDevice::stats() const {
  DeviceStats stats = stats_;
  const OnDemandStats memory = memory_->stats();
  stats.plans_made = watch_.plans_made();
  stats.copies_out += memory.copies_out;
  stats.copies_in += memory.copies_in;
  stats.copied_out_bytes += memory.copied_out_bytes;
  stats.copied_in_bytes += memory.copied_in_bytes;
  stats.host_bytes = host_slab_->reserved_bytes();
  stats.footprint_bytes = planned() ? served_->plan().footprint_bytes : memory.footprint_bytes;
  stats.peak_footprint_bytes = std::max(stats.peak_footprint_bytes, memory.peak_footprint_bytes);
  if (planned()) {
    Add(served_->runner().counts(), &stats);
    stats.settled = served_->runner().is_settled();
  }
  return stats;
}

void ManagedDevice::MeasureNextIteration() {
  if (planned()) served_->runner().Measure();
}

std::optional<sim::Timeline> ManagedDevice::TakeMeasured() {
  if (planned() && !measured_) measured_ = served_->runner().TakeMeasured();
  return std::exchange(measured_, std::nullopt);
}

void ManagedDevice::CopyToDevice(std::byte* device, const void* data, Bytes size_bytes) {
  backend_.Upload(device, data, size_bytes);
}

void ManagedDevice::CopyToProgram(void* data, const std::byte* device, Bytes size_bytes) {
  backend_.Download(data, device, size_bytes);
}

}  // namespace plimsoll::exec
