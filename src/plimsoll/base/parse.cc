// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/parse.h"

#include <fmt/format.h>

namespace plimsoll {

std::string Quote(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string result = "\"";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", byte);
    }
  }
  if (text.size() > kLongest) result += "...";
  return result + "\"";
}

}  // namespace plimsoll
