// SPDX-License-Identifier: Apache-2.0
//
// How near to optimal are the planners of chains? As paper 002, section 6: every chain at evenly
// spaced limits from the smallest to the peak, at 12.2 GB/s (the paper's link) and 55 GB/s, with
// times as measured and six times as long (about a V100). One half-duplex link, cold start.
//
//   chains [--limits N] FOLDER|FILE...

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/chain/exact.h"
#include "plimsoll/chain/fractional.h"
#include "plimsoll/chain/planner.h"
#include "plimsoll/chain/reader.h"
#include "plimsoll/chain/validator.h"
#include "plimsoll/report/table.h"

namespace plimsoll {
namespace {

constexpr double kExactSeconds = 60;

/// Collects numbers for their mean and maximum.
struct Series {
  double sum = 0;
  double most = 0;
  int count = 0;

  void Add(double value) {
    sum += value;
    most = std::max(most, value);
    ++count;
  }
  double mean() const { return count == 0 ? 0 : sum / count; }
};

/// One planner over all chains and limits of a setting.
struct Score {
  Series ratio;       ///< To proposition 3.
  Series fractional;  ///< To theorem 2.
  Series seconds;
  int misfits = 0;
};

struct Setting {
  std::int64_t bandwidth_bytes_per_s;
  double time_scale;
};

/// Runs one setting over all chains.
class Run {
 public:
  Run(const Setting& setting, int limits)
      : setting_(setting),
        limits_(limits),
        scores_(chain::Planners().size()),
        chains_(ChainHeader()),
        exact_({"chain", "stages", "limits", "proven", "chainsearch / exact, worst", "mean",
                "exact / proposition 3", "exact, longest"}) {}

  void Add(const std::string& path) {
    const chain::Chain chain = chain::ScaleTimes(chain::ReadChain(path), setting_.time_scale);
    const chain::Model model = chain::MakeModel(chain, setting_.bandwidth_bytes_per_s);
    const std::string name = std::filesystem::path(path).stem().string();
    std::vector<std::string> header = {"limit", "of the range"};
    for (const chain::Planner& planner : chain::Planners()) header.emplace_back(planner.name);
    report::Table throughput(header);
    Comparison comparison;
    std::vector<Series> ratios(scores_.size());
    for (int k = 0; k < limits_; ++k) {
      const double part = limits_ == 1 ? 0 : static_cast<double>(k) / (limits_ - 1);
      const auto span = static_cast<double>(model.peak_bytes - model.smallest_limit_bytes);
      const Bytes limit =
          model.smallest_limit_bytes + static_cast<Bytes>(std::llround(part * span));
      std::vector<std::string> cells = {FormatBytes(limit), fmt::format("{:.0f} %", 100 * part)};
      const Nanoseconds last = AskAll({chain, model, limit}, &cells, &ratios);
      throughput.Add(cells);
      if (chain.stages.size() <= chain::kMostExactStages) {
        Compare({chain, model, limit}, last, &comparison);
      }
    }
    std::vector<std::string> summary = {name, fmt::format("{}", chain.stages.size())};
    for (const Series& ratio : ratios) {
      summary.push_back(ratio.count == 0 ? "-"
                                         : fmt::format("{:.3f} {:.3f}", ratio.mean(), ratio.most));
    }
    chains_.Add(summary);
    fmt::print("{}, images per second\n{}\n", name, throughput.Render());
    std::fflush(stdout);
    if (comparison.gap.count > 0) AddComparison(name, chain, comparison);
  }

  void Print() const {
    report::Table table({"planner", "ratio, mean", "worst", "to fractional, mean", "worst",
                         "no schedule", "planning, mean", "longest"});
    for (std::size_t p = 0; p < scores_.size(); ++p) {
      const Score& score = scores_[p];
      table.Add({std::string(chain::Planners()[p].name), fmt::format("{:.4f}", score.ratio.mean()),
                 fmt::format("{:.4f}", score.ratio.most),
                 fmt::format("{:.4f}", score.fractional.mean()),
                 fmt::format("{:.4f}", score.fractional.most), fmt::format("{}", score.misfits),
                 fmt::format("{:.3f} s", score.seconds.mean()),
                 fmt::format("{:.3f} s", score.seconds.most)});
    }
    fmt::print("{}fractional optimum / proposition 3: mean {:.4f}, worst {:.4f}\n", table.Render(),
               relaxed_.mean(), relaxed_.most);
    fmt::print("chainsearch above another planner: {} of {}\n\n", beaten_, asked_);
    fmt::print("ratio to proposition 3 by chain, mean and worst\n{}\n{}\n", chains_.Render(),
               exact_.Render());
  }

 private:
  struct Comparison {
    Series gap;
    Series ratio;
    Series seconds;
    int proven = 0;
  };

  static std::vector<std::string> ChainHeader() {
    std::vector<std::string> header = {"chain", "stages"};
    for (const chain::Planner& planner : chain::Planners()) header.emplace_back(planner.name);
    return header;
  }

  /// Asks every planner and returns the iteration of the last one, chainsearch.
  Nanoseconds AskAll(const chain::Question& question, std::vector<std::string>* cells,
                     std::vector<Series>* ratios) {
    const Nanoseconds bound = chain::LowerBound(question.model, question.limit_bytes);
    const Nanoseconds relaxed =
        chain::FractionalOptimum(question.chain, question.model, question.limit_bytes);
    relaxed_.Add(static_cast<double>(relaxed) / static_cast<double>(bound));
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    Nanoseconds last = 0;
    for (std::size_t p = 0; p < scores_.size(); ++p) {
      const Stopwatch watch;
      const auto schedule = chain::Planners()[p].plan(question, {});
      scores_[p].seconds.Add(watch.seconds());
      if (!schedule) {
        ++scores_[p].misfits;
        cells->push_back("-");
        continue;
      }
      Judge(question, *schedule);
      last = schedule->iteration_ns();
      least = std::min(least, last);
      const auto iteration = static_cast<double>(last);
      scores_[p].ratio.Add(iteration / static_cast<double>(bound));
      (*ratios)[p].Add(iteration / static_cast<double>(bound));
      scores_[p].fractional.Add(iteration / static_cast<double>(relaxed));
      cells->push_back(
          fmt::format("{:.1f}", static_cast<double>(question.chain.batch) * 1e9 / iteration));
    }
    ++asked_;
    if (last > least) ++beaten_;
    return last;
  }

  static void Judge(const chain::Question& question, const chain::Schedule& schedule) {
    const auto violations = chain::FindViolations(
        question.chain, question.model.bandwidth_bytes_per_s, schedule, question.limit_bytes);
    if (!violations.empty()) throw Error(violations.front().message);
  }

  static void Compare(const chain::Question& question, Nanoseconds searched,
                      Comparison* comparison) {
    chain::PlannerOptions options;
    options.time_budget_seconds = kExactSeconds;
    const Stopwatch watch;
    const chain::ExactAnswer exact =
        chain::SolveExactly(question, options, chain::PlanGreedy(question, {}));
    comparison->seconds.Add(watch.seconds());
    Judge(question, exact.schedule.value());
    comparison->proven += exact.proven ? 1 : 0;
    const auto best = static_cast<double>(exact.lower_bound_ns);
    comparison->gap.Add(static_cast<double>(searched) / best);
    comparison->ratio.Add(
        static_cast<double>(exact.schedule->iteration_ns()) /
        static_cast<double>(chain::LowerBound(question.model, question.limit_bytes)));
  }

  void AddComparison(const std::string& name, const chain::Chain& chain,
                     const Comparison& comparison) {
    exact_.Add({name, fmt::format("{}", chain.stages.size()),
                fmt::format("{}", comparison.gap.count), fmt::format("{}", comparison.proven),
                fmt::format("{:.5f}", comparison.gap.most),
                fmt::format("{:.5f}", comparison.gap.mean()),
                fmt::format("{:.4f}", comparison.ratio.mean()),
                fmt::format("{:.2f} s", comparison.seconds.most)});
  }

  Setting setting_;
  int limits_;
  std::vector<Score> scores_;  // In the order of the registry.
  Series relaxed_;
  report::Table chains_;
  report::Table exact_;
  int asked_ = 0;
  int beaten_ = 0;
};

void RunAll(const std::vector<std::string>& paths, int limits) {
  for (const double scale : {1.0, 6.0}) {
    for (const std::int64_t bandwidth : {12'200'000'000, 55'000'000'000}) {
      const std::string title =
          fmt::format("{:.1f} GB/s, times x {}: {} chains, {} limits each",
                      static_cast<double>(bandwidth) * 1e-9, scale, paths.size(), limits);
      fmt::print("== {}: throughput\n\n", title);
      Run run({bandwidth, scale}, limits);
      for (const std::string& path : paths) run.Add(path);
      fmt::print("== {}: ratios (one half-duplex link, cold start)\n\n", title);
      run.Print();
      std::fflush(stdout);
    }
  }
}

/// Replaces folders by the JSON files in them.
std::vector<std::string> Expand(const std::vector<std::string>& arguments) {
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    if (!std::filesystem::is_directory(argument)) {
      paths.push_back(argument);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(argument)) {
      if (entry.path().extension() == ".json") found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  int limits = 20;
  if (arguments.size() > 1 && arguments[0] == "--limits") {
    limits = static_cast<int>(plimsoll::ParseInteger(arguments[1]).value_or(0));
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (arguments.empty() || limits < 1) {
    fmt::print(stderr, "usage: chains [--limits N] FOLDER|FILE...\n");
    return 2;
  }
  try {
    plimsoll::RunAll(plimsoll::Expand(arguments), limits);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "chains: {}\n", error.what());
    return 4;
  }
}
