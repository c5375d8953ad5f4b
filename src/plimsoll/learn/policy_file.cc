// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>

#include "plimsoll/base/checksum.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/learn/operation_graph.h"
#include "plimsoll/learn/policy.h"

namespace plimsoll::learn {
namespace {

constexpr std::string_view kFirstLine = "policy 1";
constexpr std::size_t kPerLine = 8;

/// Takes a policy in, line by line.
class PolicyParser {
 public:
  PolicyParser(std::string source, int width)
      : source_(std::move(source)), size_(PolicySize(width)) {
    policy_.width = width;
  }

  void Feed(std::string_view line, bool complete) {
    ++number_;
    if (number_ == 1) return FeedFirst(line);
    if (ended_) Fail("there is more behind the checksum; take the file as it was written");
    if (!complete) FailEarly();
    if (line.starts_with("checksum ")) return FeedChecksum(line.substr(9));
    AddToSum(line);
    if (number_ == 2) return FeedShape(line);
    FeedValues(line);
  }

  Policy Finish() {
    if (!ended_) FailEarly();
    return std::move(policy_);
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw InputError(source_, number_, reason);
  }
  [[noreturn]] void FailEarly() const {
    throw InputError(source_, 0,
                     "the file ends early: its checksum is missing; copy it again or train anew");
  }

  void AddToSum(std::string_view line) {
    sum_.Add(line);
    sum_.Add("\n");
  }

  void FeedFirst(std::string_view line) {
    if (line != kFirstLine) {
      Fail(
          fmt::format("not the weights of a policy of version 1: {} instead of \"{}\"; "
                      "give what --weights-out has written",
                      Quote(line), kFirstLine));
    }
    AddToSum(line);
  }

  void FeedShape(std::string_view line) {
    const std::string wanted =
        fmt::format("shape {} {} {}", policy_.width, static_cast<int>(kFeatures), kRounds);
    if (line == wanted) return;
    if (!line.starts_with("shape ")) Fail(fmt::format("{} is no shape", Quote(line)));
    Fail(
        fmt::format("weights of a network of another shape: {}, this one has \"{}\" (width, "
                    "features, rounds); train anew with --weights-out",
                    Quote(line), wanted));
  }

  void FeedValues(std::string_view line) {
    while (!line.empty()) {
      const std::string_view field = TakeField(&line, ' ');
      std::uint32_t bits = 0;
      const auto [end, error] =
          std::from_chars(field.data(), field.data() + field.size(), bits, 16);
      const auto value = std::bit_cast<float>(bits);
      if (field.size() != 8 || error != std::errc() || end != field.data() + field.size()) {
        Fail(fmt::format("{} is no weight: eight hexadecimal digits", Quote(field)));
      }
      if (!std::isfinite(value)) Fail(fmt::format("{} is not a finite weight", Quote(field)));
      if (policy_.values.size() == size_) Fail(fmt::format("more than {} weights", size_));
      policy_.values.push_back(value);
    }
  }

  void FeedChecksum(std::string_view text) {
    if (text != fmt::format("{:016x}", sum_.digest())) {
      Fail("the checksum does not match: the file is damaged; copy it again or train anew");
    }
    if (policy_.values.size() != size_) {
      Fail(fmt::format("{} weights instead of {}", policy_.values.size(), size_));
    }
    ended_ = true;
  }

  const std::string source_;
  const std::size_t size_;
  Policy policy_;
  Checksum sum_;
  std::int64_t number_ = 0;
  bool ended_ = false;
};

}  // namespace

std::string FormatPolicy(const Policy& policy) {
  std::string text = fmt::format("{}\nshape {} {} {}\n", kFirstLine, policy.width,
                                 static_cast<int>(kFeatures), kRounds);
  for (std::size_t k = 0; k < policy.values.size(); ++k) {
    const bool last = k % kPerLine == kPerLine - 1 || k + 1 == policy.values.size();
    fmt::format_to(std::back_inserter(text), "{:08x}{}",
                   std::bit_cast<std::uint32_t>(policy.values[k]), last ? '\n' : ' ');
  }
  return text + fmt::format("checksum {:016x}\n", ChecksumOf(text));
}

void WritePolicy(const Policy& policy, const std::string& path) {
  WriteFileWhole(path, FormatPolicy(policy));
}

Policy ReadPolicy(const std::string& path, int width) {
  LineReader reader(path);
  PolicyParser parser(path, width);
  while (reader.Next()) parser.Feed(reader.line(), reader.complete());
  return parser.Finish();
}

Policy ParsePolicy(std::string_view text, const std::string& source, int width) {
  PolicyParser parser(source, width);
  FeedLines(text, source, "a policy",
            [&](std::string_view line, bool complete) { parser.Feed(line, complete); });
  return parser.Finish();
}

}  // namespace plimsoll::learn
