// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/schedule.h"
#include "plimsoll/planners/joint_sketch_internal.h"

namespace plimsoll::planners {
RecordedLoad::RecordedLoad(const plan::RewriteModel& model, Bytes alignment) {
  const plan::Problem& problem = model.problem;
  for (const plan::Variable& variable : problem.variables) {
    held_bytes.push_back(AlignUp(variable.size_bytes, alignment));
  }
  const std::vector<Bytes> load = plan::LeastLoad(problem, {}, alignment);
  for (const plan::RewriteModel::Event& event : model.events) {
    // What ends with the period is freed behind its last moment.
    event_bytes.push_back(event.position < problem.period ? load[At(event.position)] : 0);
  }
  std::size_t event = 0;
  plan::Position position = 0;
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    const plan::Position end = problem.ops[i].position;
    first_event.push_back(event);
    Bytes between = position > 0 ? load[At(position - 1)] : load.back();
    bool at_once = true;
    std::size_t frees_end = event;
    for (; event < model.events.size() && model.events[event].position < end; ++event) {
      at_once = at_once && !model.events[event].is_malloc;
      if (!at_once) continue;
      between = load[At(model.events[event].position)];
      frees_end = event + 1;
    }
    first_malloc.push_back(frees_end);
    between_bytes.push_back(between);
    Bytes head = 0;
    const plan::Position frees =
        frees_end > first_event.back() ? model.events[frees_end - 1].position + 1 : position;
    for (; position < frees; ++position) head = std::max(head, load[At(position)]);
    Bytes rest = 0;
    for (; position <= end; ++position) rest = std::max(rest, load[At(position)]);
    head_bytes.push_back(head);
    rest_bytes.push_back(rest);
    slot_bytes.push_back(std::max(head, rest));
    Bytes scratch = 0;
    for (const plan::VariableIndex v : model.workspaces[i]) scratch += held_bytes[At(v)];
    scratch_bytes.push_back(scratch);
  }
  first_event.push_back(event);
  for (; event < model.events.size() && model.events[event].position < problem.period; ++event) {
    tail_bytes = std::max(tail_bytes, load[At(model.events[event].position)]);
  }
}

}  // namespace plimsoll::planners
