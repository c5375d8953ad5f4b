// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll {

/// An index as the standard containers take it: ours are signed, -1 being none.
constexpr std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace plimsoll
