// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/chain/chain.h"

namespace plimsoll::chain {

/// Reads a chain from its JSON file (docs/formats.md), plain or gzip. Throws InputError with the
/// file, the stage and the field that is missing, of the wrong kind, negative or absurd.
Chain ReadChain(const std::string& path);

/// Reads a chain from text; `source` stands for the file in messages.
Chain ParseChain(std::string_view text, const std::string& source);

}  // namespace plimsoll::chain
