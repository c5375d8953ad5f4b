// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "plimsoll/plan/rewrite.h"
#include "plimsoll/plan/script.h"

namespace plimsoll::planners {

enum class Choice : std::uint8_t { kKeep, kDrop, kSwap };

/// What is chosen: for every gap, and for what replays need.
struct Choices {
  std::vector<Choice> gaps;  ///< In the order of plan::Rewriter::gaps().
  /// Per variable: whether it stays beyond its free for replays that read it. Empty: none does.
  std::vector<bool> lingers{};
  plan::OpIndex horizon = plan::Rewriter::kFar;  ///< For what is rebuilt on the way.
  double prefetch = plan::kPrefetchJustInTime;   ///< Of all that comes back.

  friend bool operator==(const Choices&, const Choices&) = default;
};

/// The recorded load around every op.
struct RecordedLoad {
  RecordedLoad(const plan::RewriteModel& model, Bytes alignment);

  std::vector<Bytes> held_bytes;     ///< Per variable: its size, aligned.
  std::vector<Bytes> slot_bytes;     ///< Per op: the highest from behind the op before it.
  std::vector<Bytes> head_bytes;     ///< Per op: of that, while the frees come that come at once.
  std::vector<Bytes> rest_bytes;     ///< And from then on.
  std::vector<Bytes> between_bytes;  ///< Per op: before it, behind the frees that come at once.
  std::vector<Bytes> scratch_bytes;  ///< Per op: its workspaces, all at once.
  std::vector<Bytes> event_bytes;    ///< Per event of the model: behind it.
  Bytes tail_bytes = 0;              ///< The highest behind the last op.
  std::vector<std::size_t> first_event;   ///< Per op, and one behind: into RewriteModel::events.
  std::vector<std::size_t> first_malloc;  ///< Per op: the end of those frees.
};

/// What comes of choices, without the rewritten problem itself: a rewriting in outline, which is
/// all that a search needs to know. Follows plan::Rewriter step by step, and sums up loads as
/// changes to those of the recorded iteration:
///
///     steps            F0   F1   F2   F3   B3   F1'  F2'  B2   B1   B0
///     recorded         ▂▂   ▄▄   ▆▆   ██   ██   ▆▆   ▆▆   ▆▆   ▄▄   ▂▂
///     F2 is dropped                   ──   ──   ──                        from behind F2 to F2'
///     F1' on the way                            ++   ++                   from F1' to its last use
class Sketch {
 public:
  /// Keeps a reference to the rewriter.
  Sketch(const plan::Rewriter& rewriter, Bytes alignment);

  /// Draws an iteration. False if something that is dropped cannot be rebuilt, or replays take more
  /// than `most_replay_ns`.
  bool Draw(const Choices& choices,
            Nanoseconds most_replay_ns = std::numeric_limits<Nanoseconds>::max());

  // Of the last drawing:

  /// Ops, loads and exits, ready to be timed.
  const plan::Script& script() const { return script_; }
  Nanoseconds replay_ns() const { return replay_ns_; }
  Bytes highest_bytes() const { return highest_bytes_; }
  /// Per recorded op: the highest load from behind the op before it, with the replays for it.
  void ListNeeds(std::vector<Bytes>* needs_bytes) const;
  /// Bytes above a limit, summed over ops.
  double ExcessOver(Bytes limit_bytes) const;
  /// Per gap: the time of the replays that its variable's return took, if it was dropped.
  const std::vector<Nanoseconds>& gap_replay_ns() const { return gap_replay_ns_; }
  /// Per exit of the script: its gap.
  const std::vector<std::size_t>& exit_gaps() const { return exit_gaps_; }
  /// A variable that was rebuilt beyond its free, and what that took.
  struct Revenant {
    plan::VariableIndex variable;
    Nanoseconds replay_ns;
  };
  const std::vector<Revenant>& revenants() const { return revenants_; }

 private:
  /// Somebody who holds a content: kHere, kNobody, kRelic or an instance.
  using Holder = std::int32_t;
  static constexpr Holder kHere = -1;    ///< As recorded, or rebuilt to stay.
  static constexpr Holder kNobody = -2;  ///< It is dropped, or does not live.
  static constexpr Holder kRelic = -3;   ///< It lives beyond its free.
  static constexpr Holder kFailed = -4;

  // What belongs together lies together: a drawing looks up a few hundred variables, gaps and ops
  // here and there, and waits for memory more than for anything else.

  /// A variable: as it is recorded, and what has become of it so far.
  struct alignas(64) Life {
    Bytes held_bytes = 0;
    plan::OpIndex birth = -1;        ///< The op that its malloc is for.
    plan::OpIndex death = 0;         ///< The first op whose replays do not find it any more.
    plan::OpIndex free_before = 0;   ///< The first op behind its free.
    std::uint32_t first_writer = 0;  ///< Its writers, in writers_,
    std::uint32_t end_writer = 0;    ///< and one behind.
    bool inside = false;             ///< RewriteModel::IsInside()

    bool dropped = false;
    bool goes_around = false;    ///< Whether it is away around the end.
    std::int32_t gap = -1;       ///< The last gap in which it was dropped.
    std::int32_t trip = -1;      ///< The trip that it is on.
    plan::Slot rebuilt_at = -1;  ///< The step that rebuilt it last.
    plan::Slot relic_end = -1;   ///< The step up to which it is known to linger.
  };
  struct RecordedOp {
    Nanoseconds duration_ns = 0;
    Bytes scratch_bytes = 0;      ///< As in RecordedLoad.
    std::uint32_t first_use = 0;  ///< Its uses, in uses_,
    std::uint32_t end_use = 0;    ///< and one behind.
    bool replayable = false;
  };
  struct RecordedGap {
    plan::VariableIndex variable = 0;
    plan::OpIndex after = 0;
    plan::OpIndex before = 0;
    std::int32_t writes = 0;   ///< Of its variable, up to `after`.
    plan::OpIndex writer = 0;  ///< The last of them, -1: the iteration before, or kAtLastUse.
    bool was_there = false;    ///< Whether its variable was, when the iteration began.
    bool around = false;
  };
  /// Lists of gaps, one after the other.
  struct GapLists {
    GapLists() = default;
    explicit GapLists(const std::vector<std::vector<std::size_t>>& lists);  ///< Per op.

    std::vector<std::uint32_t> gaps;
    std::vector<std::uint32_t> first;  ///< Per op, and one behind.

    std::span<const std::uint32_t> operator[](plan::OpIndex op) const {
      const auto i = static_cast<std::size_t>(op);
      return {gaps.data() + first[i], gaps.data() + first[i + 1]};
    }
  };

  /// A rebuilt content.
  struct Instance {
    plan::VariableIndex variable = 0;
    std::int32_t version = -1;  ///< If other replays may find it.
    plan::Slot last_use = 0;
  };
  struct ReplayStep {
    Nanoseconds duration_ns = 0;
    Bytes base_bytes = 0;
  };
  /// A swapped gap, as it is drawn.
  struct Trip {
    std::size_t gap = 0;
    plan::Slot written = plan::Exit::kAtLastUse;  ///< As in plan::Exit.
    plan::Slot last = -1;                         ///< The last use so far.
    plan::Slot first = -1;  ///< Around the end: the first use of the iteration.
    plan::Slot after = 0;   ///< The longest stretch without a use so far.
    plan::Slot before = 0;
    bool around = false;
  };

  void ListLives();
  void ListOps();
  void ListGaps();
  void Start(const Choices& choices);
  void Mark(plan::OpIndex op) {
    marked_[static_cast<std::size_t>(op) / 64] |= std::uint64_t{1} << op % 64;
  }
  bool RunMarked();
  bool RunRecorded(plan::OpIndex op);
  bool BringBack(plan::OpIndex op);
  plan::Slot BehindAt(plan::OpIndex op) const;
  plan::Slot FreedAt(const Life& life) const;
  plan::Slot WrittenAt(const RecordedGap& gap) const;
  std::int32_t VersionOf(const Life& life) const;
  Holder HolderOf(plan::VariableIndex v) const;
  Holder Provide(plan::VariableIndex v, std::int32_t version, bool own);
  Holder Rebuild(plan::VariableIndex v, std::int32_t version, bool own);
  Holder Replay(plan::OpIndex op, plan::VariableIndex target, Holder rebuilt);
  void AddReplay(Nanoseconds duration_ns, Bytes base_bytes);
  Holder AddInstance(plan::VariableIndex v);
  void Keep(plan::VariableIndex v, std::int32_t version, Holder instance);
  bool IsNear(plan::VariableIndex v) const;
  void Touch(plan::VariableIndex v, Holder holder);
  void EndInstances();
  void Change(plan::Slot step, Bytes bytes) {
    change_bytes_[static_cast<std::size_t>(step)] += bytes;
  }
  Life& LifeOf(plan::VariableIndex v) { return lives_[static_cast<std::size_t>(v)]; }
  const Life& LifeOf(plan::VariableIndex v) const { return lives_[static_cast<std::size_t>(v)]; }

  void OpenTrip(std::size_t gap);
  void EndTrip(plan::VariableIndex v);
  static void Stretch(Trip* trip, plan::Slot from, plan::Slot to);
  void CloseAround();
  void AddExits();
  void MarkSaves();
  void LineUp();
  Bytes HeadAt(plan::OpIndex op) const;
  void MendHeads();

  const plan::RewriteModel& model_;
  const RecordedLoad load_;
  std::vector<Nanoseconds> durations_ns_;  // Per recorded op.
  std::vector<Life> lives_;                // Per variable.
  std::vector<RecordedOp> ops_;
  std::vector<RecordedGap> gaps_;
  std::vector<plan::RewriteModel::Use> uses_;  // Of all ops, one after the other.
  std::vector<plan::OpIndex> writers_;         // Of all variables.
  GapLists gaps_before_;  // Per op: those that end there, as it uses their variables.
  GapLists gaps_after_;
  std::vector<std::size_t> around_;  // Gaps around the end.

  const Choices* choices_ = nullptr;
  plan::Script script_;
  std::vector<Bytes> change_bytes_;    // Per step, and one behind: to the load from there on.
  std::vector<std::uint64_t> marked_;  // Ops at which something happens, a bit for each.
  std::vector<plan::VariableIndex> stirred_;  // Variables of which anything has become.
  std::vector<std::pair<plan::OpIndex, plan::Slot>> late_;  // Ops, and replays up to them.
  std::vector<ReplayStep> replays_;
  std::vector<Holder> holders_;      // Of what the replays under way use, the innermost last.
  std::vector<Bytes> relic_bytes_;   // Per op: of what is freed right before it, and lingers.
  std::vector<Instance> instances_;  // Of the recorded op at hand.
  std::vector<Trip> trips_;          // Those around the end first.
  std::size_t around_count_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order_;  // Of the trips that are exits.
  std::vector<std::int32_t> exits_of_;                          // Per variable.
  std::vector<std::pair<plan::VariableIndex, std::size_t>> leavers_;
  std::vector<std::size_t> exit_gaps_;
  std::vector<Nanoseconds> gap_replay_ns_;
  std::vector<Revenant> revenants_;
  plan::OpIndex current_ = 0;  // The recorded op that everything is rebuilt for.
  plan::Slot step_ = 0;        // How many there are so far.
  std::int64_t replays_left_ = 0;
  Nanoseconds most_replay_ns_ = 0;
  Nanoseconds replay_ns_ = 0;
  Bytes highest_bytes_ = 0;
  Bytes tail_bytes_ = 0;
};

}  // namespace plimsoll::planners
