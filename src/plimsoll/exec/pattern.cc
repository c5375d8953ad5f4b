// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/pattern.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/exec/recorder.h"
#include "plimsoll/plan/signature.h"

namespace plimsoll::exec {
namespace {

/// Leaves the processor to training: of this thread, Linux keeps a priority of its own.
void StepBack() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10); }

}  // namespace

std::uint64_t SignatureOf(const Steps& steps) {
  std::uint64_t signature = plan::Signature(steps.problem);
  for (const plan::Op& op : steps.problem.ops) {
    const std::uint64_t traits = (op.traits.replayable ? 1U : 0U) | (op.traits.random ? 2U : 0U) |
                                 std::uint64_t{op.traits.state_reads} << 2;
    signature = (signature ^ traits) * 0x9e3779b97f4a7c15U;
  }
  return signature;
}

Pattern::~Pattern() {
  // A search ends at its next evaluation.
  *stop_ = true;
  if (making_.valid()) making_.wait();
}

void Pattern::See(const trace::Trace& iteration, const std::vector<std::string>& plain_names) {
  ++seen_;
  if (seen_ == 1) {
    iteration_ = iteration;
    plain_names_ = plain_names;
    return;
  }
  for (std::size_t k = 0; k < iteration_.ops.size(); ++k) {
    Nanoseconds& shortest = iteration_.ops[k].duration_ns;
    shortest = std::min(shortest, iteration.ops[k].duration_ns);
  }
}

void Pattern::Plan(const PlanningOptions& options, bool wait) {
  const trace::Trace twice = Repeat(iteration_, 2);
  const auto events = std::ssize(twice.events);
  std::optional<Steps> steps = CutSteps(twice, {events / 2, 0, events}, plain_names_);
  if (steps && !steps->problem.ops.empty()) {
    Plan(*std::move(steps), options, wait);
  } else {
    GiveUp("no iteration can be cut out of the recording");
  }
}

void Pattern::Plan(Steps steps, const PlanningOptions& options, bool wait) {
  steps_ = std::make_unique<Steps>(std::move(steps));
  BeginToPlan(options, wait);
}

void Pattern::PlanAgain(const PlanningOptions& options, bool wait) { BeginToPlan(options, wait); }

void Pattern::BeginToPlan(const PlanningOptions& options, bool wait) {
  ++times_planned_;
  has_served = false;
  const planners::Planner* planner = planners::FindPlanner(options.planner);
  if (planner == nullptr) throw Error(fmt::format("there is no planner {}", options.planner));
  planners::PlannerOptions asked;
  asked.limit_bytes = options.limit_bytes;
  asked.host_limit_bytes = options.host_limit_bytes;
  asked.least_bytes = planners::LeastBytesFor(steps_->problem);
  asked.time_budget_seconds = options.seconds;
  asked.evaluations = options.evaluations;
  asked.threads = wait ? options.threads : 1;  // Training needs the others.
  asked.seed = options.seed;
  asked.stop = [stop = stop_] { return stop->load(); };
  const auto make = [planner, wait, problem = steps_->problem, machine = options.machine, asked] {
    if (!wait) StepBack();
    Made made;
    made.outcome = planners::MakePlan(*planner, problem, machine, asked);
    if (made.outcome.plan) made.outcome.plan->signature = plan::Signature(problem);
    return made;
  };
  try {
    making_ = std::async(std::launch::async, make);
  } catch (const std::system_error& error) {
    // No thread to be had: slower, but right.
    GiveUp(error.what());
    return;
  }
  state_ = State::kPlanning;
  if (wait) making_.wait();
}

Pattern::State Pattern::state() {
  if (state_ != State::kPlanning) return state_;
  if (making_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return state_;
  Made made;
  try {
    made = making_.get();
  } catch (const std::exception& error) {
    GiveUp(error.what());
    return state_;
  }
  if (made.outcome.plan) {
    runner_.reset();
    outcome_ = std::move(made.outcome);
    runner_ = std::make_unique<PlanRunner>(&*outcome_.plan);
    state_ = State::kReady;
  } else {
    const plan::Misfit& misfit = made.outcome.misfit;
    GiveUp(misfit.host ? fmt::format("no plan fits: {} bytes of host memory are needed",
                                     misfit.needed_bytes)
                       : fmt::format("no plan fits: {} bytes are needed at position {}",
                                     misfit.needed_bytes, misfit.position));
  }
  return state_;
}

bool Pattern::Rename(Steps steps) {
  if (!steps_ || SignatureOf(steps) != SignatureOf(*steps_)) return false;
  steps_ = std::make_unique<Steps>(std::move(steps));
  if (runner_) runner_->ForgetGraphs();
  return true;
}

void Pattern::Await() {
  if (making_.valid()) making_.wait();
}

void Pattern::GiveUp(std::string reason) {
  state_ = State::kHopeless;
  reason_ = std::move(reason);
}

}  // namespace plimsoll::exec
