// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/page.h"

#include <map>
#include <nlohmann/json.hpp>

#include "plimsoll/base/check.h"
#include "plimsoll/report/columns.h"
#include "plimsoll/report/page_assets_internal.h"

namespace plimsoll::report {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

Json ToJson(const std::vector<CurvePoint>& points) {
  Json json = Json::array();
  for (const CurvePoint& point : points) json.push_back({point.limit, point.overhead});
  return json;
}

Json ToJson(const CurveChart& chart) {
  Json curves = Json::array();
  for (const Curve& curve : chart.curves) {
    curves.push_back({{"name", curve.name}, {"points", ToJson(curve.points)}});
  }
  return {{"curves", curves},
          {"bound", ToJson(chart.bound)},
          {"smallest_limit", chart.smallest_limit ? Json(*chart.smallest_limit) : Json(nullptr)}};
}

std::string ScriptElement(const std::string& id, const std::string& type,
                          const std::string& content) {
  return "<script type=\"" + type + "\" id=\"" + id + "\">" + content + "</script>\n";
}

/// Fills in a template: {{name}} becomes the value of that name.
std::string Fill(std::string_view text, const std::map<std::string, std::string_view>& values) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("{{");
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) return out;
    const std::size_t end = text.find("}}", begin);
    PLIMSOLL_CHECK(end != std::string_view::npos, "the page has a field without an end");
    const auto value = values.find(std::string(text.substr(begin + 2, end - begin - 2)));
    PLIMSOLL_CHECK(value != values.end(), "the page has a field that nobody fills");
    out += value->second;
    text.remove_prefix(end + 2);
  }
}

}  // namespace

bool HasPage() { return !kPageLibrary.empty(); }

std::string RenderPage(const std::vector<const Subject*>& subjects,
                       const std::optional<CurveChart>& curve) {
  PLIMSOLL_CHECK(HasPage() && !subjects.empty() && subjects.size() <= 2, "nothing to render");
  std::string data;
  Json figures = Json::array();
  for (std::size_t k = 0; k < subjects.size(); ++k) {
    figures.push_back(Json::parse(FiguresJson(subjects[k]->figures)));
    data += ScriptElement("data-" + std::to_string(k), "application/x-plimsoll",
                          Base64(Deflate(PackSubject(*subjects[k]))));
  }
  data += ScriptElement("figures", "application/json", EscapeForScript(Dump(figures)));
  data += ScriptElement("curve", "application/json",
                        EscapeForScript(curve ? Dump(ToJson(*curve)) : "null"));
  const Figures& first = subjects.front()->figures;
  // Through JSON, bytes that are not UTF-8 have been replaced.
  const std::string name = figures[0][first.model.empty() ? "name" : "model"].get<std::string>();
  const std::string title = EscapeHtml(name);
  const std::string headline = EscapeHtml(Headline(first));
  return Fill(kPageHtml, {{"title", title},
                          {"headline", headline},
                          {"style", kPageStyle},
                          {"library", kPageLibrary},
                          {"data", data},
                          {"code", kPageCode}});
}

}  // namespace plimsoll::report
