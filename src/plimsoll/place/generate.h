// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plimsoll/base/bytes.h"
#include "plimsoll/place/problem.h"

namespace plimsoll::place {

struct StackOptions {
  std::int64_t count = 1000;          ///< How many buffers; at least 1.
  Bytes peak_bytes = Bytes{1} << 30;  ///< A positive multiple of the alignment.
  std::uint64_t seed = 1;
  Bytes alignment = kDefaultAlignment;  ///< Of every offset and every size.
};

/// Returns a large problem of the kind that training makes: what is allocated last is mostly freed
/// first, but near the top of the stack the order is sometimes disturbed.
///
///     load
///     peak ┤   ╱╲    ╱╲  ╱╲   ╱╲
///          │  ╱  ╲  ╱  ╲╱  ╲ ╱  ╲
///          │ ╱    ╲╱        ╳    ╲
///        0 ┼───────────────────────▶ time
///
/// The load returns to exactly `peak_bytes` again and again and never exceeds it, so peak_bytes is
/// a lower bound on every placement; because of the disorder it need not be reached. Buffers are in
/// order of their lower ends, and their ids are their positions. Every moment is the start or the
/// end of one buffer. The same options give the same problem on every platform, in linear time.
Problem GenerateStack(const StackOptions& options);

}  // namespace plimsoll::place
