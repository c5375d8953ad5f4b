// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/nn/data.h"
#include "plimsoll/nn/random.h"

namespace plimsoll::nn {
namespace {

constexpr std::int64_t kTrainSize = 50'000;
constexpr std::int64_t kTestSize = 10'000;
constexpr std::uint64_t kTestStream = 0x7e57;

/// Of mean 0 and deviation 0.5; flat, since normal ones take longer than the network's first layer.
float Noise(Random* random) { return 1.7320508F * static_cast<float>(random->Uniform() - 0.5); }

/// Makes samples one by one, each from its number.
class SyntheticData : public Dataset {
 public:
  SyntheticData(const Network& network, std::uint64_t seed)
      : input_(network.input_tensor()),
        labels_(network.label_tensor()),
        classes_(network.classes),
        seed_(seed) {}

  std::int64_t train_size() const override { return kTrainSize; }
  std::int64_t test_size() const override { return kTestSize; }

  Batch TrainBatch(std::int64_t step, std::int64_t size) const override {
    const Shuffle shuffle(seed_, kTrainSize);
    Batch batch{.size = size};
    for (std::int64_t i = 0; i < size; ++i) {
      Append(MixSeeds(seed_, static_cast<std::uint64_t>(shuffle.At(step * size + i))), &batch);
    }
    return batch;
  }
  Batch TestBatch(std::int64_t index, std::int64_t size) const override {
    Batch batch{.size = size};
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t sample = (index * size + i) % kTestSize;
      Append(MixSeeds(seed_ ^ kTestStream, static_cast<std::uint64_t>(sample)), &batch);
    }
    return batch;
  }

 protected:
  virtual void Append(std::uint64_t sample_seed, Batch* batch) const = 0;

  const Tensor input_;          // NOLINT: for the classes below.
  const Tensor labels_;         // NOLINT
  const std::int64_t classes_;  // NOLINT
  const std::uint64_t seed_;    // NOLINT
};

/// Images of classes: a coarse prototype, blown up, and noise. Of videos, every frame shows the
/// class of its label.
class Prototypes final : public SyntheticData {
 public:
  Prototypes(const Network& network, std::uint64_t seed) : SyntheticData(network, seed) {
    Random random(MixSeeds(seed, 0x9807));
    prototypes_.resize(static_cast<std::size_t>(classes_ * kGrid * kGrid * 3));
    for (float& value : prototypes_) value = static_cast<float>(random.Normal());
  }
  std::string Describe() const override {
    return fmt::format("synthetic images of {} classes, seed {}", classes_, seed_);
  }

 protected:
  void Append(std::uint64_t sample_seed, Batch* batch) const override {
    Random random(sample_seed);
    const bool is_image = input_.shape.size() >= 3;
    const std::int64_t frames = labels_.count();
    const auto label = static_cast<std::int32_t>(random.Below(classes_));
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      batch->labels.push_back(label);
      const auto noise = [&] { return Noise(&random); };
      if (!is_image) {
        for (std::int64_t i = 0; i < input_.count() / frames; ++i) {
          batch->values.push_back(At(label, i % kGrid, i / kGrid % kGrid, i % 3) + noise());
        }
        continue;
      }
      const Shape image(input_.shape.end() - 3, input_.shape.end());
      for (std::int64_t y = 0; y < image[0]; ++y) {
        for (std::int64_t x = 0; x < image[1]; ++x) {
          for (std::int64_t c = 0; c < image[2]; ++c) {
            batch->values.push_back(At(label, y * kGrid / image[0], x * kGrid / image[1], c % 3) +
                                    noise());
          }
        }
      }
    }
  }

 private:
  static constexpr std::int64_t kGrid = 4;
  float At(std::int64_t label, std::int64_t y, std::int64_t x, std::int64_t c) const {
    return prototypes_[static_cast<std::size_t>(((label * kGrid + y) * kGrid + x) * 3 + c)];
  }

  std::vector<float> prototypes_;
};

/// Images with a rectangle for each class but the first, of the colour of its class.
class Rectangles final : public SyntheticData {
 public:
  Rectangles(const Network& network, std::uint64_t seed) : SyntheticData(network, seed) {
    Random random(MixSeeds(seed, 0xc0103));
    colours_.resize(static_cast<std::size_t>(classes_ * input_.shape.back()));
    for (float& value : colours_) value = static_cast<float>(random.Normal());
  }
  std::string Describe() const override {
    return fmt::format("synthetic images with {} classes of pixels, seed {}", classes_, seed_);
  }

 protected:
  void Append(std::uint64_t sample_seed, Batch* batch) const override {
    Random random(sample_seed);
    const std::int64_t height = input_.shape[0];
    const std::int64_t width = input_.shape[1];
    std::vector<std::int32_t> labels(static_cast<std::size_t>(height * width), 0);
    for (std::int32_t label = 1; label < classes_; ++label) {
      const std::int64_t top = random.Below(height);
      const std::int64_t left = random.Below(width);
      const std::int64_t bottom = std::min(height, top + 1 + height / 3 + random.Below(height));
      const std::int64_t right = std::min(width, left + 1 + width / 3 + random.Below(width));
      for (std::int64_t y = top; y < bottom; ++y) {
        for (std::int64_t x = left; x < right; ++x) {
          labels[static_cast<std::size_t>(y * width + x)] = label;
        }
      }
    }
    for (const std::int32_t label : labels) {
      for (std::int64_t c = 0; c < input_.shape[2]; ++c) {
        const std::int64_t colour = label * input_.shape[2] + c;
        batch->values.push_back(colours_[static_cast<std::size_t>(colour)] + Noise(&random));
      }
    }
    batch->labels.insert(batch->labels.end(), labels.begin(), labels.end());
  }

 private:
  std::vector<float> colours_;
};

/// A Markov chain: every token is followed by one of four, the first of them most often.
class MarkovText final : public SyntheticData {
 public:
  using SyntheticData::SyntheticData;
  std::string Describe() const override {
    return fmt::format("synthetic text of {} tokens, seed {}", classes_, seed_);
  }

 protected:
  void Append(std::uint64_t sample_seed, Batch* batch) const override {
    Random random(sample_seed);
    const std::int64_t length = input_.count();
    std::int64_t token = random.Below(classes_);
    for (std::int64_t i = 0; i < length; ++i) {
      batch->tokens.push_back(static_cast<std::int32_t>(token));
      const std::int64_t draw = random.Below(10);
      const std::int64_t choice = draw < 7 ? 0 : draw - 6;
      Random next(MixSeeds(seed_, static_cast<std::uint64_t>(token * 4 + choice)));
      token = next.Below(classes_);
      batch->labels.push_back(static_cast<std::int32_t>(token));
    }
  }
};

}  // namespace

std::unique_ptr<Dataset> MakeSyntheticData(const Network& network, DataKind kind,
                                           std::uint64_t seed) {
  switch (kind) {
    case DataKind::kPixels:
      return std::make_unique<Rectangles>(network, seed);
    case DataKind::kText:
      return std::make_unique<MarkovText>(network, seed);
    case DataKind::kImages:
    case DataKind::kVideos:
      break;
  }
  return std::make_unique<Prototypes>(network, seed);
}

}  // namespace plimsoll::nn
