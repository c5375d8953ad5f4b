// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/plan/plan.h"

/// What a report is about, as plain data: whoever writes one has simulated and measured before.
namespace plimsoll::report {

/// When the commands of a plan ran, from the iteration's beginning; copies may end in the next one.
struct CommandTimes {
  Nanoseconds iteration_ns = 0;
  std::vector<Nanoseconds> start_ns;  ///< By command.
  std::vector<Nanoseconds> end_ns;
};

/// A stretch in which the compute queue has nothing to run.
struct StallMark {
  plan::CommandIndex command = -1;  ///< The op that has to wait.
  plan::CommandIndex awaited = -1;  ///< What ended last of all that it waits for; -1 if unknown.
  Nanoseconds start_ns = 0;
  Nanoseconds length_ns = 0;
};

/// What an op waits for, in the words of the report.
enum class StallReason : std::uint8_t {
  kData,    ///< A copy in: what the op needs is not back yet.
  kMemory,  ///< A copy out: where the op writes, something is still being saved.
  kOther,   ///< An op of the iteration before, or nothing that the plan names.
};
StallReason ReasonOf(const plan::Plan& plan, const StallMark& stall);

/// The three queues over an iteration, predicted or measured.
struct Lanes {
  CommandTimes times;
  std::vector<StallMark> stalls;  ///< In any order.
};

/// The figures at the head of a report. Times and copies are of one iteration of the program.
struct Figures {
  std::string name;     ///< What was read: a file.
  std::string model;    ///< As its trace says; empty if unknown.
  std::string device;   ///< On which it was recorded; empty if unknown.
  std::string link;     ///< Between device and host.
  std::string planner;  ///< Empty if nothing was planned.
  std::optional<Bytes> limit_bytes{};
  Bytes peak_load_bytes = 0;            ///< Without a plan.
  Bytes footprint_unlimited_bytes = 0;  ///< Of the arena that takes.
  Bytes peak_load_planned_bytes = 0;    ///< With it: the most that is there at a time, as drawn.
  Bytes footprint_bytes = 0;
  Bytes host_bytes = 0;
  Bytes swapped_bytes = 0;
  Bytes recomputed_bytes = 0;
  Nanoseconds unlimited_ns = 0;
  Nanoseconds iteration_ns = 0;  ///< Predicted.
  std::optional<Nanoseconds> measured_ns{};
  Nanoseconds bound_ns = 0;
  Nanoseconds stall_ns = 0;
  std::optional<double> planning_seconds{};
  std::int32_t laps = 1;  ///< Iterations of the program that are planned, and drawn, together.
  std::int64_t variables = 0;
  std::int64_t ops = 0;
  std::int64_t replays = 0;
  std::int64_t residencies = 0;
  std::int64_t copies = 0;

  bool planned() const { return limit_bytes.has_value(); }
  double OfUnlimited(Nanoseconds ns) const {
    return unlimited_ns == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(unlimited_ns);
  }
  double overhead() const { return OfUnlimited(iteration_ns - unlimited_ns); }
  double bound_overhead() const { return OfUnlimited(bound_ns - unlimited_ns); }
  double gap() const { return OfUnlimited(iteration_ns - bound_ns); }
  std::optional<double> measured_overhead() const {
    if (!measured_ns) return std::nullopt;
    return OfUnlimited(*measured_ns - unlimited_ns);
  }
};

/// A trace, a plan or a run. A trace is a plan without a limit in which everything stays.
struct Subject {
  Figures figures;
  plan::Plan plan;
  /// The iteration that was planned, with lives as they were recorded where that is known. Its ops
  /// are those of the plan but for replays, in the same order.
  plan::Problem recorded;
  Lanes predicted;
  std::optional<Lanes> measured{};

  /// The times at which memory is drawn: measured ones if there are any.
  const CommandTimes& drawn() const { return measured ? measured->times : predicted.times; }
};

/// Says it in a sentence: "Trains in 2.68 GiB instead of 5.37 GiB, 5.6 % slower; at best 4.2 %
/// slower is possible."
std::string Headline(const Figures& figures);

/// The figures as a JSON object, in ASCII; docs/cli.md has the keys. `indent` as for
/// nlohmann::json::dump().
std::string FiguresJson(const Figures& figures, int indent = -1);

}  // namespace plimsoll::report
