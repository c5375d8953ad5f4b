// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/device/backend.h"
#include "plimsoll/exec/device.h"
#include "plimsoll/exec/graph_trial.h"
#include "plimsoll/exec/ledger.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/sim/simulate.h"

namespace plimsoll::exec {

/// Where the content of a variable of a plan is; nowhere if both are negative.
struct Whereabouts {
  Bytes device_offset = -1;
  Bytes host_offset = -1;    ///< In the slab: the same content.
  std::int64_t version = 0;  ///< Number of writes since the variable came to be.

  bool anywhere() const { return device_offset >= 0 || host_offset >= 0; }
};

/// The variables that an op writes, each once.
std::vector<plan::VariableIndex> WrittenBy(const plan::Problem& problem, const plan::Op& op);

/// What a runner has done.
struct RunCounts {
  std::int64_t replays = 0;
  std::int64_t copies_out = 0;
  std::int64_t copies_in = 0;
  Bytes copied_out_bytes = 0;
  Bytes copied_in_bytes = 0;
  std::int64_t graph_launches = 0;
};

/// What a runner moves things in.
struct PlanMemory {
  device::Backend* backend = nullptr;
  std::byte* arena = nullptr;  ///< Of at least the plan's footprint.
  std::byte* slab = nullptr;   ///< Host memory of at least the plan's host bytes.
  Ledger* ledger = nullptr;    ///< Told of every range of the arena that is in use; may be null.
  const std::byte* constants = nullptr;  ///< For Launch::constants.
  bool graphs = false;  ///< Whether to use graphs, if the backend has them and ops are steady.

  friend bool operator==(const PlanMemory&, const PlanMemory&) = default;
};

/// Issues the commands of a plan as the program calls, op by op. It follows; it does not drive:
///
///     program    op 0        op 1              op 2
///     compute    [0]         [1]               [replay of 0] [2]
///     copies        └[out x]    └(waits)[in y]─────────────┘
///
/// A command is issued once everything that it waits for has been issued: copies as early as that
/// allows, replays right before the op that follows them in the plan. A replay runs the function
/// that the program gave for that op in the same iteration. No copy brings anything to where a
/// block was that the program has not freed yet: so until then its content is there, whatever
/// comes.
///
/// Where a backend keeps graphs, the commands of steady ops are held back until something comes
/// that must run at once, or the iteration ends, and then issued in one call: the second time that
/// the same stretch of commands comes they are made a graph, from then on that is launched. Copies
/// in graphs may cost a device more than launching op by op does: a plan that has any is tried both
/// ways (graph_trial.h), and goes on in the faster one.
///
///     program    upload  op 1  op 2  …  op n  download
///     device     upload  held…………………………………▶ graph  download
///
/// Also keeps account of where every content is, so that planned service can be entered at the
/// beginning of an iteration and left at any call.
class PlanRunner {
 public:
  /// Keeps a reference to the plan. REQUIRES: CheckPlan() finds nothing wrong with it.
  explicit PlanRunner(const plan::Plan* plan);
  ~PlanRunner();
  PlanRunner(const PlanRunner&) = delete;
  PlanRunner& operator=(const PlanRunner&) = delete;

  /// By variable of the plan's problem: where its content must be when Enter() is called. A plan
  /// that runs for ever finds exactly this at each beginning of an iteration at which all that came
  /// before is over.
  const std::vector<Whereabouts>& scene() const { return scene_; }

  /// Begins an iteration. The content of `scene()` is in place.
  void Enter(const PlanMemory& memory);

  /// Ends it, between two ops, and accounts for what is on the device no more.
  void Leave();

  /// Runs an op of the recorded problem, after all replays and waits that the plan puts before it.
  /// Ops come in order, around the iteration. Throws what the backend and the function throw; of an
  /// op that is steady, perhaps later.
  void Run(plan::OpIndex op, Function function, bool steady = false);

  /// Issues what is held back, one by one. Called before anybody waits for what the plan has
  /// issued.
  void Flush();
  /// Whether commands that the books know of could not be issued: contents are not where they are
  /// said to be.
  bool has_lost() const { return has_lost_; }
  /// Makes graphs anew from here on: functions of the same ops may do something else.
  void ForgetGraphs();

  /// Where the contents are once everything issued has run: valid after Backend::Synchronize().
  const std::vector<Whereabouts>& now() const { return now_; }
  /// By variable of the recorded problem: the number of writes by recorded ops since it came to be.
  /// The content that the program expects is that of a variable of the plan with the same version.
  const std::vector<std::int64_t>& versions() const { return versions_; }
  /// By variable of the plan: which variable of the recorded problem it holds a content of; -1 if
  /// it is scratch in place of one.
  const std::vector<plan::VariableIndex>& holds() const { return holds_; }
  /// The replays, as ops of the plan's problem and in order, that are still to come in this
  /// iteration and whose op has run; with the function that each would run.
  struct PendingReplay {
    plan::OpIndex op = 0;
    Function function;
  };
  std::vector<PendingReplay> PendingReplays() const;

  /// Takes the times of all commands of the next iteration that begins.
  void Measure();
  /// The times of the iteration that was measured, from the start of its first op; waits for what
  /// is under way. Nothing until all of its commands have been issued. Its `iteration_ns` is the
  /// time from its first op to the end of its last.
  std::optional<sim::Timeline> TakeMeasured();

  /// Whether the present iteration, or between two the last, is served as all later ones will be.
  bool is_settled() const { return trial_.is_over(); }
  /// What was run since Enter().
  const RunCounts& counts() const { return counts_; }
  const plan::Plan& plan() const { return plan_; }
  /// Recorded ops of the iteration that have run.
  plan::OpIndex ops_done() const { return ops_done_; }

 private:
  static constexpr std::int64_t kEventLaps = 2;

  /// A residency as the books see it.
  struct Stay {
    plan::OpIndex last_op = -1;    // Of the plan's problem, the last to touch it.
    plan::Position end = 0;        // On the axis of its variable.
    bool leaves_for_good = false;  // Nothing of its variable is needed after it.
    bool frees_host_copy = false;  // The copy that fills it is the last from its host copy.
    bool eternal = false;          // It never ends.
    bool saved = false;            // State: its copy out, if it has one, has been issued,
    bool used_up = false;          // and so has its last op.
  };

  /// A call of the backend.
  struct Call {
    enum class Kind : std::uint8_t { kRun, kCopy, kRecord, kWait, kDiscard };
    Kind kind = Kind::kRun;
    plan::Queue queue = plan::Queue::kCompute;  // Where it is issued.
    // The op to run, the command to copy, record or wait for, or the residency that is over.
    std::int32_t index = 0;
    std::int64_t lap = 0;    // Of what is recorded or waited for.
    bool is_inside = false;  // Of a wait: what it waits for is held back, too.
    Function function{};
  };
  /// What tells stretches of calls apart.
  struct CallKey {
    Call::Kind kind;
    plan::Queue queue;
    std::int32_t index;
    std::int64_t lap;  // From that of the first call.

    friend bool operator==(const CallKey&, const CallKey&) = default;
  };
  struct Graph {
    std::vector<CallKey> calls;
    device::GraphId id = -1;  // -1 until it comes again.
  };

  void Issue(Call call);
  void Perform(const Call& call, bool keeps);
  void IssueHeld();
  std::vector<CallKey> KeysOfHeld() const;
  bool Capture(Graph* graph);

  void LinkOperands();
  void DescribeStays();
  void ListExpiring();
  void FindSources();
  void Rehearse();

  std::int64_t Length(plan::Queue queue) const;
  std::int64_t& Issued(plan::Queue queue) { return issued_[static_cast<std::size_t>(queue)]; }
  std::int64_t Issued(plan::Queue queue) const { return issued_[static_cast<std::size_t>(queue)]; }
  bool IsIssued(const plan::Wait& wait, std::int64_t lap) const;
  bool MayIssue(plan::Queue queue) const;
  void IssueWaits(plan::CommandIndex command, std::int64_t lap);
  void IssueNext(plan::Queue queue);
  void IssueReadyCopies();
  void IssueOp(plan::CommandIndex command, std::int64_t lap);
  void IssueCopy(plan::CommandIndex command, std::int64_t lap);
  void RunFunction(plan::OpIndex op, const Function& function, bool keeps);
  void DiscardPlace(const plan::Residency& residency);
  device::EventId EventOf(plan::CommandIndex command, std::int64_t lap) const;

  void RecordTime(plan::CommandIndex command, std::int64_t lap, bool is_start);
  void Arrive(plan::VariableIndex variable, Bytes offset);
  void Depart(plan::VariableIndex variable);
  void NoteOp(plan::OpIndex op);
  void NoteRecorded(plan::OpIndex source);
  void NoteCopy(const plan::Command& command);
  void Discard(plan::ResidencyIndex residency);
  void EndIfOver(plan::ResidencyIndex residency);
  void Expire(plan::ResidencyIndex residency);

  const plan::Plan& plan_;
  const plan::Problem& original_;
  // Tables.
  std::vector<std::int64_t> rank_;                           // By command: its place in its queue.
  std::vector<plan::ResidencyIndex> operand_residencies_;    // Like Problem::operands.
  std::vector<Stay> stays_;                                  // By residency.
  std::vector<std::vector<plan::ResidencyIndex>> expiring_;  // By op: what was freed before it.
  std::vector<plan::Position> recorded_positions_;  // By recorded op: its position in the plan.
  std::vector<plan::OpIndex> source_;               // By op of the plan's problem.
  std::vector<bool> is_replay_;
  std::vector<bool> is_replayed_;                 // By recorded op.
  std::vector<plan::VariableIndex> holds_;        // By variable of the plan's problem.
  std::vector<plan::OpIndex> first_op_;           // By variable of the plan's problem.
  std::vector<plan::OpIndex> first_recorded_op_;  // By variable of the recorded problem.
  std::vector<Whereabouts> scene_;
  std::vector<std::int64_t> scene_versions_;
  std::vector<Stay> scene_stays_;
  // State.
  PlanMemory memory_;
  bool rehearsing_ = false;
  std::array<std::int64_t, plan::kQueues> issued_{};  // Commands, over all iterations.
  std::vector<Whereabouts> now_;
  std::vector<std::int64_t> versions_;
  std::vector<Function> functions_;  // By recorded op: of this iteration, if it is replayed.
  Function* current_ = nullptr;
  plan::OpIndex ops_done_ = 0;
  plan::Position reached_ = 0;  // Over all iterations: the program has called all before.
  std::vector<device::EventId> events_;
  device::EventId fence_ = -1;  // Around what is discarded, if the backend poisons.
  std::vector<std::byte*> addresses_;
  std::vector<device::EventId> times_;  // By command: its start, its end; if ever measured.
  std::int64_t measured_lap_ = -1;
  bool measures_next_ = false;
  RunCounts counts_;
  // What is held back, and the graphs that were made of such.
  bool holds_back_ = false;
  std::vector<bool> is_awaited_;  // By command: whether another queue waits for it.
  std::vector<bool> is_steady_;   // By recorded op, as its function was when it last came.
  std::vector<Call> held_;
  std::vector<std::int64_t> held_events_;  // By event: the stretch that it was last recorded in.
  std::int64_t stretch_ = 1;
  std::vector<Graph> graphs_;
  bool gives_up_graphs_ = false;
  bool has_lost_ = false;
  GraphTrial trial_;
};

}  // namespace plimsoll::exec
