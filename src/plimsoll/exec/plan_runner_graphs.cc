// SPDX-License-Identifier: Apache-2.0
//
// The calls that a runner makes of its backend: at once, or held back and made all together.
#include <algorithm>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/index.h"
#include "plimsoll/exec/plan_runner.h"
#include "plimsoll/exec/plan_runner_internal.h"

namespace plimsoll::exec {
namespace {

using plan::Queue;

/// Fewer ops than this are not worth a graph.
constexpr std::int64_t kFewestOps = 4;
/// Graphs take memory of the device that no limit knows of. More stretches than this are no longer
/// the same few that come again and again.
constexpr std::size_t kMostGraphs = 8;

}  // namespace

void PlanRunner::Issue(Call call) {
  if (!holds_back_) {
    Perform(call, /*keeps=*/false);
    return;
  }
  if (call.kind == Call::Kind::kRecord || call.kind == Call::Kind::kWait) {
    std::int64_t& recorded_in = held_events_[At(call.index * kEventLaps + call.lap % kEventLaps)];
    if (call.kind == Call::Kind::kRecord) recorded_in = stretch_;
    call.is_inside = recorded_in == stretch_;
  }
  held_.push_back(std::move(call));
}

/// `keeps` in a graph: whoever keeps what is run needs more than references to it.
void PlanRunner::Perform(const Call& call, bool keeps) {
  switch (call.kind) {
    case Call::Kind::kRun:
      RunFunction(call.index, call.function, keeps);
      break;
    case Call::Kind::kCopy: {
      const plan::Command& command = plan_.commands[At(call.index)];
      const plan::Residency& residency = plan_.residencies[At(command.residency)];
      const Bytes size = plan_.problem.variables[At(residency.variable)].size_bytes;
      std::byte* const device = memory_.arena + residency.offset;
      std::byte* const host = memory_.slab + command.host_offset;
      if (call.queue == Queue::kCopyOut) {
        memory_.backend->CopyOut(host, device, size);
      } else {
        memory_.backend->CopyIn(device, host, size);
      }
      break;
    }
    case Call::Kind::kRecord:
      memory_.backend->Record(EventOf(call.index, call.lap), StreamOf(call.queue));
      break;
    case Call::Kind::kWait:
      memory_.backend->Wait(StreamOf(call.queue), EventOf(call.index, call.lap));
      break;
    case Call::Kind::kDiscard:
      DiscardPlace(plan_.residencies[At(call.index)]);
      break;
  }
}

/// Behind the last op there, which is compute's, and the copy out; before whatever comes in.
void PlanRunner::DiscardPlace(const plan::Residency& residency) {
  device::Backend& backend = *memory_.backend;
  if (residency.copy_out >= 0) {
    backend.Record(fence_, device::Stream::kCopyOut);
    backend.Wait(device::Stream::kCompute, fence_);
  }
  backend.Discard(memory_.arena + residency.offset,
                  plan_.problem.variables[At(residency.variable)].size_bytes);
  backend.Record(fence_, device::Stream::kCompute);
  backend.Wait(device::Stream::kCopyIn, fence_);
}

void PlanRunner::RunFunction(plan::OpIndex index, const Function& function, bool keeps) {
  if (!function) return;
  const plan::Op& op = plan_.problem.ops[At(index)];
  const auto count = At(op.read_count + op.write_count);
  addresses_.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    const plan::ResidencyIndex r = operand_residencies_[At(op.first_operand) + k];
    addresses_[k] = memory_.arena + plan_.residencies[At(r)].offset;
  }
  const auto run = [reads = At(op.read_count), constants = memory_.constants](
                       const Function& run_this, std::span<std::byte* const> all,
                       void* native_stream) {
    run_this({all.first(reads), all.subspan(reads), native_stream, constants});
  };
  if (keeps) {
    memory_.backend->Run([run, function, all = addresses_](void* native_stream) {
      run(function, all, native_stream);
    });
  } else {
    memory_.backend->Run([&](void* native_stream) { run(function, addresses_, native_stream); });
  }
}

void PlanRunner::Flush() {
  const std::vector<Call> calls = std::exchange(held_, {});
  ++stretch_;
  if (calls.empty()) return;
  has_lost_ = true;  // Unless all of them are issued.
  for (const Call& call : calls) Perform(call, /*keeps=*/false);
  has_lost_ = false;
}

std::vector<PlanRunner::CallKey> PlanRunner::KeysOfHeld() const {
  std::vector<CallKey> keys;
  keys.reserve(held_.size());
  std::int64_t first_lap = -1;
  for (const Call& call : held_) {
    const bool has_lap = call.kind == Call::Kind::kRecord || call.kind == Call::Kind::kWait;
    // Launching a graph comes behind all that was before: there is nothing to wait for outside.
    if (has_lap && !call.is_inside) continue;
    if (has_lap && first_lap < 0) first_lap = call.lap;
    keys.push_back({call.kind, call.queue, call.index, has_lap ? call.lap - first_lap : 0});
  }
  return keys;
}

/// Issues what is held back: as a graph, if there is one.
void PlanRunner::IssueHeld() {
  if (held_.empty()) return;
  const std::int64_t ops = std::count_if(
      held_.begin(), held_.end(), [](const Call& call) { return call.kind == Call::Kind::kRun; });
  if (ops < kFewestOps) return Flush();
  std::vector<CallKey> keys = KeysOfHeld();
  auto found = std::find_if(graphs_.begin(), graphs_.end(),
                            [&](const Graph& graph) { return graph.calls == keys; });
  if (found == graphs_.end()) {
    if (graphs_.size() < kMostGraphs) graphs_.push_back({.calls = std::move(keys)});
    return Flush();
  }
  if (found->id < 0 && !Capture(&*found)) return Flush();
  has_lost_ = true;
  memory_.backend->LaunchGraph(found->id);
  has_lost_ = false;
  ++counts_.graph_launches;
  held_.clear();
  ++stretch_;
}

/// Returns whether there is a graph now. If not, there never will be.
bool PlanRunner::Capture(Graph* graph) {
  try {
    memory_.backend->BeginGraph();
    for (const Call& call : held_) {
      if (call.kind == Call::Kind::kWait && !call.is_inside) continue;
      Perform(call, /*keeps=*/true);
    }
    graph->id = memory_.backend->EndGraph();
    return true;
  } catch (const DeviceError&) {
    // Something in there cannot be kept; one by one it can be run.
    memory_.backend->DropGraph();
    gives_up_graphs_ = true;
    return false;
  } catch (...) {
    // The books have ops that will not run.
    has_lost_ = true;
    memory_.backend->DropGraph();
    gives_up_graphs_ = true;
    throw;
  }
}

void PlanRunner::ForgetGraphs() {
  for (const Graph& graph : graphs_) {
    if (graph.id >= 0) memory_.backend->DestroyGraph(graph.id);
  }
  graphs_.clear();
  trial_.ForgetGraphs();
}

}  // namespace plimsoll::exec
