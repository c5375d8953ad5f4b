// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace plimsoll::internal {

void FailCheck(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", file, line, condition, message.c_str());
  std::abort();
}

}  // namespace plimsoll::internal
