// SPDX-License-Identifier: Apache-2.0
//
// `checkpoint-blocks`: what users of torch.utils.checkpoint write by hand. Every block of the
// network is checkpointed: its input is kept, all inside is dropped, and backward runs the block
// again. It ignores the limit, as they do.
//
// A trace knows no modules, so blocks are found. Cuts across which a single map lies are the joints
// of the network. Between two joints next to each other there is either a block, in which paths
// branch, as in a residual network, or a single layer. A run of single layers is divided evenly
// into about as many blocks as each has layers, as checkpoint_sequential() is used.
//
//     joints     ●──●──●──●────────────────●────────────────●──●
//     blocks     ├─────┼──┼── residual ────┼── residual ────┼──┤
//
// Different from what is written by hand: networks whose joints are few (skip connections across
// the whole network, dense connections) have few and large blocks, where a user would know better.
#include <cmath>
#include <set>
#include <vector>

#include "plimsoll/planners/forward_internal.h"

namespace plimsoll::planners {
namespace {

/// Cuts across which one map lies; of several with the same map, the last.
std::vector<const Cut*> ListJoints(const std::vector<Cut>& cuts) {
  std::vector<const Cut*> joints;
  for (const Cut& cut : cuts) {
    if (cut.count != 1) continue;
    const bool same = !joints.empty() && joints.back()->across == cut.across;
    if (same) joints.pop_back();
    joints.push_back(&cut);
  }
  return joints;
}

/// How many layers, ops that make maps, there are behind one joint and up to the next.
std::size_t CountLayers(const Cut& from, const Cut& to, const std::vector<FeatureMap>& maps) {
  std::set<plan::OpIndex> layers;
  for (const FeatureMap& map : maps) {
    if (map.made > from.after && map.made <= to.after) layers.insert(map.made);
  }
  return layers.size();
}

/// Takes so many of a run of joints that it is divided evenly; always the last.
void DivideRun(const std::vector<const Cut*>& run, std::vector<const Cut*>* chosen) {
  if (run.empty()) return;
  const auto blocks =
      static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(run.size()))));
  for (std::size_t k = 1; k <= blocks; ++k) chosen->push_back(run[run.size() * k / blocks - 1]);
}

/// The joints at which a block begins.
std::vector<const Cut*> ChooseJoints(const std::vector<const Cut*>& joints,
                                     const std::vector<FeatureMap>& maps) {
  std::vector<const Cut*> chosen;
  std::vector<const Cut*> run;
  for (std::size_t k = 0; k < joints.size(); ++k) {
    const bool is_block = k > 0 && CountLayers(*joints[k - 1], *joints[k], maps) > 1;
    if (is_block) {
      DivideRun(run, &chosen);
      run.clear();
      chosen.push_back(joints[k]);
    } else {
      run.push_back(joints[k]);
    }
  }
  DivideRun(run, &chosen);
  return chosen;
}

}  // namespace

Chooser ChooseCheckpointBlocks(const Question& question, JointEvaluator* evaluator) {
  const std::vector<FeatureMap> maps = ListFeatureMaps(question, *evaluator);
  const std::vector<Cut> cuts = ListCuts(question, maps);
  const std::vector<const Cut*> chosen = ChooseJoints(ListJoints(cuts), maps);
  Offer offer = KeepAll(*evaluator);
  if (!chosen.empty()) offer = DropBetween(chosen, chosen.back()->after, maps, *evaluator);
  return [offer](Bytes /*load_limit*/) { return offer; };
}

}  // namespace plimsoll::planners
