// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// What recompute_baselines measures, and what it makes of that.
namespace plimsoll::recompute_baselines {

inline constexpr std::array kPercents = {80, 60, 50, 40, 30};

/// In percent of the iteration without a limit; nothing where no plan fits.
using Overheads = std::array<std::optional<double>, kPercents.size()>;

struct Measured {
  std::string trace;
  double forward_percent = 0;                    ///< Of the iteration, what forward takes.
  std::map<std::string, Overheads> overheads{};  ///< By planner.
  std::map<std::string, double> lowest{};  ///< The lowest load it has, in percent of the peak.
};

/// Prints for every baseline what its paper claims, in how many cases it holds here, and where not.
void PrintClaims(const std::vector<Measured>& all);

}  // namespace plimsoll::recompute_baselines
