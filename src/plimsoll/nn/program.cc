// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/program.h"

#include <algorithm>

namespace plimsoll::nn {

ProgramBytes Measure(const Program& program) {
  ProgramBytes bytes;
  for (const Slot& slot : program.slots) {
    if (IsPersistent(slot.role)) bytes.persistent += slot.size_bytes;
  }
  Bytes live = bytes.persistent;
  bytes.peak = live;
  for (const Step& step : program.steps) {
    const auto index = static_cast<std::size_t>(step.index);
    if (step.kind == StepKind::kMalloc) live += program.slots[index].size_bytes;
    if (step.kind == StepKind::kFree) live -= program.slots[index].size_bytes;
    if (step.kind == StepKind::kExec && program.ops[index].phase == trace::Phase::kForward) {
      bytes.kept = live - bytes.persistent;
    }
    bytes.peak = std::max(bytes.peak, live);
  }
  return bytes;
}

}  // namespace plimsoll::nn
