// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/plan/plan.h"
#include "plimsoll/sim/simulate.h"

/// What `plan`, `simulate`, `compare` and `curve` say about a plan.
namespace plimsoll::cli {

/// The answer of one planner at one limit. Times and copies are of one iteration of the program.
struct PlanRow {
  std::string planner;
  Bytes limit_bytes = 0;
  Bytes peak_load_bytes = 0;
  /// The load with all candidates of AutoSwap away, where it was asked for.
  std::optional<Bytes> load_min_bytes{};
  Nanoseconds unlimited_ns = 0;
  double planning_seconds = 0;
  /// No plan is faster; if it recomputes nothing, no plan that swaps and does nothing else. 0 if
  /// not known: of what does not fit, only `curve` says it.
  Nanoseconds bound_ns = 0;
  bool fits = false;

  // If it fits.
  Bytes footprint_bytes = 0;
  Bytes host_bytes = 0;
  Nanoseconds iteration_ns = 0;
  Bytes swapped_bytes = 0;
  Bytes recomputed_bytes = 0;
  Nanoseconds avoidable_ns = 0;  ///< Of the overhead: planners::AvoidableOverhead().
  bool valid = false;

  // If it does not.
  bool host_misfit = false;        ///< Whether it is the host's limit that is too low.
  Bytes needed_bytes = 0;          ///< On the device, or on the host.
  Bytes smallest_limit_bytes = 0;  ///< At which any plan was found.
  plan::OpIndex largest_op = -1;   ///< The op that needs most by itself; -1 if there is none.
  std::string largest_op_name;
  Bytes largest_op_bytes = 0;

  double overhead() const { return OfUnlimited(iteration_ns - unlimited_ns); }
  /// What is left between the iteration and its bound.
  double gap() const { return OfUnlimited(iteration_ns - bound_ns); }
  double avoidable_overhead() const { return OfUnlimited(avoidable_ns); }

 private:
  double OfUnlimited(Nanoseconds ns) const {
    return unlimited_ns == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(unlimited_ns);
  }
};

/// Describes a plan and its predicted timeline. Judges the plan once more, by plan::CheckPlan().
PlanRow DescribePlan(const plan::Plan& plan, const sim::Timeline& timeline);

nlohmann::ordered_json ToJson(const PlanRow& row);

/// Prints JSON; bytes of names that are not UTF-8 are replaced.
void PrintJson(const nlohmann::ordered_json& json);
/// Returns a text for a terminal: control characters, which a file may contain, become "?".
std::string Printable(std::string text);

/// Prints rows for people, with a line on what they have in common.
void PrintTable(const std::vector<PlanRow>& rows, const std::string& link);
/// Prints rows as CSV: the keys of ToJson(); a cell is empty if a row does not have it.
void PrintCsv(const std::vector<PlanRow>& rows);

/// Says on stderr why nothing fits, and from where on something does.
void ExplainMisfit(const PlanRow& row);
/// The same for many rows, none of which fits: of the planner that came nearest. REQUIRES: a row.
void ExplainNearestMisfit(const std::vector<PlanRow>& rows);
bool AnyFits(const std::vector<PlanRow>& rows);

}  // namespace plimsoll::cli
