// SPDX-License-Identifier: Apache-2.0
//
// Does planning scale? Generates stack-like buffers with a fixed peak load, a million unless told
// otherwise, places them with `tight` and prints time, memory and footprint over peak load.
//
//   million_buffers [COUNT]

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <exception>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/place/generate.h"
#include "plimsoll/place/load.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"
#include "plimsoll/report/table.h"

namespace plimsoll {
namespace {

int Run(std::int64_t count) {
  report::Table table({"seed", "buffers", "ratio", "planning s", "validation s"});
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    place::StackOptions stack;
    stack.count = count;
    stack.peak_bytes = Bytes{16} << 30;
    stack.seed = seed;
    const place::Problem problem = place::GenerateStack(stack);
    const Stopwatch planning;
    const place::Placement placed = place::PlaceTight(problem, {});
    const double planning_seconds = planning.seconds();
    const Stopwatch validation;
    const auto violations = place::FindViolations(problem, placed.offsets);
    const double validation_seconds = validation.seconds();
    if (!violations.empty()) throw Error(violations.front().message);
    table.Add({fmt::format("{}", seed), fmt::format("{}", problem.buffers.size()),
               fmt::format("{:.6f}", static_cast<double>(placed.footprint_bytes) /
                                         static_cast<double>(place::PeakLoad(problem))),
               fmt::format("{:.3f}", planning_seconds), fmt::format("{:.3f}", validation_seconds)});
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{}\nmost memory in use: {}\n", table.Render(), FormatBytes(usage.ru_maxrss * 1024));
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  try {
    return plimsoll::Run(argc > 1 ? std::atoll(argv[1]) : 1'000'000);
  } catch (const std::exception& error) {
    fmt::print(stderr, "million_buffers: {}\n", error.what());
    return 4;
  }
}
