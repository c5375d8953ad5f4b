// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/models/small_for_test.h"

namespace plimsoll::nn {
namespace {

using testing::HasSubstr;

/// A folder that is gone after the test.
class DataTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) /
        (std::string("data_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  std::filesystem::path folder_;
};

/// Images whose pixels say their number.
std::string Images(int count, int first = 0) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes += static_cast<char>((first + i) % 10);
    bytes += std::string(3072, static_cast<char>(first + i));
  }
  return bytes;
}

void ExpectRefused(const std::function<void()>& read, const std::string& what) {
  try {
    read();
    ADD_FAILURE() << "accepted; expected " << what;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(what));
  }
}

TEST_F(DataTest, ShuffleIsAPermutationOfItsOwnInEveryEpoch) {
  for (const std::int64_t count : {1, 2, 7, 100, 1000}) {
    const Shuffle shuffle(3, count);
    std::vector<std::int64_t> first;
    std::vector<std::int64_t> second;
    for (std::int64_t i = 0; i < count; ++i) {
      first.push_back(shuffle.At(i));
      second.push_back(shuffle.At(count + i));
    }
    EXPECT_EQ(std::set(first.begin(), first.end()).size(), static_cast<std::size_t>(count));
    EXPECT_EQ(std::set(second.begin(), second.end()).size(), static_cast<std::size_t>(count));
    if (count >= 100) {
      EXPECT_NE(first, second);
    }
  }
}

TEST_F(DataTest, SyntheticDataFitsEveryModelAndDependsOnItsSeed) {
  for (const Model& model : ListModels()) {
    SCOPED_TRACE(model.name);
    const Network network = model.build(SmallOptions(model));
    const auto data = MakeSyntheticData(network, model.data, 5);
    const Batch batch = data->TrainBatch(3, 2);
    const bool is_text = model.data == DataKind::kText;
    const auto input = static_cast<std::size_t>(2 * network.input_tensor().count());
    EXPECT_EQ(batch.values.size(), is_text ? 0 : input);
    EXPECT_EQ(batch.tokens.size(), is_text ? input : 0);
    EXPECT_EQ(batch.labels.size(), static_cast<std::size_t>(2 * network.label_tensor().count()));
    EXPECT_LT(*std::max_element(batch.labels.begin(), batch.labels.end()), network.classes);
    EXPECT_GE(*std::min_element(batch.labels.begin(), batch.labels.end()), 0);
    const Batch again = MakeSyntheticData(network, model.data, 5)->TrainBatch(3, 2);
    EXPECT_EQ(batch.values, again.values);
    EXPECT_EQ(batch.tokens, again.tokens);
    const Batch other = MakeSyntheticData(network, model.data, 6)->TrainBatch(3, 2);
    EXPECT_TRUE(batch.values != other.values || batch.tokens != other.tokens);
    EXPECT_EQ(data->TestBatch(1, 3).labels, data->TestBatch(1, 3).labels);
  }
}

TEST_F(DataTest, ReadsCifarFilesAndFolders) {
  const Network network = FindModel("resnet20").build({});
  const std::string one = Write("one.bin", Images(20));
  const auto single = ReadCifar10(one, network, 1);
  EXPECT_EQ(single->train_size(), 18);
  EXPECT_EQ(single->test_size(), 2);
  const Batch held = single->TestBatch(0, 2);
  EXPECT_EQ(held.labels, (std::vector<std::int32_t>{8, 9}));
  EXPECT_FLOAT_EQ(held.values[0], (18 - 125.3F) / 63.0F);

  Write("data_batch_1.bin", Images(10));
  Write("data_batch_2.bin", Images(10, 10));
  Write("test_batch.bin", Images(3, 50));
  const auto folder = ReadCifar10(folder_, network, 1);
  EXPECT_EQ(folder->train_size(), 20);
  EXPECT_EQ(folder->test_size(), 3);
  std::multiset<std::int32_t> labels;
  for (const std::int32_t label : folder->TrainBatch(0, 20).labels) labels.insert(label);
  EXPECT_EQ(labels.count(7), 2U) << "an epoch has every image once";
}

TEST_F(DataTest, SaysWhereAFileEndsEarly) {
  const Network network = FindModel("resnet20").build({});
  std::string cut = Images(4);
  cut.resize(cut.size() - 1000);
  const std::string path = Write("cut.bin", cut);
  ExpectRefused([&] { ReadCifar10(path, network, 1); },
                "cut.bin: ends early, in image 3, at byte 2073 of its 3073");
  const std::string empty = Write("empty.bin", "");
  ExpectRefused([&] { ReadCifar10(empty, network, 1); }, "ends early, in image 0");
  const std::string wrong = Write("wrong.bin", Images(2) + std::string(3073, 'x'));
  ExpectRefused([&] { ReadCifar10(wrong, network, 1); }, "image 2 has the label 120");
  ExpectRefused([&] { ReadCifar10(folder_ / "none.bin", network, 1); }, "cannot be opened");
  ExpectRefused([&] { ReadCifar10(folder_, network, 1); }, "has no data_batch_1.bin");
  Write("data_batch_1.bin", Images(2));
  ExpectRefused([&] { ReadCifar10(folder_, network, 1); }, "test_batch.bin: cannot be opened");
  const Network large = FindModel("resnet50").build({});
  ExpectRefused([&] { ReadCifar10(folder_, large, 1); }, "resnet50 takes 224x224x3, 1000 classes");
}

TEST_F(DataTest, ReadsTextByteByByte) {
  const Network network = FindModel("char-lstm").build({.sequence_length = 4});
  const std::string path = Write("text", "abcdefghijklmnopqrstuvwxyz");
  const auto data = ReadText(path, network, 1);
  EXPECT_EQ(data->train_size(), 5);
  EXPECT_EQ(data->test_size(), 1);
  const Batch held = data->TestBatch(0, 1);
  EXPECT_EQ(held.tokens, (std::vector<std::int32_t>{'u', 'v', 'w', 'x'}));
  EXPECT_EQ(held.labels, (std::vector<std::int32_t>{'v', 'w', 'x', 'y'}));
  const std::string brief = Write("brief", "abcdefgh");
  ExpectRefused([&] { ReadText(brief, network, 1); }, "has 8 bytes; char-lstm needs 9");
  const Network narrow = FindModel("char-lstm").build({.classes = 100, .sequence_length = 4});
  ExpectRefused([&] { ReadText(path, narrow, 1); },
                "has the byte 122 at 25; the vocabulary of char-lstm ends at 99");
}

TEST_F(DataTest, OpensWhatAModelTakes) {
  const Model unet = FindModel("unet");
  const Network network = unet.build(SmallOptions(unet));
  EXPECT_THROW(OpenData("somewhere", network, unet.data, 1), Error);
  EXPECT_THAT(OpenData("", network, unet.data, 1)->Describe(), HasSubstr("synthetic"));
}

}  // namespace
}  // namespace plimsoll::nn
