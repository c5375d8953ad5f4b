// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/subject.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace plimsoll::report {
namespace {

/// "5.6 % slower", or that it is as fast.
std::string Slower(double overhead) {
  if (std::abs(overhead) < 0.0005) return "as fast as without a limit";
  return fmt::format("{:.1f} % {}", 100 * std::abs(overhead), overhead > 0 ? "slower" : "faster");
}

template <typename Value>
nlohmann::ordered_json OrNull(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json OrNull(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

}  // namespace

StallReason ReasonOf(const plan::Plan& plan, const StallMark& stall) {
  if (stall.awaited < 0) return StallReason::kOther;
  switch (plan.commands[static_cast<std::size_t>(stall.awaited)].queue) {
    case plan::Queue::kCopyIn:
      return StallReason::kData;
    case plan::Queue::kCopyOut:
      return StallReason::kMemory;
    case plan::Queue::kCompute:
      break;
  }
  return StallReason::kOther;
}

std::string Headline(const Figures& figures) {
  if (!figures.planned()) {
    return fmt::format(
        "An iteration takes {:.1f} ms and {} of memory at its peak; all of it fits in an arena of "
        "{}.",
        static_cast<double>(figures.unlimited_ns) / 1e6, FormatBytes(figures.peak_load_bytes),
        FormatBytes(figures.footprint_unlimited_bytes));
  }
  std::string text =
      fmt::format("Trains in {} instead of {}, {}", FormatBytes(figures.footprint_bytes),
                  FormatBytes(figures.footprint_unlimited_bytes), Slower(figures.overhead()));
  if (const std::optional<double> measured = figures.measured_overhead()) {
    text += fmt::format(" by prediction and {} when measured", Slower(*measured));
  }
  if (figures.bound_overhead() < 0.0005) {
    return text + (figures.overhead() < 0.0005 ? "." : "; at best no slower is possible.");
  }
  return text + fmt::format("; at best {} is possible.", Slower(figures.bound_overhead()));
}

std::string FiguresJson(const Figures& figures, int indent) {
  const nlohmann::ordered_json json = {
      {"name", figures.name},
      {"headline", Headline(figures)},
      {"model", OrNull(figures.model)},
      {"device", OrNull(figures.device)},
      {"link", figures.link},
      {"planner", OrNull(figures.planner)},
      {"planning_seconds", OrNull(figures.planning_seconds)},
      {"limit_bytes", OrNull(figures.limit_bytes)},
      {"peak_load_bytes", figures.peak_load_bytes},
      {"footprint_unlimited_bytes", figures.footprint_unlimited_bytes},
      {"peak_load_planned_bytes", figures.peak_load_planned_bytes},
      {"footprint_bytes", figures.footprint_bytes},
      {"host_bytes", figures.host_bytes},
      {"swapped_bytes", figures.swapped_bytes},
      {"recomputed_bytes", figures.recomputed_bytes},
      {"iteration_ns_unlimited", figures.unlimited_ns},
      {"iteration_ns", figures.iteration_ns},
      {"overhead", figures.overhead()},
      {"iteration_ns_measured", OrNull(figures.measured_ns)},
      {"overhead_measured", OrNull(figures.measured_overhead())},
      {"bound_ns", figures.bound_ns},
      {"bound_overhead", figures.bound_overhead()},
      {"gap", figures.gap()},
      {"stall_ns", figures.stall_ns},
      {"iterations_together", figures.laps},
      {"variables", figures.variables},
      {"ops", figures.ops},
      {"replays", figures.replays},
      {"residencies", figures.residencies},
      {"copies", figures.copies}};
  return json.dump(indent, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace plimsoll::report
