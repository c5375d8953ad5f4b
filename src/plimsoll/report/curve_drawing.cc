// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/curve_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "plimsoll/report/table.h"

namespace plimsoll::report {
namespace {

/// What the axis may say, and the least that its top stands for.
constexpr std::array kTicks = {0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, kHighestOverhead};
constexpr double kLowestTop = 0.01;

/// About linear up to a percent, logarithmic above.
double Scale(double overhead) { return std::log1p(std::max(overhead, 0.0) / 0.01); }

/// Where points lie in the picture.
class Frame {
 public:
  Frame(const CurveChart& chart, const DrawingSize& size)
      : columns_(std::max<std::size_t>(size.columns, 2)),
        rows_(std::max<std::size_t>(size.rows, 2)) {
    for (const Curve& curve : chart.curves) Include(curve.points);
    Include(chart.bound);
    if (!empty_ && chart.smallest_limit) IncludeLimit(*chart.smallest_limit);
    top_ = std::min(top_, kHighestOverhead);
  }

  bool empty() const { return empty_; }
  double left() const { return left_; }
  double right() const { return right_; }
  std::size_t columns() const { return columns_; }
  std::size_t rows() const { return rows_; }

  std::size_t Column(double limit) const {
    const double share = right_ > left_ ? (limit - left_) / (right_ - left_) : 0.5;
    return Cell(share, columns_);
  }
  /// Counted from the bottom.
  std::size_t Row(double overhead) const { return Cell(Scale(overhead) / Scale(top_), rows_); }
  /// In rows.
  double Height(double overhead) const {
    return Scale(overhead) / Scale(top_) * static_cast<double>(rows_ - 1);
  }
  bool Shows(double overhead) const { return overhead <= top_; }

 private:
  static std::size_t Cell(double share, std::size_t cells) {
    const double cell = std::clamp(share, 0.0, 1.0) * static_cast<double>(cells - 1);
    return static_cast<std::size_t>(std::lround(cell));
  }
  void Include(const std::vector<CurvePoint>& points) {
    for (const CurvePoint& point : points) {
      IncludeLimit(point.limit);
      top_ = std::max(top_, point.overhead);
    }
  }
  void IncludeLimit(double limit) {
    left_ = empty_ ? limit : std::min(left_, limit);
    right_ = empty_ ? limit : std::max(right_, limit);
    empty_ = false;
  }

  std::size_t columns_;
  std::size_t rows_;
  bool empty_ = true;
  double left_ = 0;
  double right_ = 0;
  double top_ = kLowestTop;
};

/// The cells, each a character of UTF-8; what was drawn first is below.
class Cells {
 public:
  explicit Cells(const Frame& frame)
      : frame_(frame), cells_(frame.rows(), std::vector<std::string>(frame.columns(), " ")) {}

  void DrawLimit(double limit) {
    for (auto& row : cells_) row[frame_.Column(limit)] = ":";
  }
  void DrawBound(const std::vector<CurvePoint>& points) {
    for (const CurvePoint& point : points) At(point) = "·";
  }
  void DrawCurve(const std::vector<CurvePoint>& points, char letter) {
    for (const CurvePoint& point : points) {
      std::string& cell = At(point);
      const bool taken = cell != " " && cell != ":" && cell != "·" && cell[0] != letter;
      cell = taken ? "*" : std::string(1, letter);
    }
  }
  std::string Line(std::size_t row) const {
    std::string line;
    for (const std::string& cell : cells_[row]) line += cell;
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  }

 private:
  std::string& At(const CurvePoint& point) {
    return cells_[frame_.Row(point.overhead)][frame_.Column(point.limit)];
  }

  const Frame& frame_;
  std::vector<std::vector<std::string>> cells_;  // By row from the bottom, and column.
};

std::string Percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

/// Returns what the axis says at each row, from the bottom: the tick nearest to it, if there is
/// one.
std::vector<std::string> LabelRows(const Frame& frame) {
  std::vector<std::string> labels(frame.rows());
  std::vector<double> distance(frame.rows(), 1);
  for (const double tick : kTicks) {
    if (!frame.Shows(tick)) continue;
    const std::size_t row = frame.Row(tick);
    const double off = std::abs(frame.Height(tick) - static_cast<double>(row));
    if (off >= distance[row]) continue;
    distance[row] = off;
    labels[row] = fmt::format("{:.0f} %", 100 * tick);
  }
  return labels;
}

/// Returns the line below the picture and what it says.
std::string DrawLimits(const Frame& frame, const CurveChart& chart, std::size_t margin) {
  std::string line;
  for (std::size_t column = 0; column < frame.columns(); ++column) {
    const bool marked = chart.smallest_limit && frame.Column(*chart.smallest_limit) == column;
    line += marked ? "┴" : "─";
  }
  const std::string left = Percent(frame.left());
  const std::string right = Percent(frame.right());
  const std::size_t width = std::max(frame.columns(), left.size() + right.size() + 1);
  const std::string text = fmt::format("{:{}} └{}\n{:{}}  {}", "", margin, line, "", margin, left);
  if (frame.left() == frame.right()) return text + "\n";
  return fmt::format("{}{:>{}}\n", text, right, width - left.size());
}

std::string DrawLegend(const CurveChart& chart, const std::vector<char>& letters) {
  std::string text;
  for (std::size_t k = 0; k < chart.curves.size(); ++k) {
    text += fmt::format("{} {}   ", letters[k], chart.curves[k].name);
  }
  if (chart.curves.size() > 1) text += "* several   ";
  if (!chart.bound.empty()) text += "· bound   ";
  if (chart.smallest_limit) text += ": smallest limit";
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

}  // namespace

std::vector<char> ChooseLetters(const std::vector<std::string>& names) {
  std::vector<char> letters;
  const auto is_free = [&letters](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 &&
           std::find(letters.begin(), letters.end(), c) == letters.end();
  };
  for (const std::string& name : names) {
    const std::string choices = name + "0123456789";
    const auto choice = std::find_if(choices.begin(), choices.end(), is_free);
    letters.push_back(choice == choices.end() ? '?' : *choice);
  }
  return letters;
}

std::string DrawCurves(const CurveChart& chart, const DrawingSize& size) {
  const Frame frame(chart, size);
  if (frame.empty()) return "";
  std::vector<std::string> names;
  for (const Curve& curve : chart.curves) names.push_back(curve.name);
  const std::vector<char> letters = ChooseLetters(names);
  Cells cells(frame);
  if (chart.smallest_limit) cells.DrawLimit(*chart.smallest_limit);
  cells.DrawBound(chart.bound);
  for (std::size_t k = 0; k < chart.curves.size(); ++k) {
    cells.DrawCurve(chart.curves[k].points, letters[k]);
  }
  const std::vector<std::string> labels = LabelRows(frame);
  std::size_t margin = 0;
  for (const std::string& label : labels) margin = std::max(margin, DisplayWidth(label));
  std::string text;
  for (std::size_t row = frame.rows(); row-- > 0;) {
    text += fmt::format("{:>{}} {}{}\n", labels[row], margin, labels[row].empty() ? "│" : "┤",
                        cells.Line(row));
  }
  return text + DrawLimits(frame, chart, margin) + DrawLegend(chart, letters);
}

}  // namespace plimsoll::report
