// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/escape.h"

namespace plimsoll {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

bool IsPlain(char c) { return c > ' ' && c <= '~' && c != '%'; }

}  // namespace

std::string Escape(std::string_view text) {
  if (text.empty()) return "%";
  std::string word;
  for (const char c : text) {
    if (IsPlain(c)) {
      word += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    word += '%';
    word += kDigits[byte / 16];
    word += kDigits[byte % 16];
  }
  return word;
}

std::optional<std::string> Unescape(std::string_view word) {
  if (word == "%") return "";
  if (word.empty()) return std::nullopt;
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (IsPlain(word[i])) {
      text += word[i];
      continue;
    }
    if (word[i] != '%' || i + 2 >= word.size()) return std::nullopt;
    const std::size_t high = kDigits.find(word[i + 1]);
    const std::size_t low = kDigits.find(word[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    text += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return text;
}

}  // namespace plimsoll
