// SPDX-License-Identifier: Apache-2.0
//
// A training program in miniature, whose numbers are hashes: any byte that is lost, stale or of
// another iteration changes all that follows. For tests only.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/random_for_test.h"
#include "plimsoll/exec/device.h"

namespace plimsoll::exec {

struct ToyOptions {
  std::uint64_t seed = 1;
  int layers = 8;
  Bytes unit_bytes = 4096;  ///< Activations have a few of these.
  bool marks = true;        ///< Whether the program marks the end of its iterations,
  bool names = true;        ///< and says what comes next.
  bool carries = false;     ///< Whether something outlives each iteration, until the next.
};

/// What an iteration does beyond the usual.
struct ToyStep {
  bool evaluates = false;  ///< Only forward, with ops of other names.
  int skips = -1;          ///< A layer that is left out.
  std::int64_t scale = 1;  ///< Of the batch.
  std::string next = "train";
};

class ToyNetwork {
 public:
  ToyNetwork(Device* device, const ToyOptions& options) : device_(*device), options_(options) {
    TestRandom random(options.seed);
    for (int k = 0; k < options.layers; ++k) {
      Layer layer;
      layer.kind = k == 0 ? Kind::kProduct : static_cast<Kind>(random.Between(0, 4));
      layer.units = random.Between(1, 6);
      if (layer.kind == Kind::kProduct || layer.kind == Kind::kNorm) {
        layer.weight = NewPersistent(1 + random.Between(0, 1), 100 + k);
        layer.momentum = NewPersistent(1, 200 + k);
      }
      if (layer.kind == Kind::kNorm) layer.running = NewPersistent(1, 300 + k);
      layers_.push_back(layer);
    }
  }

  /// One iteration. Returns a number that depends on all of it.
  std::uint64_t Step(const ToyStep& step) {
    ++iteration_;
    step_ = &step;
    Forward();
    if (step.evaluates) {
      while (!maps_.empty()) Drop();
    } else {
      Backward();
    }
    std::uint64_t result = 0;
    device_.Read(gradient_, &result, sizeof result);
    device_.Free(gradient_);
    if (carried_ != kNoBlock) device_.Free(carried_);
    carried_ = kNoBlock;
    if (options_.carries) {
      carried_ = New(options_.unit_bytes);
      Run("carry", {}, {carried_}, {.replayable = true});
    }
    if (options_.marks) device_.EndIteration(options_.names ? step.next : std::string());
    return result;
  }

  /// All that lives on.
  std::vector<std::uint64_t> ReadPersistent() {
    std::vector<std::uint64_t> all;
    for (const auto& [block, bytes] : persistent_) {
      std::vector<std::uint64_t> content(static_cast<std::size_t>(bytes) / sizeof(std::uint64_t));
      device_.Read(block, content.data(), bytes);
      all.insert(all.end(), content.begin(), content.end());
    }
    return all;
  }

  void Finish() {
    if (carried_ != kNoBlock) device_.Free(carried_);
    carried_ = kNoBlock;
    for (const auto& [block, bytes] : persistent_) device_.Free(block);
    persistent_.clear();
  }

 private:
  enum class Kind { kProduct, kNorm, kRelu, kDropout, kAdd };
  struct Layer {
    Kind kind = Kind::kProduct;
    std::int64_t units = 1;
    Block weight = kNoBlock;
    Block momentum = kNoBlock;
    Block running = kNoBlock;
    // Of this iteration.
    std::size_t input = 0;  // Which map it reads.
    std::size_t skip = 0;
    Block saved = kNoBlock;
    bool ran = false;
  };
  struct Map {
    Block block = kNoBlock;
    Bytes bytes = 0;
  };

  static std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
    return hash ^ (hash >> 31);
  }

  Block NewPersistent(std::int64_t units, std::uint64_t salt) {
    const Bytes bytes = units * options_.unit_bytes;
    const Block block = device_.Malloc(bytes);
    std::vector<std::uint64_t> content(static_cast<std::size_t>(bytes) / sizeof(std::uint64_t));
    for (std::size_t k = 0; k < content.size(); ++k) content[k] = Mix(salt, k);
    device_.Write(block, content.data(), bytes);
    persistent_.emplace_back(block, bytes);
    sizes_[block] = bytes;
    return block;
  }

  Block New(Bytes bytes) {
    const Block block = device_.Malloc(bytes);
    sizes_[block] = bytes;
    return block;
  }

  /// Every word of what is written depends on the words of what is read, but for state on the side,
  /// which depends on them and on itself.
  void Run(const std::string& name, std::vector<Block> reads, std::vector<Block> writes,
           trace::OpTraits traits, std::uint64_t salt = 0) {
    std::vector<std::size_t> read_words;
    std::vector<std::size_t> write_words;
    for (const Block b : reads) read_words.push_back(Words(b));
    for (const Block b : writes) write_words.push_back(Words(b));
    std::vector<int> state_of(writes.size(), -1);
    for (std::size_t k = 0; k < reads.size(); ++k) {
      if ((traits.state_reads >> k & 1) == 0) continue;
      for (std::size_t w = 0; w < writes.size(); ++w) {
        if (writes[w] == reads[k]) state_of[w] = static_cast<int>(k);
      }
    }
    const std::string full = (step_->evaluates ? "eval_" : "") + name;
    // What is salted differs from one iteration to the next.
    device_.Exec({.name = full, .traits = traits, .steady = salt == 0}, reads, writes,
                 [read_words, write_words, state_of, traits, salt](const Launch& launch) {
                   std::size_t most = 0;
                   for (const std::size_t words : write_words) most = std::max(most, words);
                   for (std::size_t k = 0; k < most; ++k) {
                     std::uint64_t hash = Mix(salt, k);
                     for (std::size_t r = 0; r < read_words.size(); ++r) {
                       if ((traits.state_reads >> r & 1) != 0) continue;
                       const auto* words = reinterpret_cast<const std::uint64_t*>(launch.reads[r]);
                       hash = Mix(hash, words[k % read_words[r]]);
                     }
                     for (std::size_t w = 0; w < write_words.size(); ++w) {
                       if (k >= write_words[w]) continue;
                       auto* words = reinterpret_cast<std::uint64_t*>(launch.writes[w]);
                       words[k] = Mix(hash, state_of[w] < 0 ? w : words[k]);
                     }
                   }
                 });
  }
  std::size_t Words(Block block) const {
    return static_cast<std::size_t>(sizes_.at(block)) / sizeof(std::uint64_t);
  }

  void Forward() {
    const Bytes bytes = 2 * options_.unit_bytes * step_->scale;
    const Block input = New(bytes);
    std::vector<std::uint64_t> content(static_cast<std::size_t>(bytes) / sizeof(std::uint64_t));
    for (std::size_t k = 0; k < content.size(); ++k) content[k] = Mix(iteration_, k);
    device_.Write(input, content.data(), bytes);
    maps_ = {{input, bytes}};
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      layers_[k].ran = static_cast<int>(k) != step_->skips;
      if (layers_[k].ran) RunForward(&layers_[k], k);
    }
  }

  void RunForward(Layer* layer, std::size_t number) {
    const std::size_t last = maps_.size() - 1;
    const Map x = maps_[last];
    layer->input = last;
    const trace::OpTraits pure{.replayable = true};
    const std::uint64_t seed = Mix(iteration_, number);
    switch (layer->kind) {
      case Kind::kProduct: {
        const Map y = {New(layer->units * options_.unit_bytes * step_->scale),
                       layer->units * options_.unit_bytes * step_->scale};
        Run("product", {x.block, layer->weight}, {y.block}, pure);
        maps_.push_back(y);
        break;
      }
      case Kind::kNorm: {
        const Map y = {New(x.bytes), x.bytes};
        layer->saved = New(options_.unit_bytes);
        Run("norm", {x.block, layer->weight, layer->running},
            {y.block, layer->saved, layer->running}, {.replayable = true, .state_reads = 4});
        maps_.push_back(y);
        break;
      }
      case Kind::kRelu:
        layer->saved = New(options_.unit_bytes);
        Run("relu", {x.block}, {x.block, layer->saved}, pure);
        break;
      case Kind::kDropout:
        layer->saved = New(options_.unit_bytes);
        Run("dropout", {x.block}, {x.block, layer->saved}, {.replayable = true, .random = true},
            seed);
        break;
      case Kind::kAdd:
        layer->skip = last / 2;
        Run("add", {x.block, maps_[layer->skip].block}, {x.block}, pure);
        break;
    }
  }

  void Drop() {
    if (maps_.size() == 1) {
      gradient_ = New(options_.unit_bytes);
      Run("loss", {maps_[0].block}, {gradient_}, {.replayable = true});
    }
    device_.Free(maps_.back().block);
    maps_.pop_back();
    if (!maps_.empty()) return;
    for (Layer& layer : layers_) FreeSaved(&layer);
  }

  void FreeSaved(Layer* layer) {
    if (layer->saved != kNoBlock) device_.Free(layer->saved);
    layer->saved = kNoBlock;
  }

  void Backward() {
    gradient_ = New(maps_.back().bytes);
    Run("loss", {maps_.back().block}, {gradient_}, {.replayable = true});
    std::vector<std::pair<Layer*, Block>> updates;
    for (std::size_t k = layers_.size(); k-- > 0;) {
      if (layers_[k].ran) RunBackward(&layers_[k], &updates);
    }
    device_.Free(maps_[0].block);
    maps_.clear();
    for (const auto& [layer, dw] : updates) {
      Run("update", {layer->weight, dw, layer->momentum}, {layer->weight, layer->momentum},
          {.replayable = true}, iteration_);
      device_.Free(dw);
    }
  }

  void RunBackward(Layer* layer, std::vector<std::pair<Layer*, Block>>* updates) {
    const trace::OpTraits pure{.replayable = true};
    const Map x = maps_[layer->input];
    switch (layer->kind) {
      case Kind::kProduct: {
        const Block dw = New(sizes_.at(layer->weight));
        Run("product_dw", {x.block, gradient_}, {dw}, pure);
        updates->emplace_back(layer, dw);
        device_.Free(maps_.back().block);
        maps_.pop_back();
        const Block dx = New(x.bytes);
        Run("product_dx", {gradient_, layer->weight}, {dx}, pure);
        device_.Free(gradient_);
        gradient_ = dx;
        break;
      }
      case Kind::kNorm: {
        const Block dw = New(sizes_.at(layer->weight));
        Run("norm_back", {x.block, gradient_, layer->weight, layer->saved}, {gradient_, dw}, pure);
        updates->emplace_back(layer, dw);
        device_.Free(maps_.back().block);
        maps_.pop_back();
        break;
      }
      case Kind::kRelu:
      case Kind::kDropout:
        Run("mask_back", {gradient_, layer->saved}, {gradient_}, pure);
        break;
      case Kind::kAdd:
        Run("add_back", {gradient_, maps_[layer->skip].block}, {gradient_}, pure);
        break;
    }
    FreeSaved(layer);
  }

  Device& device_;
  const ToyOptions options_;
  std::vector<Layer> layers_;
  std::vector<std::pair<Block, Bytes>> persistent_;
  std::map<Block, Bytes> sizes_;
  std::vector<Map> maps_;  // What layers have made, in order.
  Block gradient_ = kNoBlock;
  Block carried_ = kNoBlock;
  std::uint64_t iteration_ = 0;
  const ToyStep* step_ = nullptr;
};

}  // namespace plimsoll::exec
