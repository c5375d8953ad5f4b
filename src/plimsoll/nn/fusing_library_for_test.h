// SPDX-License-Identifier: Apache-2.0
//
// The host's kernels behind the interface of a library that fuses and groups. For tests only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/onednn/library.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::nn {

/// Runs a kernel on pointers, in a workspace of its own.
inline void RunAlone(const Kernel& kernel, std::vector<std::byte*> reads,
                     std::vector<std::byte*> writes, const StepScalars& scalars) {
  std::vector<std::byte> workspace(static_cast<std::size_t>(kernel.workspace_bytes));
  if (!workspace.empty()) writes.push_back(workspace.data());
  kernel.run({.reads = reads, .writes = writes}, scalars);
}

/// Throws Error if an op writes a block that it reads and that op.h does not let it share: `shared`
/// has the read that each write may be, or -1.
inline void RequireInPlace(const OpSpec& spec, const exec::Launch& launch,
                           const std::vector<int>& shared) {
  for (std::size_t w = 0; w < shared.size(); ++w) {
    for (std::size_t r = 0; r < launch.reads.size(); ++r) {
      if (launch.writes[w] == launch.reads[r] && shared[w] != static_cast<int>(r)) {
        Refuse(spec,
               "write " + std::to_string(w) + " is in the block of read " + std::to_string(r));
      }
    }
  }
}

/// Fused ops and groups are the host's kernels one after the other, with everything in between in
/// memory of its own, so that numbers should be those of the host to the bit.
class FusingLibrary final : public KernelLibrary {
 public:
  explicit FusingLibrary(bool fuses = true, int group = 5, bool checks = true)
      : fuses_(fuses), group_(group), checks_(checks) {}

  std::string_view name() const override { return "fusing"; }
  bool fuses_batch_norm() const override { return fuses_; }
  int update_group() const override { return group_; }

  Kernel Prepare(const OpSpec& spec) override {
    switch (spec.kind) {
      case OpKind::kBatchNormStatistics:
        return Statistics(spec);
      case OpKind::kBatchNormNormalize:
      case OpKind::kBatchNormReluForward:
        return Normalize(spec);
      case OpKind::kBatchNormReluBackward:
        return Backward(spec);
      case OpKind::kSgdUpdate:
        return Update(spec, 3, 2);
      case OpKind::kAdamWUpdate:
        return Update(spec, 4, 3);
      default:
        return inner_->Prepare(spec);
    }
  }

 private:
  /// The host's batch norm of all that the two halves have to do with.
  Kernel PrepareNorm(const OpSpec& spec, const Tensor& x, const Tensor& channels) {
    if (!fuses_) Refuse(spec, "this library fuses nothing");
    const Tensor& c = channels;
    return inner_->Prepare(
        {OpKind::kBatchNormForward, {x, c, c, c, c}, {x, c, c, c, c}, spec.attributes});
  }

  Kernel Statistics(const OpSpec& spec) {
    RequireOperands(spec, 3, 4);
    const Tensor& x = spec.reads[0];
    const Kernel norm = PrepareNorm(spec, x, spec.reads[1]);
    const auto channels = static_cast<std::size_t>(spec.reads[1].size_bytes());
    return {.run = [=](const exec::Launch& at, const StepScalars& scalars) {
      RequireInPlace(spec, at, {-1, -1, 1, 2});
      std::vector<std::byte> any(channels);  // Gamma and beta, of which nothing is left.
      std::vector<std::byte> y(static_cast<std::size_t>(x.size_bytes()));
      RunAlone(norm, {at.reads[0], any.data(), any.data(), at.reads[1], at.reads[2]},
               {y.data(), at.writes[0], at.writes[1], at.writes[2], at.writes[3]}, scalars);
    }};
  }

  /// With the sum and the ReLU, if the op has them. If it checks, throws Error for other statistics
  /// than those of x.
  Kernel Normalize(const OpSpec& spec) {
    const bool rectifies = spec.kind == OpKind::kBatchNormReluForward;
    const bool adds = rectifies && spec.reads.size() == 6;
    RequireOperands(spec, adds ? 6 : 5, rectifies ? 2 : 1);
    const Tensor& y = spec.writes[0];
    const Kernel norm = PrepareNorm(spec, spec.reads[0], spec.reads[1]);
    const Kernel add = inner_->Prepare({OpKind::kAdd, {y, y}, {y}});
    const Kernel relu =
        inner_->Prepare({OpKind::kReluForward, {y}, {y, {y.shape, ElementType::kBit}}});
    if (adds) RequireShape(spec, spec.reads[5], y.shape);
    const auto channels = static_cast<std::size_t>(spec.reads[1].size_bytes());
    return {.run = [=, checks = checks_](const exec::Launch& at, const StepScalars& scalars) {
      RequireInPlace(spec, at, {adds ? 5 : -1});
      std::vector<std::byte> normed(static_cast<std::size_t>(y.size_bytes()));
      std::vector<std::vector<std::byte>> made(6, std::vector<std::byte>(channels));
      RunAlone(norm, {at.reads[0], at.reads[1], at.reads[2], made[0].data(), made[1].data()},
               {normed.data(), made[2].data(), made[3].data(), made[4].data(), made[5].data()},
               scalars);
      for (const std::size_t i : {0, 1}) {
        if (checks && std::memcmp(made[2 + i].data(), at.reads[3 + i], channels) != 0) {
          Refuse(spec, "these are not the statistics of x");
        }
      }
      if (adds) RunAlone(add, {normed.data(), at.reads[5]}, {normed.data()}, scalars);
      if (rectifies) RunAlone(relu, {normed.data()}, {at.writes[0], at.writes[1]}, scalars);
      if (!rectifies) std::memcpy(at.writes[0], normed.data(), normed.size());
    }};
  }

  Kernel Backward(const OpSpec& spec) {
    if (!fuses_) Refuse(spec, "this library fuses nothing");
    RequireOperands(spec, 6, 3, 4);
    const bool passes_on = spec.writes.size() == 4;
    const Tensor& dy = spec.reads[1];
    if (passes_on) RequireShape(spec, spec.writes[3], dy.shape);
    const Kernel relu = inner_->Prepare({OpKind::kReluBackward, {dy, spec.reads[2]}, {dy}});
    const Kernel norm =
        inner_->Prepare({OpKind::kBatchNormBackward,
                         {spec.reads[0], dy, spec.reads[3], spec.reads[4], spec.reads[5]},
                         {spec.writes.begin(), spec.writes.begin() + 3},
                         spec.attributes});
    return {.run = [=](const exec::Launch& at, const StepScalars& scalars) {
      RequireInPlace(spec, at,
                     passes_on ? std::vector<int>{-1, -1, -1, 1} : std::vector<int>{1, -1, -1});
      std::vector<std::byte> rectified(static_cast<std::size_t>(dy.size_bytes()));
      RunAlone(relu, {at.reads[1], at.reads[2]}, {rectified.data()}, scalars);
      if (passes_on) std::memcpy(at.writes[3], rectified.data(), rectified.size());
      RunAlone(norm, {at.reads[0], rectified.data(), at.reads[3], at.reads[4], at.reads[5]},
               {at.writes[0], at.writes[1], at.writes[2]}, scalars);
    }};
  }

  /// `reads` and `writes` are those of one parameter.
  Kernel Update(const OpSpec& spec, std::size_t reads, std::size_t writes) {
    const std::size_t count = spec.reads.size() / reads;
    if (count < 1 || count > static_cast<std::size_t>(group_)) Refuse(spec, "a group too large");
    RequireOperands(spec, count * reads, count * writes);
    std::vector<Kernel> kernels;
    for (std::size_t i = 0; i < count; ++i) {
      const auto r = spec.reads.begin() + static_cast<std::ptrdiff_t>(i * reads);
      const auto w = spec.writes.begin() + static_cast<std::ptrdiff_t>(i * writes);
      kernels.push_back(inner_->Prepare({spec.kind,
                                         {r, r + static_cast<std::ptrdiff_t>(reads)},
                                         {w, w + static_cast<std::ptrdiff_t>(writes)},
                                         spec.attributes}));
    }
    return {.run = [=](const exec::Launch& at, const StepScalars& scalars) {
      for (std::size_t i = 0; i < count; ++i) {
        const auto r = at.reads.subspan(i * reads, reads);
        const auto w = at.writes.subspan(i * writes, writes);
        RunAlone(kernels[i], {r.begin(), r.end()}, {w.begin(), w.end()}, scalars);
      }
    }};
  }

  const std::unique_ptr<KernelLibrary> inner_ = MakeOneDnnLibrary();
  const bool fuses_;
  const int group_;
  const bool checks_;
};

}  // namespace plimsoll::nn
