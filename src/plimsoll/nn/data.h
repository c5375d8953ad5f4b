// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "plimsoll/nn/batch.h"
#include "plimsoll/nn/models/model.h"

/// What networks are trained on.
namespace plimsoll::nn {

/// Samples in an order that depends on a seed alone. A part of them is held out: training never
/// sees it. Not thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  /// One line on what it is.
  virtual std::string Describe() const = 0;
  /// Samples to train on, and held out.
  virtual std::int64_t train_size() const = 0;
  virtual std::int64_t test_size() const = 0;
  /// The batch that step `step`, from 0, trains on: epochs go through all samples in an order of
  /// their own. The same call gives the same batch.
  virtual Batch TrainBatch(std::int64_t step, std::int64_t size) const = 0;
  /// Batch number `index` of what is held out, from 0. Begins again at the end.
  virtual Batch TestBatch(std::int64_t index, std::int64_t size) const = 0;
};

/// Where sample `index` of an epoch is, in an order of `count` samples that a seed shuffles.
class Shuffle {
 public:
  Shuffle(std::uint64_t seed, std::int64_t count) : seed_(seed), count_(count) {}
  /// The sample at a place that counts on from epoch to epoch.
  std::int64_t At(std::int64_t place) const;

 private:
  std::uint64_t seed_;
  std::int64_t count_;
};

/// Data that can be learned, of a network's shape: images are a prototype of their class and noise,
/// pixels are labelled by a pattern that shows in them, text comes from a seeded Markov chain.
std::unique_ptr<Dataset> MakeSyntheticData(const Network& network, DataKind kind,
                                           std::uint64_t seed);

/// CIFAR-10 in its binary form: a folder with data_batch_1.bin to data_batch_5.bin and
/// test_batch.bin, as many of them as there are, or one file, of which a tenth is held out. Images
/// are normalised. Throws InputError that says which file, which record and what to do.
std::unique_ptr<Dataset> ReadCifar10(const std::string& path, const Network& network,
                                     std::uint64_t seed);

/// A text, byte by byte: samples are pieces of it, labels the bytes that follow; the last tenth is
/// held out. Throws InputError if the file cannot be read, is shorter than two samples, or has
/// bytes that the network's vocabulary has not.
std::unique_ptr<Dataset> ReadText(const std::string& path, const Network& network,
                                  std::uint64_t seed);

/// Opens what `path` names for a model, or synthetic data if it is empty.
std::unique_ptr<Dataset> OpenData(const std::string& path, const Network& network, DataKind kind,
                                  std::uint64_t seed);

}  // namespace plimsoll::nn
