// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;

/// Returns `content` as a gzip stream.
std::string Compress(std::string_view content) {
  z_stream stream{};
  constexpr int kGzipWindowBits = 15 + 16;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindowBits, 9,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error("zlib cannot start a compression stream");
  }
  std::string result;
  std::string block(kBlockBytes, '\0');
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (stream.avail_in == 0 && !content.empty()) {
      const std::size_t step = std::min<std::size_t>(content.size(), std::size_t{1} << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
      stream.avail_in = static_cast<uInt>(step);
      content.remove_prefix(step);
    }
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = deflate(&stream, content.empty() ? Z_FINISH : Z_NO_FLUSH);
    result.append(block.data(), block.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return result;
}

/// Writes all of `content`; returns 0 or an errno.
int WriteAll(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;
}

}  // namespace

LineReader::LineReader(std::string path) : path_(std::move(path)) {
  file_ = gzopen(path_.c_str(), "rb");
  if (file_ == nullptr) {
    throw InputError(path_, 0, fmt::format("cannot open: {}", std::strerror(errno)));
  }
  gzbuffer(static_cast<gzFile>(file_), kBlockBytes);
}

LineReader::~LineReader() { gzclose(static_cast<gzFile>(file_)); }

void LineReader::FailRead() {
  int code = Z_OK;
  const char* message = gzerror(static_cast<gzFile>(file_), &code);
  if (code == Z_ERRNO) message = std::strerror(errno);
  if (code == Z_BUF_ERROR) message = "the gzip stream ends early";
  throw InputError(path_, number_ + 1, fmt::format("cannot read: {}", message));
}

bool LineReader::Fill() {
  if (at_end_) return false;
  block_.erase(0, begin_);
  begin_ = 0;
  if (block_.size() > kMaxLineBytes) {
    throw InputError(
        path_, number_ + 1,
        fmt::format("line longer than {} bytes: not a text file of ours", kMaxLineBytes));
  }
  const std::size_t old_size = block_.size();
  block_.resize(old_size + kBlockBytes);
  const int count = gzread(static_cast<gzFile>(file_), block_.data() + old_size,
                           static_cast<unsigned>(kBlockBytes));
  if (count < 0) FailRead();
  block_.resize(old_size + static_cast<std::size_t>(count));
  if (count == 0) {
    at_end_ = true;
    // A gzip stream that ends early reads as an end of file; only the error code tells.
    int code = Z_OK;
    gzerror(static_cast<gzFile>(file_), &code);
    if (code != Z_OK) FailRead();
  }
  return count > 0;
}

bool LineReader::Next() {
  std::size_t searched = 0;
  while (true) {
    const std::size_t end = block_.find('\n', begin_ + searched);
    if (end != std::string::npos) {
      line_ = std::string_view(block_).substr(begin_, end - begin_);
      begin_ = end + 1;
      complete_ = true;
      break;
    }
    searched = block_.size() - begin_;
    if (Fill()) continue;
    if (searched == 0) return false;
    line_ = std::string_view(block_).substr(begin_);
    begin_ = block_.size();
    complete_ = false;
    break;
  }
  if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
  ++number_;
  return true;
}

void WriteFileWhole(const std::string& path, std::string_view content) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  std::string compressed;
  if (path.ends_with(".gz")) {
    compressed = Compress(content);
    content = compressed;
  }
  // A pipe, a terminal or /dev/null cannot be replaced; it is written to.
  if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) throw FileError(path, "open", errno);
    const int error = WriteAll(descriptor, content);
    ::close(descriptor);
    if (error != 0) throw FileError(path, "write", error);
    return;
  }
  std::string temporary = path + ".XXXXXX.tmp";
  const int descriptor = ::mkostemps(temporary.data(), 4, O_CLOEXEC);
  if (descriptor < 0) throw FileError(path, "create a file beside", errno);
  int error = WriteAll(descriptor, content);
  // mkostemps makes private files; give this one what a plain open would have given.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const mode_t mode = exists ? (status.st_mode & 07777) : (0666 & ~mask);
  if (error == 0 && ::fchmod(descriptor, mode) != 0) error = errno;
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    throw FileError(path, "write", error);
  }
}

}  // namespace plimsoll
