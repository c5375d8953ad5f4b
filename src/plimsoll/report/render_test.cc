// SPDX-License-Identifier: Apache-2.0
// The page, the Perfetto trace and the SVG.
#include <gtest/gtest.h>

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
  EXPECT_EQ(counters["limit"], 2);
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
