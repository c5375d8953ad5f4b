// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "plimsoll/nn/op.h"

/// What kernels ask of the shapes that they are prepared for.
namespace plimsoll::nn {

/// "conv_forward: reads [1,2,2,3] [8,3,3,3], writes [1,2,2,8]".
std::string Describe(const OpSpec& spec);
/// Throws Error: the op, its shapes, and what is wrong with them.
[[noreturn]] void Refuse(const OpSpec& spec, const std::string& reason);

/// Checks that there are so many operands. `writes_most` is for outputs that may be left out.
void RequireOperands(const OpSpec& spec, std::size_t reads, std::size_t writes,
                     std::size_t writes_most = 0);
/// Checks that an operand has this shape.
void RequireShape(const OpSpec& spec, const Tensor& tensor, const Shape& shape);
/// Checks that an operand has so many dimensions, none of them empty.
void RequireRank(const OpSpec& spec, const Tensor& tensor, std::size_t rank);
/// Checks that an operand has so many elements; for what is seen as one row, whatever its shape.
void RequireCount(const OpSpec& spec, const Tensor& tensor, std::int64_t count);
void RequireType(const OpSpec& spec, const Tensor& tensor, ElementType type);

/// The last dimension, and the product of those before it. REQUIRES: there is one.
std::int64_t Columns(const OpSpec& spec, const Tensor& tensor);
std::int64_t Rows(const OpSpec& spec, const Tensor& tensor);

}  // namespace plimsoll::nn
