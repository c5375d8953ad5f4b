// SPDX-License-Identifier: Apache-2.0
//
// TFLMS on chains, as paper 002 (section 6.1) compares with it. Two parameters: how many
// activations leave, from the input on, and how many layers ahead each is called back. It knows no
// times and no limit: ops wait for their inputs, never for memory. All values of both parameters
// are tried; those that overrun the limit do not count.
#include <algorithm>

#include "plimsoll/chain/planner.h"

namespace plimsoll::chain {
namespace {

/// The schedule that TFLMS would run with these parameters in unlimited memory.
Schedule RunWithoutLimit(const Model& model, std::size_t count, std::size_t ahead) {
  const std::size_t n = model.stages;
  Schedule schedule;
  schedule.ops.resize(model.ops());
  Nanoseconds now = 0;
  for (std::size_t op = 0; op < n; ++op) {
    schedule.ops[op] = {now, now + model.op_ns[op]};
    now = schedule.ops[op].end_ns;
  }
  Nanoseconds link_free = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Nanoseconds made = i == 0 ? 0 : schedule.ops[i - 1].end_ns;
    const Nanoseconds start = std::max(link_free, made);
    link_free = start + model.transfer_ns[i];
    schedule.transfers.push_back(
        {{static_cast<std::int32_t>(i), Direction::kOut}, {start, link_free}});
  }
  std::vector<Nanoseconds> back(n, 0);
  std::size_t next = count;  // Activations below it have not been called back.
  for (std::size_t stage = n; stage-- > 0;) {
    // When B_stage is next, everything down to `ahead` layers below it is called back.
    while (next > 0 && next - 1 + ahead >= stage) {
      --next;
      const Nanoseconds start = std::max(link_free, now);
      link_free = start + model.transfer_ns[next];
      back[next] = link_free;
      schedule.transfers.push_back(
          {{static_cast<std::int32_t>(next), Direction::kIn}, {start, link_free}});
    }
    const Nanoseconds ready = std::max(now, back[stage]);
    const std::size_t op = model.BackwardOp(stage);
    schedule.ops[op] = {ready, ready + model.op_ns[op]};
    now = schedule.ops[op].end_ns;
  }
  return schedule;
}

/// Whether forward keeps to the limit. It is the same however far ahead prefetches begin.
bool ForwardFits(const Model& model, const Schedule& schedule, std::size_t count,
                 Bytes limit_bytes) {
  Bytes away = 0;
  std::size_t left = 0;  // How many have left by now.
  for (std::size_t op = 0; op < model.stages; ++op) {
    const Nanoseconds now = schedule.ops[op].start_ns;
    while (left < std::min(count, op) && schedule.transfers[left].span.end_ns <= now) {
      away += model.activation_bytes[left++];
    }
    if (model.op_ns[op] > 0 && model.total_bytes[op] - away > limit_bytes) return false;
  }
  return true;
}

}  // namespace

std::optional<Schedule> PlanTflms(const Question& question, const PlannerOptions& /*options*/) {
  const Model& model = question.model;
  std::optional<Schedule> best;
  Bytes offloaded = 0;
  for (std::size_t count = 0; count <= model.stages; ++count) {
    if (count > 0) offloaded += model.activation_bytes[count - 1];
    if (offloaded < model.peak_bytes - question.limit_bytes) continue;
    if (!ForwardFits(model, RunWithoutLimit(model, count, 0), count, question.limit_bytes))
      continue;
    for (std::size_t ahead = 0; ahead < std::max<std::size_t>(1, model.stages); ++ahead) {
      Schedule schedule = RunWithoutLimit(model, count, ahead);
      if (best && schedule.iteration_ns() >= best->iteration_ns()) continue;
      if (MeasureFootprint(model, schedule).device_bytes > question.limit_bytes) continue;
      best = std::move(schedule);
    }
  }
  return best;
}

}  // namespace plimsoll::chain
