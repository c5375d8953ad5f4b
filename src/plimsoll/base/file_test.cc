// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test, removed afterwards.
class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "plimsoll-file-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void WriteRaw(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name), std::ios::binary) << content;
  }
  std::string ReadRaw(const std::string& name) const {
    std::ifstream in(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::vector<std::string> Lines(const std::string& path) {
    LineReader reader(path);
    std::vector<std::string> lines;
    while (reader.Next()) {
      lines.emplace_back(reader.line());
      EXPECT_EQ(reader.number(), static_cast<std::int64_t>(lines.size()));
    }
    return lines;
  }

  fs::path folder_;
};

TEST_F(FileTest, ReadsLinesWithAndWithoutCarriageReturns) {
  WriteRaw("a", "one\r\ntwo\n\nfour");
  EXPECT_EQ(Lines(Path("a")), (std::vector<std::string>{"one", "two", "", "four"}));
}

TEST_F(FileTest, TellsWhetherTheLastLineIsComplete) {
  WriteRaw("a", "one\ntwo");
  LineReader reader(Path("a"));
  ASSERT_TRUE(reader.Next());
  EXPECT_TRUE(reader.complete());
  ASSERT_TRUE(reader.Next());
  EXPECT_FALSE(reader.complete());
  EXPECT_FALSE(reader.Next());
}

TEST_F(FileTest, ReadsLinesLongerThanABlock) {
  const std::string long_line(3'000'000, 'x');
  WriteRaw("a", "short\n" + long_line + "\nend\n");
  EXPECT_EQ(Lines(Path("a")), (std::vector<std::string>{"short", long_line, "end"}));
}

TEST_F(FileTest, RefusesEndlessLines) {
  WriteRaw("a", std::string(LineReader::kMaxLineBytes + (1 << 20), 'x'));
  LineReader reader(Path("a"));
  EXPECT_THROW(reader.Next(), InputError);
}

TEST_F(FileTest, RefusesAMissingFileAndAFolder) {
  EXPECT_THROW(LineReader(Path("missing")), InputError);
  EXPECT_THROW(Lines(folder_.string()), InputError);
}

TEST_F(FileTest, CompressesByNameAndReadsItBack) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  WriteFileWhole(Path("a.gz"), text);
  EXPECT_LT(ReadRaw("a.gz").size(), text.size() / 2);
  std::string joined;
  for (const std::string& line : Lines(Path("a.gz"))) joined += line + "\n";
  EXPECT_EQ(joined, text);
}

TEST_F(FileTest, RefusesATruncatedGzipStream) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  WriteFileWhole(Path("a.gz"), text);
  const std::string compressed = ReadRaw("a.gz");
  WriteRaw("b.gz", compressed.substr(0, compressed.size() / 2));
  try {
    Lines(Path("b.gz"));
    FAIL() << "a truncated stream was accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("ends early"), std::string::npos) << error.what();
  }
}

TEST_F(FileTest, RefusesADamagedGzipStream) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  WriteFileWhole(Path("a.gz"), text);
  std::string compressed = ReadRaw("a.gz");
  compressed[compressed.size() / 2] = static_cast<char>(compressed[compressed.size() / 2] ^ 0x55);
  WriteRaw("b.gz", compressed);
  EXPECT_THROW(Lines(Path("b.gz")), InputError);
}

TEST_F(FileTest, ReplacesAFileWholeAndKeepsItsMode) {
  WriteRaw("a", "old");
  ASSERT_EQ(chmod(Path("a").c_str(), 0640), 0);
  WriteFileWhole(Path("a"), "new");
  EXPECT_EQ(ReadRaw("a"), "new");
  struct stat status {};
  ASSERT_EQ(stat(Path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

TEST_F(FileTest, LeavesEverythingAsItWasWhenAFolderIsInTheWay) {
  fs::create_directory(folder_ / "a");
  WriteRaw("a/inside", "kept");
  EXPECT_THROW(WriteFileWhole(Path("a"), "text"), FileError);
  EXPECT_EQ(ReadRaw("a/inside"), "kept");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "a temporary file was left";
}

TEST_F(FileTest, RefusesAFolderThatDoesNotExist) {
  EXPECT_THROW(WriteFileWhole(Path("missing/a"), "text"), FileError);
}

TEST_F(FileTest, ReportsAFullDevice) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  EXPECT_THROW(WriteFileWhole("/dev/full", "text"), FileError);
}

TEST_F(FileTest, WritesToWhatCannotBeReplaced) {
  WriteFileWhole("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace plimsoll
