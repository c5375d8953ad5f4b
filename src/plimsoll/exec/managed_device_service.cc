// SPDX-License-Identifier: Apache-2.0
//
// How a managed device comes to be served by a plan, and how it departs from one:
//
//     on demand ──Enter()──▶ planned ──Drift(), Leave()──▶ on demand
//
// Content moves to where the plan has it, and back from wherever the plan had left it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/index.h"
#include "plimsoll/exec/managed_device.h"

namespace plimsoll::exec {
namespace {

/// Of an iteration, by its plan.
Nanoseconds PredictedNs(const Pattern& pattern) {
  return pattern.predicted().iteration_ns / pattern.steps().problem.laps;
}

/// For lack of host memory: of one iteration.
constexpr std::int64_t kMostPlans = 4;

}  // namespace

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
  // What it took to record an iteration, its plan needs no more; what drifts take comes and goes.
  if (!std::exchange(entry.pattern->has_served, true)) host_slab_->Trim();
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

}  // namespace plimsoll::exec
