// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::learn {

/// Rounds of equation 1: T in paper 000, which says 4.
inline constexpr int kRounds = 4;
/// Numbers in a node's state: p in paper 000, which does not say.
inline constexpr int kWidth = 16;
inline constexpr int kPolicyMatrices = 8;

struct MatrixShape {
  int rows = 0;
  int columns = 0;

  std::size_t size() const { return static_cast<std::size_t>(rows) * columns; }
};

/// Returns the shapes of W1 to W8 for a width.
std::array<MatrixShape, kPolicyMatrices> PolicyShapes(int width);

/// The weights W1 to W8 of a network, one matrix after the other, by rows. They know nothing of the
/// graph that they were learned on.
struct Policy {
  int width = kWidth;
  std::vector<float> values;

  friend bool operator==(const Policy&, const Policy&) = default;
};

std::size_t PolicySize(int width);

/// Returns small random weights, the same on every platform.
Policy MakeRandomPolicy(int width, std::uint64_t seed);

/// Writes a policy file (docs/formats.md), whole or not at all. Throws FileError.
void WritePolicy(const Policy& policy, const std::string& path);
std::string FormatPolicy(const Policy& policy);

/// Reads it. Throws InputError if it is no policy, one of another shape than `width`, or damaged.
/// What is read has the very bits that were written.
Policy ReadPolicy(const std::string& path, int width = kWidth);
/// The same from a text in memory, which messages call `source`.
Policy ParsePolicy(std::string_view text, const std::string& source, int width = kWidth);

}  // namespace plimsoll::learn
