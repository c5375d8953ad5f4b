// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/signature.h"

#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/checksum.h"

namespace plimsoll::plan {
namespace {

/// Collects numbers and texts so that different ones never become the same bytes.
class Hasher {
 public:
  void Add(std::int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      bytes_ += static_cast<char>(static_cast<std::uint64_t>(number) >> shift & 0xff);
    }
    if (bytes_.size() < kBlockBytes) return;
    sum_.Add(bytes_);
    bytes_.clear();
  }
  void Add(std::string_view text) {
    Add(static_cast<std::int64_t>(text.size()));
    bytes_ += text;
  }
  std::uint64_t Finish() {
    sum_.Add(bytes_);
    return sum_.digest();
  }

 private:
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

  std::string bytes_;
  Checksum sum_;
};

void AddOperands(std::span<const Operand> operands, Hasher* hasher) {
  hasher->Add(static_cast<std::int64_t>(operands.size()));
  for (const Operand& operand : operands) {
    hasher->Add(operand.variable);
    hasher->Add(operand.age);
  }
}

}  // namespace

std::uint64_t Signature(const Problem& problem) {
  Hasher hasher;
  hasher.Add(problem.cyclic ? 1 : 0);
  hasher.Add(problem.period);
  hasher.Add(static_cast<std::int64_t>(problem.variables.size()));
  for (const Variable& variable : problem.variables) {
    hasher.Add(variable.size_bytes);
    hasher.Add(variable.begin);
    hasher.Add(variable.end);
    hasher.Add(static_cast<std::int64_t>(variable.kind));
  }
  hasher.Add(static_cast<std::int64_t>(problem.ops.size()));
  for (const Op& op : problem.ops) {
    hasher.Add(problem.op_names[static_cast<std::size_t>(op.name)]);
    hasher.Add(op.position);
    AddOperands(problem.reads(op), &hasher);
    AddOperands(problem.writes(op), &hasher);
  }
  return hasher.Finish();
}

}  // namespace plimsoll::plan
