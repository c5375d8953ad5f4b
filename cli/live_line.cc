// SPDX-License-Identifier: Apache-2.0
#include "cli/live_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace plimsoll::cli {

LiveLine::LiveLine() : is_terminal_(::isatty(STDOUT_FILENO) == 1) {}

void LiveLine::Show(const std::string& line) {
  if (is_terminal_) {
    fmt::print("\r\033[K{}", line);
    is_open_ = true;
  } else {
    fmt::print("{}\n", line);
  }
  std::fflush(stdout);
}

void LiveLine::End() {
  if (is_open_) fmt::print("\n");
  is_open_ = false;
}

}  // namespace plimsoll::cli
