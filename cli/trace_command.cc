// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/input.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/report/arena_drawing.h"
#include "plimsoll/report/table.h"

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;
using trace::Phase;

constexpr std::size_t kLargestShown = 10;
constexpr std::size_t kCurvePoints = 200;

struct TraceOptions {
  std::string file;
  std::optional<std::int64_t> iteration;
  bool json = false;
};

/// What there is to say about a trace.
struct Analysis {
  trace::Trace trace;
  plan::Problem problem;
  plan::LoadProfile profile;
  plan::Breakdown breakdown;
  plan::Spreads spreads;
  std::vector<plan::LiveVariable> at_peak;
};

Analysis Analyse(const TraceOptions& options) {
  Analysis a;
  a.trace = ReadAnyTrace(options.file);
  a.problem = SelectIteration(a.trace, options.file, options.iteration);
  a.profile = plan::ProfileLoad(a.problem);
  a.breakdown = plan::BreakDown(a.problem, a.profile);
  a.spreads = plan::SpreadOf(a.problem, a.profile);
  a.at_peak = plan::LiveAt(a.problem, a.profile.peak_position);
  return a;
}

/// The op during which the peak is reached: mallocs belong to the op that follows them.
const plan::Op* OpAtPeak(const Analysis& a) {
  const auto op = std::lower_bound(
      a.problem.ops.begin(), a.problem.ops.end(), a.profile.peak_position,
      [](const plan::Op& x, plan::Position position) { return x.position < position; });
  return op == a.problem.ops.end() ? nullptr : &*op;
}

Json ToJson(const plan::Group& group) {
  return {{"variables", group.count},
          {"total_bytes", group.total_bytes},
          {"at_peak_bytes", group.at_peak_bytes}};
}

Json ToJson(const plan::Spread& spread) {
  return {{"least", spread.least},
          {"median", spread.median},
          {"ninety_percent", spread.ninety_percent},
          {"most", spread.most}};
}

/// The load over the iteration: the highest of each of at most kCurvePoints stretches, with its
/// position and its moment.
Json LoadCurve(const plan::LoadProfile& profile) {
  Json curve = Json::array();
  const std::size_t count = profile.load_bytes.size();
  const std::size_t step = count / kCurvePoints + 1;
  for (std::size_t begin = 0; begin < count; begin += step) {
    const auto first = profile.load_bytes.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last =
        profile.load_bytes.begin() + static_cast<std::ptrdiff_t>(std::min(begin + step, count));
    const auto top = std::max_element(first, last);
    const auto position = static_cast<std::size_t>(top - profile.load_bytes.begin());
    curve.push_back(
        {{"position", position}, {"time_ns", profile.start_ns[position]}, {"load_bytes", *top}});
  }
  return curve;
}

Json ToJson(const TraceOptions& options, const Analysis& a) {
  Json kinds = Json::object();
  for (int k = 0; k < plan::kVariableKinds; ++k) {
    kinds[std::string(plan::Name(static_cast<plan::VariableKind>(k)))] =
        ToJson(a.breakdown.kinds[static_cast<std::size_t>(k)]);
  }
  Json phases = Json::object();
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
    const auto p = static_cast<std::size_t>(phase);
    Json row = ToJson(a.breakdown.phases[p]);
    row["ops"] = a.breakdown.phase_ops[p];
    row["time_ns"] = a.breakdown.phase_ns[p];
    phases[std::string(plan::Name(phase))] = row;
  }
  Json largest = Json::array();
  for (std::size_t i = 0; i < std::min(a.at_peak.size(), kLargestShown); ++i) {
    const plan::Variable& v = a.problem.variables[static_cast<std::size_t>(a.at_peak[i].variable)];
    largest.push_back({{"variable", v.id},
                       {"size_bytes", v.size_bytes},
                       {"instances", a.at_peak[i].instances},
                       {"kind", plan::Name(v.kind)},
                       {"begin", v.begin},
                       {"end", v.end}});
  }
  const plan::Op* op = OpAtPeak(a);
  return {{"file", options.file},
          {"metadata", Json::parse(a.trace.metadata.empty() ? "{}" : a.trace.metadata)},
          {"events", a.trace.events.size()},
          {"repeats", a.problem.cyclic},
          {"iterations", a.problem.iterations},
          {"period_events", a.problem.cyclic ? a.problem.period : 0},
          {"first_event", a.problem.first_event},
          {"variables", a.problem.variables.size()},
          {"ops", a.problem.ops.size()},
          {"iteration_ns", a.problem.iteration_ns()},
          {"peak_load_bytes", a.profile.peak_bytes},
          {"peak_position", a.profile.peak_position},
          {"peak_op", op == nullptr ? Json(nullptr)
                                    : Json(a.problem.op_names[static_cast<std::size_t>(op->name)])},
          {"kinds", kinds},
          {"phases", phases},
          {"sizes_bytes", ToJson(a.spreads.size_bytes)},
          {"lifetimes_events", ToJson(a.spreads.lifetime_events)},
          {"lifetimes_ns", ToJson(a.spreads.lifetime_ns)},
          {"largest_at_peak", largest},
          {"load", LoadCurve(a.profile)}};
}

void PrintHeader(const TraceOptions& options, const Analysis& a) {
  fmt::print("{}: {} events, {} variables and {} ops in all\n", options.file, a.trace.events.size(),
             a.trace.variables.size(), a.trace.ops.size());
  if (a.problem.cyclic) {
    fmt::print("repeats every {} events, {} iterations; the one shown begins at event {}\n",
               a.problem.period, a.problem.iterations, a.problem.first_event);
  } else if (options.iteration) {
    fmt::print("iteration {} as marked: {} events from event {} on\n", *options.iteration,
               a.problem.period, a.problem.first_event);
  } else {
    fmt::print("nothing repeats: all {} events are taken, once (--iteration K takes one)\n",
               a.problem.period);
  }
  fmt::print("{} variables, {} ops, {:.3f} ms of op time\n", a.problem.variables.size(),
             a.problem.ops.size(), static_cast<double>(a.problem.iteration_ns()) / 1e6);
  const plan::Op* op = OpAtPeak(a);
  fmt::print("peak load {} ({} bytes) at position {}{}\n\n", FormatBytes(a.profile.peak_bytes),
             a.profile.peak_bytes, a.profile.peak_position,
             op == nullptr ? ""
                           : fmt::format(", {} of the {} phase",
                                         a.problem.op_names[static_cast<std::size_t>(op->name)],
                                         plan::Name(op->phase)));
}

void PrintTables(const Analysis& a) {
  report::Table kinds({"kind", "variables", "total", "at the peak"});
  for (int k = 0; k < plan::kVariableKinds; ++k) {
    const plan::Group& group = a.breakdown.kinds[static_cast<std::size_t>(k)];
    kinds.Add({std::string(plan::Name(static_cast<plan::VariableKind>(k))),
               fmt::format("{}", group.count), FormatBytes(group.total_bytes),
               FormatBytes(group.at_peak_bytes)});
  }
  fmt::print("{}\n", kinds.Render());
  report::Table phases({"phase", "ops", "time", "allocates", "total"});
  for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
    const auto p = static_cast<std::size_t>(phase);
    phases.Add({std::string(plan::Name(phase)), fmt::format("{}", a.breakdown.phase_ops[p]),
                fmt::format("{:.3f} ms", static_cast<double>(a.breakdown.phase_ns[p]) / 1e6),
                fmt::format("{}", a.breakdown.phases[p].count),
                FormatBytes(a.breakdown.phases[p].total_bytes)});
  }
  fmt::print("{}\n", phases.Render());
  report::Table spreads({"all but persistent", "least", "median", "90 %", "most"});
  const plan::Spread& sizes = a.spreads.size_bytes;
  spreads.Add({"size", FormatBytes(sizes.least), FormatBytes(sizes.median),
               FormatBytes(sizes.ninety_percent), FormatBytes(sizes.most)});
  const auto add = [&](const char* name, const plan::Spread& spread, double unit) {
    const auto cell = [&](std::int64_t value) {
      return unit == 1 ? fmt::format("{}", value)
                       : fmt::format("{:.3f}", static_cast<double>(value) / unit);
    };
    spreads.Add({name, cell(spread.least), cell(spread.median), cell(spread.ninety_percent),
                 cell(spread.most)});
  };
  add("lifetime, events", a.spreads.lifetime_events, 1);
  add("lifetime, ms", a.spreads.lifetime_ns, 1e6);
  fmt::print("{}\n", spreads.Render());
  report::Table largest({"largest at the peak", "size", "kind", "live"});
  largest.Left(2);
  for (std::size_t i = 0; i < std::min(a.at_peak.size(), kLargestShown); ++i) {
    const plan::Variable& v = a.problem.variables[static_cast<std::size_t>(a.at_peak[i].variable)];
    largest.Add({fmt::format("variable {}", v.id), FormatBytes(v.size_bytes),
                 std::string(plan::Name(v.kind)), fmt::format("[{}, {})", v.begin, v.end)});
  }
  fmt::print("{}\n", largest.Render());
}

/// The highest load in each of `columns` equal stretches of the iteration's time.
std::vector<Bytes> LoadOverTime(const Analysis& a, std::size_t columns) {
  std::vector<Bytes> highest(columns, 0);
  const double total = static_cast<double>(std::max<Nanoseconds>(a.problem.iteration_ns(), 1));
  for (std::size_t p = 0; p < a.profile.load_bytes.size(); ++p) {
    // A load lasts until the next event's moment.
    const auto column = [&](std::size_t position) {
      const Nanoseconds moment = position < a.profile.start_ns.size() ? a.profile.start_ns[position]
                                                                      : a.problem.iteration_ns();
      const double share = static_cast<double>(moment) / total;
      return std::min(static_cast<std::size_t>(share * static_cast<double>(columns)), columns - 1);
    };
    for (std::size_t c = column(p); c <= column(p + 1); ++c) {
      highest[c] = std::max(highest[c], a.profile.load_bytes[p]);
    }
  }
  return highest;
}

void Run(const TraceOptions& options) {
  const Analysis a = Analyse(options);
  if (options.json) {
    fmt::print("{}\n", ToJson(options, a).dump(2, ' ', false, Json::error_handler_t::replace));
    return;
  }
  PrintHeader(options, a);
  PrintTables(a);
  fmt::print("load over the events of the iteration\n{}",
             report::DrawLoad(a.profile.load_bytes, {.columns = 72, .rows = 10}));
  fmt::print("\nload over its time, {:.3f} ms\n{}",
             static_cast<double>(a.problem.iteration_ns()) / 1e6,
             report::DrawLoad(LoadOverTime(a, 72), {.columns = 72, .rows = 10}));
}

}  // namespace

void AddTraceCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand(
      "trace", "Find the iteration of a trace and say what its memory is used for");
  auto options = std::make_shared<TraceOptions>();
  command->add_option("FILE", options->file, "Trace, or SINGA event log")->required();
  command->add_option("--iteration", options->iteration,
                      "Take iteration K as the file marks it instead of the steady one");
  command->add_flag("--json", options->json, "Print one object");
  command->callback([options, &exit_code] {
    Run(*options);
    exit_code = ExitCode::kDone;
  });
}

}  // namespace plimsoll::cli
