// SPDX-License-Identifier: Apache-2.0
//
// `superneurons`: Wang et al., "SuperNeurons: dynamic GPU memory management for training deep
// neural networks", PPoPP 2018; and, as `superneurons-swap` and `superneurons-recompute`, the other
// two of the three modes that papers 000 and 001 run it in.
//
//   swap        the outputs of checkpoint layers (convolutions and what else is expensive) go to
//               the host, the least recently used first, as few as will do: their tensor cache.
//               Feature maps are last used in the order of forward, so the first made go first
//   recompute   the outputs of all other layers (pooling, activations, normalisation) are dropped
//               and rebuilt from the checkpoint before them: each segment once, "speed-centric",
//               where that fits, else every layer from the checkpoint anew, "memory-centric".
//               Where paths join, one of which comes from another segment, a segment ends
//   both        recompute, then swap
//
// Reproduced: which layers do what, the order of the cache, both ways to recompute. Different: the
// cost-aware choice between these is made for the iteration, not for each segment; copies come just
// in time by the common schedule, not one checkpoint ahead; matrix products and attention count as
// checkpoint layers, as fully connected ones do in the paper, and are swapped like convolutions,
// since networks without convolutions have nothing else. Left out: the choice of convolution
// algorithms by what memory is free.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/forward_internal.h"

namespace plimsoll::planners {
namespace {

bool IsExpensive(const std::string& op_name) {
  constexpr std::array<std::string_view, 5> kParts = {"conv", "mm", "attention", "rnn", "linear"};
  return std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) {
    return op_name.find(part) != std::string::npos;
  });
}

/// Says which maps are dropped: those that cheap layers make of what is there.
class Segments {
 public:
  Segments(const Question& question, const std::vector<plan::Gap>& gaps)
      : problem_(question.problem),
        least_bytes_(question.options.least_bytes),
        gaps_(gaps),
        lineage_(question.problem) {}

  /// To be asked in the order in which maps are made.
  bool IsDropped(const FeatureMap& map) {
    const plan::Gap& gap = gaps_[map.gap];
    if (!map.droppable || !IsCheap(lineage_.After(gap.variable, gap.after), gap.before)) {
      return false;
    }
    dropped_.insert(map.variable);
    return true;
  }

 private:
  bool IsCheap(Content content, plan::OpIndex at) const {
    for (std::int32_t k = 0; k < content.version; ++k) {
      const plan::OpIndex writer = lineage_.writers(content.variable)[At(k)];
      if (IsExpensive(problem_.op_names[At(problem_.ops[At(writer)].name)])) return false;
      if (EndsSegment(writer)) return false;
      for (const Content& input : lineage_.inputs(writer)) {
        if (input.variable == content.variable || lineage_.IsThere(input, at)) continue;
        if (!IsCheap(input, at)) return false;
      }
    }
    return true;
  }

  /// Where paths join, and one of them comes from a dropped map.
  bool EndsSegment(plan::OpIndex op) const {
    std::set<plan::VariableIndex> paths;
    bool is_far = false;
    for (const Content& input : lineage_.inputs(op)) {
      const plan::Variable& variable = problem_.variables[At(input.variable)];
      if (variable.persistent() || variable.size_bytes < least_bytes_) continue;
      paths.insert(input.variable);
      is_far = is_far || dropped_.contains(input.variable);
    }
    return is_far && paths.size() > 1;
  }

  const plan::Problem& problem_;
  const Bytes least_bytes_;
  const std::vector<plan::Gap>& gaps_;
  const Lineage lineage_;
  std::set<plan::VariableIndex> dropped_;
};

/// The three modes.
class SuperNeurons {
 public:
  SuperNeurons(const Question& question, JointEvaluator* evaluator, bool swaps, bool recomputes)
      : question_(question), evaluator_(evaluator) {
    Segments segments(question, evaluator->gaps());
    std::vector<std::pair<plan::OpIndex, std::size_t>> checkpoints;
    bases_.push_back(KeepAll(*evaluator));
    Offer cheap = KeepAll(*evaluator);
    for (const FeatureMap& map : ListFeatureMaps(question, *evaluator)) {
      if (segments.IsDropped(map)) {
        cheap.choices[map.gap] = Choice::kDrop;
      } else if (swaps) {
        checkpoints.emplace_back(map.last, map.gap);
      }
    }
    std::sort(checkpoints.begin(), checkpoints.end());
    for (const auto& [last, gap] : checkpoints) by_age_.push_back(gap);
    if (!recomputes) return;
    bases_.push_back(cheap);
    cheap.horizon = 0;
    bases_.push_back(cheap);
  }

  Offer Choose(Bytes load_limit) {
    std::pair<std::size_t, std::size_t> lowest = {0, 0};
    for (std::size_t base = 0; base < bases_.size(); ++base) {
      // Nothing is swapped unless everything cheap is recomputed.
      const bool last_resort = base > 0 || bases_.size() == 1;
      const std::size_t most = last_resort ? by_age_.size() : 0;
      if (Peak(base, most) <= load_limit) return Make(base, FindFewest(base, most, load_limit));
      if (Peak(base, most) < Peak(lowest.first, lowest.second)) lowest = {base, most};
    }
    return Make(lowest.first, lowest.second);
  }

 private:
  Offer Make(std::size_t base, std::size_t swapped) const {
    Offer offer = bases_[base];
    for (std::size_t k = 0; k < swapped; ++k) offer.choices[by_age_[k]] = Choice::kSwap;
    return offer;
  }

  Bytes Peak(std::size_t base, std::size_t swapped) {
    const auto [known, is_new] = peaks_.try_emplace({base, swapped}, kMaxBytes);
    if (!is_new) return known->second;
    const Offer offer = Make(base, swapped);
    JointState state;
    state.choices = offer.choices;
    state.horizon = offer.horizon;
    if (evaluator_->Evaluate(&state)) known->second = PeakOf(question_, state);
    return known->second;
  }

  /// The fewest swaps that will do, by bisection: more of them never raise the load by much.
  std::size_t FindFewest(std::size_t base, std::size_t most, Bytes load_limit) {
    std::size_t least = 0;
    while (least < most) {
      const std::size_t middle = least + (most - least) / 2;
      if (Peak(base, middle) <= load_limit) {
        most = middle;
      } else {
        least = middle + 1;
      }
    }
    return most;
  }

  const Question& question_;
  JointEvaluator* const evaluator_;
  std::vector<Offer> bases_;         // Nothing; recomputed speed-centric; memory-centric.
  std::vector<std::size_t> by_age_;  // Gaps of checkpoints, the least recently used first.
  std::map<std::pair<std::size_t, std::size_t>, Bytes> peaks_;  // Of what has been looked at.
};

Chooser ChooseMode(const Question& question, JointEvaluator* evaluator, bool swaps,
                   bool recomputes) {
  const auto mode = std::make_shared<SuperNeurons>(question, evaluator, swaps, recomputes);
  return [mode](Bytes load_limit) { return mode->Choose(load_limit); };
}

}  // namespace

Chooser ChooseSuperNeurons(const Question& question, JointEvaluator* evaluator) {
  return ChooseMode(question, evaluator, true, true);
}

Chooser ChooseSuperNeuronsSwap(const Question& question, JointEvaluator* evaluator) {
  return ChooseMode(question, evaluator, true, false);
}

Chooser ChooseSuperNeuronsRecompute(const Question& question, JointEvaluator* evaluator) {
  return ChooseMode(question, evaluator, false, true);
}

}  // namespace plimsoll::planners
