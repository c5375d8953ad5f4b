// SPDX-License-Identifier: Apache-2.0
//
// What is recomputing worth beside offloading? Every chain at evenly spaced limits from the
// smallest that offloading can meet to the peak, at 12.2 and 55 GB/s: the iteration over the sum of
// all ops, by planner; and whether `pofo` and `joint` are where they should be: `pofo` never above
// `rotor` or a planner that only offloads, `joint` never above these, and never more than 1 % above
// `pofo`. Every schedule and every plan is judged.
//
// `joint` is given the chain as a trace and makes a plan with addresses, on a link that both
// directions share; --joint says how many seconds it has, and 0 leaves it out. Where it is more
// than 1 % above `pofo`, --again asks it once more with so many seconds, and the better plan
// counts. --start adds the plan that `joint` can begin with: from the trace to a chain, by pofo to
// an order, and from there to a plan.
//
//   chains_recompute [--limits N] [--chain NAME] [--joint SECONDS [--again SECONDS]] [--start]
//                    FOLDER|FILE...

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "chain_files.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/chain/planner.h"
#include "plimsoll/chain/reader.h"
#include "plimsoll/chain/to_trace.h"
#include "plimsoll/chain/validator.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/planners/chain_plan.h"
#include "plimsoll/planners/chain_start_internal.h"
#include "plimsoll/planners/planner.h"
#include "plimsoll/report/table.h"

namespace plimsoll {
namespace {

struct Options {
  std::vector<std::string> paths;
  int limits = 20;
  double joint_seconds = 2;
  double again_seconds = 0;
  bool start = false;
  std::string chain;  ///< Only files whose name has this in it.
};

constexpr double kNever = std::numeric_limits<double>::infinity();

/// One planner over all questions.
struct Score {
  std::string name;
  double sum = 0;
  double worst = 0;
  int fits = 0;
  int asked = 0;
  double seconds = 0;
  double most_seconds = 0;

  void Add(double ratio, double took) {
    ++asked;
    seconds += took;
    most_seconds = std::max(most_seconds, took);
    if (ratio == kNever) return;
    ++fits;
    sum += ratio;
    worst = std::max(worst, ratio);
  }
};

/// How often one planner is above another, and by how much at most.
struct Law {
  std::string text;
  double tolerance = 1;
  int broken = 0;
  int asked = 0;
  double worst = 0;
  std::string where{};

  void Add(double a, double b, const std::string& question) {
    if (b == kNever) return;
    ++asked;
    if (a > tolerance * b) ++broken;
    if (a / b <= worst) return;
    worst = a / b;
    where = question;
  }
};

double RatioOf(Nanoseconds time, const chain::Model& model) {
  return static_cast<double>(time) / static_cast<double>(model.compute_ns);
}

/// What a chain planner makes of a question: the iteration over that without a limit.
double Ask(const chain::Planner& planner, const chain::Question& question, Score* score) {
  const Stopwatch watch;
  const auto schedule = planner.plan(question, {});
  const double seconds = watch.seconds();
  double ratio = kNever;
  if (schedule) {
    const auto violations = chain::FindViolations(
        question.chain, question.model.bandwidth_bytes_per_s, *schedule, question.limit_bytes);
    if (!violations.empty()) throw Error(violations.front().message);
    ratio = RatioOf(schedule->iteration_ns(), question.model);
  }
  score->Add(ratio, seconds);
  return ratio;
}

/// The chain's link as `joint` sees it: what goes both ways at once shares it.
plan::Machine SharedLink(const chain::Model& model) {
  plan::Machine machine = planners::ChainMachine(model);
  machine.both_out_bytes_per_s /= 2;
  machine.both_in_bytes_per_s /= 2;
  return machine;
}

double AskJoint(const plan::Problem& problem, const chain::Question& question, double seconds,
                Score* score) {
  planners::PlannerOptions options;
  options.limit_bytes = question.limit_bytes;
  options.least_bytes = 1;
  options.time_budget_seconds = seconds;
  const Stopwatch watch;
  const planners::Outcome outcome = planners::MakePlan(*planners::FindPlanner("joint"), problem,
                                                       SharedLink(question.model), options);
  const double ratio =
      outcome.plan ? RatioOf(outcome.timeline.iteration_ns, question.model) : kNever;
  score->Add(ratio, watch.seconds());
  return ratio;
}

/// The plan that comes of the chain's solution by way of the trace, without joint's search.
double AskStart(const plan::Problem& problem, const chain::Question& question, Score* score) {
  planners::PlannerOptions options;
  options.limit_bytes = question.limit_bytes;
  options.least_bytes = 1;
  const plan::Machine machine = SharedLink(question.model);
  const Stopwatch watch;
  const auto attempt = planners::PlanAsChain({problem, machine, options});
  double ratio = kNever;
  if (attempt) {
    const auto violations = plan::CheckPlan(*attempt->plan());
    if (!violations.empty()) throw Error(violations.front().message);
    ratio = RatioOf(sim::Simulate(*attempt->plan()).iteration_ns, question.model);
  }
  score->Add(ratio, watch.seconds());
  return ratio;
}

class Run {
 public:
  Run(std::int64_t bandwidth, const Options& options) : bandwidth_(bandwidth), options_(options) {
    for (const chain::Planner& planner : chain::Planners()) {
      scores_.push_back({.name = std::string(planner.name)});
    }
    scores_.push_back({.name = "chain start"});
    scores_.push_back({.name = "joint"});
    laws_ = {{.text = "pofo at or under rotor"},
             {.text = "pofo at or under all that only offload"},
             {.text = "chain start within 1 % of pofo", .tolerance = 1.01},
             {.text = "joint at or under rotor"},
             {.text = "joint at or under all that only offload"},
             {.text = "joint within 1 % of pofo", .tolerance = 1.01},
             {.text = "joint or chain start within 1 % of pofo", .tolerance = 1.01}};
  }

  void Add(const std::string& path) {
    const chain::Chain chain = chain::ReadChain(path);
    const chain::Model model = chain::MakeModel(chain, bandwidth_);
    const trace::Trace trace = chain::ToTrace(chain, 1);
    const plan::Problem problem =
        plan::TakeStretch(trace, 0, static_cast<trace::EventIndex>(trace.events.size()));
    std::vector<Score> own = scores_;
    for (Score& score : own) score = {.name = score.name};
    for (int k = 0; k < options_.limits; ++k) {
      const double part = options_.limits == 1 ? 0 : static_cast<double>(k) / (options_.limits - 1);
      const auto span = static_cast<double>(model.peak_bytes - model.smallest_limit_bytes);
      const Bytes limit =
          model.smallest_limit_bytes + static_cast<Bytes>(std::llround(part * span));
      AskAll({chain, model, limit}, problem,
             fmt::format("{} at {:.0f} %", std::filesystem::path(path).stem().string(), 100 * part),
             &own);
    }
    std::vector<std::string> cells = {std::filesystem::path(path).stem().string()};
    for (const Score& score : own) {
      cells.push_back(score.fits == 0 ? "-" : fmt::format("{:.3f}", score.sum / score.fits));
    }
    rows_.push_back(std::move(cells));
  }

  void Print() const {
    report::Table table(
        {"planner", "iteration / ops, mean", "worst", "no schedule", "planning, mean", "longest"});
    std::vector<std::string> header = {"chain"};
    for (const Score& score : scores_) {
      header.push_back(score.name);
      if (score.asked == 0) continue;
      table.Add({score.name, score.fits == 0 ? "-" : fmt::format("{:.4f}", score.sum / score.fits),
                 fmt::format("{:.4f}", score.worst), fmt::format("{}", score.asked - score.fits),
                 fmt::format("{:.3f} s", score.seconds / score.asked),
                 fmt::format("{:.3f} s", score.most_seconds)});
    }
    report::Table laws({"what should hold", "asked", "broken", "worst ratio", "at"});
    for (const Law& law : laws_) {
      if (law.asked == 0) continue;
      laws.Add({law.text, fmt::format("{}", law.asked), fmt::format("{}", law.broken),
                fmt::format("{:.4f}", law.worst), law.where});
    }
    report::Table chains(header);
    for (const auto& row : rows_) chains.Add(row);
    fmt::print("{}\n{}\niteration / ops, mean\n{}\n", table.Render(), laws.Render(),
               chains.Render());
    if (options_.again_seconds > 0) {
      fmt::print("joint was asked {} times again, with {} s\n", asked_again_,
                 options_.again_seconds);
    }
  }

 private:
  void AskAll(const chain::Question& question, const plan::Problem& problem,
              const std::string& name, std::vector<Score>* own) {
    double offloading = kNever;
    double rotor = kNever;
    double pofo = kNever;
    for (std::size_t p = 0; p < chain::Planners().size(); ++p) {
      const chain::Planner& planner = chain::Planners()[p];
      const double ratio = Ask(planner, question, &scores_[p]);
      (*own)[p].Add(ratio, 0);
      if (!planner.recomputes) offloading = std::min(offloading, ratio);
      if (planner.name == "rotor") rotor = ratio;
      if (planner.name == "pofo") pofo = ratio;
    }
    laws_[0].Add(pofo, rotor, name);
    laws_[1].Add(pofo, offloading, name);
    double start = kNever;
    if (options_.start) {
      start = AskStart(problem, question, &scores_[scores_.size() - 2]);
      (*own)[own->size() - 2].Add(start, 0);
      laws_[2].Add(start, pofo, name);
    }
    if (options_.joint_seconds <= 0) return;
    double joint = AskJoint(problem, question, options_.joint_seconds, &scores_.back());
    if (joint > laws_[5].tolerance * pofo && options_.again_seconds > 0) {
      ++asked_again_;
      Score apart;
      joint = std::min(joint, AskJoint(problem, question, options_.again_seconds, &apart));
    }
    own->back().Add(joint, 0);
    laws_[3].Add(joint, rotor, name);
    laws_[4].Add(joint, offloading, name);
    laws_[5].Add(joint, pofo, name);
    if (options_.start) laws_[6].Add(std::min(joint, start), pofo, name);
  }

  std::int64_t bandwidth_;
  const Options& options_;
  std::vector<Score> scores_;  // In the order of the registry, and joint.
  std::vector<Law> laws_;
  int asked_again_ = 0;
  std::vector<std::vector<std::string>> rows_;
};

void RunAll(const Options& options) {
  for (const std::int64_t bandwidth : {12'200'000'000, 55'000'000'000}) {
    Run run(bandwidth, options);
    for (const std::string& path : options.paths) run.Add(path);
    fmt::print("== {:.1f} GB/s: {} chains, {} limits each; one link, cold start\n\n",
               static_cast<double>(bandwidth) * 1e-9, options.paths.size(), options.limits);
    run.Print();
    std::fflush(stdout);
  }
}

/// Returns nothing if the arguments make no sense.
std::optional<Options> ParseArguments(const std::vector<std::string>& arguments) {
  Options options;
  std::vector<std::string> inputs;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (!arguments[k].starts_with("--")) {
      inputs.push_back(arguments[k]);
      continue;
    }
    if (arguments[k] == "--start") {
      options.start = true;
      continue;
    }
    if (k + 1 == arguments.size()) return std::nullopt;
    const std::string& value = arguments[++k];
    if (arguments[k - 1] == "--limits") {
      options.limits = static_cast<int>(ParseInteger(value).value_or(0));
    } else if (arguments[k - 1] == "--joint") {
      options.joint_seconds = std::atof(value.c_str());
    } else if (arguments[k - 1] == "--again") {
      options.again_seconds = std::atof(value.c_str());
    } else if (arguments[k - 1] == "--chain") {
      options.chain = value;
    } else {
      return std::nullopt;
    }
  }
  for (const std::string& path : ExpandFolders(inputs)) {
    const std::string name = std::filesystem::path(path).stem().string();
    if (name.find(options.chain) != std::string::npos) options.paths.push_back(path);
  }
  if (options.paths.empty() || options.limits < 1 || options.limits > 1000) return std::nullopt;
  return options;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  try {
    const auto options = plimsoll::ParseArguments({argv + 1, argv + argc});
    if (!options) {
      fmt::print(stderr,
                 "usage: chains_recompute [--limits N] [--chain NAME] [--joint SECONDS "
                 "[--again SECONDS]] [--start] FOLDER|FILE...\n");
      return 2;
    }
    plimsoll::RunAll(*options);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "chains_recompute: {}\n", error.what());
    return 4;
  }
}
