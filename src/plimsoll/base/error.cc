// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/error.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace plimsoll {

InputError::InputError(std::string file, std::int64_t line, const std::string& reason)
    : Error(line > 0 ? fmt::format("{}:{}: {}", file, line, reason)
                     : fmt::format("{}: {}", file, reason)),
      file_(std::move(file)),
      line_(line) {}

FileError::FileError(const std::string& path, const std::string& action, int error_number)
    : Error(error_number == 0
                ? fmt::format("cannot {} {}", action, path)
                : fmt::format("cannot {} {}: {}", action, path, std::strerror(error_number))) {}

OutOfMemory::OutOfMemory(Bytes asked, Bytes free, const std::string& advice)
    : Error(fmt::format("out of memory: asked for {} ({} bytes), {} free in all; {}",
                        FormatBytes(asked), asked, FormatBytes(free), advice)),
      asked_(asked),
      free_(free) {}

DeviceError::DeviceError(const std::string& call, const std::string& reason)
    : Error(fmt::format("{} failed: {}", call, reason)) {}

}  // namespace plimsoll
