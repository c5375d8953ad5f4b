// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "plimsoll/chain/rotor.h"

/// What `pofo` decides, the dynamic program that proposes it, and what it is worth.
namespace plimsoll::chain {

/// Stages first .. last. A block of one stage may keep everything that its forward makes. Any other
/// is run forward, keeping its input alone, and then, when its output's gradient is there, forward
/// and backward by rotor within `slots` slots. The last block of a chain comes by rotor at once.
struct Block {
  std::size_t first = 0;
  std::size_t last = 0;
  bool again = false;      ///< Whether by rotor.
  std::int64_t slots = 0;  ///< If so.

  friend bool operator==(const Block&, const Block&) = default;
};

/// Blocks in order, and which activations leave.
struct Recipe {
  std::vector<Block> blocks;
  std::vector<char> offloaded;  ///< A mark for each of x_0 .. x_{n-1}; idle where x_i is not kept.

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

/// Returns the recipe in which all is kept; of a schedule, with what leaves in it.
Recipe PlainRecipe(std::size_t stages, const Schedule* schedule = nullptr);

/// Plays recipes in the chain's simulator.
class Kitchen {
 public:
  /// Both must outlive it.
  Kitchen(const Question& question, const RotorTable& table) : question_(question), table_(table) {}

  static constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

  /// The iteration's time, or kNever if it does not fit or cannot be played.
  Nanoseconds Time(const Recipe& recipe) const;
  std::optional<Schedule> Play(const Recipe& recipe) const;

 private:
  /// Nothing if a block does not fit into its slots.
  std::optional<Model> MakeModelOf(const Recipe& recipe) const;
  Decision DecisionOf(const Recipe& recipe, const Model& model) const;

  const Question& question_;
  const RotorTable& table_;
};

/// Returns recipes that promise to be fast, the best by the dynamic program first, at most `most`.
/// `below_ns` is a time that is known: what cannot be faster is not followed.
std::vector<Recipe> ProposeRecipes(const Question& question, const RotorTable& table,
                                   Nanoseconds below_ns, std::size_t most);

}  // namespace plimsoll::chain
