// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "plimsoll/planners/planner.h"

namespace plimsoll::planners {

/// The four priority scores of AutoSwap (paper 001, section IV-B).
enum class Score { kDoa, kAoa, kWdoa, kSwdoa };
inline constexpr int kScores = 4;

/// The gaps of an iteration with their scores.
struct ScoredGaps {
  std::vector<plan::Gap> gaps;
  std::vector<std::array<double, kScores>> scores;  ///< Per gap, by Score.
};

/// Lists and scores the candidates: gaps of variables over the threshold that lie across the peak,
/// in that swapping them lowers it. SWDOA is an order, as a rank: the first chosen has the largest.
ScoredGaps ScoreCandidates(const Question& question);

/// Chooses by decreasing score until the load is within the limit: first among the candidates, and
/// where these do not suffice (below load_min), among all gaps across the peak that is left. In the
/// order of their variables: who chooses the same gaps decides the same.
plan::Decision Choose(const Question& question, const std::vector<plan::Gap>& gaps,
                      const std::vector<double>& scores, Bytes load_limit_bytes);

}  // namespace plimsoll::planners
