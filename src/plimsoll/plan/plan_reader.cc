// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "plimsoll/base/checksum.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/plan/plan_fields_internal.h"
#include "plimsoll/plan/plan_file.h"

namespace plimsoll::plan {
namespace {

/// Builds a plan from lines, fed in order.
class Parser : private PlanFields {
 public:
  Parser(std::string source, ChecksumMode mode) : PlanFields(std::move(source)), mode_(mode) {}

  /// `complete` says whether the line ended in a newline.
  void Feed(std::string_view line, bool complete);
  /// Returns the plan once every line has been fed.
  Plan Finish();

 private:
  [[noreturn]] void FailCut() const {
    Fail("the file ends before its checksum: it was cut off; copy or plan it again");
  }

  // A line of its own each, in this order.
  void ReadVersion();
  void ReadPlanner();
  void ReadSignature();
  void ReadMachine();
  void ReadLimits();
  void ReadFootprint();
  void ReadIteration();
  /// What follows the keyword of an iteration.
  void ReadCycle(Problem* problem);
  // The rest: any number of each, in this order.
  void ReadBody();
  void ReadName();
  void ReadVariable();
  void ReadOp();
  void ReadRecorded();
  void ReadSources();
  void ReadResidency();
  void ReadExec();
  void ReadCopyOut() { ReadCopy(Queue::kCopyOut); }
  void ReadCopyIn() { ReadCopy(Queue::kCopyIn); }
  void ReadCopy(Queue queue);
  /// Ends a command.
  void ReadWaits(Command command);
  void ReadQueue();
  void ReadChecksum();

  /// Refuses what would take so long, or copy so much, that sums of it overflow, and an iteration
  /// that is longer than what happens in it.
  void CheckTotals() const;
  void CheckPositions(const Problem& problem) const;
  /// What lines of a problem belong to: the one planned, or once that has ended the recorded one.
  Problem& problem() { return plan_.rewriting ? plan_.rewriting->original : plan_.problem; }

  ChecksumMode mode_;
  std::size_t stage_ = 0;  // Of the body.
  bool finished_ = false;
  Checksum sum_;
  Plan plan_;
  double total_bytes_ = 0;  // Of the problem that is being read.
  double total_ns_ = 0;
  double planned_ns_ = 0;  // Of the problem planned.
};

void Parser::Feed(std::string_view line, bool complete) {
  Begin(line);
  if (finished_) Fail("something follows the checksum, which ends a plan");
  if (!complete) FailCut();
  using Reader = void (Parser::*)();
  constexpr std::array<Reader, 7> kHeader = {
      &Parser::ReadVersion, &Parser::ReadPlanner,   &Parser::ReadSignature, &Parser::ReadMachine,
      &Parser::ReadLimits,  &Parser::ReadFootprint, &Parser::ReadIteration};
  const auto number = static_cast<std::size_t>(line_number()) - 1;
  if (number < kHeader.size()) {
    (this->*kHeader[number])();
  } else {
    ReadBody();
  }
  if (!IsAtEnd()) Fail(fmt::format("too many fields: what is {} for?", Quote(rest())));
  sum_.Add(line);
  sum_.Add("\n");
}

Plan Parser::Finish() {
  if (line_number() == 0) Fail("the file is empty; a plan begins with the line \"plan 2\"");
  if (!finished_) FailCut();
  return std::move(plan_);
}

void Parser::ReadVersion() {
  if (Field("the format") != "plan") Fail("not a plan: the first line is not \"plan 2\"");
  const std::string_view version = Field("the version");
  if (version != "2") {
    Fail(fmt::format("unsupported version {} of the plan format; this program reads version 2",
                     Quote(version)));
  }
}

void Parser::ReadPlanner() {
  if (Field("a keyword") != "planner") Fail("expected \"planner NAME\"");
  plan_.planner = Text("the planner");
}

void Parser::ReadSignature() {
  if (Field("a keyword") != "signature") Fail("expected \"signature HEX\"");
  plan_.signature = Hexadecimal("the signature");
}

void Parser::ReadMachine() {
  if (Field("a keyword") != "machine") Fail("expected \"machine NAME ...\"");
  Machine& machine = plan_.machine;
  machine.name = Text("the machine's name");
  machine.out_latency_ns = Number("the latency out", 0, kLongestLatency);
  machine.in_latency_ns = Number("the latency in", 0, kLongestLatency);
  machine.out_bytes_per_s = Rate("the bandwidth out");
  machine.in_bytes_per_s = Rate("the bandwidth in");
  machine.both_out_bytes_per_s = Rate("the bandwidth out, of both");
  machine.both_in_bytes_per_s = Rate("the bandwidth in, of both");
  if (!IsAtEnd()) {
    machine.slowdown_by_out = Rate("the slowdown by copies out");
    machine.slowdown_by_in = Rate("the slowdown by copies in");
    machine.handover_ns = Number("the time of a handover", 0, kLongestLatency);
  }
  CheckMachine(machine, source(), line_number());
}

void Parser::ReadLimits() {
  if (Field("a keyword") != "limit") Fail("expected \"limit DEVICE HOST\"");
  plan_.limit_bytes = Size("the limit");
  plan_.host_limit_bytes = Size("the limit on the host");
}

void Parser::ReadFootprint() {
  if (Field("a keyword") != "footprint") Fail("expected \"footprint DEVICE HOST\"");
  plan_.footprint_bytes = Size("the footprint");
  plan_.host_bytes = Size("the footprint on the host");
}

void Parser::ReadIteration() {
  if (Field("a keyword") != "iteration") Fail("expected \"iteration cyclic|once ...\"");
  ReadCycle(&plan_.problem);
}

void Parser::ReadCycle(Problem* problem) {
  const std::string_view how = Field("how often it runs");
  if (how != "cyclic" && how != "once") {
    Fail(fmt::format("{} is neither cyclic nor once", Quote(how)));
  }
  problem->cyclic = how == "cyclic";
  problem->period = Number("the period", 1, kMaxPosition);
  problem->laps = static_cast<std::int32_t>(Number("the iterations planned", 1, kMaxBack));
  problem->iterations = Number("the iterations found", 0, kAnything);
  problem->first_event = Number("the first event", 0, kAnything);
}

void Parser::ReadBody() {
  using Reader = void (Parser::*)();
  struct Kind {
    std::string_view keyword;
    std::size_t stage;
    Reader reader;
  };
  // The lines of a problem come once more, after "recorded".
  constexpr std::size_t kRecorded = 3;
  constexpr std::array<Kind, 11> kKinds = {{{"n", 0, &Parser::ReadName},
                                            {"v", 1, &Parser::ReadVariable},
                                            {"x", 2, &Parser::ReadOp},
                                            {"recorded", kRecorded, &Parser::ReadRecorded},
                                            {"s", 7, &Parser::ReadSources},
                                            {"r", 8, &Parser::ReadResidency},
                                            {"e", 9, &Parser::ReadExec},
                                            {"o", 9, &Parser::ReadCopyOut},
                                            {"i", 9, &Parser::ReadCopyIn},
                                            {"q", 10, &Parser::ReadQueue},
                                            {"checksum", 11, &Parser::ReadChecksum}}};
  const std::string_view keyword = Field("what the line is");
  const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& candidate) {
    return candidate.keyword == keyword;
  });
  if (kind == kKinds.end()) {
    Fail(fmt::format("unknown line {}; n, v, x, recorded, s, r, e, o, i, q or checksum is expected",
                     Quote(keyword)));
  }
  const bool again = kind->stage < kRecorded && plan_.rewriting;
  const std::size_t stage = kind->stage + (again ? kRecorded + 1 : 0);
  if (stage < stage_) Fail(fmt::format("{} comes too late in the file", Quote(keyword)));
  stage_ = stage;
  (this->*kind->reader)();
}

void Parser::ReadName() { problem().op_names.push_back(Text("the name")); }

void Parser::ReadVariable() {
  Variable variable;
  variable.id = Number("the variable's number", 0, kAnything);
  variable.size_bytes = Number("the size", 0, kMaxBytes - 1);
  variable.begin = Number("the begin", 0, kMaxPosition);
  variable.end = Number("the end", 0, 2 * kMaxPosition);
  variable.kind = ReadKind();
  variable.phase = ReadPhase();
  variable.instances = static_cast<std::int32_t>(Number("the instances", 1, kMaxBack));
  total_bytes_ += static_cast<double>(variable.size_bytes);
  if (total_bytes_ >= static_cast<double>(kMaxBytes)) {
    Fail("the sizes of all variables add up to 2^62 bytes or more");
  }
  problem().variables.push_back(variable);
}

void Parser::ReadOp() {
  Problem& problem = this->problem();
  Op op;
  op.duration_ns = Number("the duration", 0, kAnything);
  total_ns_ += static_cast<double>(op.duration_ns);
  if (total_ns_ >= kMaxIterationNs) Fail("the durations add up to more than 15 years");
  op.phase = ReadPhase();
  op.name = Index("the name");
  if (static_cast<std::size_t>(op.name) >= problem.op_names.size()) {
    Fail(fmt::format("the op has name {} of {}", op.name, problem.op_names.size()));
  }
  op.position = Number("the position", 0, kMaxPosition);
  op.traits = ReadTraits();
  op.first_operand = static_cast<std::int64_t>(problem.operands.size());
  const auto add = [&](std::int32_t* count) {
    return [&problem, count](VariableIndex variable, std::int32_t age) {
      problem.operands.push_back({variable, age});
      ++*count;
    };
  };
  ReadList("what the op reads", add(&op.read_count));
  ReadList("what the op writes", add(&op.write_count));
  problem.ops.push_back(op);
}

void Parser::ReadRecorded() {
  if (plan_.rewriting) Fail("a plan is made from one recorded iteration, and this is the second");
  planned_ns_ = std::exchange(total_ns_, 0);
  total_bytes_ = 0;
  ReadCycle(&plan_.rewriting.emplace().original);
}

void Parser::ReadSources() {
  if (!plan_.rewriting) Fail("sources are in a recorded iteration, and there is none");
  Rewriting& rewriting = *plan_.rewriting;
  const std::string_view field = Field("what has sources");
  if (field != "ops" && field != "variables") {
    Fail(fmt::format("unknown sources of {}; expected ops or variables", Quote(field)));
  }
  ReadList("the sources", [&](std::int32_t index, std::int32_t again) {
    if (again > (field == "ops" ? 1 : 0)) Fail("only ops run again, and there is only @1");
    if (field == "variables") {
      rewriting.variable_source.push_back(index);
    } else {
      rewriting.op_source.push_back(index);
      rewriting.is_replay.push_back(static_cast<std::uint8_t>(again));
    }
  });
}

void Parser::ReadResidency() {
  Residency residency;
  residency.variable = Index("the variable");
  residency.begin = Number("the begin", 0, kMaxPosition);
  residency.end = Number("the end", 0, 2 * kMaxPosition);
  residency.offset = Size("the offset");
  residency.copy_in = ReadCopyIndex("the copy in");
  residency.copy_out = ReadCopyIndex("the copy out");
  plan_.residencies.push_back(residency);
}

void Parser::ReadExec() {
  Command command;
  command.op = Index("the op");
  ReadWaits(std::move(command));
}

void Parser::ReadCopy(Queue queue) {
  Command command;
  command.queue = queue;
  command.residency = Index("the residency");
  command.host_offset = Size("the offset on the host");
  ReadWaits(std::move(command));
}

void Parser::ReadWaits(Command command) {
  ReadList("what is waited for", [&](CommandIndex index, std::int32_t lag) {
    command.waits.push_back({index, lag});
  });
  plan_.commands.push_back(std::move(command));
}

void Parser::ReadQueue() {
  const std::string_view field = Field("the queue");
  int queue = 0;
  while (queue < kQueues && field != Name(static_cast<Queue>(queue))) ++queue;
  if (queue == kQueues) {
    Fail(fmt::format("unknown queue {}; expected compute, copy-out or copy-in", Quote(field)));
  }
  std::vector<CommandIndex>& commands = plan_.queues[static_cast<std::size_t>(queue)];
  ReadList("the order of the queue", [&](CommandIndex index, std::int32_t back) {
    if (back != 0) Fail("the order of a queue has no iterations");
    commands.push_back(index);
  });
}

void Parser::ReadChecksum() {
  const std::uint64_t expected = Hexadecimal("the checksum");
  if (mode_ == ChecksumMode::kVerify && expected != sum_.digest()) {
    Fail(
        fmt::format("checksum mismatch: the file says {:016x}, its content has {:016x}; it was "
                    "changed after it was written; copy or plan it again",
                    expected, sum_.digest()));
  }
  CheckTotals();
  finished_ = true;
}

void Parser::CheckPositions(const Problem& problem) const {
  // Every position is a malloc, a free or an op; a few may be of what the iteration leaves out.
  constexpr std::size_t kSlack = 16;
  const std::size_t events = 2 * problem.variables.size() + problem.ops.size();
  if (static_cast<std::size_t>(problem.period) > events + kSlack) {
    Fail(fmt::format("the iteration has {} positions and no more than {} events", problem.period,
                     events));
  }
}

void Parser::CheckTotals() const {
  const Machine& machine = plan_.machine;
  CheckPositions(plan_.problem);
  if (plan_.rewriting) CheckPositions(plan_.rewriting->original);
  double bytes = 0;
  double ns = plan_.rewriting ? planned_ns_ : total_ns_;
  for (const Command& command : plan_.commands) {
    if (command.queue == Queue::kCompute) continue;
    const auto r = static_cast<std::size_t>(command.residency);
    if (r >= plan_.residencies.size()) continue;  // CheckPlan() says so.
    const auto v = static_cast<std::size_t>(plan_.residencies[r].variable);
    if (v >= plan_.problem.variables.size()) continue;
    const auto size = static_cast<double>(plan_.problem.variables[v].size_bytes);
    const bool out = command.queue == Queue::kCopyOut;
    bytes += size;
    ns += static_cast<double>(out ? machine.out_latency_ns : machine.in_latency_ns) +
          size * 1e9 / (out ? machine.both_out_bytes_per_s : machine.both_in_bytes_per_s);
  }
  if (ns >= kMaxIterationNs || bytes >= static_cast<double>(kMaxBytes)) {
    Fail("the copies of an iteration take more than 15 years or 2^62 bytes");
  }
}

}  // namespace

Plan ReadPlan(const std::string& path) {
  LineReader reader(path);
  Parser parser(path, ChecksumMode::kVerify);
  while (reader.Next()) parser.Feed(reader.line(), reader.complete());
  return parser.Finish();
}

Plan ParsePlan(std::string_view text, const std::string& source, ChecksumMode mode) {
  Parser parser(source, mode);
  FeedLines(text, source, "a plan",
            [&](std::string_view line, bool complete) { parser.Feed(line, complete); });
  return parser.Finish();
}

}  // namespace plimsoll::plan
