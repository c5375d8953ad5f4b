// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/planners/joint_bound.h"
#include "plimsoll/planners/reduction.h"
#include "plimsoll/planners/swap_bound.h"
#include "plimsoll/report/table.h"

namespace plimsoll::cli {
namespace {

Bytes CopiedOut(const plan::Plan& plan) {
  Bytes total = 0;
  for (const plan::Residency& residency : plan.residencies) {
    if (residency.copy_out < 0) continue;
    total += plan.problem.variables[static_cast<std::size_t>(residency.variable)].size_bytes;
  }
  return total;
}

/// Bytes that replays write, but for scratch: of what holds a version that recorded ops find again,
/// or other replays.
Bytes Recomputed(const plan::Plan& plan) {
  if (!plan.rewriting) return 0;
  Bytes total = 0;
  std::vector<bool> counted(plan.problem.variables.size(), false);
  for (std::size_t i = 0; i < plan.problem.ops.size(); ++i) {
    if (plan.rewriting->is_replay[i] == 0) continue;
    for (const plan::Operand& written : plan.problem.writes(plan.problem.ops[i])) {
      const auto v = static_cast<std::size_t>(written.variable);
      if (counted[v]) continue;
      counted[v] = true;
      total += plan.problem.variables[v].size_bytes;
    }
  }
  return total;
}

/// What no plan of this kind beats: one that recomputes, or one that swaps and does nothing else.
Nanoseconds Bound(const plan::Problem& recorded, const plan::Plan& plan) {
  const bool recomputes = plan.rewriting.has_value();
  const Nanoseconds bound =
      planners::JointBound(recorded, plan.machine, plan.limit_bytes, recomputes);
  if (recomputes) return bound;
  return std::max(bound, planners::SwapBound(recorded, plan.machine, plan.limit_bytes));
}

std::string Milliseconds(Nanoseconds ns) {
  return fmt::format("{:.3f} ms", static_cast<double>(ns) / 1e6);
}

std::vector<std::string> ToCells(const PlanRow& row) {
  const double share = static_cast<double>(row.limit_bytes) /
                       static_cast<double>(std::max<Bytes>(row.peak_load_bytes, 1));
  std::vector<std::string> cells = {Printable(row.planner), FormatBytes(row.limit_bytes),
                                    fmt::format("{:.1f} %", 100 * share)};
  if (row.fits) {
    cells.insert(cells.end(),
                 {FormatBytes(row.footprint_bytes), Milliseconds(row.iteration_ns),
                  fmt::format("{:.2f} %", 100 * row.overhead()), Milliseconds(row.bound_ns),
                  fmt::format("{:.2f} %", 100 * row.gap()), FormatBytes(row.swapped_bytes),
                  FormatBytes(row.recomputed_bytes), FormatBytes(row.host_bytes)});
  } else {
    cells.insert(cells.end(), {fmt::format("needs {}{}", FormatBytes(row.needed_bytes),
                                           row.host_misfit ? " on the host" : ""),
                               "-", "-", "-", "-", "-", "-", "-"});
  }
  cells.push_back(fmt::format("{:.3f} s", row.planning_seconds));
  return cells;
}

/// Quotes a text for CSV where it has to be (RFC 4180).
std::string CsvCell(const std::string& text) {
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}

}  // namespace

PlanRow DescribePlan(const plan::Plan& plan, const sim::Timeline& timeline) {
  PlanRow row;
  row.planner = plan.planner;
  row.limit_bytes = plan.limit_bytes;
  const plan::Problem& recorded = plan.rewriting ? plan.rewriting->original : plan.problem;
  row.peak_load_bytes = plan::ProfileLoad(recorded).peak_bytes;
  row.unlimited_ns = recorded.iteration_ns() / plan.problem.laps;
  row.fits = true;
  row.footprint_bytes = plan.footprint_bytes;
  row.host_bytes = plan.host_bytes;
  row.iteration_ns = timeline.iteration_ns / plan.problem.laps;
  row.swapped_bytes = CopiedOut(plan) / plan.problem.laps;
  row.recomputed_bytes = Recomputed(plan) / plan.problem.laps;
  row.bound_ns = Bound(recorded, plan) / plan.problem.laps;
  row.avoidable_ns = planners::AvoidableOverhead(plan, timeline) / plan.problem.laps;
  row.valid = plan::CheckPlan(plan, 1).empty();
  return row;
}

nlohmann::ordered_json ToJson(const PlanRow& row) {
  nlohmann::ordered_json json = {{"planner", row.planner},
                                 {"limit_bytes", row.limit_bytes},
                                 {"peak_load_bytes", row.peak_load_bytes}};
  if (row.load_min_bytes) json["load_min_bytes"] = *row.load_min_bytes;
  json["iteration_ns_unlimited"] = row.unlimited_ns;
  json["planning_seconds"] = row.planning_seconds;
  json["fits"] = row.fits;
  if (row.fits) {
    json["footprint_bytes"] = row.footprint_bytes;
    json["host_bytes"] = row.host_bytes;
    json["iteration_ns"] = row.iteration_ns;
    json["overhead"] = row.overhead();
    json["avoidable_overhead"] = row.avoidable_overhead();
    json["swapped_bytes"] = row.swapped_bytes;
    json["recomputed_bytes"] = row.recomputed_bytes;
    json["bound_ns"] = row.bound_ns;
    json["valid"] = row.valid;
    return json;
  }
  if (row.bound_ns > 0) json["bound_ns"] = row.bound_ns;
  json[row.host_misfit ? "needed_host_bytes" : "needed_bytes"] = row.needed_bytes;
  json["smallest_limit_bytes"] = row.smallest_limit_bytes;
  if (row.largest_op >= 0) {
    json["largest_op"] = row.largest_op;
    json["largest_op_name"] = row.largest_op_name;
    json["largest_op_bytes"] = row.largest_op_bytes;
  }
  return json;
}

void PrintJson(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string Printable(std::string text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return text;
}

void PrintTable(const std::vector<PlanRow>& rows, const std::string& link) {
  const PlanRow& any = rows.front();
  fmt::print("peak load {} ({} bytes), iteration {} without a limit, link {}\n\n",
             FormatBytes(any.peak_load_bytes), any.peak_load_bytes, Milliseconds(any.unlimited_ns),
             Printable(link));
  report::Table table({"planner", "limit", "of peak", "footprint", "iteration", "overhead", "bound",
                       "gap", "swapped", "recomputed", "host", "planning"});
  for (const PlanRow& row : rows) table.Add(ToCells(row));
  fmt::print("{}", table.Render());
}

void PrintCsv(const std::vector<PlanRow>& rows) {
  constexpr std::array<const char*, 21> kColumns = {"planner",
                                                    "limit_bytes",
                                                    "peak_load_bytes",
                                                    "iteration_ns_unlimited",
                                                    "planning_seconds",
                                                    "fits",
                                                    "footprint_bytes",
                                                    "host_bytes",
                                                    "iteration_ns",
                                                    "overhead",
                                                    "avoidable_overhead",
                                                    "swapped_bytes",
                                                    "recomputed_bytes",
                                                    "bound_ns",
                                                    "valid",
                                                    "needed_bytes",
                                                    "needed_host_bytes",
                                                    "smallest_limit_bytes",
                                                    "largest_op",
                                                    "largest_op_name",
                                                    "largest_op_bytes"};
  fmt::print("{}\n", fmt::join(kColumns, ","));
  for (const PlanRow& row : rows) {
    const nlohmann::ordered_json json = ToJson(row);
    std::vector<std::string> cells;
    for (const char* column : kColumns) {
      const auto cell = json.find(column);
      if (cell == json.end()) {
        cells.emplace_back();
      } else {
        cells.push_back(cell->is_string() ? CsvCell(cell->get<std::string>()) : cell->dump());
      }
    }
    fmt::print("{}\n", fmt::join(cells, ","));
  }
}

void ExplainMisfit(const PlanRow& row) {
  if (row.host_misfit) {
    fmt::print(stderr,
               "plimsoll: no plan fits: {} needs {} bytes on the host, more than its limit\n",
               row.planner, row.needed_bytes);
    return;
  }
  std::string op;
  if (row.largest_op >= 0 && row.limit_bytes < row.largest_op_bytes) {
    op = fmt::format("; op {} ({}) alone needs {} bytes", row.largest_op,
                     Printable(row.largest_op_name), row.largest_op_bytes);
  }
  if (row.smallest_limit_bytes > row.limit_bytes) {
    fmt::print(stderr, "plimsoll: no plan fits; the smallest limit that fits is {} bytes ({}){}\n",
               row.smallest_limit_bytes, FormatBytes(row.smallest_limit_bytes), op);
    return;
  }
  fmt::print(
      stderr,
      "plimsoll: {} finds no plan that fits, though there is one at {} bytes; try \"--planner "
      "joint\"\n",
      row.planner, row.smallest_limit_bytes);
}

void ExplainNearestMisfit(const std::vector<PlanRow>& rows) {
  // The last planner asked at the highest limit.
  ExplainMisfit(*std::max_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.limit_bytes <= b.limit_bytes;
  }));
}

bool AnyFits(const std::vector<PlanRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const PlanRow& row) { return row.fits; });
}

}  // namespace plimsoll::cli
