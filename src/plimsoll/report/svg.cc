// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "plimsoll/base/index.h"
#include "plimsoll/report/columns.h"
#include "plimsoll/report/decisions.h"
#include "plimsoll/report/memory_view.h"

namespace plimsoll::report {
namespace {

constexpr double kLeft = 78;
constexpr double kWidth = 700;  // Of the plots.
constexpr double kTitleLine = 16;
constexpr std::size_t kTitleColumns = 100;  // About as wide as the plots, in bold.
constexpr double kMemoryTop = 34;
constexpr double kMemoryHeight = 150;
constexpr double kMapTop = kMemoryTop + kMemoryHeight + 34;
constexpr double kMapHeight = 260;
constexpr double kCell = 0.5;  // Where rectangles are drawn together.
constexpr int kColumns = static_cast<int>(kWidth / kCell);
constexpr int kRows = static_cast<int>(kMapHeight / kCell);

struct Look {
  const char* name;
  const char* fill;
  const char* dark;
  const char* pattern;  // Lines across a tile of 6 by 6.
};
/// By Choice.
constexpr std::array<Look, 4> kChoices = {{
    {"kept", "#c3cad3", "#8d98a6", ""},
    {"swapped", "#eeb26e", "#8a4b00", "M0 6L6 0"},
    {"recomputed", "#7fbcd9", "#0b4f6e", "M0 0L6 6"},
    {"both", "#c793cd", "#5f2169", "M0 6L6 0M0 0L6 6"},
}};
/// By plan::VariableKind.
constexpr std::array<Look, 5> kKinds = {{
    {"persistent", "#9dbbdb", "#2f5f93", ""},
    {"activation", "#eeb26e", "#8a4b00", "M0 6L6 0"},
    {"gradient", "#97cba4", "#1f6b34", "M0 0L6 6"},
    {"temporary", "#c3cad3", "#5c6673", "M3 3h.8"},
    {"workspace", "#c9b3df", "#5f3d85", "M0 3H6"},
}};

/// A number with as few digits as it takes: no more than one behind the point.
std::string Short(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

/// Breaks a text at spaces into lines of at most so many bytes, but for words that are longer.
std::vector<std::string> BreakLines(const std::string& text, std::size_t columns) {
  std::vector<std::string> lines = {""};
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > columns) {
      lines.emplace_back();
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
    at = end + 1;
  }
  return lines;
}

/// A round size without what is behind its point.
std::string ByteTick(Bytes bytes) {
  std::string text = FormatBytes(bytes);
  const std::size_t zeros = text.find(".00 ");
  if (zeros != std::string::npos) text.erase(zeros, 3);
  return text;
}

class Drawing {
 public:
  Drawing(const Subject& subject, std::size_t most_rectangles)
      : subject_(subject),
        most_rectangles_(most_rectangles),
        iteration_(std::max<Nanoseconds>(subject.drawn().iteration_ns, 1)),
        rectangles_(ListRectangles(subject, subject.drawn())) {
    const Figures& f = subject.figures;
    top_bytes_ = std::max<Bytes>(1, f.footprint_bytes);
    if (ShowsLimit()) top_bytes_ = std::max(top_bytes_, *f.limit_bytes);
    most_bytes_ = std::max({f.peak_load_bytes, top_bytes_, Bytes{1}});
    most_bytes_ += most_bytes_ / 16;
  }

  std::string Render() {
    const std::vector<std::string> title = BreakLines(Title(), kTitleColumns);
    // The title's second line and those below it move all else down.
    const double more = kTitleLine * static_cast<double>(title.size() - 1);
    const double height = kMapTop + kMapHeight + 62 + more;
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        Short(kLeft + kWidth + 16), Short(height));
    for (std::size_t k = 0; k < title.size(); ++k) {
      out_ += fmt::format(
          "<text x=\"{}\" y=\"{}\" font-size=\"13\" font-weight=\"bold\">{}</text>\n", Short(kLeft),
          Short(18 + kTitleLine * static_cast<double>(k)), EscapeHtml(title[k]));
    }
    AddPatterns();
    out_ += fmt::format("<g transform=\"translate(0 {})\">\n", Short(more));
    DrawMemory();
    DrawMap();
    DrawTimes();
    DrawLegend(kMapTop + kMapHeight + 44);
    return out_ + "</g>\n</svg>\n";
  }

 private:
  std::span<const Look> looks() const {
    if (subject_.figures.planned()) return kChoices;
    return kKinds;
  }
  bool ShowsLimit() const {
    const Figures& f = subject_.figures;
    return f.planned() && *f.limit_bytes / 2 < f.peak_load_bytes;
  }
  std::string Title() const {
    const Figures& f = subject_.figures;
    std::string name = (f.model.empty() ? f.name : f.model).substr(0, 60);
    // A name that is cut may end within a character.
    while (!name.empty() && (static_cast<unsigned char>(name.back()) & 0x80) != 0) name.pop_back();
    return name + ": " + Headline(f);
  }

  double X(Nanoseconds time) const {
    return kLeft + kWidth * static_cast<double>(time) / static_cast<double>(iteration_);
  }
  double MemoryY(Bytes bytes) const {
    return kMemoryTop +
           kMemoryHeight * (1 - static_cast<double>(bytes) / static_cast<double>(most_bytes_));
  }
  double MapY(Bytes bytes) const {
    return kMapTop +
           kMapHeight * (1 - static_cast<double>(bytes) / static_cast<double>(top_bytes_));
  }

  void AddPatterns() {
    out_ += "<defs>\n";
    for (const Look& look : looks()) {
      out_ += fmt::format(
          "<pattern id=\"{0}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
          "<rect width=\"6\" height=\"6\" fill=\"{1}\"/><path d=\"{2}\" stroke=\"{3}\" "
          "stroke-width=\"{4}\"/></pattern>\n",
          look.name, look.fill, look.pattern, look.dark, "0.8");
    }
    out_ += "</defs>\n";
  }

  /// The highest value of each column, as a path of steps.
  std::string Steps(const std::vector<MemoryStep>& steps, Bytes MemoryStep::*value) const {
    std::vector<Bytes> highest(At(static_cast<std::int64_t>(kWidth)), 0);
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const Nanoseconds end = k + 1 < steps.size() ? steps[k + 1].time_ns : iteration_;
      const auto first = static_cast<std::int64_t>(X(steps[k].time_ns) - kLeft);
      const auto last = static_cast<std::int64_t>(std::ceil(X(end) - kLeft)) - 1;
      for (std::int64_t x = first; x <= std::max(first, last); ++x) {
        if (x < 0 || x >= std::ssize(highest)) continue;
        highest[At(x)] = std::max(highest[At(x)], steps[k].*value);
      }
    }
    std::string path;
    Bytes current = -1;
    for (std::size_t x = 0; x < highest.size(); ++x) {
      if (highest[x] == current) continue;
      current = highest[x];
      path += path.empty() ? fmt::format("M{} {}", Short(kLeft), Short(MemoryY(current)))
                           : fmt::format("H{}V{}", Short(kLeft + static_cast<double>(x)),
                                         Short(MemoryY(current)));
    }
    return path + fmt::format("H{}", Short(kLeft + kWidth));
  }

  void DrawFrame(double top, double height, Bytes most, const char* title) {
    out_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\n"
        "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n",
        Short(kLeft), Short(top), Short(kWidth), Short(height), Short(kLeft), Short(top - 5),
        title);
    Bytes step = 1;
    while (most / step > 5) step *= 2;
    for (Bytes tick = 0; tick <= most; tick += step) {
      const double y = top + height * (1 - static_cast<double>(tick) / static_cast<double>(most));
      out_ += fmt::format(
          "<path d=\"M{0} {1}h-4\" stroke=\"#888\"/><text x=\"{2}\" y=\"{3}\" "
          "text-anchor=\"end\">{4}</text>\n",
          Short(kLeft), Short(y), Short(kLeft - 7), Short(y + 4), ByteTick(tick));
    }
  }

  void DrawMemory() {
    const auto steps = ListSteps(subject_.plan, subject_.drawn(), rectangles_);
    const std::string with = Steps(steps, &MemoryStep::load_bytes);
    out_ += fmt::format("<path d=\"{}V{}H{}z\" fill=\"#a8cbea\"/>\n", with, Short(MemoryY(0)),
                        Short(kLeft));
    out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#1f5f99\"/>\n", with);
    out_ +=
        fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#444\" stroke-dasharray=\"5 2\"/>\n",
                    Steps(ListStepsWithout(subject_, subject_.drawn()), &MemoryStep::load_bytes));
    DrawFrame(kMemoryTop, kMemoryHeight, most_bytes_, "");
    if (!ShowsLimit()) return;
    const Bytes limit = *subject_.figures.limit_bytes;
    out_ += fmt::format(
        "<path d=\"M{0} {1}h{2}\" stroke=\"#c22f2f\" stroke-width=\"1.6\"/>"
        "<circle cx=\"{3}\" cy=\"{1}\" r=\"6\" fill=\"none\" stroke=\"#c22f2f\" "
        "stroke-width=\"1.6\"/><text x=\"{4}\" y=\"{5}\" fill=\"#c22f2f\" text-anchor=\"end\" "
        "font-weight=\"bold\">limit {6}</text>\n",
        Short(kLeft), Short(MemoryY(limit)), Short(kWidth), Short(kLeft + kWidth - 12),
        Short(kLeft + kWidth - 24), Short(MemoryY(limit) - 4), FormatBytes(limit));
  }

  /// How each variable of the plan looks: an index into looks().
  std::vector<std::size_t> LooksOf() const {
    const plan::Plan& plan = subject_.plan;
    std::vector<std::size_t> choices;
    for (const DecisionRow& row : ListDecisions(subject_)) {
      choices.push_back(static_cast<std::size_t>(row.choice));
    }
    std::vector<std::size_t> result;
    for (std::size_t v = 0; v < plan.problem.variables.size(); ++v) {
      const auto kind = static_cast<std::size_t>(plan.problem.variables[v].kind);
      const std::size_t source = plan.rewriting ? At(plan.rewriting->variable_source[v]) : v;
      result.push_back(subject_.figures.planned() ? choices[source] : kind);
    }
    return result;
  }

  void DrawPaths(const std::vector<std::string>& paths, const char* stroke_width) {
    for (std::size_t k = 0; k < paths.size(); ++k) {
      if (paths[k].empty()) continue;
      const Look& look = looks()[k];
      out_ += fmt::format("<path d=\"{}\" fill=\"url(#{})\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
                          paths[k], look.name, look.dark, stroke_width);
    }
  }

  void DrawMap() {
    const bool together = rectangles_.size() > most_rectangles_;
    if (together) {
      DrawPaths(CellPaths(), "0");
    } else {
      // A border would make what is thin look thicker than it is.
      DrawPaths(RectanglePaths(true), "0");
      DrawPaths(RectanglePaths(false), "0.3");
    }
    DrawFrame(kMapTop, kMapHeight, top_bytes_,
              subject_.measured ? "addresses over time, as measured" : "addresses over time");
    if (together) {
      out_ += fmt::format(
          "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#444\">{} rectangles, drawn together "
          "in cells of {} by {}</text>\n",
          Short(kLeft + kWidth), Short(kMapTop - 5), rectangles_.size(),
          FormatBytes(top_bytes_ / kRows),
          fmt::format("{:.3f} ms", static_cast<double>(iteration_) / 1e6 / kColumns));
    }
    if (!ShowsLimit()) return;
    out_ += fmt::format("<path d=\"M{} {}h{}\" stroke=\"#c22f2f\" stroke-width=\"1.6\"/>\n",
                        Short(kLeft), Short(MapY(*subject_.figures.limit_bytes)), Short(kWidth));
  }

  /// Calls `draw` with each rectangle, or with both of its parts if it goes around the end.
  template <typename Function>
  void ForEachPart(const Function& draw) const {
    for (const Rectangle& r : rectangles_) {
      const Bytes size = subject_.plan.problem.variables[At(r.variable)].size_bytes;
      if (size == 0) continue;
      draw(r, r.begin_ns, std::min(r.end_ns, iteration_), r.offset + size);
      if (r.end_ns > iteration_) draw(r, Nanoseconds{0}, r.end_ns - iteration_, r.offset + size);
    }
  }

  std::vector<std::string> RectanglePaths(bool thin) const {
    std::vector<std::string> paths(looks().size());
    const std::vector<std::size_t> look = LooksOf();
    ForEachPart([&](const Rectangle& r, Nanoseconds begin, Nanoseconds end, Bytes high) {
      const double width = std::max(0.1, X(end) - X(begin));
      const double height = std::max(0.1, MapY(r.offset) - MapY(high));
      if (thin != (width < 1 || height < 1)) return;
      paths[look[At(r.variable)]] +=
          fmt::format("M{} {}h{}v{}h-{}z", Short(X(begin)), Short(MapY(high)), Short(width),
                      Short(height), Short(width));
    });
    return paths;
  }

  /// Each cell looks as what takes most of it does, or is free if that takes most; runs of equal
  /// cells are one rectangle.
  std::vector<std::string> CellPaths() const {
    const std::vector<std::size_t> look = LooksOf();
    constexpr auto kCells = static_cast<std::size_t>(kColumns) * static_cast<std::size_t>(kRows);
    std::vector<float> most(kCells, 0);
    std::vector<float> taken(kCells, 0);
    std::vector<std::uint8_t> winner(kCells, 0xff);
    ForEachPart([&](const Rectangle& r, Nanoseconds begin, Nanoseconds end, Bytes high) {
      const double x0 = (X(begin) - kLeft) / kCell;
      const double x1 = (X(end) - kLeft) / kCell;
      const double y0 = (MapY(high) - kMapTop) / kCell;
      const double y1 = (MapY(r.offset) - kMapTop) / kCell;
      for (int y = std::max(0, static_cast<int>(y0)); y < kRows && y < y1; ++y) {
        for (int x = std::max(0, static_cast<int>(x0)); x < kColumns && x < x1; ++x) {
          const double area = (std::min(x1, x + 1.0) - std::max<double>(x0, x)) *
                              (std::min(y1, y + 1.0) - std::max<double>(y0, y));
          const std::size_t cell = At(y) * static_cast<std::size_t>(kColumns) + At(x);
          taken[cell] += static_cast<float>(area);
          if (area <= most[cell]) continue;
          most[cell] = static_cast<float>(area);
          winner[cell] = static_cast<std::uint8_t>(look[At(r.variable)]);
        }
      }
    });
    const auto look_of = [&](std::size_t cell) {
      return taken[cell] < 0.5F ? std::uint8_t{0xff} : winner[cell];
    };
    std::vector<std::string> paths(looks().size());
    for (int y = 0; y < kRows; ++y) {
      for (int x = 0; x < kColumns;) {
        const std::size_t row = At(y) * static_cast<std::size_t>(kColumns);
        const std::uint8_t what = look_of(row + At(x));
        int end = x;
        while (end < kColumns && look_of(row + At(end)) == what) ++end;
        if (what != 0xff) {
          paths[what] +=
              fmt::format("M{} {}h{}v.5h-{}z", Short(kLeft + x * kCell), Short(kMapTop + y * kCell),
                          Short((end - x) * kCell), Short((end - x) * kCell));
        }
        x = end;
      }
    }
    return paths;
  }

  void DrawTimes() {
    const double whole = static_cast<double>(iteration_) / 1e6;
    double step = std::pow(10, std::floor(std::log10(std::max(whole, 1e-6) / 5)));
    while (whole / step > 10) step *= 2;
    for (int k = 0; k * step <= whole; ++k) {
      const double x = kLeft + kWidth * k * step / whole;
      out_ += fmt::format(
          "<path d=\"M{0} {1}v4\" stroke=\"#888\"/><text x=\"{0}\" y=\"{2}\" "
          "text-anchor=\"middle\">{3:g}{4}</text>\n",
          Short(x), Short(kMapTop + kMapHeight), Short(kMapTop + kMapHeight + 16), k * step,
          k == 0 ? " ms" : "");
    }
  }

  void DrawLegend(double y) {
    double x = kLeft;
    for (const Look& look : looks()) {
      const std::string name =
          std::string(look.name) == "both" ? "swapped and recomputed" : look.name;
      out_ += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"11\" fill=\"url(#{})\" "
          "stroke=\"#666\" stroke-width=\"0.5\"/><text x=\"{}\" y=\"{}\">{}</text>\n",
          Short(x), Short(y - 10), look.name, Short(x + 23), Short(y), name);
      x += 40 + 6.2 * static_cast<double>(name.size());
    }
    out_ += fmt::format(
        "<path d=\"M{} {}h22\" stroke=\"#444\" stroke-dasharray=\"5 2\"/><text x=\"{}\" "
        "y=\"{}\">load without a plan</text>\n",
        Short(x), Short(y - 4), Short(x + 27), Short(y));
    x += 145;
    out_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"11\" fill=\"#a8cbea\" stroke=\"#1f5f99\" "
        "stroke-width=\"0.7\"/><text x=\"{}\" y=\"{}\">{}</text>\n",
        Short(x), Short(y - 10), Short(x + 23), Short(y),
        subject_.figures.planned() ? "with it" : "in the arena");
  }

  const Subject& subject_;
  const std::size_t most_rectangles_;
  const Nanoseconds iteration_;
  const std::vector<Rectangle> rectangles_;
  Bytes top_bytes_ = 0;   // Of the map.
  Bytes most_bytes_ = 0;  // Of the chart.
  std::string out_;
};

}  // namespace

std::string RenderSvg(const Subject& subject, std::size_t most_rectangles) {
  return Drawing(subject, most_rectangles).Render();
}

}  // namespace plimsoll::report
