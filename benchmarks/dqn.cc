// SPDX-License-Identifier: Apache-2.0
//
// What does a learned planner find? Figure 5 of paper 000: overhead over memory limits of `dqn`,
// `dqn-swap` and what the paper compares them with, over the paper's link, with ops as much slower
// than recorded as on the paper's machine; and how many episodes weights from a small network save
// on a large one.
//
//   dqn [--minutes M | --evaluations N] [--limits LIST] TRACE...    figure 5; for each plan, M
//                                                                   minutes of training, or N
//                                                                   choices however long they take
//   dqn --transfer [--evaluations N] SMALL LARGE                    both at half of their peak
//   loads
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/learn/policy.h"
#include "plimsoll/planners/dqn_internal.h"
#include "plimsoll/planners/joint_bound.h"
#include "plimsoll/report/table.h"
#include "swapping/workload.h"

namespace plimsoll::dqn {
namespace {

using swapping::Workload;

constexpr double kRivalSeconds = 5;
/// How much longer ops took on the paper's machine than on that of the traces: its 56.8 ms for
/// VGG16 (swapping::kVgg16Ns) over the 4.9 ms of the trace, as swapping::PaperSlowdown() has it.
constexpr double kSlowdown = 11.6;
constexpr std::int64_t kTransferEvaluations = 4000;
/// How much longer the small network is trained on: its episodes are cheap.
constexpr std::int64_t kSmallTimes = 8;
/// Of the peak load, in percent: what both networks are trained for.
constexpr int kTransferLimit = 50;

struct Options {
  double minutes = 1;
  bool transfer = false;
  std::int64_t evaluations = 0;                ///< If positive, in the place of minutes.
  std::vector<int> limits = {70, 60, 50, 40};  ///< In percent of the peak load.
  std::vector<std::string> traces;
};

std::optional<Options> Parse(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const bool more = k + 1 < arguments.size();
    if (arguments[k] == "--minutes" && more) {
      options.minutes = std::atof(arguments[++k].c_str());
    } else if (arguments[k] == "--evaluations" && more) {
      options.evaluations = ParseInteger(arguments[++k]).value_or(0);
    } else if (arguments[k] == "--limits" && more) {
      options.limits.clear();
      std::string_view text = arguments[++k];
      while (!text.empty()) {
        options.limits.push_back(static_cast<int>(ParseInteger(TakeField(&text, ',')).value_or(0)));
      }
    } else if (arguments[k] == "--transfer") {
      options.transfer = true;
    } else if (arguments[k].starts_with("--")) {
      return std::nullopt;
    } else {
      options.traces.push_back(arguments[k]);
    }
  }
  const bool right = options.minutes > 0 && options.evaluations >= 0 &&
                     std::ranges::count(options.limits, 0) == 0 &&
                     (options.transfer ? options.traces.size() == 2 : !options.traces.empty());
  return right ? std::optional(options) : std::nullopt;
}

/// The planners of figure 5, those of them that there are, and `joint`.
std::vector<const planners::Planner*> SelectPlanners() {
  std::vector<const planners::Planner*> chosen;
  for (const std::string_view prefix : {"dqn-swap", "dqn", "memonger", "superneurons", "tflms"}) {
    for (const planners::Planner& planner : planners::Planners()) {
      const bool family = prefix == "superneurons" && planner.name.starts_with(prefix);
      if (planner.name == prefix || family) chosen.push_back(&planner);
    }
  }
  chosen.push_back(planners::FindPlanner("joint"));
  return chosen;
}

Workload Read(const std::string& path) {
  return swapping::WithSlowerOps(swapping::ReadWorkload(path), kSlowdown);
}

/// Plans, and prints the table of one trace, line by line.
class Figure5 {
 public:
  explicit Figure5(const Options& options)
      : options_(options), machine_(*plan::FindMachine("gtx1080ti")), chosen_(SelectPlanners()) {}

  void Print(const Workload& workload) {
    std::vector<std::string> header = {workload.name};
    for (const planners::Planner* planner : chosen_) header.emplace_back(planner->name);
    header.emplace_back("bound of swapping");
    report::Table table(header);
    for (const int percent : options_.limits) {
      std::vector<std::string> cells = {fmt::format("limit {}", percent)};
      for (const planners::Planner* planner : chosen_) {
        cells.push_back(Overhead(workload, percent, *planner));
        fmt::print(stderr, "{} {} {}: {}\n", workload.name, percent, planner->name, cells.back());
      }
      const Bytes limit_bytes = swapping::PercentOf(workload.peak_bytes, percent);
      const auto bound_ns =
          static_cast<double>(planners::JointBound(workload.problem, machine_, limit_bytes, false));
      cells.push_back(fmt::format("{:.2f}", Percent(bound_ns, workload)));
      table.Add(std::move(cells));
    }
    fmt::print("{}training: at most {:.0f} s of processor time a plan\n\n", table.Render(),
               longest_seconds_);
    std::fflush(stdout);
    longest_seconds_ = 0;
  }

 private:
  std::string Overhead(const Workload& workload, int percent, const planners::Planner& planner) {
    planners::PlannerOptions options;
    options.limit_bytes = swapping::PercentOf(workload.peak_bytes, percent);
    options.time_budget_seconds = kRivalSeconds;
    if (planner.learns) {
      options.time_budget_seconds = 60 * options_.minutes;
      options.evaluations = options_.evaluations;
    }
    const std::clock_t start = std::clock();
    const planners::Outcome outcome =
        planners::MakePlan(planner, workload.problem, machine_, options);
    if (planner.learns) {
      longest_seconds_ =
          std::max(longest_seconds_, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    if (!outcome.plan) return "-";
    return fmt::format("{:.2f}",
                       Percent(static_cast<double>(outcome.timeline.iteration_ns), workload));
  }

  static double Percent(double iteration_ns, const Workload& workload) {
    return 100 * (iteration_ns / static_cast<double>(workload.problem.iteration_ns()) - 1);
  }

  const Options& options_;
  const plan::Machine machine_;
  const std::vector<const planners::Planner*> chosen_;
  double longest_seconds_ = 0;
};

void PrintFigure5(const Options& options) {
  const std::string budget = options.evaluations > 0
                                 ? fmt::format("{} choices", options.evaluations)
                                 : fmt::format("{:g} minutes", options.minutes);
  fmt::print(
      "overhead in percent by the limit in percent of the peak load; link gtx1080ti, ops {:.1f} "
      "times as long as recorded;\n{} of training on one core for each plan, {:g} s for joint; "
      "\"-\" if nothing fits\n\n",
      kSlowdown, budget, kRivalSeconds);
  Figure5 figure(options);
  for (const std::string& path : options.traces) figure.Print(Read(path));
}

/// What a training has come to.
struct Training {
  std::vector<double> best_ns;  ///< Of the best plan after each episode.
  learn::Policy policy;
};

Training Train(const Workload& workload, std::int64_t evaluations, std::uint64_t seed,
               const learn::Policy* policy) {
  Training training;
  planners::PlannerOptions options;
  options.limit_bytes = swapping::PercentOf(workload.peak_bytes, kTransferLimit);
  options.evaluations = evaluations;
  options.seed = seed;
  options.policy = policy;
  options.on_policy = [&](const learn::Policy& learned) { training.policy = learned; };
  const plan::Machine machine = *plan::FindMachine("gtx1080ti");
  planners::TrainDqn(
      {workload.problem, machine, options}, true,
      [&](const planners::DqnEpisode& episode) { training.best_ns.push_back(episode.best_ns); });
  return training;
}

/// How many episodes it takes to get as far as `wanted_ns`; 0 if it never does.
std::size_t EpisodesTo(double wanted_ns, const Training& training) {
  for (std::size_t k = 0; k < training.best_ns.size(); ++k) {
    if (training.best_ns[k] <= wanted_ns) return k + 1;
  }
  return 0;
}

/// The time of the best plan that those have whom the paper compares with.
double BestOfRivals(const Workload& workload) {
  planners::PlannerOptions options;
  options.limit_bytes = swapping::PercentOf(workload.peak_bytes, kTransferLimit);
  const plan::Machine machine = *plan::FindMachine("gtx1080ti");
  auto best_ns = std::numeric_limits<double>::infinity();
  for (const planners::Planner* planner : SelectPlanners()) {
    if (planner->learns || planner->name == "joint") continue;
    const planners::Outcome outcome =
        planners::MakePlan(*planner, workload.problem, machine, options);
    if (!outcome.plan) continue;
    best_ns = std::min(best_ns, static_cast<double>(outcome.timeline.iteration_ns));
  }
  return best_ns;
}

void PrintTransfer(const Options& options) {
  const std::int64_t evaluations =
      options.evaluations > 0 ? options.evaluations : kTransferEvaluations;
  const Workload small = Read(options.traces[0]);
  const Workload large = Read(options.traces[1]);
  const auto overhead = [&](const Training& training) {
    const auto whole = static_cast<double>(large.problem.iteration_ns());
    return fmt::format("{:.2f}", 100 * (training.best_ns.back() / whole - 1));
  };
  fmt::print(
      "{} at half of its peak load, with and without weights from {}; overhead in percent\n\n",
      large.name, small.name);
  report::Table table({"seed", "episodes from random weights", "overhead", "ahead of others after",
                       "a quarter of them", "overhead", "the same with weights", "overhead",
                       "ahead of others after", "as far as all after"});
  const double rivals_ns = BestOfRivals(large);
  const auto episodes_to = [](double wanted_ns, const Training& training) {
    const std::size_t episodes = EpisodesTo(wanted_ns, training);
    return episodes > 0 ? fmt::format("{}", episodes) : "-";
  };
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const learn::Policy policy = Train(small, kSmallTimes * evaluations, seed, nullptr).policy;
    const Training whole = Train(large, evaluations, seed, nullptr);
    const Training quarter = Train(large, evaluations / 4, seed, nullptr);
    const Training tuned = Train(large, evaluations / 4, seed, &policy);
    table.Add({fmt::format("{}", seed), fmt::format("{}", whole.best_ns.size()), overhead(whole),
               episodes_to(rivals_ns, whole), fmt::format("{}", quarter.best_ns.size()),
               overhead(quarter), fmt::format("{}", tuned.best_ns.size()), overhead(tuned),
               episodes_to(rivals_ns, tuned), episodes_to(whole.best_ns.back(), tuned)});
  }
  fmt::print("{}\n", table.Render());
}

}  // namespace
}  // namespace plimsoll::dqn

int main(int argc, char** argv) {
  try {
    const auto options = plimsoll::dqn::Parse({argv + 1, argv + argc});
    if (!options) {
      fmt::print(stderr,
                 "usage: dqn [--minutes M | --evaluations N] [--limits LIST] TRACE...\n"
                 "       dqn --transfer [--evaluations N] SMALL LARGE\n");
      return 2;
    }
    if (options->transfer) {
      plimsoll::dqn::PrintTransfer(*options);
    } else {
      plimsoll::dqn::PrintFigure5(*options);
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "dqn: {}\n", error.what());
    return 4;
  }
}
