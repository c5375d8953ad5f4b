// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace plimsoll::chain {
namespace {

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
        out_(n_ + 1),
        in_(n_ + 1) {}

  std::vector<Violation> Run() {
    if (schedule_.ops.size() != 2 * n_) {
      Report(fmt::format("{} ops for {} stages", schedule_.ops.size(), n_));
      return std::move(violations_);
    }
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

  const Span& Forward(std::size_t stage) const { return schedule_.ops[stage]; }
  const Span& Backward(std::size_t stage) const { return schedule_.ops[2 * n_ - 1 - stage]; }

  static std::string Describe(const Span& span) {
    return fmt::format("[{}, {}) ns", span.start_ns, span.end_ns);
  }

  void CheckOps() {
    Nanoseconds free_from = 0;
    for (std::size_t op = 0; op < 2 * n_; ++op) {
      const bool forward = op < n_;
      const std::size_t stage = forward ? op : 2 * n_ - 1 - op;
      const Span& span = schedule_.ops[op];
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
      const auto bytes = static_cast<long double>(chain_.ActivationBytes(i));
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
    // The first to read x_i again is B_i, but for x_n, which only B_{n-1} reads.
    const std::size_t reader = std::min(i, n_ - 1);
    if (in_[i]->end_ns > Backward(reader).start_ns) {
      Report(fmt::format("B_{} reads x_{} before it is back", reader, i));
    }
  }

  void Hold(Nanoseconds from, Nanoseconds to, Bytes bytes) {
    if (from >= to) return;
    load_[from] += bytes;
    load_[to] -= bytes;
  }

  void CheckMemory() {
    for (std::size_t i = 0; i <= n_; ++i) {
      const Bytes bytes = chain_.ActivationBytes(i);
      const Nanoseconds born = i == 0 ? 0 : Forward(i - 1).start_ns;
      const Nanoseconds dies = i == 0 ? Backward(0).end_ns : Backward(i - 1).end_ns;
      if (!out_[i]) {
        Hold(born, dies, bytes);
        continue;
      }
      const Nanoseconds read = i == n_ ? 0 : Forward(i).end_ns;
      Hold(born, std::max(out_[i]->end_ns, read), bytes);
      Hold(in_[i]->start_ns, dies, bytes);
    }
    for (std::size_t i = 0; i < n_; ++i) {
      // y_i from the op that makes it to the end of the op that reads it, B_{i-1}.
      Hold(Backward(i).start_ns, Backward(i == 0 ? 0 : i - 1).end_ns, chain_.GradientBytes(i));
      Hold(Forward(i).start_ns, Forward(i).end_ns, chain_.stages[i].forward_temp_bytes);
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
  std::vector<std::optional<Span>> out_;  // Per activation.
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
