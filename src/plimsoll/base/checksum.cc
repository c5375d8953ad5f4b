// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/checksum.h"

// All of xxHash, compiled here: nothing to link, nothing for users of the installed library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace plimsoll {

struct Checksum::State {
  XXH3_state_t value;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->value); }

Checksum::~Checksum() = default;

void Checksum::Add(std::string_view text) {
  XXH3_64bits_update(&state_->value, text.data(), text.size());
}

std::uint64_t Checksum::digest() const { return XXH3_64bits_digest(&state_->value); }

std::uint64_t ChecksumOf(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace plimsoll
