// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plimsoll/place/problem.h"

namespace plimsoll::report {

struct DrawingSize {
  std::size_t columns = 72;  ///< Of the picture itself, without its margin.
  std::size_t rows = 16;
};

/// Draws an arena over time, as figure 3 of paper 001 does, in characters: time across, addresses
/// up, the darker the fuller. The margin has the highest and the lowest address.
///
///     447.30 MiB ┤    ░▒███▓░
///                │  ▒████████▓▒
///            0 B ┤██████████████
std::string DrawArena(const place::Problem& problem, const std::vector<Bytes>& offsets,
                      const DrawingSize& size);

/// Draws a curve of bytes over time, filled below, in the same frame.
std::string DrawLoad(const std::vector<Bytes>& load_bytes, const DrawingSize& size);

}  // namespace plimsoll::report
