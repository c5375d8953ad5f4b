// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

/// Calls `feed` with every line of a text in memory, as LineReader would give it, and whether it
/// ended in a newline. Throws InputError, naming `source` and that it is not `what`, on a line over
/// LineReader::kMaxLineBytes.
void FeedLines(std::string_view text, const std::string& source, std::string_view what,
               const std::function<void(std::string_view line, bool complete)>& feed);

/// Replaces a file, whole or not at all: what is written goes into a temporary file beside it,
/// which takes its place when it is complete. Compresses if the path ends in ".gz". A pipe or a
/// device is written to directly. Not thread-safe.
class FileReplacer {
 public:
  /// Throws FileError if no file can be created there.
  explicit FileReplacer(std::string path);
  /// Gives up, and leaves everything as it was, unless Commit() has been called.
  ~FileReplacer();
  FileReplacer(const FileReplacer&) = delete;
  FileReplacer& operator=(const FileReplacer&) = delete;

  /// Throws FileError if the text cannot be written.
  void Write(std::string_view text);
  /// Completes the file and puts it in place. Throws FileError if that fails.
  void Commit();

 private:
  struct Compressor;

  void WriteRaw(std::string_view bytes);
  void Compress(std::string_view text, bool last);

  std::string path_;
  std::string target_;     // The path with links resolved.
  std::string temporary_;  // Empty if the target is written to directly.
  int descriptor_ = -1;
  std::unique_ptr<Compressor> compressor_;
};

/// Replaces the file at `path` by `content`. Throws FileError; whatever was at `path` before is
/// then still there.
void WriteFileWhole(const std::string& path, std::string_view content);

}  // namespace plimsoll
