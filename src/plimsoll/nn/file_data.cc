// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/data.h"

namespace plimsoll::nn {
namespace {

constexpr std::int64_t kSize = 32;
constexpr std::int64_t kPixels = kSize * kSize;
constexpr std::int64_t kRecordBytes = 1 + 3 * kPixels;

std::vector<unsigned char> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path, 0, "cannot be opened; check the path and its permissions");
  std::vector<unsigned char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw InputError(path, 0, "cannot be read to its end");
  return bytes;
}

/// Appends the records of a file, after checking them.
void AppendRecords(const std::string& path, std::vector<unsigned char>* records) {
  const std::vector<unsigned char> bytes = ReadAll(path);
  const auto size = std::ssize(bytes);
  if (size == 0 || size % kRecordBytes != 0) {
    throw InputError(
        path, 0,
        fmt::format("ends early, in image {}, at byte {} of its {}: an image of CIFAR-10 is a "
                    "label and 3072 bytes; copy or unpack the file again",
                    size / kRecordBytes, size % kRecordBytes, kRecordBytes));
  }
  for (std::int64_t i = 0; i < size; i += kRecordBytes) {
    const int label = bytes[static_cast<std::size_t>(i)];
    if (label > 9) {
      throw InputError(path, 0,
                       fmt::format("image {} has the label {}; CIFAR-10 has 0 to 9: is this file "
                                   "of the binary version?",
                                   i / kRecordBytes, label));
    }
  }
  records->insert(records->end(), bytes.begin(), bytes.end());
}

class Cifar10 final : public Dataset {
 public:
  Cifar10(std::string path, std::vector<unsigned char> train, std::vector<unsigned char> test,
          std::uint64_t seed)
      : path_(std::move(path)), train_(std::move(train)), test_(std::move(test)), seed_(seed) {}

  std::string Describe() const override {
    return fmt::format("CIFAR-10 from {}: {} images, {} held out", path_, train_size(),
                       test_size());
  }
  std::int64_t train_size() const override { return std::ssize(train_) / kRecordBytes; }
  std::int64_t test_size() const override { return std::ssize(test_) / kRecordBytes; }

  Batch TrainBatch(std::int64_t step, std::int64_t size) const override {
    const Shuffle shuffle(seed_, train_size());
    Batch batch{.size = size};
    for (std::int64_t i = 0; i < size; ++i) Append(train_, shuffle.At(step * size + i), &batch);
    return batch;
  }
  Batch TestBatch(std::int64_t index, std::int64_t size) const override {
    Batch batch{.size = size};
    for (std::int64_t i = 0; i < size; ++i) {
      Append(test_, (index * size + i) % test_size(), &batch);
    }
    return batch;
  }

 private:
  static void Append(const std::vector<unsigned char>& records, std::int64_t index, Batch* batch) {
    // Means and deviations of the channels over the training set.
    constexpr std::array<float, 3> kMean = {125.3F, 123.0F, 113.9F};
    constexpr std::array<float, 3> kDeviation = {63.0F, 62.1F, 66.7F};
    const unsigned char* record = records.data() + index * kRecordBytes;
    batch->labels.push_back(*record++);
    for (std::int64_t pixel = 0; pixel < kPixels; ++pixel) {
      for (std::size_t c = 0; c < 3; ++c) {
        const float value = record[static_cast<std::int64_t>(c) * kPixels + pixel];
        batch->values.push_back((value - kMean[c]) / kDeviation[c]);
      }
    }
  }

  std::string path_;
  std::vector<unsigned char> train_;
  std::vector<unsigned char> test_;
  std::uint64_t seed_;
};

class Text final : public Dataset {
 public:
  Text(std::string path, std::vector<unsigned char> bytes, std::int64_t length, std::uint64_t seed)
      : path_(std::move(path)), bytes_(std::move(bytes)), length_(length), seed_(seed) {
    const std::int64_t pieces = (std::ssize(bytes_) - 1) / length_;
    test_ = std::max<std::int64_t>(1, pieces / 10);
    train_ = pieces - test_;
  }

  std::string Describe() const override {
    return fmt::format("text from {}: {} pieces of {} bytes, {} held out", path_, train_, length_,
                       test_);
  }
  std::int64_t train_size() const override { return train_; }
  std::int64_t test_size() const override { return test_; }

  Batch TrainBatch(std::int64_t step, std::int64_t size) const override {
    const Shuffle shuffle(seed_, train_);
    Batch batch{.size = size};
    for (std::int64_t i = 0; i < size; ++i) Append(shuffle.At(step * size + i), &batch);
    return batch;
  }
  Batch TestBatch(std::int64_t index, std::int64_t size) const override {
    Batch batch{.size = size};
    for (std::int64_t i = 0; i < size; ++i) Append(train_ + (index * size + i) % test_, &batch);
    return batch;
  }

 private:
  void Append(std::int64_t piece, Batch* batch) const {
    const unsigned char* begin = bytes_.data() + piece * length_;
    batch->tokens.insert(batch->tokens.end(), begin, begin + length_);
    batch->labels.insert(batch->labels.end(), begin + 1, begin + length_ + 1);
  }

  std::string path_;
  std::vector<unsigned char> bytes_;
  std::int64_t length_;
  std::uint64_t seed_;
  std::int64_t train_ = 0;
  std::int64_t test_ = 0;
};

}  // namespace

std::unique_ptr<Dataset> ReadCifar10(const std::string& path, const Network& network,
                                     std::uint64_t seed) {
  if (network.input_tensor().shape != Shape{kSize, kSize, 3} || network.classes < 10) {
    throw InputError(
        path, 0,
        fmt::format("is CIFAR-10: 32x32x3, 10 classes; {} takes {}, {} classes", network.name,
                    FormatShape(network.input_tensor().shape), network.classes));
  }
  std::vector<unsigned char> train;
  std::vector<unsigned char> test;
  if (!std::filesystem::is_directory(path)) {
    AppendRecords(path, &train);
    const std::int64_t images = std::ssize(train) / kRecordBytes;
    if (images < 2) throw InputError(path, 0, "has one image; one more is needed to hold out");
    const std::int64_t held = std::max<std::int64_t>(1, images / 10);
    test.assign(train.end() - held * kRecordBytes, train.end());
    train.resize(train.size() - test.size());
    return std::make_unique<Cifar10>(path, std::move(train), std::move(test), seed);
  }
  for (int i = 1; i <= 5; ++i) {
    const std::string part = fmt::format("{}/data_batch_{}.bin", path, i);
    if (std::filesystem::exists(part)) AppendRecords(part, &train);
  }
  if (train.empty()) {
    throw InputError(path, 0,
                     "has no data_batch_1.bin to data_batch_5.bin: expected the folder "
                     "cifar-10-batches-bin of the binary version");
  }
  AppendRecords(path + "/test_batch.bin", &test);
  return std::make_unique<Cifar10>(path, std::move(train), std::move(test), seed);
}

std::unique_ptr<Dataset> ReadText(const std::string& path, const Network& network,
                                  std::uint64_t seed) {
  const std::int64_t length = network.input_tensor().count();
  std::vector<unsigned char> bytes = ReadAll(path);
  if (std::ssize(bytes) < 2 * length + 1) {
    throw InputError(path, 0,
                     fmt::format("has {} bytes; {} needs {} at least, for two samples of {} and "
                                 "the byte that follows",
                                 bytes.size(), network.name, 2 * length + 1, length));
  }
  const auto highest = std::max_element(bytes.begin(), bytes.end());
  if (*highest >= network.classes) {
    throw InputError(path, 0,
                     fmt::format("has the byte {} at {}; the vocabulary of {} ends at {}", *highest,
                                 highest - bytes.begin(), network.name, network.classes - 1));
  }
  return std::make_unique<Text>(path, std::move(bytes), length, seed);
}

}  // namespace plimsoll::nn
