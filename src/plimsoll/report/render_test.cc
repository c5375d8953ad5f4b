// SPDX-License-Identifier: Apache-2.0
// The page, the Perfetto trace and the SVG.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "plimsoll/report/page.h"
#include "plimsoll/report/perfetto.h"
#include "plimsoll/report/subject_for_test.h"
#include "plimsoll/report/svg.h"

namespace plimsoll::report {
namespace {

using Json = nlohmann::json;

std::size_t Count(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

/// Markup, a control character, a byte that is not UTF-8, and the end of a script.
constexpr const char* kHostile = "%3Cimg%20src=x%3E%07%FF%3C/script%3E";

TEST(SubjectTest, TheHeadlineIsASentence) {
  Figures figures = SwappingSubject().figures;
  EXPECT_EQ(Headline(figures),
            "Trains in 10 B instead of 15 B, 29.4 % slower; at best 5.9 % slower is possible.");
  figures.measured_ns = 51000;
  EXPECT_EQ(Headline(figures),
            "Trains in 10 B instead of 15 B, 29.4 % slower by prediction and 50.0 % slower when "
            "measured; at best 5.9 % slower is possible.");
  figures.measured_ns.reset();
  figures.iteration_ns = figures.bound_ns = figures.unlimited_ns;
  EXPECT_EQ(Headline(figures), "Trains in 10 B instead of 15 B, as fast as without a limit.");
  figures.limit_bytes.reset();
  EXPECT_EQ(Headline(figures),
            "An iteration takes 0.0 ms and 15 B of memory at its peak; all of it fits in an arena "
            "of 15 B.");
}

TEST(SubjectTest, FiguresThatAreUnknownAreNull) {
  const Json json = Json::parse(FiguresJson(SwappingSubject().figures));
  EXPECT_EQ(json.at("limit_bytes"), 10);
  EXPECT_TRUE(json.at("model").is_null());
  EXPECT_TRUE(json.at("overhead_measured").is_null());
  EXPECT_TRUE(json.at("planning_seconds").is_null());
}

TEST(PageTest, PacksWhatThePageReads) {
  const std::string packed = PackSubject(SwappingSubject());
  const Json head = Json::parse(packed.substr(0, packed.find('\n')));
  EXPECT_EQ(head.at("names"), Json({"matmul", "relu"}));
  std::map<std::string, std::size_t> counts;
  for (const Json& column : head.at("columns")) counts[column[0]] = column[1];
  EXPECT_EQ(counts.at("rectangle.begin"), 4U);
  EXPECT_EQ(counts.at("command.queue"), 5U);
  EXPECT_EQ(counts.at("predicted.stall.start"), 2U);
  EXPECT_EQ(counts.count("measured.start"), 0U);
}

TEST(PageTest, IsOneFileInWhichNamesAreText) {
  if (!HasPage()) GTEST_SKIP() << "built without d3";
  Subject subject = SwappingSubject(kHostile);
  subject.figures.model = "</script><script>alert(1)</script>";
  const Subject plain = SwappingSubject();
  const std::string page = RenderPage({&subject}, std::nullopt);
  EXPECT_EQ(Count(page, "<script"), Count(RenderPage({&plain}, std::nullopt), "<script"));
  EXPECT_EQ(Count(page, "alert(1)</script>"), 0U);
  EXPECT_EQ(Count(page, "<img"), 0U);
  EXPECT_EQ(Count(page, "src=\"http"), 0U);
  EXPECT_EQ(Count(page, "{{"), Count(page, "{{title}}"));
  const std::string two = RenderPage({&plain, &subject}, CurveChart{});
  EXPECT_NE(two.find("id=\"data-1\""), std::string::npos);
}

TEST(PerfettoTest, HasATrackForEachQueueAndCounters) {
  Subject subject = SwappingSubject(kHostile);
  subject.measured = subject.predicted;
  const Json trace = Json::parse(RenderPerfetto(subject));
  std::map<std::string, int> slices;
  std::map<std::string, int> counters;
  std::map<std::string, int> threads;
  for (const Json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase == "X") {
      ++slices[event.at("cat")];
      EXPECT_GE(event.at("dur").get<double>(), 0);
    }
    if (phase == "C") ++counters[event.at("name")];
    if (phase == "M" && event.at("name") == "thread_name") ++threads[event["args"]["name"]];
  }
  EXPECT_EQ(slices["compute"], 6);
  EXPECT_EQ(slices["copy-out"], 2);
  EXPECT_EQ(slices["copy-in"], 2);
  EXPECT_EQ(slices["stall"], 4);
  EXPECT_EQ(threads["copy-in"], 2);
  EXPECT_GT(counters["load"], 0);
  EXPECT_GT(counters["footprint in use"], 0);
  EXPECT_EQ(counters["limit"], 4);
}

/// A run that was slower than predicted, and whose copy out began in the iteration before.
Subject MeasuredSubject() {
  Subject subject = SwappingSubject(kHostile);
  subject.measured = subject.predicted;
  subject.measured->times = {
      64000, {0, 14000, 55000, -3000, 40000}, {9000, 40000, 64000, 5000, 55000}};
  subject.measured->stalls = {{1, 3, 9000, 5000}, {2, 4, 40000, 15000}};
  return subject;
}

TEST(PerfettoTest, CountersOfAMeasuredRunAreAtItsTimes) {
  const Json trace = Json::parse(RenderPerfetto(MeasuredSubject()));
  std::map<int, double> last;
  std::map<int, double> first_op;
  for (const Json& event : trace.at("traceEvents")) {
    const int process = event.at("pid");
    if (event.at("ph") == "C" && event.at("name") == "limit") last[process] = event.at("ts");
    if (event.at("ph") == "X" && event.at("cat") == "compute") {
      first_op.try_emplace(process, event.at("ts"));
    }
  }
  // Times begin with the copy; both iterations begin at the same moment.
  EXPECT_EQ(first_op, (std::map<int, double>{{1, 3}, {2, 3}}));
  EXPECT_EQ(last, (std::map<int, double>{{1, 47}, {2, 67}}));
}

using Track = std::pair<int, int>;
using Slice = std::pair<double, double>;

/// The slices of each track, in the order of their beginnings.
std::map<Track, std::vector<Slice>> ListSlices(const Json& trace) {
  std::map<Track, std::vector<Slice>> slices;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double start = event.at("ts");
    slices[{event.at("pid"), event.at("tid")}].emplace_back(start,
                                                            start + event.at("dur").get<double>());
  }
  for (auto& [track, list] : slices) std::sort(list.begin(), list.end());
  return slices;
}

// What importers of the Trace Event Format ask for. scripts/test_report.sh asks Perfetto's own.
TEST(PerfettoTest, EveryEventHasWhatItsPhaseNeeds) {
  const Json trace = Json::parse(RenderPerfetto(MeasuredSubject()));
  for (const Json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    EXPECT_TRUE(event.at("name").is_string()) << event;
    EXPECT_TRUE(event.at("pid").is_number_integer()) << event;
    EXPECT_TRUE(phase == "C" || event.at("tid").is_number_integer()) << event;
    EXPECT_TRUE(phase == "M" || event.at("ts").get<double>() >= 0) << event;
    if (phase == "X") {
      EXPECT_GE(event.at("dur").get<double>(), 0) << event;
    } else if (phase == "C") {
      for (const Json& value : event.at("args")) EXPECT_TRUE(value.is_number()) << event;
    } else if (phase == "s" || phase == "f") {
      EXPECT_TRUE(event.at("id").is_number_integer()) << event;
    } else {
      EXPECT_EQ(phase, "M") << event;
    }
  }
}

TEST(PerfettoTest, SlicesOfATrackDoNotOverlapAndArrowsAreBoundToThem) {
  const Json trace = Json::parse(RenderPerfetto(MeasuredSubject()));
  const auto slices = ListSlices(trace);
  EXPECT_EQ(slices.size(), 8U);
  for (const auto& [track, list] : slices) {
    // Perfetto drops what begins within another slice of its track and ends behind it.
    for (std::size_t k = 1; k < list.size(); ++k) EXPECT_GE(list[k].first, list[k - 1].second);
  }
  std::map<int, std::string> arrows;
  for (const Json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase != "s" && phase != "f") continue;
    arrows[event.at("id")] += phase;
    const double time = event.at("ts");
    const auto& list = slices.at({event.at("pid"), event.at("tid")});
    EXPECT_TRUE(std::any_of(list.begin(), list.end(), [&](const Slice& slice) {
      return slice.first <= time && time < slice.second;
    })) << event;
  }
  EXPECT_FALSE(arrows.empty());
  for (const auto& [id, phases] : arrows) EXPECT_EQ(phases, "sf") << id;
}

TEST(SvgTest, SaysWhenItShowsMeasuredTimes) {
  EXPECT_NE(RenderSvg(MeasuredSubject()).find("addresses over time, as measured"),
            std::string::npos);
  EXPECT_EQ(RenderSvg(SwappingSubject()).find("measured"), std::string::npos);
}

TEST(SvgTest, LongTitlesTakeSeveralLines) {
  Subject subject = MeasuredSubject();
  subject.figures.model = "resnet50 b64";
  EXPECT_EQ(Count(RenderSvg(subject), "font-size=\"13\""), 1U);
  subject.figures.measured_ns = 64000;
  const std::string svg = RenderSvg(subject);
  EXPECT_EQ(Count(svg, "font-size=\"13\""), 2U);
  EXPECT_NE(svg.find("translate(0 16)"), std::string::npos);
}

TEST(SvgTest, DrawsEachRectangleOrSaysThatItDoesNot) {
  Subject subject = SwappingSubject();
  subject.figures.model = "<b>&";
  const std::string svg = RenderSvg(subject);
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_NE(svg.find("limit 10 B"), std::string::npos);
  EXPECT_NE(svg.find("&lt;b&gt;&amp;: Trains"), std::string::npos);
  EXPECT_EQ(svg.find("drawn together"), std::string::npos);
  const std::string cells = RenderSvg(subject, 2);
  EXPECT_NE(cells.find("4 rectangles, drawn together in cells"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::report
