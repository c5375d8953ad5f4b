// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "plimsoll/base/bytes.h"

namespace plimsoll::planners {

/// Returns the largest batch whose need is within the limit, at most `most`; 0 if not even 1 is.
///
/// Needs grow with the batch, nearly along a line: so the next batch to be looked at is where the
/// line through the two nearest needs crosses the limit. That seldom takes more than ten looks.
/// Where needs do not grow everywhere, the answer is still a batch that fits, with one above it
/// that does not.
///
///     need              ╱ ·
///     limit ─────────·─╱──────
///                ·  ╱
///            ·   lo      hi
std::int64_t FindLargestBatch(Bytes limit_bytes, std::int64_t most,
                              const std::function<Bytes(std::int64_t batch)>& needs);

}  // namespace plimsoll::planners
