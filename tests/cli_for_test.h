// SPDX-License-Identifier: Apache-2.0
//
// Runs the command line as users and scripts do. For tests only.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace plimsoll {

namespace fs = std::filesystem;
using Json = nlohmann::json;

inline const std::string kVgg = PLIMSOLL_DATA_DIR "/traces/vgg16_cifar_b100.trace.gz";
inline const std::string kKMeans = PLIMSOLL_DATA_DIR "/traces/kmeans_1m.trace.gz";
inline const std::string kStochastic = PLIMSOLL_DATA_DIR "/traces/sdresnet110_cifar_b100.trace.gz";

struct Result {
  int exit_code = -1;
  std::string out;
  std::string err;
};

class CliTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "plimsoll-cli-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::size_t FileCount() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Read(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return Path(name);
  }
  Result Run(const std::string& arguments) const {
    const std::string command = std::string(PLIMSOLL_BINARY) + " " + arguments + " >" +
                                Path("stdout") + " 2>" + Path("stderr") + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Read("stdout"), Read("stderr")};
  }
  /// Runs a command that must refuse its input, and returns the message.
  std::string RunRefused(const std::string& arguments, int exit_code) const {
    const Result result = Run(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_NE(result.err, "") << arguments;
    return result.err;
  }

  fs::path folder_;
};

}  // namespace plimsoll
