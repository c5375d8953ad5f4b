// SPDX-License-Identifier: Apache-2.0
//
// How long does a malloc with its free take? Replays one cycle against the planned pool, the
// look-up of paper 001 (section VI-A: a std::map of n variables), CnMem's linked lists and the
// system's malloc, in turn, round after round, and prints nanoseconds for each malloc with its
// free.
//
//   pool_latency [TRACE]     (a generated network's, without one)

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "linked_lists.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/exec/make_pool_table.h"
#include "plimsoll/exec/pool.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/plan/problem.h"
#include "plimsoll/plan/to_placement.h"
#include "plimsoll/trace/generate.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll {
namespace {

using exec::PoolStep;
using exec::PoolTable;

constexpr int kWarmUpRounds = 20;
constexpr int kRounds = 300;
constexpr std::uintptr_t kBase = std::uintptr_t{1} << 40;  // No service touches its memory.

// One call of the program: blocks are numbered, each is allocated and freed once.
struct Call {
  bool is_malloc = true;
  std::size_t block = 0;
};

struct Cycle {
  std::vector<Bytes> sizes;  // By block.
  std::vector<Call> calls;
};

// The planned table of a trace's iteration; of a generated network's if there is no trace.
PoolTable MakeTable(const std::string& path) {
  trace::GenerateOptions network;
  network.layers = 120;
  network.scale_bytes = Bytes{64} << 20;
  const trace::Trace trace = path.empty() ? trace::GenerateTrace(network) : trace::ReadTrace(path);
  const plan::Problem problem = plan::MakeProblem(trace);
  if (!problem.cyclic) throw InputError(path, 0, "nothing repeats: there is no cycle to serve");
  const plan::PlacementProblem placement = plan::ToPlacement(problem);
  const place::Placement placed = place::PlaceTight(placement.problem, {});
  return exec::MakePoolTable(problem, placement, placed.offsets);
}

// Numbers the blocks of a table; a free names the block that is live at its offset.
Cycle ListCalls(const PoolTable& table) {
  Cycle cycle;
  std::multimap<Bytes, std::size_t> live;
  for (const PoolStep& step : table.steps) {
    if (step.kind == PoolStep::Kind::kMalloc) {
      live.emplace(step.size_bytes > 0 ? step.offset : -1, cycle.sizes.size());
      cycle.calls.push_back({true, cycle.sizes.size()});
      cycle.sizes.push_back(step.size_bytes);
    } else {
      const auto block = live.find(step.size_bytes > 0 ? step.offset : -1);
      if (block == live.end()) throw Error("blocks that outlive the iteration are not timed");
      cycle.calls.push_back({false, block->second});
      live.erase(block);
    }
  }
  return cycle;
}

// The paper's way: a map from the index of the operation to the address; another one knows the
// blocks that are live. It has no lock.
class MapLookup {
 public:
  explicit MapLookup(const PoolTable& table) : period_(table.steps.size()) {
    for (std::size_t i = 0; i < period_; ++i) {
      if (table.steps[i].kind == PoolStep::Kind::kMalloc) {
        addresses_[i] = kBase + static_cast<std::uintptr_t>(table.steps[i].offset);
      }
    }
  }

  void* Malloc(Bytes /*size_bytes*/) {
    const std::uintptr_t address = addresses_.find(Next())->second;
    live_.emplace(address, operation_);
    return reinterpret_cast<void*>(address);
  }

  void Free(void* block) {
    live_.erase(live_.find(reinterpret_cast<std::uintptr_t>(block)));
    Next();
  }

 private:
  std::size_t Next() {
    const std::size_t operation = operation_;
    operation_ = operation + 1 == period_ ? 0 : operation + 1;
    return operation;
  }

  std::size_t period_;
  std::size_t operation_ = 0;
  std::map<std::size_t, std::uintptr_t> addresses_;
  std::multimap<std::uintptr_t, std::size_t> live_;  // Empty blocks may share an address.
};

class SystemMalloc {
 public:
  void* Malloc(Bytes size_bytes) {
    void* block = std::malloc(static_cast<std::size_t>(size_bytes));
    if (block == nullptr && size_bytes > 0) throw OutOfMemory(size_bytes, 0, "malloc refused");
    return block;
  }
  void Free(void* block) { std::free(block); }
};

// What no pool with a lock can beat: a spin lock taken and released, and nothing done.
class LockAlone {
 public:
  void* Malloc(Bytes /*size_bytes*/) { return Pass(); }
  void Free(void* /*block*/) { Pass(); }

 private:
  void* Pass() {
    while (taken_.exchange(true, std::memory_order_acquire)) continue;
    taken_.store(false, std::memory_order_release);
    return nullptr;
  }

  std::atomic<bool> taken_ = false;
};

// Measures the timers themselves.
class Nothing {
 public:
  void* Malloc(Bytes /*size_bytes*/) { return nullptr; }
  void Free(void* /*block*/) {}
};

// Reads a clock between two fences, so that what is timed is all inside.
inline std::uint64_t ReadTicks() {
#if defined(__x86_64__)
  _mm_lfence();
  const std::uint64_t ticks = __rdtsc();
  _mm_lfence();
  return ticks;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

double NanosecondsPerTick() {
  const Stopwatch watch;
  const std::uint64_t start = ReadTicks();
  while (watch.seconds() < 0.1) continue;
  const std::uint64_t end = ReadTicks();
  return watch.seconds() * 1e9 / static_cast<double>(end - start);
}

template <typename T>
T Percentile(std::vector<T> samples, double fraction) {
  const auto index =
      static_cast<std::ptrdiff_t>(fraction * static_cast<double>(samples.size() - 1));
  std::nth_element(samples.begin(), samples.begin() + index, samples.end());
  return samples[static_cast<std::size_t>(index)];
}

// What was measured of one service.
struct Samples {
  std::vector<std::uint64_t> pair_ticks;  // Malloc with its free, timers and all.
  std::vector<double> round_ns;           // A malloc with its free, over a whole round, no timers.
};

template <typename Service>
void RunTimed(const Cycle& cycle, Service* service, Samples* samples) {
  static std::vector<void*> blocks;
  static std::vector<std::uint64_t> ticks;
  blocks.resize(cycle.sizes.size());
  ticks.resize(cycle.sizes.size());
  for (const Call& call : cycle.calls) {
    if (call.is_malloc) {
      const Bytes size_bytes = cycle.sizes[call.block];
      const std::uint64_t start = ReadTicks();
      void* block = service->Malloc(size_bytes);
      ticks[call.block] = ReadTicks() - start;
      blocks[call.block] = block;
    } else {
      void* block = blocks[call.block];
      const std::uint64_t start = ReadTicks();
      service->Free(block);
      ticks[call.block] += ReadTicks() - start;
    }
  }
  if (samples == nullptr) return;
  samples->pair_ticks.insert(samples->pair_ticks.end(), ticks.begin(), ticks.end());
}

template <typename Service>
void RunUntimed(const Cycle& cycle, Service* service, Samples* samples) {
  std::vector<void*> blocks(cycle.sizes.size());
  const Stopwatch watch;
  for (const Call& call : cycle.calls) {
    if (call.is_malloc) {
      blocks[call.block] = service->Malloc(cycle.sizes[call.block]);
    } else {
      service->Free(blocks[call.block]);
    }
  }
  samples->round_ns.push_back(watch.seconds() * 1e9 / static_cast<double>(cycle.sizes.size()));
}

void PrintRow(const char* name, const Samples& samples, double timer_ticks, double tick_ns) {
  const auto pair_ns = [&](double fraction) {
    const auto ticks = static_cast<double>(Percentile(samples.pair_ticks, fraction));
    return std::max(0.0, ticks - timer_ticks) * tick_ns;
  };
  fmt::print("{:<28} {:>10.1f} {:>10.1f} {:>10.1f} {:>14.1f}\n", name, pair_ns(0.5), pair_ns(0.9),
             pair_ns(0.99), Percentile(samples.round_ns, 0.5));
}

template <typename... Services>
void Measure(const Cycle& cycle, std::vector<Samples>* samples, Services*... services) {
  samples->resize(sizeof...(services));
  for (int round = 0; round < kWarmUpRounds; ++round) (RunTimed(cycle, services, nullptr), ...);
  for (int round = 0; round < kRounds; ++round) {
    std::size_t index = 0;
    (RunTimed(cycle, services, &(*samples)[index++]), ...);
    index = 0;
    (RunUntimed(cycle, services, &(*samples)[index++]), ...);
  }
}

void Run(const std::string& path) {
  const PoolTable table = MakeTable(path);
  const Cycle cycle = ListCalls(table);
  exec::Pool pool(reinterpret_cast<void*>(kBase), table.footprint_bytes, table);
  MapLookup map_lookup(table);
  LinkedLists linked_lists(kBase, kMaxBytes - 512);
  SystemMalloc system_malloc;
  LockAlone lock_alone;
  Nothing nothing;
  std::vector<Samples> samples;
  Measure(cycle, &samples, &pool, &map_lookup, &linked_lists, &system_malloc, &lock_alone,
          &nothing);
  if (pool.stats().on_demand_calls > 0) throw Error("the pool did not follow its plan");

  const auto timer_ticks = static_cast<double>(Percentile(samples[5].pair_ticks, 0.5));
  const double tick_ns = NanosecondsPerTick();
  fmt::print("{}: {} blocks, footprint {}; {} rounds; the timers' own {:.1f} ns are taken off\n\n",
             path.empty() ? "generated network" : path, cycle.sizes.size(),
             FormatBytes(table.footprint_bytes), kRounds, timer_ticks * tick_ns);
  fmt::print("{:<28} {:>10} {:>10} {:>10} {:>14}\n", "ns per malloc + free", "median", "90 %",
             "99 %", "whole round");
  PrintRow("Pool (planned, locked)", samples[0], timer_ticks, tick_ns);
  PrintRow("paper 001: std::map", samples[1], timer_ticks, tick_ns);
  PrintRow("CnMem: linked lists", samples[2], timer_ticks, tick_ns);
  PrintRow("system malloc", samples[3], timer_ticks, tick_ns);
  PrintRow("the spin lock alone", samples[4], timer_ticks, tick_ns);
  fmt::print("\nwhole round: a round without timers, over its blocks; the median of all rounds\n");
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  try {
    plimsoll::Run(argc > 1 ? argv[1] : "");
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "pool_latency: {}\n", error.what());
    return 1;
  }
}
