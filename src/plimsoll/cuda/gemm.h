// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plimsoll/base/bytes.h"

/// Products of matrices that are stored row by row:
///
///     result [rows, columns] = left [rows, inner] * right [inner, columns] + bias [columns]
namespace plimsoll::cuda {

class Handles;

struct GemmShape {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t inner = 1;
  std::int64_t left_stride = 1;  ///< From row to row, as stored.
  std::int64_t right_stride = 1;
  std::int64_t result_stride = 1;
  bool left_transposed = false;  ///< Stored as [inner, rows].
  bool right_transposed = false;
  bool bfloat16 = false;         ///< Of left and right.
  bool result_bfloat16 = false;  ///< Of the result and of a bias.
  bool bias = false;
  bool accumulate = false;            ///< Adds to the result.
  std::int64_t alignment_bytes = 64;  ///< Of all addresses but the workspace's.

  friend auto operator<=>(const GemmShape&, const GemmShape&) = default;
};

struct GemmOperands {
  const void* left = nullptr;
  const void* right = nullptr;
  const void* bias = nullptr;
  void* result = nullptr;
};

class GemmPlan {
 public:
  virtual ~GemmPlan() = default;
  /// The address of the workspace is a multiple of kGemmAlignment.
  virtual Bytes workspace_bytes() const = 0;
  virtual void Run(Handles& handles, const GemmOperands& operands, std::byte* workspace,
                   void* stream) const = 0;
  Nanoseconds expected_ns = 0;  ///< 0 if it was not measured.
  bool plain = false;           ///< Of MakePlainGemm().
};

/// What cuBLAS asks of its workspace.
inline constexpr Bytes kGemmAlignment = 256;

/// Returns the first address from there on that cuBLAS can use.
inline std::byte* AlignForGemm(std::byte* workspace) {
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  return workspace + (kGemmAlignment - address % kGemmAlignment) % kGemmAlignment;
}

/// Chooses, once for each shape.
std::shared_ptr<const GemmPlan> PlanGemm(const GemmShape& shape, Handles& handles);

/// A plain kernel, slow and always there.
std::shared_ptr<GemmPlan> MakePlainGemm(const GemmShape& shape);

}  // namespace plimsoll::cuda
