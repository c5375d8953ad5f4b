// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/sparkline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace plimsoll::report {

std::string DrawSparkline(const std::vector<MemoryStep>& steps, Nanoseconds iteration_ns,
                          Bytes most_bytes, std::size_t columns) {
  constexpr std::array<const char*, 9> kHeights = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<Bytes> highest(columns, 0);
  const double length = static_cast<double>(std::max<Nanoseconds>(iteration_ns, 1));
  const auto column = [&](Nanoseconds time) {
    const double at = static_cast<double>(time) / length * static_cast<double>(columns);
    return std::min(columns - 1, static_cast<std::size_t>(std::max(0.0, at)));
  };
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const Nanoseconds end = k + 1 < steps.size() ? steps[k + 1].time_ns : iteration_ns;
    const Nanoseconds last = std::max(steps[k].time_ns, end - 1);
    for (std::size_t x = column(steps[k].time_ns); x <= column(last); ++x) {
      highest[x] = std::max(highest[x], steps[k].load_bytes);
    }
  }
  std::string line;
  for (const Bytes bytes : highest) {
    const double share =
        static_cast<double>(bytes) / static_cast<double>(std::max<Bytes>(most_bytes, 1));
    const auto height = static_cast<std::size_t>(share * 8 + 0.999);
    line += kHeights[std::min<std::size_t>(height, 8)];
  }
  return line;
}

std::string RenderForTerminal(const Subject& subject) {
  const Figures& figures = subject.figures;
  const CommandTimes& times = subject.drawn();
  const Bytes most = std::max(figures.peak_load_bytes, figures.peak_load_planned_bytes);
  std::string text = Headline(figures) + "\n\n";
  const auto line = [&](const char* name, const std::vector<MemoryStep>& steps, Bytes peak) {
    text += fmt::format("{:<17} {} {}\n", name, DrawSparkline(steps, times.iteration_ns, most),
                        FormatBytes(peak));
  };
  line(figures.planned() ? "without a plan" : "load", ListStepsWithout(subject, times),
       figures.peak_load_bytes);
  if (figures.planned()) {
    line(subject.measured ? "with it, measured" : "with it",
         ListSteps(subject.plan, times, ListRectangles(subject, times)),
         figures.peak_load_planned_bytes);
  }
  return text;
}

}  // namespace plimsoll::report
