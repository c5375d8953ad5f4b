// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "plimsoll/exec/plan_runner.h"
#include "plimsoll/exec/steps.h"
#include "plimsoll/planners/planner.h"

namespace plimsoll::exec {

/// How iterations are planned.
struct PlanningOptions {
  std::string planner = "joint";
  plan::Machine machine;
  Bytes limit_bytes = 0;
  Bytes host_limit_bytes = kMaxBytes;
  double seconds = 5;            ///< That a plan may take to make.
  std::int64_t evaluations = 0;  ///< If positive, instead of time: repeatable.
  int threads = 0;               ///< Where training waits: as in planners::PlannerOptions.
  std::uint64_t seed = 1;
};

/// Tells steps apart by all that a plan of theirs depends on: the problem's signature and what its
/// ops allow.
std::uint64_t SignatureOf(const Steps& steps);

/// An iteration that has been seen, and what is known about it: counted until it is worth a plan,
/// then planned on a thread of its own, then ready to be served.
class Pattern {
 public:
  enum class State { kCounting, kPlanning, kReady, kHopeless };

  Pattern(std::uint64_t hash, std::string tag) : hash_(hash), tag_(std::move(tag)) {}
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  /// Notes another recording of the iteration: of each op the shortest time counts.
  /// `plain_names` as for CutSteps().
  void See(const trace::Trace& iteration, const std::vector<std::string>& plain_names);
  /// Begins to plan the iteration that was seen; on this thread if `wait`. Hopeless if no steps can
  /// be cut out of it.
  void Plan(const PlanningOptions& options, bool wait);
  void Plan(Steps steps, const PlanningOptions& options, bool wait);
  /// Plans the same steps with other options. The plan that is there stays until the new one is.
  /// REQUIRES: it is ready, and nobody runs it.
  void PlanAgain(const PlanningOptions& options, bool wait);
  /// The same steps from another recording, in which blocks have other numbers. Returns false, and
  /// changes nothing, if they are not the same.
  [[nodiscard]] bool Rename(Steps steps);
  std::int64_t times_planned() const { return times_planned_; }
  /// Waits until it is no longer being planned.
  void Await();

  /// Looks whether the plan is there by now.
  State state();
  std::uint64_t hash() const { return hash_; }
  const std::string& tag() const { return tag_; }
  std::int64_t seen() const { return seen_; }
  /// The iteration as it was seen, with the shortest time of each op; empty if it was not seen from
  /// mark to mark.
  const trace::Trace& iteration() const { return iteration_; }
  /// Once planning has begun.
  const Steps& steps() const { return *steps_; }
  /// Once it is ready.
  const plan::Plan& plan() const { return *outcome_.plan; }
  const sim::Timeline& predicted() const { return outcome_.timeline; }
  PlanRunner& runner() { return *runner_; }
  const PlanRunner& runner() const { return *runner_; }
  /// Why there is no plan, if it is hopeless.
  const std::string& reason() const { return reason_; }
  void GiveUp(std::string reason);

  bool is_planning() const { return state_ == State::kPlanning; }

  // For the one who decides which to expect, and which to forget.
  std::int64_t last_used = 0;
  std::int64_t hits = 0;    ///< Times that it was expected and came,
  std::int64_t misses = 0;  ///< and that it did not.
  bool has_served = false;  ///< Since it was planned.

 private:
  struct Made {
    planners::Outcome outcome;
  };

  void BeginToPlan(const PlanningOptions& options, bool wait);

  const std::uint64_t hash_;
  const std::string tag_;
  State state_ = State::kCounting;
  std::int64_t seen_ = 0;
  std::int64_t times_planned_ = 0;
  trace::Trace iteration_;
  std::vector<std::string> plain_names_;
  std::unique_ptr<Steps> steps_;
  std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
  std::future<Made> making_;
  planners::Outcome outcome_;
  std::unique_ptr<PlanRunner> runner_;
  std::string reason_;
};

}  // namespace plimsoll::exec
