// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/columns.h"

#include <zlib.h>

#include <new>

#include "plimsoll/base/check.h"

namespace plimsoll::report {

void AppendColumn(std::span<const std::int64_t> values, std::string* out) {
  std::int64_t last = 0;
  for (const std::int64_t value : values) {
    const std::int64_t difference = value - last;
    last = value;
    auto rest = (static_cast<std::uint64_t>(difference) << 1) ^
                static_cast<std::uint64_t>(difference >> 63);
    while (rest >= 0x80) {
      out->push_back(static_cast<char>((rest & 0x7f) | 0x80));
      rest >>= 7;
    }
    out->push_back(static_cast<char>(rest));
  }
}

std::string Deflate(std::string_view bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                             reinterpret_cast<const Bytef*>(bytes.data()),
                             static_cast<uLong>(bytes.size()), Z_BEST_COMPRESSION);
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  PLIMSOLL_CHECK(code == Z_OK, "zlib refuses a buffer of its own bound");
  out.resize(size);
  return out;
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t k = 0; k < bytes.size(); k += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto byte = k + i < bytes.size() ? static_cast<unsigned char>(bytes[k + i]) : 0U;
      group = (group << 8) | byte;
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const bool there = k + i < bytes.size() + 1;
      out.push_back(there ? kDigits[(group >> (18 - 6 * i)) & 63] : '=');
    }
  }
  return out;
}

std::string EscapeForScript(std::string_view json) {
  std::string out;
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        out.push_back(byte < 0x20 || byte == 0x7f ? '?' : c);
      }
    }
  }
  return out;
}

}  // namespace plimsoll::report
