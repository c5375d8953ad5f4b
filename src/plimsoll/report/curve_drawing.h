// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/arena_drawing.h"

namespace plimsoll::report {

/// What a limit costs. Both are fractions: of the peak load, and of the iteration without a limit.
struct CurvePoint {
  double limit = 0;
  double overhead = 0;
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;
};

/// What is drawn: a curve for each planner, and what they have in common.
struct CurveChart {
  std::vector<Curve> curves;
  std::vector<CurvePoint> bound;           ///< No plan is below.
  std::optional<double> smallest_limit{};  ///< No plan is known to the left.
};

/// Higher overheads are drawn at the top edge.
inline constexpr double kHighestOverhead = 10;

/// Draws overheads over limits in characters, with a letter for each curve, dots for the bound, and
/// a line of colons at the smallest limit. A point on another curve's shows as a star.
///
///     100 % ┤ : v
///           │ : j   v
///      10 % ┤ : ·   j   v
///       0 % ┤ :     ·   *
///           └─┴─────────────
///            20.0 %    90.0 %
///     j joint   v vdnn-all   * several   · bound   : smallest limit
///
/// The axis of overheads is about linear up to a percent, and logarithmic above. Returns an empty
/// text if there is nothing to draw.
std::string DrawCurves(const CurveChart& chart, const DrawingSize& size);

/// Returns a letter for each name: its first that no name before it has; a digit if there is none
/// left.
std::vector<char> ChooseLetters(const std::vector<std::string>& names);

}  // namespace plimsoll::report
