// SPDX-License-Identifier: Apache-2.0
//
// The registry of planners. To add one, declare it in planner.h and name it here.
#include "plimsoll/place/planner.h"

namespace plimsoll::place {

const std::vector<Planner>& Planners() {
  static const std::vector<Planner> planners = {
      {.name = "cudamalloc",
       .summary = "no pool: pages for each variable while it lives; the peak load, the ideal",
       .source = "CUDA runtime, cudaMalloc; baseline of paper 001, table I",
       .online = true,
       .place = PlaceCudaMalloc},
      {.name = "caffe",
       .summary = "no sharing: each variable in a place of its own",
       .source = "Caffe",
       .online = false,
       .place = PlaceCaffe},
      {.name = "cnmem",
       .summary = "online best fit in one pool, 512-byte blocks",
       .source = "NVIDIA CnMem; baseline of paper 001, table I",
       .online = true,
       .place = PlaceCnmem},
      {.name = "bfc",
       .summary = "online best fit in one region, chunks split only if much is left over",
       .source = "TensorFlow BFCAllocator, allow_growth off",
       .online = true,
       .place = PlaceBfc},
      {.name = "caching",
       .summary = "online best fit in segments that are never returned",
       .source = "PyTorch CUDACachingAllocator, default settings",
       .online = true,
       .place = PlaceCaching},
      {.name = "firstfit",
       .summary = "offline, largest first, each in the lowest hole that fits",
       .source = "SmartPool first-fit, paper 001, section III-C",
       .online = false,
       .place = PlaceFirstFit},
      {.name = "bestfit",
       .summary = "offline, largest first, each in the smallest hole that fits",
       .source = "SmartPool best-fit (its default), paper 001, section III-C",
       .online = false,
       .place = PlaceBestFit},
      {.name = "tight",
       .summary = "offline search for the smallest footprint within a time budget; the default",
       .source = "Plimsoll",
       .online = false,
       .place = PlaceTight},
  };
  return planners;
}

const Planner* FindPlanner(std::string_view name) {
  for (const Planner& planner : Planners()) {
    if (planner.name == name) return &planner;
  }
  return nullptr;
}

}  // namespace plimsoll::place
