// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll {

/// Writes a text of any bytes as one word of visible ASCII, for files whose fields are separated by
/// spaces: what is not visible ASCII, and the percent sign, becomes %XX, as in a URL. The empty
/// text becomes a lone %.
std::string Escape(std::string_view text);

/// Reads what Escape() has written; nothing if it cannot have.
std::optional<std::string> Unescape(std::string_view word);

}  // namespace plimsoll
