// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace plimsoll::report {

/// A plain-text table for a terminal. The first column is aligned to the left, the others to the
/// right, unless a column is marked otherwise.
class Table {
 public:
  explicit Table(std::vector<std::string> header);

  /// Aligns a column to the left.
  Table& Left(std::size_t column);
  /// Adds a row; missing cells are empty. REQUIRES: no more cells than the header has.
  void Add(std::vector<std::string> cells);

  /// Returns the table with a newline at the end of each line.
  std::string Render() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // The header is the first one.
  std::vector<bool> left_;
};

/// Returns how many columns of a terminal a UTF-8 text takes, counting each code point as one.
std::size_t DisplayWidth(const std::string& text);

}  // namespace plimsoll::report
