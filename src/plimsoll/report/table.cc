// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/check.h"

namespace plimsoll::report {

std::size_t DisplayWidth(const std::string& text) {
  // Continuation bytes of UTF-8 are 10xxxxxx.
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

Table::Table(std::vector<std::string> header) : left_(header.size(), false) {
  if (!left_.empty()) left_[0] = true;
  rows_.push_back(std::move(header));
}

Table& Table::Left(std::size_t column) {
  left_[column] = true;
  return *this;
}

void Table::Add(std::vector<std::string> cells) {
  PLIMSOLL_CHECK(cells.size() <= left_.size(),
                 fmt::format("{} cells for {} columns", cells.size(), left_.size()));
  cells.resize(left_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::Render() const {
  std::vector<std::size_t> widths(left_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], DisplayWidth(row[c]));
  }
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < left_.size(); ++c) {
      if (c > 0) line += "  ";
      const std::string padding(widths[c] - DisplayWidth(rows_[r][c]), ' ');
      line += left_[c] ? rows_[r][c] + padding : padding + rows_[r][c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r > 0) continue;
    for (std::size_t c = 0; c < left_.size(); ++c) {
      text += (c > 0 ? "  " : "") + std::string(widths[c], '-');
    }
    text += "\n";
  }
  return text;
}

}  // namespace plimsoll::report
