// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll {

/// Reads a text file line by line, plain or gzip (told apart by content, not by name), without
/// holding the whole of it. Not thread-safe.
class LineReader {
 public:
  /// Throws InputError if the file cannot be opened.
  explicit LineReader(std::string path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// Moves to the next line, without its newline (and without a carriage return before it).
  /// Returns false at the end of the file. Throws InputError on a read error, on a gzip stream that
  /// is damaged or ends early, and on a line over kMaxLineBytes.
  bool Next();

  /// The current line; valid until the next call of Next().
  std::string_view line() const { return line_; }
  /// The number of the current line, from 1.
  std::int64_t number() const { return number_; }
  /// Whether the current line ended in a newline, as every line but perhaps the last one does.
  bool complete() const { return complete_; }
  const std::string& path() const { return path_; }

  static constexpr std::size_t kMaxLineBytes = std::size_t{1} << 24;

 private:
  /// Reads another block behind the unread rest; returns false at the end of the file.
  bool Fill();
  [[noreturn]] void FailRead();

  std::string path_;
  void* file_ = nullptr;  // A gzFile; zlib stays out of this header.
  std::string block_;     // Unread bytes are block_[begin_, size).
  std::size_t begin_ = 0;
  std::string_view line_;
  std::int64_t number_ = 0;
  bool complete_ = true;
  bool at_end_ = false;
};

/// Replaces the file at `path` by `content`, whole or not at all: writes a temporary file beside
/// it, syncs it and renames it. Compresses if `path` ends in ".gz". Throws FileError; whatever was
/// at `path` before is then still there.
void WriteFileWhole(const std::string& path, std::string_view content);

}  // namespace plimsoll
