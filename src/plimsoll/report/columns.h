// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Numbers as a page carries them: columns of differences, each as few bytes as it takes,
/// compressed, in base64. web/data.js reads them.
namespace plimsoll::report {

/// Appends a column: the difference of each value to the one before it, with its sign in the lowest
/// bit, in groups of seven bits, the lowest first.
void AppendColumn(std::span<const std::int64_t> values, std::string* out);

/// Compresses as zlib does (RFC 1950), at its best.
std::string Deflate(std::string_view bytes);

/// Encodes in base64, with padding.
std::string Base64(std::string_view bytes);

/// Makes a text safe inside a script element that a browser does not run: "<" becomes \u003c, which
/// in JSON is the same.
std::string EscapeForScript(std::string_view json);

/// Makes a text safe as content or as a quoted attribute of HTML.
std::string EscapeHtml(std::string_view text);

}  // namespace plimsoll::report
