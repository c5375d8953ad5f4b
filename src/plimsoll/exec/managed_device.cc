// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/managed_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"

namespace plimsoll::exec {
namespace {

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

void Add(const RunCounts& counts, DeviceStats* stats) {
  stats->replays += counts.replays;
  stats->copies_out += counts.copies_out;
  stats->copies_in += counts.copies_in;
  stats->copied_out_bytes += counts.copied_out_bytes;
  stats->copied_in_bytes += counts.copied_in_bytes;
  stats->graph_launches += counts.graph_launches;
}

/// What is limited is taken at once, within reason: between chunks, room is lost.
Bytes ChunkBytes(Bytes host_limit_bytes) {
  constexpr Bytes kMebibyte = Bytes{1} << 20;
  return host_limit_bytes == kMaxBytes ? 64 * kMebibyte
                                       : std::min(host_limit_bytes, 1024 * kMebibyte);
}

/// Of an iteration, by its plan.
Nanoseconds PredictedNs(const Pattern& pattern) {
  return pattern.predicted().iteration_ns / pattern.steps().problem.laps;
}

/// For lack of host memory: of one iteration.
constexpr std::int64_t kMostPlans = 4;

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

void ManagedDevice::EnterIfDue() {
  std::optional<IterationWatch::Entry> entry = watch_.Due();
  if (entry) Enter(*std::move(entry));
}

void ManagedDevice::CountIfOver() {
  if (!follower_->at_beginning() || watch_.marked()) return;
  const std::int32_t laps = follower_->steps().problem.laps;
  if (!program_marks_) stats_.iterations += laps;
  stats_.planned_iterations += laps;
  watch_.NoteHit(served_.get());
}

void ManagedDevice::Enter(IterationWatch::Entry entry) {
  const plan::Plan& plan = entry.pattern->plan();
  try {
    TakeSlab(entry);
    memory_->Arrange(TargetsOf(entry));
  } catch (const OutOfMemory& error) {
    // Everything is somewhere: service on demand goes on, slower, but right.
    PutOff(entry.pattern.get(), error.what());
    return;
  } catch (const DeviceError&) {
    broken_ = true;
    throw;
  }
  broken_ = true;
  memory_->Clear();
  for (auto& [block, held] : blocks_) held.storage = kNoBlock;
  entry.pattern->runner().Enter({.backend = &backend_,
                                 .arena = arena_.get(),
                                 .slab = slab_,
                                 .ledger = ledger_.get(),
                                 .constants = constants(),
                                 .graphs = graphs_});
  broken_ = false;
  served_ = std::move(entry.pattern);
  follower_ = std::move(entry.follower);
  if (served_->hash() == short_of_memory_) shortage_.present_plan_ns = PredictedNs(*served_);
  stats_.service = Service::kPlanned;
  stats_.peak_footprint_bytes = std::max(stats_.peak_footprint_bytes, plan.footprint_bytes);
}

/// Takes the host memory that the plan needs.
void ManagedDevice::TakeSlab(const IterationWatch::Entry& entry) {
  const Bytes size_bytes = entry.pattern->plan().host_bytes;
  if (size_bytes == 0) return;
  try {
    slab_ = host_slab_->Take(size_bytes);
  } catch (const OutOfMemory&) {
    // Between iterations little is live: what fits goes to the device, and is on the host no more.
    std::vector<Target> targets;
    Bytes top = 0;
    for (const auto& [block, held] : blocks_) {
      const Bytes end = top + AlignUp(held.size_bytes, kDefaultAlignment);
      if (end > stats_.limit_bytes) continue;
      targets.push_back({.block = held.storage, .device_offset = std::exchange(top, end)});
    }
    memory_->Arrange(targets);
    memory_->ReleaseCopies();
    slab_ = host_slab_->Take(size_bytes);
  }
}

/// Of a plan that cannot begin for lack of host memory. Where the backend has refused some, the
/// iteration is planned again for less.
void ManagedDevice::PutOff(Pattern* pattern, const std::string& reason) {
  const Bytes needed_bytes = pattern->plan().host_bytes;
  const bool had_slab = slab_ != nullptr;
  if (had_slab) memory_->TakeOver(std::exchange(slab_, nullptr));
  if (host_slab_->was_refused() && needed_bytes > 0) {
    // If the slab was there, there was no room besides for what changes places.
    const Bytes got_bytes = had_slab ? needed_bytes / 2 : host_slab_->Offer(needed_bytes);
    if (got_bytes < needed_bytes && pattern->times_planned() < kMostPlans) {
      if (needed_bytes > shortage_.asked_bytes) {
        shortage_.asked_bytes = needed_bytes;
        shortage_.lost_plan_ns = PredictedNs(*pattern);
        short_of_memory_ = pattern->hash();
      }
      if (short_of_memory_ == pattern->hash()) shortage_.present_plan_ns = 0;
      shortage_.got_bytes = got_bytes;
      ++shortage_.replans;
      watch_.PlanAgain(pattern, got_bytes);
      return;
    }
  }
  // What does not fit into host memory that is empty never will; else the plan may be tried again.
  if (!had_slab && host_slab_->used_bytes() == 0) pattern->GiveUp(reason);
  watch_.NoteMiss(pattern);
}

std::optional<HostShortage> ManagedDevice::host_shortage() const {
  if (shortage_.replans > 0) return shortage_;
  if (host_slab_->refused_bytes() == 0) return std::nullopt;
  return HostShortage{.asked_bytes = host_slab_->refused_bytes(),
                      .got_bytes = host_slab_->got_bytes()};
}

/// Where the plan wants what lives across the beginning of the iteration.
std::vector<Target> ManagedDevice::TargetsOf(const IterationWatch::Entry& entry) {
  const PlanRunner& runner = entry.pattern->runner();
  std::vector<Target> targets;
  for (std::size_t w = 0; w < runner.scene().size(); ++w) {
    const Whereabouts& where = runner.scene()[w];
    if (!where.anywhere()) continue;
    PLIMSOLL_CHECK(runner.holds()[w] >= 0, fmt::format("scratch {} has content", w));
    const Block block = entry.follower.blocks()[At(runner.holds()[w])];
    PLIMSOLL_CHECK(block != kNoBlock, fmt::format("variable {} of the plan has no block", w));
    Target target{.block = Find(block).storage};
    target.device_offset = where.device_offset;
    if (where.host_offset >= 0 && slab_ != nullptr) target.host = slab_ + where.host_offset;
    targets.push_back(target);
  }
  return targets;
}

void ManagedDevice::Drift(std::string reason) {
  last_drift_ = std::move(reason);
  watch_.NoteMiss(served_.get());
  ++stats_.drifts;
  const Follower follower = *follower_;
  Leave();
  stats_.service = Service::kDrifted;
  watch_.Resume(follower, Live());
}

/// Ends planned service between two calls; what every block holds is taken over.
void ManagedDevice::Leave() {
  broken_ = true;
  PlanRunner& runner = served_->runner();
  runner.Flush();
  backend_.Synchronize();
  if (!measured_) measured_ = runner.TakeMeasured();
  std::vector<Whereabouts> contents = runner.now();
  const std::vector<PlanRunner::PendingReplay> replays = runner.PendingReplays();
  runner.Leave();
  std::vector<Block> storages = TakeBack(contents);
  Rebuild(replays, &storages, &contents);
  const std::vector<Block>& blocks = follower_->blocks();
  for (std::size_t w = 0; w < storages.size(); ++w) {
    const plan::VariableIndex v = runner.holds()[w];
    if (v < 0 || storages[w] == kNoBlock || blocks[At(v)] == kNoBlock) continue;
    if (contents[w].version != runner.versions()[At(v)]) continue;
    Held& held = Find(blocks[At(v)]);
    if (held.storage == kNoBlock) held.storage = std::exchange(storages[w], kNoBlock);
  }
  for (const Block block : blocks) {
    if (block == kNoBlock || Find(block).storage != kNoBlock) continue;
    Held& held = Find(block);
    held.storage = NewStorage();
    memory_->Add(held.storage, held.size_bytes);
  }
  for (const Block storage : storages) {
    if (storage != kNoBlock) memory_->Remove(storage);
  }
  Add(runner.counts(), &stats_);
  follower_.reset();
  broken_ = false;
  stats_.service = Service::kRecording;
}

/// Makes blocks of all contents that the plan has in memory; by variable of its problem.
std::vector<Block> ManagedDevice::TakeBack(const std::vector<Whereabouts>& contents) {
  const std::vector<plan::Variable>& variables = served_->plan().problem.variables;
  std::vector<Block> storages(variables.size(), kNoBlock);
  for (std::size_t w = 0; w < variables.size(); ++w) {
    if (contents[w].device_offset < 0) continue;
    storages[w] = NewStorage();
    memory_->AddAt(storages[w], variables[w].size_bytes, contents[w].device_offset);
  }
  std::vector<HostSlab::Part> parts;
  for (std::size_t w = 0; w < variables.size(); ++w) {
    const Whereabouts& where = contents[w];
    if (where.device_offset >= 0 || where.host_offset < 0) continue;
    storages[w] = NewStorage();
    if (variables[w].size_bytes == 0) {
      memory_->Add(storages[w], 0);
      continue;
    }
    memory_->AddOnSlab(storages[w], variables[w].size_bytes, slab_ + where.host_offset);
    parts.push_back({where.host_offset, variables[w].size_bytes});
  }
  // What is left of the slab is for whatever leaves on demand.
  if (slab_ != nullptr) host_slab_->Split(std::exchange(slab_, nullptr), parts);
  return storages;
}

/// Runs the replays that the plan had still to come, as far as their ops have run: whatever it has
/// dropped is there again before the program overwrites what it is made of.
void ManagedDevice::Rebuild(const std::vector<PlanRunner::PendingReplay>& replays,
                            std::vector<Block>* storages, std::vector<Whereabouts>* contents) {
  const plan::Problem& problem = served_->plan().problem;
  const auto storages_of = [&](std::span<const plan::Operand> operands) {
    std::vector<Block> result;
    for (const plan::Operand& operand : operands) {
      const auto w = At(operand.variable);
      Block& storage = (*storages)[w];
      if (storage == kNoBlock) {
        storage = NewStorage();
        memory_->Add(storage, problem.variables[w].size_bytes);
        (*contents)[w] = {};
      }
      result.push_back(storage);
    }
    return result;
  };
  for (const PlanRunner::PendingReplay& replay : replays) {
    const plan::Op& op = problem.ops[At(replay.op)];
    const std::vector<Block> reads = storages_of(problem.reads(op));
    const std::vector<Block> writes = storages_of(problem.writes(op));
    RunOnDemand({.name = problem.op_names[At(op.name)]}, reads, writes, replay.function);
    ++stats_.replays;
    for (const plan::VariableIndex w : WrittenBy(problem, op)) ++(*contents)[At(w)].version;
  }
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
  if (planned()) Add(served_->runner().counts(), &stats);
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
