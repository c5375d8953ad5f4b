// SPDX-License-Identifier: Apache-2.0
//
// How near to optimal are the planners of chains that only offload? As paper 002, section 6: every
// chain at evenly spaced limits from the smallest to the peak, at 12.2 GB/s (the paper's link) and
// 55 GB/s with times as measured, and at 12.2 GB/s with times six times as long (about the paper's
// V100). The link is one and half-duplex, and iterations start cold. Then chains drawn at random,
// against the exact solver.
//
//   chains [--limits N] [--chain NAME] [--random N] FOLDER|FILE...

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "chain_files.h"
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

struct Options {
  std::vector<std::string> paths;
  int limits = 20;
  int random = 100;
  std::string chain;  ///< Only files whose name has this in it.
};

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
  std::string MeanAndMost() const {
    return count == 0 ? "-" : fmt::format("{:.3f} {:.3f}", mean(), most);
  }
};

double Over(Nanoseconds a, Nanoseconds b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

/// One planner over all chains and limits of a setting.
struct Score {
  Series ratio;       ///< To proposition 3.
  Series fractional;  ///< To theorem 2.
  Series seconds;
  int misfits = 0;
  std::map<std::size_t, int> behind;  ///< By other planner: at how many questions it is quicker.
};

struct Setting {
  std::int64_t bandwidth_bytes_per_s;
  double time_scale;
};

/// Those that only offload, as the paper's do; chainsearch last.
const std::vector<chain::Planner>& Planners() {
  static const std::vector<chain::Planner> planners = [] {
    std::vector<chain::Planner> result = chain::Planners();
    std::erase_if(result, [](const chain::Planner& planner) { return planner.recomputes; });
    return result;
  }();
  return planners;
}

std::vector<std::string> WithPlanners(std::vector<std::string> header) {
  for (const chain::Planner& planner : Planners()) header.emplace_back(planner.name);
  return header;
}

/// Throws unless the judge has nothing to say.
void Judge(const chain::Question& question, const chain::Schedule& schedule) {
  const auto violations = chain::FindViolations(
      question.chain, question.model.bandwidth_bytes_per_s, schedule, question.limit_bytes);
  if (!violations.empty()) throw Error(violations.front().message);
}

/// How chainsearch compares with the exact solver, which is given a minute and no good start.
struct Comparison {
  Series gap;
  Series ratio;
  Series seconds;
  int proven = 0;

  void Add(const chain::Question& question, Nanoseconds searched) {
    chain::PlannerOptions options;
    options.time_budget_seconds = 60;
    const Stopwatch watch;
    const chain::ExactAnswer exact =
        chain::SolveExactly(question, options, chain::PlanGreedy(question, {}));
    seconds.Add(watch.seconds());
    Judge(question, exact.schedule.value());
    proven += exact.proven ? 1 : 0;
    gap.Add(Over(searched, exact.lower_bound_ns));
    ratio.Add(Over(exact.schedule->iteration_ns(),
                   chain::LowerBound(question.model, question.limit_bytes)));
  }

  static std::vector<std::string> Header() {
    return {"chain",
            "stages",
            "asked",
            "proven",
            "chainsearch / exact, worst",
            "exact / proposition 3",
            "exact, longest"};
  }
  std::vector<std::string> Cells(const std::string& name, const std::string& stages) const {
    return {name,
            stages,
            fmt::format("{}", gap.count),
            fmt::format("{}", proven),
            fmt::format("{:.5f}", gap.most),
            fmt::format("{:.4f}", ratio.mean()),
            fmt::format("{:.2f} s", seconds.most)};
  }
};

/// Runs one setting over all chains.
class Run {
 public:
  Run(const Setting& setting, int limits)
      : setting_(setting),
        limits_(limits),
        scores_(Planners().size()),
        chains_(WithPlanners({"chain", "stages"})),
        throughput_(WithPlanners({"chain", "limit", "of the range"})),
        exact_(Comparison::Header()) {}

  void Add(const std::string& path) {
    const chain::Chain chain = chain::ScaleTimes(chain::ReadChain(path), setting_.time_scale);
    const chain::Model model = chain::MakeModel(chain, setting_.bandwidth_bytes_per_s);
    const std::string name = std::filesystem::path(path).stem().string();
    const std::string stages = fmt::format("{}", chain.stages.size());
    Comparison comparison;
    std::vector<Series> ratios(scores_.size());
    double shown = 0;  // Of the range: throughput is shown at quarters of it.
    for (int k = 0; k < limits_; ++k) {
      const double part = limits_ == 1 ? 0 : static_cast<double>(k) / (limits_ - 1);
      const auto span = static_cast<double>(model.peak_bytes - model.smallest_limit_bytes);
      const Bytes limit =
          model.smallest_limit_bytes + static_cast<Bytes>(std::llround(part * span));
      std::vector<std::string> cells = {name, FormatBytes(limit),
                                        fmt::format("{:.0f} %", 100 * part)};
      const Nanoseconds last = AskAll({chain, model, limit}, &cells, &ratios);
      if (part >= shown) {
        throughput_.Add(cells);
        shown += 0.25;
      }
      if (chain.stages.size() <= chain::kMostExactStages) {
        comparison.Add({chain, model, limit}, last);
      }
    }
    std::vector<std::string> summary = {name, stages};
    for (const Series& ratio : ratios) summary.push_back(ratio.MeanAndMost());
    chains_.Add(summary);
    if (comparison.gap.count > 0) exact_.Add(comparison.Cells(name, stages));
  }

  void Print() const {
    report::Table table({"planner", "ratio, mean", "worst", "to fractional, mean", "worst",
                         "no schedule", "planning, mean", "longest"});
    for (std::size_t p = 0; p < scores_.size(); ++p) {
      const Score& score = scores_[p];
      table.Add({std::string(Planners()[p].name), fmt::format("{:.4f}", score.ratio.mean()),
                 fmt::format("{:.4f}", score.ratio.most),
                 fmt::format("{:.4f}", score.fractional.mean()),
                 fmt::format("{:.4f}", score.fractional.most), fmt::format("{}", score.misfits),
                 fmt::format("{:.3f} s", score.seconds.mean()),
                 fmt::format("{:.3f} s", score.seconds.most)});
    }
    fmt::print("{}fractional optimum / proposition 3: mean {:.4f}, worst {:.4f}\n", table.Render(),
               relaxed_.mean(), relaxed_.most);
    fmt::print("means are over the limits at which a planner has a schedule\n");
    fmt::print("\n");
    PrintRanks();
    fmt::print("ratio to proposition 3, mean and worst\n{}\n", chains_.Render());
    fmt::print("chains of at most {} stages\n{}\n", chain::kMostExactStages, exact_.Render());
    fmt::print("images per second (figures 13 to 19)\n{}\n", throughput_.Render());
  }

 private:
  /// Asks every planner and returns the iteration of the last one, chainsearch.
  Nanoseconds AskAll(const chain::Question& question, std::vector<std::string>* cells,
                     std::vector<Series>* ratios) {
    const Nanoseconds bound = chain::LowerBound(question.model, question.limit_bytes);
    const Nanoseconds relaxed =
        chain::FractionalOptimum(question.chain, question.model, question.limit_bytes);
    relaxed_.Add(Over(relaxed, bound));
    std::vector<Nanoseconds> times(scores_.size(), kNever);
    Nanoseconds last = 0;
    for (std::size_t p = 0; p < scores_.size(); ++p) {
      const Stopwatch watch;
      const auto schedule = Planners()[p].plan(question, {});
      scores_[p].seconds.Add(watch.seconds());
      if (!schedule) {
        ++scores_[p].misfits;
        cells->push_back("-");
        continue;
      }
      Judge(question, *schedule);
      last = times[p] = schedule->iteration_ns();
      scores_[p].ratio.Add(Over(last, bound));
      (*ratios)[p].Add(Over(last, bound));
      scores_[p].fractional.Add(Over(last, relaxed));
      cells->push_back(fmt::format(
          "{:.1f}", static_cast<double>(question.chain.batch) * 1e9 / static_cast<double>(last)));
    }
    ++asked_;
    Rank(times);
    return last;
  }

  void Rank(const std::vector<Nanoseconds>& times) {
    for (std::size_t p = 0; p < times.size(); ++p) {
      for (std::size_t q = 0; q < times.size(); ++q) {
        if (times[q] < times[p]) ++scores_[p].behind[q];
      }
    }
  }

  void PrintRanks() const {
    report::Table table(WithPlanners({"behind"}));
    for (std::size_t p = 0; p < scores_.size(); ++p) {
      std::vector<std::string> cells = {std::string(Planners()[p].name)};
      for (std::size_t q = 0; q < scores_.size(); ++q) {
        const auto found = scores_[p].behind.find(q);
        cells.push_back(fmt::format("{}", found == scores_[p].behind.end() ? 0 : found->second));
      }
      table.Add(cells);
    }
    fmt::print(
        "at how many of {} questions the planner of the row is slower than that of the column, or "
        "has no schedule\n{}\n",
        asked_, table.Render());
  }

  static constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

  Setting setting_;
  int limits_;
  std::vector<Score> scores_;  // In the order of the registry.
  Series relaxed_;
  report::Table chains_;
  report::Table throughput_;
  report::Table exact_;
  int asked_ = 0;
};

/// What a larger batch is worth in the same memory: networks that were measured with several.
void PrintBatches(const std::vector<std::string>& paths) {
  std::map<std::pair<std::string, std::int64_t>, std::vector<chain::Chain>> networks;
  for (const std::string& path : paths) {
    chain::Chain chain = chain::ScaleTimes(chain::ReadChain(path), 6);
    networks[{chain.name, chain.image}].push_back(std::move(chain));
  }
  report::Table table(WithPlanners({"network", "limit", "batch"}));
  for (auto& [name, chains] : networks) {
    if (chains.size() < 2) continue;
    std::sort(chains.begin(), chains.end(),
              [](const auto& a, const auto& b) { return a.batch < b.batch; });
    const chain::Model largest = chain::MakeModel(chains.back(), 12'200'000'000);
    for (const int part : {0, 50, 100}) {
      const Bytes limit = largest.smallest_limit_bytes +
                          part * ((largest.peak_bytes - largest.smallest_limit_bytes) / 100);
      for (const chain::Chain& chain : chains) {
        const chain::Model model = chain::MakeModel(chain, 12'200'000'000);
        std::vector<std::string> cells = {fmt::format("{} {}", name.first, name.second),
                                          FormatBytes(limit), fmt::format("{}", chain.batch)};
        for (const chain::Planner& planner : Planners()) {
          const auto schedule = planner.plan({chain, model, limit}, {});
          cells.push_back(
              schedule ? fmt::format("{:.1f}", static_cast<double>(chain.batch) * 1e9 /
                                                   static_cast<double>(schedule->iteration_ns()))
                       : "-");
        }
        table.Add(cells);
      }
    }
  }
  fmt::print(
      "== images per second by batch in the same memory, 12.2 GB/s, times x 6, one half-duplex "
      "link, cold start\n\n{}\n",
      table.Render());
}

/// A chain of 12 to 20 stages with nothing regular about it.
chain::Chain DrawChain(std::mt19937_64* random) {
  const auto draw = [random](std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>((*random)() % static_cast<std::uint64_t>(most - least + 1));
  };
  constexpr std::int64_t kMillion = 1'000'000;
  chain::Chain chain;
  chain.name = "random";
  chain.input_bytes = draw(1, 1'000) * kMillion;
  const std::int64_t stages = draw(12, static_cast<std::int64_t>(chain::kMostExactStages));
  for (std::int64_t i = 0; i < stages; ++i) {
    chain.stages.push_back({"", draw(1, 20) * kMillion, draw(1, 40) * kMillion,
                            draw(1, 1'000) * kMillion, draw(0, 300) * kMillion,
                            draw(0, 300) * kMillion, draw(0, 300) * kMillion});
  }
  return chain;
}

void PrintRandom(int count) {
  Comparison comparison;
  Series seconds;
  std::mt19937_64 random(1);
  for (int k = 0; k < count; ++k) {
    const chain::Chain chain = DrawChain(&random);
    const chain::Model model = chain::MakeModel(chain, 12'200'000'000 * (1 + k % 4));
    const Bytes limit = model.smallest_limit_bytes +
                        k % 10 * ((model.peak_bytes - model.smallest_limit_bytes) / 10);
    const Stopwatch watch;
    const auto schedule = chain::PlanChainSearch({chain, model, limit}, {});
    seconds.Add(watch.seconds());
    comparison.Add({chain, model, limit}, schedule.value().iteration_ns());
  }
  report::Table table(Comparison::Header());
  table.Add(comparison.Cells("random", fmt::format("12-{}", chain::kMostExactStages)));
  fmt::print("== chains drawn at random, 12.2 to 48.8 GB/s (chainsearch: {:.2f} s at most)\n\n{}",
             seconds.most, table.Render());
}

void RunAll(const Options& options) {
  const Setting settings[] = {{12'200'000'000, 1.0}, {55'000'000'000, 1.0}, {12'200'000'000, 6.0}};
  for (const Setting& setting : settings) {
    Run run(setting, options.limits);
    for (const std::string& path : options.paths) run.Add(path);
    fmt::print(
        "== {:.1f} GB/s, times x {}: {} chains, {} limits each; one half-duplex link, cold "
        "start\n\n",
        static_cast<double>(setting.bandwidth_bytes_per_s) * 1e-9, setting.time_scale,
        options.paths.size(), options.limits);
    run.Print();
    std::fflush(stdout);
  }
  PrintBatches(options.paths);
  if (options.random > 0) PrintRandom(options.random);
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
    if (k + 1 == arguments.size()) return std::nullopt;
    const std::string& value = arguments[k + 1];
    const auto number =
        static_cast<int>(std::clamp<std::int64_t>(ParseInteger(value).value_or(-1), -1, 1'000'000));
    if (arguments[k] == "--limits" && number >= 1) {
      options.limits = number;
    } else if (arguments[k] == "--random" && number >= 0) {
      options.random = number;
    } else if (arguments[k] == "--chain") {
      options.chain = value;
    } else {
      return std::nullopt;
    }
    ++k;
  }
  for (const std::string& path : ExpandFolders(inputs)) {
    const std::string name = std::filesystem::path(path).stem().string();
    if (name.find(options.chain) != std::string::npos) options.paths.push_back(path);
  }
  if (options.paths.empty()) return std::nullopt;
  return options;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  try {
    const auto options = plimsoll::ParseArguments({argv + 1, argv + argc});
    if (!options) {
      fmt::print(stderr, "usage: chains [--limits N] [--chain NAME] [--random N] FOLDER|FILE...\n");
      return 2;
    }
    plimsoll::RunAll(*options);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "chains: {}\n", error.what());
    return 4;
  }
}
