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
#include <cstdlib>
#include <cstring>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"

namespace plimsoll {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;

/// Creates a new file in the folder of `target` and returns its descriptor, or -1 with errno set.
int CreateBeside(const std::string& target, mode_t mode, std::string* path) {
  const std::size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : target.substr(0, slash + 1);
  for (int attempt = 0; attempt < 100; ++attempt) {
    *path = fmt::format("{}.plimsoll-{}-{}.tmp", folder, ::getpid(), attempt);
    const int descriptor = ::open(path->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
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

struct FileReplacer::Compressor {
  z_stream stream{};
  std::string block = std::string(kBlockBytes, '\0');

  Compressor() {
    constexpr int kGzipWindowBits = 15 + 16;
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindowBits, 9,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      throw Error("zlib cannot start a compression stream");
    }
  }
  ~Compressor() { deflateEnd(&stream); }
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
};

void FeedLines(std::string_view text, const std::string& source, std::string_view what,
               const std::function<void(std::string_view line, bool complete)>& feed) {
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const bool complete = text.find('\n') != std::string_view::npos;
    std::string_view line = TakeField(&text, '\n');
    if (line.size() > LineReader::kMaxLineBytes) {
      throw InputError(source, number, fmt::format("the line is too long; this is not {}", what));
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    feed(line, complete);
  }
}

FileReplacer::FileReplacer(std::string path) : path_(std::move(path)), target_(path_) {
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) throw FileError(path_, "open", errno);
  } else {
    // A link stays a link: what it points to is replaced.
    char* resolved = exists ? ::realpath(path_.c_str(), nullptr) : nullptr;
    if (resolved != nullptr) target_ = resolved;
    std::free(resolved);
    descriptor_ = CreateBeside(target_, 0666, &temporary_);
    if (descriptor_ < 0) throw FileError(path_, "create a file beside", errno);
    if (exists) ::fchmod(descriptor_, status.st_mode & 07777);
  }
  if (path_.ends_with(".gz")) compressor_ = std::make_unique<Compressor>();
}

FileReplacer::~FileReplacer() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void FileReplacer::WriteRaw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw FileError(path_, "write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void FileReplacer::Compress(std::string_view text, bool last) {
  z_stream& stream = compressor_->stream;
  std::string& block = compressor_->block;
  constexpr std::size_t kStep = std::size_t{1} << 30;
  do {
    const std::string_view step = text.substr(0, kStep);
    text.remove_prefix(step.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(step.data()));
    stream.avail_in = static_cast<uInt>(step.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(block.data());
      stream.avail_out = static_cast<uInt>(block.size());
      deflate(&stream, last && text.empty() ? Z_FINISH : Z_NO_FLUSH);
      WriteRaw(std::string_view(block).substr(0, block.size() - stream.avail_out));
    } while (stream.avail_out == 0);
  } while (!text.empty());
}

void FileReplacer::Write(std::string_view text) {
  if (compressor_ != nullptr) {
    Compress(text, /*last=*/false);
  } else {
    WriteRaw(text);
  }
}

void FileReplacer::Commit() {
  if (compressor_ != nullptr) Compress("", /*last=*/true);
  // Pipes and devices cannot be synced, and need not be.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) {
    throw FileError(path_, "write", errno);
  }
  if (::close(std::exchange(descriptor_, -1)) != 0 ||
      (!temporary_.empty() && std::rename(temporary_.c_str(), target_.c_str()) != 0)) {
    const int error = errno;
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    throw FileError(path_, "write", error);
  }
}

void WriteFileWhole(const std::string& path, std::string_view content) {
  FileReplacer file(path);
  file.Write(content);
  file.Commit();
}

}  // namespace plimsoll
