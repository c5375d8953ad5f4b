// SPDX-License-Identifier: Apache-2.0
//
// Baselines that swap by the role of a variable:
//
//   vdnn-all   every feature map: each gap from a forward op to a backward one
//   vdnn-conv  only those that a convolution reads in forward
//   tflms      feature maps in the order of the distance, in ops, between the two accesses (TFLMS
//              rewires a graph where it exceeds a bound), as few as bring the load under the limit
//   geeps      every gap of every variable, weights included: GeePS keeps only what is in use, and
//              double buffering is what the schedule makes of it
//
// What they leave out: vDNN's and GeePS's synchronisation after each layer; the schedule is ours.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/autoswap.h"
#include "plimsoll/planners/planner.h"

namespace plimsoll::planners {
namespace {

using plan::Gap;

std::vector<Gap> ListFeatureMaps(const Question& question) {
  const plan::Problem& problem = question.problem;
  std::vector<Gap> gaps = plan::ListGaps(problem, question.options.least_bytes);
  std::erase_if(gaps, [&](const Gap& gap) {
    return problem.variables[At(gap.variable)].persistent() ||
           problem.ops[At(gap.after)].phase != trace::Phase::kForward ||
           problem.ops[At(gap.before)].phase == trace::Phase::kForward;
  });
  return gaps;
}

/// Decides the same whatever the limit.
Decider Always(std::vector<Gap> gaps) {
  return [decision = plan::Decision{std::move(gaps)}](Bytes /*load_limit*/) { return decision; };
}

/// Per variable: whether a convolution reads it in the forward phase.
std::vector<bool> FindConvolutionInputs(const plan::Problem& problem) {
  std::vector<bool> inputs(problem.variables.size(), false);
  for (const plan::Op& op : problem.ops) {
    const std::string& name = problem.op_names[At(op.name)];
    if (op.phase != trace::Phase::kForward || name.find("conv") == std::string::npos) continue;
    for (const plan::Operand& operand : problem.reads(op)) inputs[At(operand.variable)] = true;
  }
  return inputs;
}

}  // namespace

Decider DecideVdnnAll(const Question& question) { return Always(ListFeatureMaps(question)); }

Decider DecideVdnnConv(const Question& question) {
  std::vector<Gap> gaps = ListFeatureMaps(question);
  const std::vector<bool> inputs = FindConvolutionInputs(question.problem);
  std::erase_if(gaps, [&](const Gap& gap) { return !inputs[At(gap.variable)]; });
  return Always(std::move(gaps));
}

Decider DecideTflms(const Question& question) {
  std::vector<Gap> gaps = ListFeatureMaps(question);
  std::vector<double> distances;
  for (const Gap& gap : gaps) distances.push_back(static_cast<double>(gap.before - gap.after));
  return [&question, gaps = std::move(gaps), distances](Bytes load_limit) {
    plan::Decision decision = Choose(question, gaps, distances, load_limit);
    // TFLMS knows nothing but feature maps, of which all come before anything else.
    if (decision.swapped.size() > gaps.size()) decision.swapped.resize(gaps.size());
    return decision;
  };
}

Decider DecideGeeps(const Question& question) {
  return Always(plan::ListGaps(question.problem, question.options.least_bytes));
}

}  // namespace plimsoll::planners
