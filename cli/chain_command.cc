// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/chain/fractional.h"
#include "plimsoll/chain/order.h"
#include "plimsoll/chain/planner.h"
#include "plimsoll/chain/reader.h"
#include "plimsoll/chain/to_trace.h"
#include "plimsoll/chain/validator.h"
#include "plimsoll/report/table.h"
#include "plimsoll/trace/writer.h"

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ChainOptions {
  std::vector<std::string> files;
  std::string limits = "20";
  std::string planners = "all";
  std::string bandwidth;
  double time_scale = 1;
  double time_budget_seconds = chain::PlannerOptions().time_budget_seconds;
  std::uint64_t seed = 1;
  std::string csv;
  std::string trace_out;
  bool json = false;
};

/// One planner's answer at one limit, judged.
struct Row {
  std::string chain;
  std::string planner;
  std::int64_t bandwidth_bytes_per_s = 0;
  Bytes limit_bytes = 0;
  Bytes peak_load_bytes = 0;
  Bytes smallest_limit_bytes = 0;
  std::string smallest_limit_op;
  Nanoseconds unlimited_ns = 0;
  bool fits = false;
  // Below only if it fits.
  chain::Footprint footprint;
  Bytes recomputed_bytes = 0;
  Nanoseconds iteration_ns = 0;
  Nanoseconds bound_ns = 0;                  ///< Proposition 3.
  std::optional<Nanoseconds> fractional_ns;  ///< Theorem 2, if the limit allows to offload.
  double planning_seconds = 0;
  double images_per_second = 0;

  double Over(Nanoseconds bound) const {
    return bound == 0 ? 1 : static_cast<double>(iteration_ns) / static_cast<double>(bound);
  }
  double overhead() const { return Over(unlimited_ns) - 1; }
};

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts;
  std::string_view rest = text;
  while (!rest.empty()) parts.emplace_back(TakeField(&rest, ','));
  return parts;
}

/// "20" for so many limits from the smallest to the peak, or a list such as "80%,4GiB".
std::vector<Bytes> ParseChainLimits(const std::string& text, const chain::Model& model) {
  const Bytes span = std::max<Bytes>(0, model.peak_bytes - model.smallest_limit_bytes);
  std::vector<Bytes> limits;
  if (const std::optional<std::int64_t> count = ParseInteger(text)) {
    if (*count < 1 || *count > 100'000) {
      throw CLI::ValidationError("--limits",
                                 "a plain number counts limits, from 1 to 100000; "
                                 "write 4294967296B or 4GiB for a size");
    }
    for (std::int64_t k = 0; k < *count; ++k) {
      const double part =
          *count == 1 ? 0 : static_cast<double>(k) / static_cast<double>(*count - 1);
      limits.push_back(model.smallest_limit_bytes +
                       static_cast<Bytes>(std::llround(part * static_cast<double>(span))));
    }
    return limits;
  }
  for (const std::string& part : SplitCommas(text)) {
    if (part.empty() || part.back() != '%') {
      limits.push_back(ParseSizeOption("--limits", part));
      continue;
    }
    char* end = nullptr;
    const double percent = std::strtod(part.c_str(), &end);
    if (end != part.c_str() + part.size() - 1 || !std::isfinite(percent) || percent < 0 ||
        percent > 1000) {
      throw CLI::ValidationError("--limits", fmt::format("\"{}\" is not a percentage", part));
    }
    const double bytes = std::floor(percent / 100 * static_cast<double>(model.peak_bytes));
    limits.push_back(static_cast<Bytes>(bytes));
  }
  return limits;
}

std::vector<const chain::Planner*> ParseChainPlanners(const std::string& text) {
  std::vector<const chain::Planner*> planners;
  if (text == "all") {
    for (const chain::Planner& planner : chain::Planners()) planners.push_back(&planner);
    return planners;
  }
  for (const std::string& name : SplitCommas(text)) {
    planners.push_back(chain::FindPlanner(name));
    if (planners.back() != nullptr) continue;
    std::string known = "all";
    for (const chain::Planner& planner : chain::Planners())
      known += fmt::format(", {}", planner.name);
    throw CLI::ValidationError(
        "--planners", fmt::format("there is no chain planner \"{}\"; there are {}", name, known));
  }
  if (planners.empty()) throw CLI::ValidationError("--planners", "names no planner");
  return planners;
}

constexpr std::int64_t kSlowestBandwidth = 1000;

/// "12.2GB/s", or bytes per second. Without the option, what was measured with the chain.
std::int64_t SelectBandwidth(const ChainOptions& options, const chain::Chain& chain,
                             const std::string& file) {
  if (options.bandwidth.empty()) {
    if (chain.bandwidth_bytes_per_s > 0) return chain.bandwidth_bytes_per_s;
    throw InputError(file, 0, "has no host_link_GBps; name a link with --bandwidth");
  }
  std::string text = options.bandwidth;
  if (text.ends_with("/s")) text.resize(text.size() - 2);
  const std::optional<Bytes> bandwidth = ParseBytes(text);
  if (!bandwidth) {
    throw CLI::ValidationError(
        "--bandwidth", fmt::format("\"{}\" is no bandwidth; write 12.2GB/s", options.bandwidth));
  }
  if (*bandwidth < kSlowestBandwidth) {
    throw CLI::ValidationError(
        "--bandwidth", fmt::format("must be {} bytes per second or more", kSlowestBandwidth));
  }
  return *bandwidth;
}

Row Ask(const chain::Planner& planner, const chain::Question& question, const ChainOptions& options,
        const Row& common) {
  Row row = common;
  row.planner = planner.name;
  const bool may_offload = question.limit_bytes >= question.model.smallest_limit_bytes;
  if (!may_offload && !planner.recomputes) return row;
  chain::PlannerOptions planner_options;
  planner_options.time_budget_seconds = options.time_budget_seconds;
  planner_options.seed = options.seed;
  const Stopwatch watch;
  const std::optional<chain::Schedule> schedule = planner.plan(question, planner_options);
  row.planning_seconds = watch.seconds();
  row.bound_ns = chain::LowerBound(question.model, question.limit_bytes);
  if (may_offload) {
    row.fractional_ns =
        chain::FractionalOptimum(question.chain, question.model, question.limit_bytes);
  }
  if (!schedule) return row;
  const auto violations = chain::FindViolations(
      question.chain, question.model.bandwidth_bytes_per_s, *schedule, question.limit_bytes);
  if (!violations.empty()) {
    throw Error(fmt::format("the schedule of {} is not valid, which is a bug: {}", planner.name,
                            violations.front().message));
  }
  row.fits = true;
  row.footprint =
      chain::MeasureFootprint(chain::ModelOf(question.chain, question.model, *schedule), *schedule);
  row.recomputed_bytes = chain::RecomputedBytes(question.chain, schedule->order);
  row.iteration_ns = schedule->iteration_ns();
  if (row.iteration_ns > 0) {
    row.images_per_second =
        static_cast<double>(question.chain.batch) * 1e9 / static_cast<double>(row.iteration_ns);
  }
  return row;
}

/// Says in place on a terminal what is going on; an empty text clears the line.
void ShowProgress(const std::string& what) {
  static const bool is_terminal = ::isatty(STDERR_FILENO) != 0;
  if (is_terminal) fmt::print(stderr, "\r\033[K{}", what);
}

/// All rows of one file, or those before it was interrupted, and on stderr which of its limits
/// nothing can meet.
std::vector<Row> AskAll(const std::string& file, const ChainOptions& options,
                        const std::vector<const chain::Planner*>& planners,
                        const Interrupt& interrupt) {
  chain::Chain chain = chain::ReadChain(file);
  const std::int64_t bandwidth = SelectBandwidth(options, chain, file);
  chain = chain::ScaleTimes(std::move(chain), options.time_scale);
  chain::CheckWellFormed(chain, file);
  const chain::Model model = chain::MakeModel(chain, bandwidth);
  chain::CheckTransfers(chain, model, file);
  Row common;
  common.chain = chain.name;
  if (chain.batch > 0) common.chain += fmt::format("_b{}", chain.batch);
  if (chain.image > 0) common.chain += fmt::format("_s{}", chain.image);
  common.bandwidth_bytes_per_s = bandwidth;
  common.peak_load_bytes = model.peak_bytes;
  common.smallest_limit_bytes = model.smallest_limit_bytes;
  common.smallest_limit_op = chain::OpName(chain, model.smallest_limit_op);
  common.unlimited_ns = model.compute_ns;
  std::vector<Row> rows;
  for (const Bytes limit : ParseChainLimits(options.limits, model)) {
    common.limit_bytes = limit;
    bool fits = false;
    for (const chain::Planner* planner : planners) {
      if (interrupt.requested()) return rows;
      ShowProgress(fmt::format("{}, {}, {}", common.chain, FormatBytes(limit), planner->name));
      rows.push_back(Ask(*planner, {chain, model, limit}, options, common));
      fits = fits || rows.back().fits;
    }
    if (!fits && limit < model.smallest_limit_bytes) {
      ShowProgress("");
      fmt::print(stderr,
                 "plimsoll: {} does not fit into {} bytes: {} alone needs {} bytes, which is the "
                 "smallest limit for offloading\n",
                 file, limit, common.smallest_limit_op, model.smallest_limit_bytes);
    }
  }
  return rows;
}

Json ToJson(const Row& row) {
  Json json = {{"chain", row.chain},
               {"planner", row.planner},
               {"bandwidth_bytes_per_s", row.bandwidth_bytes_per_s},
               {"limit_bytes", row.limit_bytes},
               {"peak_load_bytes", row.peak_load_bytes},
               {"smallest_limit_bytes", row.smallest_limit_bytes},
               {"smallest_limit_op", row.smallest_limit_op},
               {"iteration_ns_unlimited", row.unlimited_ns},
               {"planning_seconds", row.planning_seconds},
               {"fits", row.fits}};
  if (!row.fits) return json;
  json.update(
      {{"footprint_bytes", row.footprint.device_bytes},
       {"host_bytes", row.footprint.host_bytes},
       {"iteration_ns", row.iteration_ns},
       {"overhead", row.overhead()},
       {"swapped_bytes", row.footprint.out_bytes},
       {"recomputed_bytes", row.recomputed_bytes},
       {"bound_ns", row.bound_ns},
       {"fractional_ns", row.fractional_ns ? Json(*row.fractional_ns) : Json()},
       {"ratio", row.Over(row.bound_ns)},
       {"fractional_ratio", row.fractional_ns ? Json(row.Over(*row.fractional_ns)) : Json()},
       {"images_per_second", row.images_per_second},
       {"valid", true}});
  return json;
}

/// A name as one field: quoted if it has a comma, a quote or the end of a line.
std::string CsvText(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string ToCsv(const std::vector<Row>& rows) {
  std::string csv =
      "chain,planner,bandwidth_bytes_per_s,limit_bytes,peak_load_bytes,smallest_limit_bytes,fits,"
      "valid,footprint_bytes,host_bytes,swapped_bytes,recomputed_bytes,iteration_ns_unlimited,"
      "iteration_ns,overhead,bound_ns,fractional_ns,ratio,fractional_ratio,images_per_second,"
      "planning_seconds\n";
  for (const Row& row : rows) {
    csv += fmt::format("{},{},{},{},{},{},{},", CsvText(row.chain), row.planner,
                       row.bandwidth_bytes_per_s, row.limit_bytes, row.peak_load_bytes,
                       row.smallest_limit_bytes, row.fits);
    if (row.fits) {
      const bool has = row.fractional_ns.has_value();
      csv += fmt::format(
          "true,{},{},{},{},{},{},{:.6f},{},{},{:.6f},{},{:.3f},", row.footprint.device_bytes,
          row.footprint.host_bytes, row.footprint.out_bytes, row.recomputed_bytes, row.unlimited_ns,
          row.iteration_ns, row.overhead(), row.bound_ns,
          has ? fmt::to_string(*row.fractional_ns) : "", row.Over(row.bound_ns),
          has ? fmt::format("{:.6f}", row.Over(*row.fractional_ns)) : "", row.images_per_second);
    } else {
      csv += fmt::format(",,,,,{},,,,,,,,", row.unlimited_ns);
    }
    csv += fmt::format("{:.6f}\n", row.planning_seconds);
  }
  return csv;
}

void PrintTable(const std::vector<Row>& rows) {
  const Row& first = rows.front();
  fmt::print(
      "{}: peak load {} ({} bytes), smallest limit {} ({})\n"
      "{:.3f} ms without a limit; one half-duplex link of {:.1f} GB/s, cold start\n\n",
      first.chain, FormatBytes(first.peak_load_bytes), first.peak_load_bytes,
      FormatBytes(first.smallest_limit_bytes), first.smallest_limit_op,
      static_cast<double>(first.unlimited_ns) * 1e-6,
      static_cast<double>(first.bandwidth_bytes_per_s) * 1e-9);
  report::Table table({"limit", "of peak", "planner", "iteration", "ratio", "to fractional",
                       "images/s", "swapped", "recomputed", "planning", "valid"});
  table.Left(2);
  for (const Row& row : rows) {
    const double share = 100 * static_cast<double>(row.limit_bytes) /
                         static_cast<double>(std::max<Bytes>(1, row.peak_load_bytes));
    std::vector<std::string> cells = {FormatBytes(row.limit_bytes), fmt::format("{:.1f} %", share),
                                      row.planner};
    if (row.fits) {
      cells.push_back(fmt::format("{:.3f} ms", static_cast<double>(row.iteration_ns) * 1e-6));
      cells.push_back(fmt::format("{:.4f}", row.Over(row.bound_ns)));
      cells.push_back(row.fractional_ns ? fmt::format("{:.4f}", row.Over(*row.fractional_ns))
                                        : "-");
      cells.push_back(fmt::format("{:.1f}", row.images_per_second));
      cells.push_back(FormatBytes(row.footprint.out_bytes));
      cells.push_back(FormatBytes(row.recomputed_bytes));
      cells.push_back(fmt::format("{:.3f} s", row.planning_seconds));
      cells.push_back("yes");
    } else {
      cells.push_back("does not fit");
    }
    table.Add(std::move(cells));
  }
  fmt::print("{}", table.Render());
}

/// Writes the chain as a trace of three iterations, which `plimsoll compare` and others read.
void WriteAsTrace(const ChainOptions& options) {
  if (options.files.size() != 1) {
    throw CLI::ValidationError("--trace-out", "takes one chain");
  }
  const std::string& file = options.files.front();
  const chain::Chain chain = chain::ScaleTimes(chain::ReadChain(file), options.time_scale);
  chain::CheckWellFormed(chain, file);
  trace::WriteTrace(chain::ToTrace(chain), options.trace_out);
}

ExitCode Run(const ChainOptions& options) {
  const std::vector<const chain::Planner*> planners = ParseChainPlanners(options.planners);
  if (!options.trace_out.empty()) {
    WriteAsTrace(options);
    return ExitCode::kDone;
  }
  std::vector<std::vector<Row>> files;
  std::vector<Row> all;
  {
    const Interrupt interrupt;
    for (const std::string& file : options.files) {
      std::vector<Row> rows = AskAll(file, options, planners, interrupt);
      all.insert(all.end(), rows.begin(), rows.end());
      if (!rows.empty()) files.push_back(std::move(rows));
      if (interrupt.requested()) break;
    }
    ShowProgress("");
    if (interrupt.requested()) fmt::print(stderr, "plimsoll: interrupted; rows so far\n");
  }
  if (!options.csv.empty()) WriteFileWhole(options.csv, ToCsv(all));
  if (options.json) {
    Json rows = Json::array();
    for (const Row& row : all) rows.push_back(ToJson(row));
    fmt::print("{}\n", rows.dump(2));
  } else {
    for (std::size_t k = 0; k < files.size(); ++k) {
      if (k > 0) fmt::print("\n");
      PrintTable(files[k]);
    }
  }
  const bool any_fits =
      std::any_of(all.begin(), all.end(), [](const Row& row) { return row.fits; });
  return any_fits ? ExitCode::kDone : ExitCode::kNoAnswer;
}

}  // namespace

void AddChainCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand(
      "chain", "Offload or recompute the activations of a chain of stages under a limit");
  auto options = std::make_shared<ChainOptions>();
  command->add_option("FILE", options->files, "Chains as JSON")->required();
  CLI::Option* limits =
      command
          ->add_option("--limits", options->limits,
                       "How many, evenly from the smallest to the peak; or a list such as 80%,4GiB")
          ->capture_default_str();
  CLI::Option* planners =
      command->add_option("--planners", options->planners, "Planners by name, with commas, or all")
          ->capture_default_str();
  command->add_option("--bandwidth", options->bandwidth,
                      "Of the link, such as 12.2GB/s; default the chain's own");
  command->add_option("--time-scale", options->time_scale, "Multiplies the times of all stages")
      ->check(CheckNumber(0, 1e6))
      ->capture_default_str();
  command
      ->add_option("--time-budget", options->time_budget_seconds,
                   "Seconds after which the best schedule so far is taken")
      ->check(CheckNumber(0, 1e6))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "For planners that draw random numbers")
      ->capture_default_str();
  CLI::Option* csv =
      command->add_option("--csv", options->csv, "Write the rows to this file as well");
  CLI::Option* json = command->add_flag("--json", options->json, "Print an array of objects");
  command
      ->add_option("--trace-out", options->trace_out,
                   "Write one chain as a trace to this file, and plan nothing")
      ->excludes(limits, planners, csv, json);
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli
