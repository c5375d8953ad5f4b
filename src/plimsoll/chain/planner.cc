// SPDX-License-Identifier: Apache-2.0
//
// The registry of planners. To add one, declare it in planner.h and name it here.
#include "plimsoll/chain/planner.h"

namespace plimsoll::chain {

const std::vector<Planner>& Planners() {
  static const std::vector<Planner> planners = {
      {.name = "vdnn",
       .summary = "inputs of slow ops, every threshold, all of them or every other one",
       .source = "vDNN++ as in paper 002, section 6.1",
       .plan = PlanVdnn},
      {.name = "tflms",
       .summary = "the first activations, called back some layers ahead, all parameters",
       .source = "TFLMS as in paper 002, section 6.1",
       .plan = PlanTflms},
      {.name = "autoswap",
       .summary = "the highest of four weighted scores, weights drawn at random",
       .source = "AutoSwap, paper 001, section IV, as in paper 002, section 6.1",
       .plan = PlanAutoSwap},
      {.name = "greedy",
       .summary = "the first activations, as few as suffice",
       .source = "Greedy, paper 002, section 4",
       .plan = PlanGreedy},
      {.name = "dynprog",
       .summary = "optimal for interruptible transfers in 500 slots of memory",
       .source = "DynProg, paper 002, section 5",
       .plan = PlanDynProg},
      {.name = "chainsearch",
       .summary = "local search over sets and orders from all of the above",
       .source = "Plimsoll",
       .plan = PlanChainSearch},
      {.name = "rotor",
       .summary = "recomputes only: optimal checkpointing in slots of memory",
       .source = "Herrmann, Beaumont et al. 2019, Optimal checkpointing for heterogeneous chains",
       .plan = PlanRotor,
       .recomputes = true},
      {.name = "pofo",
       .summary = "offloads and recomputes: runs of stages by rotor, the rest kept or offloaded",
       .source = "POFO, Beaumont, Eyraud-Dubois, Shilova, NeurIPS 2021",
       .plan = PlanPofo,
       .recomputes = true},
  };
  return planners;
}

const Planner* FindPlanner(std::string_view name) {
  for (const Planner& planner : Planners()) {
    if (planner.name == name) return &planner;
  }
  return nullptr;
}

}  // namespace plimsoll::chain
