// SPDX-License-Identifier: Apache-2.0
//
// Runs ops of the library on memory of a test's choice. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "plimsoll/base/random_for_test.h"
#include "plimsoll/nn/onednn/library.h"

namespace plimsoll::nn::onednn {

/// The content of an operand.
using Data = std::vector<std::byte>;

template <typename T>
std::span<T> As(Data& data) {
  return {reinterpret_cast<T*>(data.data()), data.size() / sizeof(T)};
}
template <typename T>
std::span<const T> As(const Data& data) {
  return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
}

inline Tensor Floats(Shape shape) { return {std::move(shape), ElementType::kFloat}; }
inline Tensor Ints(Shape shape) { return {std::move(shape), ElementType::kInt}; }
inline Tensor Bits(Shape shape) { return {std::move(shape), ElementType::kBit}; }
inline Tensor ByteTensor(Shape shape) { return {std::move(shape), ElementType::kByte}; }

/// Floats of about [low, high], never the same twice in a row.
inline Data RandomFloats(const Tensor& tensor, std::uint64_t seed, float low = -1, float high = 1) {
  TestRandom random(seed);
  Data data(static_cast<std::size_t>(tensor.size_bytes()));
  for (float& x : As<float>(data)) {
    x = low + (high - low) * static_cast<float>(random.Between(0, 1 << 20)) / (1 << 20);
  }
  return data;
}

inline Data IntData(const std::vector<std::int32_t>& values) {
  Data data(values.size() * 4);
  std::memcpy(data.data(), values.data(), data.size());
  return data;
}
inline Data FloatData(const std::vector<float>& values) {
  Data data(values.size() * 4);
  std::memcpy(data.data(), values.data(), data.size());
  return data;
}

inline KernelLibrary& Library() {
  static const std::unique_ptr<KernelLibrary> library = MakeOneDnnLibrary();
  return *library;
}

/// How memory lies, which must not matter.
struct Memory {
  unsigned char poison = 0xff;  ///< What outputs and workspaces hold before; 0xff bytes are NaNs.
  std::size_t shift = 0;        ///< In units of 64 bytes.
  std::vector<std::pair<std::size_t, std::size_t>> shared;  ///< Reads and writes at one address.
};

/// A block at a multiple of 64 bytes, and not of 128 if `shift` is odd.
class TestBlock {
 public:
  TestBlock(std::size_t size, const Memory& memory)
      : storage_(size + 64 * (memory.shift + 3)), size_(size), poison_(memory.poison) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    begin_ = storage_.data() + (128 - address % 128) % 128 + 64 * memory.shift;
    std::memset(storage_.data(), poison_, storage_.size());
  }
  std::byte* begin() const { return begin_; }
  void Fill(const Data& data) const { std::memcpy(begin_, data.data(), data.size()); }
  Data Content() const { return {begin_, begin_ + size_}; }
  /// Whether nothing beyond the block was written.
  bool Intact() const {
    for (const std::byte* at = begin_ + size_; at < storage_.data() + storage_.size(); ++at) {
      if (*at != std::byte{poison_}) return false;
    }
    return true;
  }

 private:
  std::vector<std::byte> storage_;
  std::size_t size_;
  unsigned char poison_;
  std::byte* begin_ = nullptr;
};

/// The blocks of an op, of any device: what it reads, what it writes, its workspace.
template <typename Block>
class OpBlocks {
 public:
  OpBlocks(const OpSpec& spec, Bytes workspace_bytes, const std::vector<Data>& reads,
           const Memory& memory)
      : spec_(spec), memory_(memory), contents_(reads) {
    for (const Data& data : contents_) reads_.push_back(Add(data.size()));
    Fill();
    for (std::size_t i = 0; i < spec.writes.size(); ++i) {
      std::size_t block = blocks_.size();
      for (const auto& [read, write] : memory.shared) {
        if (write == i) block = read;
      }
      if (block == blocks_.size()) Add(static_cast<std::size_t>(spec.writes[i].size_bytes()));
      written_.push_back(block);
      writes_.push_back(blocks_[block].begin());
    }
    if (workspace_bytes > 0) writes_.push_back(Add(static_cast<std::size_t>(workspace_bytes)));
  }

  /// Another block; returns its address.
  std::byte* Add(std::size_t size) { return blocks_.emplace_back(size, memory_).begin(); }
  /// Makes what is read as it was in the beginning.
  void Fill() const {
    for (std::size_t i = 0; i < contents_.size(); ++i) blocks_[i].Fill(contents_[i]);
  }
  exec::Launch launch() const { return {.reads = reads_, .writes = writes_}; }
  /// What was written. Expects that it was written in the right places only.
  std::vector<Data> Results() const {
    for (const Block& block : blocks_) {
      EXPECT_TRUE(block.Intact()) << Name(spec_.kind) << " wrote beyond a block";
    }
    std::vector<Data> results;
    for (const std::size_t block : written_) results.push_back(blocks_[block].Content());
    return results;
  }

 private:
  const OpSpec& spec_;
  const Memory& memory_;
  const std::vector<Data>& contents_;
  std::vector<Block> blocks_;  // First what is read.
  std::vector<std::byte*> reads_;
  std::vector<std::byte*> writes_;
  std::vector<std::size_t> written_;  // By output: its block.
};

/// Runs an op, and returns what it wrote.
inline std::vector<Data> RunOp(const OpSpec& spec, const std::vector<Data>& reads,
                               const Memory& memory = {}, const StepScalars& scalars = {}) {
  const Kernel kernel = Library().Prepare(spec);
  const OpBlocks<TestBlock> blocks(spec, kernel.workspace_bytes, reads, memory);
  kernel.run(blocks.launch(), scalars);
  return blocks.Results();
}

/// Runs an op, checks that neither memory nor a second run changes a bit of what it writes, and
/// returns that.
inline std::vector<Data> RunChecked(
    const OpSpec& spec, const std::vector<Data>& reads,
    const std::vector<std::pair<std::size_t, std::size_t>>& in_place = {},
    const StepScalars& scalars = {}) {
  const std::vector<Data> results = RunOp(spec, reads, {}, scalars);
  EXPECT_EQ(results, RunOp(spec, reads, {}, scalars)) << Name(spec.kind) << ": a second run";
  EXPECT_EQ(results, RunOp(spec, reads, {.poison = 0, .shift = 1, .shared = {}}, scalars))
      << Name(spec.kind) << ": elsewhere";
  EXPECT_EQ(results, RunOp(spec, reads, {.poison = 0x7f, .shift = 2, .shared = in_place}, scalars))
      << Name(spec.kind) << ": in place";
  return results;
}

/// Checks floats against what a plain loop in doubles says.
inline void ExpectNear(const Data& actual, const std::vector<double>& expected, double tolerance,
                       const std::string& what) {
  const auto floats = As<float>(actual);
  ASSERT_EQ(floats.size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(floats[i]), expected[i],
                tolerance * (1 + std::abs(expected[i])))
        << what << " at " << i;
  }
}

/// A scalar of the inputs: the sum of an op's first output weighted by what comes down to it.
inline double Weighted(const Data& output, const Data& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < As<float>(weights).size(); ++i) {
    sum += static_cast<double>(As<float>(output)[i]) * static_cast<double>(As<float>(weights)[i]);
  }
  return sum;
}

/// Checks the gradient of that scalar by central differences at some elements of one input.
inline void ExpectGradient(const std::function<double(const std::vector<Data>&)>& scalar,
                           const std::vector<Data>& reads, std::size_t input, const Data& gradient,
                           const std::string& what, float step = 1e-2F, double tolerance = 1e-2) {
  ASSERT_EQ(gradient.size(), reads[input].size()) << what;
  TestRandom random(input + 17);
  const std::size_t count = As<float>(gradient).size();
  double scale = 0;
  for (const float g : As<float>(gradient))
    scale = std::max(scale, std::abs(static_cast<double>(g)));
  for (int i = 0; i < 24; ++i) {
    const std::size_t at = i == 0 ? 0 : (i == 1 ? count - 1 : random.Index(count));
    std::vector<Data> moved = reads;
    const float x = As<float>(reads[input])[at];
    As<float>(moved[input])[at] = x + step;
    const double above = scalar(moved);
    As<float>(moved[input])[at] = x - step;
    const double below = scalar(moved);
    const double width = static_cast<double>(x + step) - static_cast<double>(x - step);
    const auto g = static_cast<double>(As<float>(gradient)[at]);
    ASSERT_NEAR(g, (above - below) / width, tolerance * (0.1 * scale + std::abs(g)) + 1e-5)
        << what << ": input " << input << " at " << at;
  }
}

}  // namespace plimsoll::nn::onednn
