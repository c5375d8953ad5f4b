// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace plimsoll::cli {

/// A line that says how it goes: over and over in place on a terminal, else line by line.
class LiveLine {
 public:
  LiveLine();
  void Show(const std::string& line);
  /// Before anything else is printed.
  void End();

 private:
  const bool is_terminal_;
  bool is_open_ = false;
};

}  // namespace plimsoll::cli
