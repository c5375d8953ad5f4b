// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "plimsoll/base/bytes.h"

/// Failures throw one of the types below; answers ("does not fit", a list of violations) are
/// ordinary return values. Every message says what was wrong, where, and what to do about it.
namespace plimsoll {

/// The base of everything that Plimsoll throws on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Something that was read is not what it should be: a malformed line, a file that ends early, an
/// option that contradicts the file.
class InputError : public Error {
 public:
  /// `line` counts from 1; 0 means that the whole file is meant.
  InputError(std::string file, std::int64_t line, const std::string& reason);

  const std::string& file() const { return file_; }
  std::int64_t line() const { return line_; }

 private:
  std::string file_;
  std::int64_t line_;
};

/// The operating system refused to write, sync or rename a file. Nothing was left half-written.
class FileError : public Error {
 public:
  /// `error_number` is an errno, or 0 where there is none.
  FileError(const std::string& path, const std::string& action, int error_number);
};

/// An allocation could not be served.
class OutOfMemory : public Error {
 public:
  OutOfMemory(Bytes asked, Bytes free, const std::string& advice);

  Bytes asked() const { return asked_; }
  Bytes free() const { return free_; }

 private:
  Bytes asked_;
  Bytes free_;
};

/// A device, or what models one, failed to do what it was asked.
class DeviceError : public Error {
 public:
  /// `call` is what was asked for, `reason` what the device says about it.
  DeviceError(const std::string& call, const std::string& reason);
};

}  // namespace plimsoll
