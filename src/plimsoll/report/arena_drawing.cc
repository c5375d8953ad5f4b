// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/arena_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace plimsoll::report {
namespace {

/// Shares of a picture's cells that are covered, row by row from the bottom.
class Canvas {
 public:
  explicit Canvas(const DrawingSize& size)
      : columns_(std::max<std::size_t>(size.columns, 1)),
        rows_(std::max<std::size_t>(size.rows, 1)),
        cover_(columns_ * rows_, 0) {}

  /// Covers a rectangle given in cells: x across, y up.
  void Cover(double left, double right, double bottom, double top) {
    const auto last_column = std::min(columns_, static_cast<std::size_t>(right) + 1);
    const auto last_row = std::min(rows_, static_cast<std::size_t>(top) + 1);
    for (auto column = static_cast<std::size_t>(left); column < last_column; ++column) {
      const double width = Overlap(left, right, static_cast<double>(column));
      for (auto row = static_cast<std::size_t>(bottom); row < last_row; ++row) {
        cover_[row * columns_ + column] += width * Overlap(bottom, top, static_cast<double>(row));
      }
    }
  }

  std::string Render(Bytes highest) const {
    constexpr std::array<const char*, 5> kShades = {" ", "░", "▒", "▓", "█"};
    const std::string top_label = FormatBytes(highest);
    const std::string bottom_label = "0 B";
    const std::size_t margin = std::max(top_label.size(), bottom_label.size());
    std::string text;
    for (std::size_t row = rows_; row-- > 0;) {
      const bool labelled = row + 1 == rows_ || row == 0;
      const std::string& label = row + 1 == rows_ ? top_label : bottom_label;
      text += fmt::format("{:>{}} {}", labelled ? label : "", margin, labelled ? "┤" : "│");
      std::string line;
      for (std::size_t column = 0; column < columns_; ++column) {
        const double share = std::clamp(cover_[row * columns_ + column], 0.0, 1.0);
        // Anything at all shows; only what is full to the last percent is solid.
        const int shade = share <= 0.001 ? 0 : share > 0.99 ? 4 : 1 + static_cast<int>(share * 3);
        line += kShades[static_cast<std::size_t>(std::min(shade, 4))];
      }
      while (line.ends_with(' ')) line.pop_back();
      text += line + "\n";
    }
    return text;
  }

  double columns() const { return static_cast<double>(columns_); }
  double rows() const { return static_cast<double>(rows_); }

 private:
  /// How much of the cell [cell, cell + 1) the stretch [begin, end) covers.
  static double Overlap(double begin, double end, double cell) {
    return std::max(0.0, std::min(end, cell + 1) - std::max(begin, cell));
  }

  std::size_t columns_;
  std::size_t rows_;
  std::vector<double> cover_;
};

}  // namespace

std::string DrawArena(const place::Problem& problem, const std::vector<Bytes>& offsets,
                      const DrawingSize& size) {
  place::Time begin = std::numeric_limits<place::Time>::max();
  place::Time end = std::numeric_limits<place::Time>::min();
  for (const place::Buffer& buffer : problem.buffers) {
    begin = std::min(begin, buffer.lifetime.lower);
    end = std::max(end, buffer.lifetime.upper);
  }
  const Bytes highest = place::HighestTop(problem, offsets);
  if (highest == 0) return "the arena is empty\n";
  Canvas canvas(size);
  const double per_tick =
      canvas.columns() / (static_cast<double>(end) - static_cast<double>(begin));
  const double per_byte = canvas.rows() / static_cast<double>(highest);
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    const auto bottom = static_cast<double>(offsets[b]);
    const auto top = static_cast<double>(offsets[b] + problem.buffers[b].size_bytes);
    for (const place::Interval& live : place::LiveIntervals(problem.buffers[b])) {
      canvas.Cover((static_cast<double>(live.lower) - static_cast<double>(begin)) * per_tick,
                   (static_cast<double>(live.upper) - static_cast<double>(begin)) * per_tick,
                   bottom * per_byte, top * per_byte);
    }
  }
  return canvas.Render(highest);
}

std::string DrawLoad(const std::vector<Bytes>& load_bytes, const DrawingSize& size) {
  const Bytes highest =
      load_bytes.empty() ? 0 : *std::max_element(load_bytes.begin(), load_bytes.end());
  if (highest == 0) return "nothing is ever allocated\n";
  Canvas canvas(size);
  const double per_tick = canvas.columns() / static_cast<double>(load_bytes.size());
  const double per_byte = canvas.rows() / static_cast<double>(highest);
  for (std::size_t t = 0; t < load_bytes.size(); ++t) {
    const auto left = static_cast<double>(t) * per_tick;
    canvas.Cover(left, left + per_tick, 0, static_cast<double>(load_bytes[t]) * per_byte);
  }
  return canvas.Render(highest);
}

}  // namespace plimsoll::report
