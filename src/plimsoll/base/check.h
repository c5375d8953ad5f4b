// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace plimsoll::internal {

/// Prints the failed condition, its message and its place, and aborts: a failed check is a bug in
/// Plimsoll, never bad input.
[[noreturn]] void FailCheck(const char* condition, const char* file, int line,
                            const std::string& message);

}  // namespace plimsoll::internal

/// Asserts an invariant in every build. `message` is an expression convertible to std::string; it
/// is evaluated only on failure and should carry the values that disagree.
#define PLIMSOLL_CHECK(condition, message)                                        \
  do {                                                                            \
    if (!(condition)) [[unlikely]]                                                \
      ::plimsoll::internal::FailCheck(#condition, __FILE__, __LINE__, (message)); \
  } while (false)
