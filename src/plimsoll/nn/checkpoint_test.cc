// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "plimsoll/base/error.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/plain_device.h"
#include "plimsoll/nn/models/small_for_test.h"
#include "plimsoll/nn/null_library.h"

namespace plimsoll::nn {
namespace {

using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : device_(&backend_) {}
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("checkpoint_") +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "latest";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Network Small(const std::string& name, std::int64_t classes = 5) {
    const Model model = FindModel(name);
    ModelOptions options = SmallOptions(model);
    options.classes = classes;
    return model.build(options);
  }
  /// Gives every block a content of its own.
  static void Mark(Trainer* trainer, float base) {
    for (std::size_t i = 0; i < trainer->persistent_slots().size(); ++i) {
      const auto slot = static_cast<SlotIndex>(i);
      std::vector<float> values = trainer->ReadPersistent(slot);
      for (std::size_t j = 0; j < values.size(); ++j) {
        values[j] = base + static_cast<float>(i) + static_cast<float>(j) / 1024;
      }
      trainer->WritePersistent(slot, values);
    }
  }
  static std::vector<std::vector<float>> ReadAll(Trainer* trainer) {
    std::vector<std::vector<float>> all;
    for (std::size_t i = 0; i < trainer->persistent_slots().size(); ++i) {
      all.push_back(trainer->ReadPersistent(static_cast<SlotIndex>(i)));
    }
    return all;
  }
  void ExpectRefused(Trainer* trainer, const std::string& what) {
    const auto before = ReadAll(trainer);
    try {
      LoadCheckpoint(path_, trainer);
      ADD_FAILURE() << "accepted; expected " << what;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(what));
    }
    EXPECT_EQ(ReadAll(trainer), before);
  }
  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void SetContent(const std::string& content) const {
    std::ofstream(path_, std::ios::binary) << content;
  }

  device::HostBackend backend_;
  exec::PlainDevice device_;
  NullLibrary library_;
  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(CheckpointTest, GivesEverythingBack) {
  const Network network = Small("resnet20");
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdamW}) {
    Trainer saved(&device_, &library_, network, {.batch = 2, .optimizer = optimizer});
    Mark(&saved, 1);
    saved.set_step(123);
    SaveCheckpoint(path_, &saved);
    Trainer loaded(&device_, &library_, network, {.batch = 4, .optimizer = optimizer});
    Mark(&loaded, 2);
    LoadCheckpoint(path_, &loaded);
    EXPECT_EQ(ReadAll(&loaded), ReadAll(&saved));
    EXPECT_EQ(loaded.step(), 123);
  }
}

TEST_F(CheckpointTest, RefusesOtherNetworksWithBothShapes) {
  const Network network = Small("resnet20");
  Trainer saved(&device_, &library_, network, {});
  Mark(&saved, 1);
  SaveCheckpoint(path_, &saved);
  const Network wider = Small("resnet20", 7);
  Trainer other(&device_, &library_, wider, {});
  Mark(&other, 2);
  ExpectRefused(&other, "has fc.weight (value, 5x16) where resnet20 has fc.weight (value, 7x16)");
  Trainer adam(&device_, &library_, network, {.optimizer = Optimizer::kAdamW});
  Mark(&adam, 2);
  ExpectRefused(&adam, "has the state of sgd, and the training uses adamw");
}

TEST_F(CheckpointTest, RefusesWhatIsCutOffOrDamaged) {
  const Network network = Small("lenet");
  Trainer trainer(&device_, &library_, network, {});
  Mark(&trainer, 1);
  SaveCheckpoint(path_, &trainer);
  const std::string whole = Content();
  for (const std::size_t length : {std::size_t{0}, std::size_t{5}}) {
    SetContent(whole.substr(0, length));
    ExpectRefused(&trainer, "does not begin with");
  }
  for (const std::size_t length : {std::size_t{13}, whole.size() / 2, whole.size() - 1}) {
    SetContent(whole.substr(0, length));
    ExpectRefused(&trainer, "is cut off or damaged");
  }
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  SetContent(flipped);
  ExpectRefused(&trainer, "is cut off or damaged");
  std::filesystem::remove(path_);
  ExpectRefused(&trainer, "cannot be opened");
}

TEST_F(CheckpointTest, AKillLeavesAWholeFile) {
  const Network network = Small("lenet");
  Trainer trainer(&device_, &library_, network, {});
  Mark(&trainer, 1);
  SaveCheckpoint(path_, &trainer);
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // What the child writes is as good as what is there; the parent checks that it is whole.
      for (;;) SaveCheckpoint(path_, &trainer);
    }
    usleep(static_cast<useconds_t>(1000 + 1700 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_NO_THROW(LoadCheckpoint(path_, &trainer));
  }
}

TEST_F(CheckpointTest, SaysThatItCannotWrite) {
  const Network network = Small("lenet");
  Trainer trainer(&device_, &library_, network, {});
  EXPECT_THROW(SaveCheckpoint((folder_ / "no" / "folder").string(), &trainer), FileError);
  EXPECT_THROW(SaveCheckpoint((folder_ / "small.gz").string(), &trainer), Error);
}

}  // namespace
}  // namespace plimsoll::nn
