// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace plimsoll::chain {
namespace {

/// An op in the row.
struct Turn {
  std::string name;
  std::size_t place = 0;
  Span span;
};

class Judge {
 public:
  Judge(const Chain& chain, std::int64_t bandwidth, const Schedule& schedule, Bytes limit,
        std::size_t most)
      : chain_(chain),
        n_(chain.stages.size()),
        bandwidth_(bandwidth),
        schedule_(schedule),
        limit_(limit),
        most_(most),
        forward_(n_),
        backward_(n_),
        out_(n_ + 1),
        in_(n_ + 1) {}

  std::vector<Violation> Run() {
    if (!FindRuns()) return std::move(violations_);
    CheckOps();
    CheckTransfers();
    CheckLink();
    for (std::size_t i = 0; i <= n_; ++i) CheckJourney(i);
    if (violations_.empty()) CheckMemory();
    return std::move(violations_);
  }

 private:
  void Report(std::string message) {
    if (violations_.size() < most_) violations_.push_back({std::move(message)});
  }

  /// Notes when each stage runs. False if the row of ops makes no sense.
  bool FindRuns() {
    const std::size_t count = schedule_.ops.size();
    if (schedule_.order.empty() ? count != 2 * n_ : count != schedule_.order.size()) {
      Report(fmt::format("{} ops for {} stages", count, n_));
      return false;
    }
    std::size_t due = 2 * n_;  // Backward: this many ops are left, in the end none.
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t op = OpAt(k);
      const auto n = static_cast<std::int64_t>(n_);
      const bool forward = op >= 0 && op < n;
      const bool in_turn = k < n_ ? op == static_cast<std::int64_t>(k)
                                  : forward || op == 2 * n - static_cast<std::int64_t>(due - n_);
      if (!in_turn) {
        Report(fmt::format("op {} of the row is out of turn", k));
        return false;
      }
      if (forward) {
        if (k >= n_ && static_cast<std::size_t>(op) >= due - n_) {
          Report(fmt::format("F_{} runs again after B_{}", op, op));
          return false;
        }
        forward_[static_cast<std::size_t>(op)].push_back(
            {fmt::format("F_{}", op), k, schedule_.ops[k]});
      } else {
        --due;
        backward_[due - n_] = {fmt::format("B_{}", due - n_), k, schedule_.ops[k]};
      }
    }
    if (due != n_ || OpAt(count - 1) < static_cast<std::int64_t>(n_)) {
      Report(fmt::format("the row ends {} backward ops early", due - n_));
      return false;
    }
    return true;
  }

  std::int64_t OpAt(std::size_t k) const {
    return schedule_.order.empty() ? static_cast<std::int64_t>(k) : schedule_.order[k];
  }
  /// The first time.
  const Span& Forward(std::size_t stage) const { return forward_[stage].front().span; }
  const Span& Backward(std::size_t stage) const { return backward_[stage].span; }
  /// Whether x_i is made more than once.
  bool IsMadeAgain(std::size_t i) const { return i > 0 && forward_[i - 1].size() > 1; }
  /// What can leave of x_i: all, or the output alone if the rest is not kept.
  Bytes LeavingBytes(std::size_t i) const {
    return IsMadeAgain(i) ? chain_.OutputBytes(i) : chain_.ActivationBytes(i);
  }
  /// All ops that read the output x_i.
  std::vector<Turn> ReadersOf(std::size_t i) const {
    std::vector<Turn> readers;
    if (i < n_) {
      readers = forward_[i];
      readers.push_back(backward_[i]);
    }
    if (i > 0) readers.push_back(backward_[i - 1]);
    return readers;
  }

  static std::string Describe(const Span& span) {
    return fmt::format("[{}, {}) ns", span.start_ns, span.end_ns);
  }

  void CheckOps() {
    Nanoseconds free_from = 0;
    for (std::size_t k = 0; k < schedule_.ops.size(); ++k) {
      const auto op = static_cast<std::size_t>(OpAt(k));
      const bool forward = op < n_;
      const std::size_t stage = forward ? op : 2 * n_ - 1 - op;
      const Span& span = schedule_.ops[k];
      const std::string name =
          fmt::format("{}_{} at {}", forward ? "F" : "B", stage, Describe(span));
      if (span.start_ns < free_from) {
        Report(fmt::format("{} starts before {} ns, when the op before it ends", name, free_from));
      }
      const Nanoseconds length =
          forward ? chain_.stages[stage].forward_ns : chain_.stages[stage].backward_ns;
      if (span.end_ns - span.start_ns != length) {
        Report(fmt::format("{} should take {} ns", name, length));
      }
      free_from = std::max(free_from, span.end_ns);
    }
  }

  /// Each transfer alone: it names an activation, for the first time in its direction, and takes as
  /// long as the link does: at least the exact time, and less than a nanosecond more.
  void CheckTransfers() {
    for (const TimedTransfer& timed : schedule_.transfers) {
      const std::int32_t i = timed.transfer.activation;
      const bool out = timed.transfer.direction == Direction::kOut;
      const std::string name =
          fmt::format("x_{} {} at {}", i, out ? "out" : "in", Describe(timed.span));
      if (i < 0 || i > static_cast<std::int32_t>(n_)) {
        Report(fmt::format("{}: there is no such activation", name));
        continue;
      }
      std::optional<Span>& place = (out ? out_ : in_)[static_cast<std::size_t>(i)];
      if (place) Report(fmt::format("{}: it has gone that way before", name));
      place = timed.span;
      const auto length = static_cast<long double>(timed.span.end_ns - timed.span.start_ns);
      const auto bytes = static_cast<long double>(LeavingBytes(static_cast<std::size_t>(i)));
      const long double exact = bytes * 1e9L / static_cast<long double>(bandwidth_);
      if (length < exact - 1e-6L || length > exact + 1.000001L) {
        Report(fmt::format("{} should take {:.1f} ns", name, static_cast<double>(exact)));
      }
    }
  }

  void CheckLink() {
    std::vector<Span> spans;
    for (const TimedTransfer& timed : schedule_.transfers) spans.push_back(timed.span);
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return std::pair(a.start_ns, a.end_ns) < std::pair(b.start_ns, b.end_ns);
    });
    for (std::size_t k = 1; k < spans.size(); ++k) {
      if (spans[k].start_ns < spans[k - 1].end_ns) {
        Report(fmt::format("transfers at {} and {} share the link", Describe(spans[k - 1]),
                           Describe(spans[k])));
      }
    }
  }

  /// One activation: made, out, read by forward, in, read by backward.
  void CheckJourney(std::size_t i) {
    if (!out_[i] && !in_[i]) return;
    if (!out_[i] || !in_[i]) {
      Report(fmt::format("x_{} goes {} only", i, out_[i] ? "out" : "in"));
      return;
    }
    const Nanoseconds made = i == 0 ? 0 : Forward(i - 1).end_ns;
    if (out_[i]->start_ns < made) Report(fmt::format("x_{} leaves before it is made", i));
    if (in_[i]->start_ns < out_[i]->end_ns) {
      Report(fmt::format("x_{} comes back before it has left", i));
    }
    if (i < n_ && in_[i]->start_ns < Forward(i).end_ns) {
      Report(fmt::format("x_{} comes back before F_{} has read it", i, i));
    }
    if (IsMadeAgain(i) && in_[i]->end_ns > forward_[i - 1][1].span.start_ns) {
      Report(fmt::format("x_{} is on its way while it is made again", i));
    }
    // The first to read x_i again is F_i or B_i; or, for x_n, B_{n-1}.
    for (const Turn& reader : ReadersOf(i)) {
      if (i < n_ && reader.place == forward_[i].front().place) continue;
      if (in_[i]->end_ns > reader.span.start_ns) {
        Report(fmt::format("{} reads x_{} before it is back", reader.name, i));
        return;
      }
    }
  }

  void Hold(Nanoseconds from, Nanoseconds to, Bytes bytes) {
    if (from >= to) return;
    load_[from] += bytes;
    load_[to] -= bytes;
  }

  /// The end of the last op that reads what `maker` makes of x_i before `anew` makes it anew.
  Nanoseconds LastRead(std::size_t i, const Turn& maker, const Turn& anew) const {
    Nanoseconds last = maker.span.end_ns;
    for (const Turn& reader : ReadersOf(i)) {
      if (reader.place > maker.place && reader.place < anew.place) {
        last = std::max(last, reader.span.end_ns);
      }
    }
    return last;
  }

  /// x_i as it is made the first time, of which `bytes` can be away.
  void HoldFirst(std::size_t i, Nanoseconds born, Nanoseconds dies, Bytes bytes) {
    if (!out_[i]) {
      Hold(born, dies, bytes);
      return;
    }
    const Nanoseconds read = i == n_ ? 0 : Forward(i).end_ns;
    Hold(born, std::max(out_[i]->end_ns, read), bytes);
    Hold(in_[i]->start_ns, dies, bytes);
  }

  /// x_i, made by forward i - 1, as often as that runs.
  void HoldActivation(std::size_t i) {
    const std::vector<Turn>& makers = forward_[i - 1];
    const Bytes inside = chain_.stages[i - 1].inside_bytes;
    for (std::size_t a = 0; a < makers.size(); ++a) {
      const bool last = a + 1 == makers.size();
      const Nanoseconds dies =
          last ? Backward(i - 1).end_ns : LastRead(i, makers[a], makers[a + 1]);
      const Nanoseconds inside_dies = last ? Backward(i - 1).end_ns : makers[a].span.end_ns;
      const Nanoseconds born = makers[a].span.start_ns;
      if (a == 0) {
        HoldFirst(i, born, dies, chain_.OutputBytes(i));
        if (last) {
          HoldFirst(i, born, inside_dies, inside);
          continue;
        }
      } else {
        Hold(born, dies, chain_.OutputBytes(i));
      }
      Hold(born, inside_dies, inside);
    }
  }

  void CheckMemory() {
    HoldFirst(0, 0, Backward(0).end_ns, chain_.input_bytes);
    for (std::size_t i = 1; i <= n_; ++i) HoldActivation(i);
    for (std::size_t i = 0; i < n_; ++i) {
      // y_i from the op that makes it to the end of the op that reads it, B_{i-1}.
      Hold(Backward(i).start_ns, Backward(i == 0 ? 0 : i - 1).end_ns, chain_.GradientBytes(i));
      for (const Turn& run : forward_[i]) {
        Hold(run.span.start_ns, run.span.end_ns, chain_.stages[i].forward_temp_bytes);
      }
      Hold(Backward(i).start_ns, Backward(i).end_ns, chain_.stages[i].backward_temp_bytes);
    }
    Hold(Backward(n_ - 1).start_ns, Backward(n_ - 1).end_ns, chain_.GradientBytes(n_));
    Bytes held = 0;
    for (const auto& [time, change] : load_) {
      held += change;
      if (held > limit_) {
        Report(fmt::format("at {} ns, {} bytes are on the device, the limit is {}", time, held,
                           limit_));
      }
    }
  }

  const Chain& chain_;
  const std::size_t n_;
  const std::int64_t bandwidth_;
  const Schedule& schedule_;
  const Bytes limit_;
  const std::size_t most_;
  std::vector<std::vector<Turn>> forward_;  // Per stage: one or more.
  std::vector<Turn> backward_;              // Per stage.
  std::vector<std::optional<Span>> out_;    // Per activation.
  std::vector<std::optional<Span>> in_;
  std::map<Nanoseconds, Bytes> load_;  // Changes of the bytes on the device.
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> FindViolations(const Chain& chain, std::int64_t bandwidth_bytes_per_s,
                                      const Schedule& schedule, Bytes limit_bytes,
                                      std::size_t most) {
  return Judge(chain, bandwidth_bytes_per_s, schedule, limit_bytes, most).Run();
}

}  // namespace plimsoll::chain
