// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace plimsoll::trace {

/// What may be done with an op beyond running it once.
struct OpTraits {
  /// Whether running it again on the same contents gives the same bits, and does nothing else that
  /// anybody could see but for what `state_reads` says.
  bool replayable = false;
  /// Whether it draws random numbers: to replay it is to replay its seed.
  bool random = false;
  /// Which of the first 32 operands that it reads are state that it updates on the side, such as
  /// the running mean of a batch norm: bit k is operand k. Results do not depend on them. A replay
  /// gets scratch in their place.
  std::uint32_t state_reads = 0;

  friend bool operator==(const OpTraits&, const OpTraits&) = default;
};

using TraitsByName = std::map<std::string, OpTraits, std::less<>>;

/// Reads what the header of a trace, a JSON object, says under "traits" (docs/formats.md). Throws
/// InputError, naming `source` and its line, if that is not as it should be.
TraitsByName ReadTraits(std::string_view metadata, const std::string& source, std::int64_t line);

}  // namespace plimsoll::trace
