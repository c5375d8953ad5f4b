// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace plimsoll {

/// XXH3 with 64 bits, a piece at a time: the same on every platform, and the same however the text
/// is cut into pieces. Guards against accidents, not against forgery. Not thread-safe.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void Add(std::string_view text);
  /// Returns the checksum of all that was added so far.
  std::uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the checksum of one text.
std::uint64_t ChecksumOf(std::string_view text);

}  // namespace plimsoll
