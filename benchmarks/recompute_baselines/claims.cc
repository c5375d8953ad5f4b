// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <functional>

#include "recompute_baselines/measured.h"

namespace plimsoll::recompute_baselines {
namespace {

/// Overheads closer than this are equal.
constexpr double kSlack = 0.1;

/// In how many cases a claim holds.
struct Count {
  int holds = 0;
  std::vector<std::string> fails{};

  void Add(bool is_true, std::string what) {
    if (is_true) {
      ++holds;
    } else {
      fails.push_back(std::move(what));
    }
  }

  void Print(const std::string& claim) const {
    fmt::print("{}: {} of {}\n", claim, holds, holds + static_cast<int>(fails.size()));
    std::string line;
    for (const std::string& fail : fails) {
      if (line.size() + fail.size() > 88) {
        fmt::print("    not {}\n", line);
        line.clear();
      }
      line += (line.empty() ? "" : ", ") + fail;
    }
    if (!line.empty()) fmt::print("    not {}\n", line);
  }
};

/// Compares overheads wherever a planner fits.
Count CompareOverheads(
    const std::vector<Measured>& all, const std::string& planner,
    const std::function<std::optional<double>(const Measured&, std::size_t)>& at_most) {
  Count count;
  for (const Measured& one : all) {
    for (std::size_t k = 0; k < kPercents.size(); ++k) {
      const std::optional<double> overhead = one.overheads.at(planner)[k];
      const std::optional<double> other = at_most(one, k);
      if (!overhead || !other) continue;
      count.Add(*overhead <= *other + kSlack, fmt::format("{} at {} %", one.trace, kPercents[k]));
    }
  }
  return count;
}

/// At most another planner's, where both fit.
Count CompareWith(const std::vector<Measured>& all, const std::string& planner,
                  const std::string& other) {
  return CompareOverheads(
      all, planner, [&](const Measured& one, std::size_t k) { return one.overheads.at(other)[k]; });
}

/// At most a forward phase more.
Count CompareWithForward(const std::vector<Measured>& all, const std::string& planner) {
  return CompareOverheads(all, planner, [](const Measured& one, std::size_t /*k*/) {
    return std::optional(one.forward_percent);
  });
}

Count CompareLowest(const std::vector<Measured>& all, const std::string& planner,
                    const std::string& other) {
  Count count;
  for (const Measured& one : all) {
    count.Add(one.lowest.at(planner) <= one.lowest.at(other), one.trace);
  }
  return count;
}

}  // namespace

void PrintClaims(const std::vector<Measured>& all) {
  fmt::print("\nWhat the papers claim, and in how many cases it holds here\n\n");
  CompareWithForward(all, "memonger").Print("memonger takes at most one forward more");
  CompareWithForward(all, "checkpoint-blocks")
      .Print("checkpoint-blocks takes at most one forward more");
  CompareLowest(all, "superneurons", "vdnn-all").Print("superneurons goes as low as vdnn-all");
  CompareLowest(all, "superneurons", "superneurons-swap")
      .Print("superneurons goes as low as its swapping alone");
  CompareLowest(all, "superneurons", "superneurons-recompute")
      .Print("superneurons goes as low as its recomputation alone");
  CompareWith(all, "superneurons", "vdnn-all").Print("superneurons is as fast as vdnn-all");
  CompareWith(all, "capuchin", "vdnn-all").Print("capuchin is as fast as vdnn-all");
  CompareWith(all, "capuchin", "memonger").Print("capuchin is as fast as memonger");
  CompareWith(all, "dtr", "memonger").Print("dtr is as fast as memonger");
  for (const auto& [planner, overheads] : all.front().overheads) {
    if (planner == "joint") continue;
    CompareWith(all, "joint", planner).Print("joint is as fast as " + planner);
  }
}

}  // namespace plimsoll::recompute_baselines
