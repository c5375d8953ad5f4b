// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/record.h"

#include <nlohmann/json.hpp>

#include "plimsoll/exec/trace_recorder.h"
#include "plimsoll/nn/runner.h"

namespace plimsoll::nn {

trace::Trace Record(const Program& program, const std::string& name, int iterations) {
  exec::TraceRecorder recorder;
  const std::vector<exec::Block> persistent = AllocatePersistent(&recorder, program);
  recorder.Start();
  for (int i = 0; i < iterations; ++i) {
    recorder.EndIteration("train");
    RunProgram(&recorder, program, persistent, {}, {});
  }
  return recorder.Finish(nlohmann::json{{"model", name}, {"batch", program.batch}}.dump());
}

trace::Trace Record(const Network& network, const LoweringOptions& options, KernelLibrary* library,
                    int iterations) {
  return Record(Lower(network, options, library), network.name, iterations);
}

}  // namespace plimsoll::nn
