// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a chain's schedule as a plan with addresses? Every chain at evenly spaced limits
// from the smallest to the peak, by dynprog: whether its placement fits, at once or after asking
// for a lower load; and the iteration of the plan, simulated, over that of the schedule. Every plan
// is judged first. One half-duplex link of 12.2 GB/s, cold start; addresses are aligned to 512.
//
//   chain_plans [--limits N] FOLDER|FILE...

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "chain_files.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/chain/reader.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/planners/chain_plan.h"
#include "plimsoll/report/table.h"
#include "plimsoll/sim/simulate.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kBandwidth = 12'200'000'000;

/// What became of one chain at all limits.
struct Tally {
  int asked = 0;
  int at_once = 0;
  int fits = 0;
  double least_ratio = 1e9;  ///< Simulated iteration over that of the schedule at the same limit.
  double most_ratio = 0;
  double most_needed = 0;  ///< Footprint over limit where nothing fits.
  double most_seconds = 0;
};

void Ask(const chain::Question& question, Tally* tally) {
  const chain::Planner& planner = *chain::FindPlanner("dynprog");
  const auto schedule = planner.plan(question, {});
  ++tally->asked;
  planners::ChainPlanOptions options;
  const Stopwatch watch;
  auto made = planners::ToPlan(question, schedule.value(), options);
  if (std::holds_alternative<plan::Plan>(made)) {
    ++tally->at_once;
  } else {
    made = planners::PlanChain(planner, question, {}, options);
  }
  tally->most_seconds = std::max(tally->most_seconds, watch.seconds());
  const auto limit = static_cast<double>(question.limit_bytes);
  if (const auto* misfit = std::get_if<plan::Misfit>(&made)) {
    tally->most_needed =
        std::max(tally->most_needed, static_cast<double>(misfit->needed_bytes) / limit);
    return;
  }
  ++tally->fits;
  const auto& plan = std::get<plan::Plan>(made);
  const auto violations = plan::CheckPlan(plan);
  if (!violations.empty()) throw Error(violations.front().message);
  const double ratio = static_cast<double>(sim::Simulate(plan).iteration_ns) /
                       static_cast<double>(schedule->iteration_ns());
  tally->least_ratio = std::min(tally->least_ratio, ratio);
  tally->most_ratio = std::max(tally->most_ratio, ratio);
}

void RunAll(const std::vector<std::string>& paths, int limits) {
  report::Table table({"chain", "limits", "fit at once", "fit", "plan / schedule, least", "most",
                       "needs / limit", "placing, longest"});
  for (const std::string& path : paths) {
    const chain::Chain chain = chain::ReadChain(path);
    const chain::Model model = chain::MakeModel(chain, kBandwidth);
    Tally tally;
    for (int k = 0; k < limits; ++k) {
      const Bytes range = model.peak_bytes - model.smallest_limit_bytes;
      const Bytes step = limits == 1 ? 0 : range / (limits - 1);
      Ask({chain, model, model.smallest_limit_bytes + k * step}, &tally);
    }
    table.Add({std::filesystem::path(path).stem().string(), fmt::format("{}", tally.asked),
               fmt::format("{}", tally.at_once), fmt::format("{}", tally.fits),
               tally.fits == 0 ? "-" : fmt::format("{:.4f}", tally.least_ratio),
               tally.fits == 0 ? "-" : fmt::format("{:.4f}", tally.most_ratio),
               tally.most_needed == 0 ? "-" : fmt::format("{:.4f}", tally.most_needed),
               fmt::format("{:.2f} s", tally.most_seconds)});
  }
  fmt::print("schedules of dynprog as plans; {:.1f} GB/s, one half-duplex link, cold start\n\n{}",
             static_cast<double>(kBandwidth) * 1e-9, table.Render());
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  int limits = 10;
  if (arguments.size() > 1 && arguments[0] == "--limits") {
    limits = static_cast<int>(plimsoll::ParseInteger(arguments[1]).value_or(0));
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (arguments.empty() || limits < 1) {
    fmt::print(stderr, "usage: chain_plans [--limits N] FOLDER|FILE...\n");
    return 2;
  }
  try {
    plimsoll::RunAll(plimsoll::ExpandFolders(arguments), limits);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "chain_plans: {}\n", error.what());
    return 4;
  }
}
