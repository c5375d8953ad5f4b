// SPDX-License-Identifier: Apache-2.0
//
// The kernels that are written by hand, against those of the host: sequences, losses, updates and
// what works element by element. norm_kernels_test.cc and pool_kernels_test.cc have the others.
#include "plimsoll/cuda/kernels.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/cuda/compare_for_test.h"
#include "plimsoll/cuda/own_kernels_for_test.h"

namespace plimsoll::cuda {
namespace {

using nn::OpKind;
using nn::onednn::Bits;
using nn::onednn::Floats;
using nn::onednn::IntData;
using nn::onednn::Ints;
using nn::onednn::RandomFloats;

OwnKernels& Own() {
  static OwnKernels library;
  return library;
}

Data RandomBits(std::int64_t count, std::uint64_t seed) {
  TestRandom random(seed);
  Data data(static_cast<std::size_t>((count + 63) / 64 * 8), std::byte{0});
  for (std::int64_t i = 0; i < count; ++i) {
    if (random.OneIn(2)) data[static_cast<std::size_t>(i / 8)] |= std::byte{1} << (i % 8);
  }
  return data;
}

std::vector<std::int32_t> RandomInts(std::int64_t count, std::int64_t low, std::int64_t high,
                                     std::uint64_t seed) {
  TestRandom random(seed);
  std::vector<std::int32_t> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<std::int32_t>(random.Between(low, high)));
  }
  return values;
}

/// Counts that fill vectors, bytes and words of masks, and that do not.
const std::vector<std::int64_t> kCounts = {1, 7, 8, 63, 64, 65, 1000, 4096, 100003, 1 << 20};

TEST(KernelsTest, RefusesWrongTypes) {
  nn::OpSpec spec{OpKind::kAdd, {Floats({8}), Floats({8})}, {Floats({8})}};
  spec.reads[1].type = nn::ElementType::kBfloat16;
  EXPECT_THROW(Own().Prepare(spec), Error);
  nn::OpSpec norm{OpKind::kBatchNormInference,
                  {Floats({2, 4}), Floats({4}), Floats({4}), Floats({4}), Floats({4})},
                  {Floats({2, 4})}};
  EXPECT_NO_THROW(Own().Prepare(norm));
  norm.reads[1].type = nn::ElementType::kBfloat16;
  EXPECT_THROW(Own().Prepare(norm), Error);
  nn::OpSpec relu{OpKind::kReluForward, {Ints({8})}, {Ints({8})}};
  EXPECT_THROW(Own().Prepare(relu), Error);
}

TEST(KernelsTest, RefusesWrongShapes) {
  EXPECT_THROW(Own().Prepare({OpKind::kScale, {Floats({8})}, {Floats({9})}}), Error);
  EXPECT_THROW(Own().Prepare({OpKind::kSgdUpdate,
                              {Floats({8}), Floats({8}), Floats({8}), Floats({8})},
                              {Floats({8}), Floats({8})}}),
               Error);
}

TEST(KernelsTest, Relu) {
  PLIMSOLL_NEEDS_GPU();
  for (const std::int64_t count : kCounts) {
    const nn::Tensor x = Floats({count});
    const Data values = RandomFloats(x, 1);
    Compare(Own(), {{OpKind::kReluForward, {x}, {x}}, {values}, {{0, 0}}});
    Compare(Own(), {{OpKind::kReluForward, {x}, {x, Bits({count})}}, {values}, {{0, 0}}});
    Compare(Own(), {{OpKind::kReluBackward, {x, Bits({count})}, {x}},
                    {values, RandomBits(count, 2)},
                    {{0, 0}}});
  }
}

TEST(KernelsTest, Activations) {
  PLIMSOLL_NEEDS_GPU();
  for (const std::int64_t count : kCounts) {
    const nn::Tensor x = Floats({count});
    const Data wide = RandomFloats(x, 1, -12, 12);
    const Data dy = RandomFloats(x, 2);
    Compare(Own(), {{OpKind::kGeluForward, {x}, {x}}, {wide}});
    Compare(Own(), {{OpKind::kGeluBackward, {x, x}, {x}}, {wide, dy}, {{1, 0}}});
    Compare(Own(), {{OpKind::kTanhForward, {x}, {x}}, {wide}, {{0, 0}}});
    Compare(Own(), {{OpKind::kTanhBackward, {x, x}, {x}}, {dy, dy}, {{1, 0}}});
    Compare(Own(), {{OpKind::kSigmoidForward, {x}, {x}}, {wide}, {{0, 0}}});
    Compare(Own(), {{OpKind::kSigmoidBackward, {x, x}, {x}}, {dy, dy}, {{1, 0}}});
  }
}

TEST(KernelsTest, Arithmetic) {
  PLIMSOLL_NEEDS_GPU();
  for (const std::int64_t count : kCounts) {
    const nn::Tensor x = Floats({count});
    nn::Attributes attributes;
    attributes.scale = -0.375F;
    const Data a = RandomFloats(x, 1);
    Compare(Own(), {{OpKind::kAdd, {x, x}, {x}, attributes}, {a, RandomFloats(x, 2)}, {{0, 0}}});
    Compare(Own(), {{OpKind::kScale, {x}, {x}, attributes}, {a}, {{0, 0}}});
    Compare(Own(), {{OpKind::kFill, {}, {x}, attributes}, {}});
  }
}

TEST(KernelsTest, Concat) {
  PLIMSOLL_NEEDS_GPU();
  for (const std::int64_t rows : {1, 37, 5000}) {
    for (const std::vector<std::int64_t>& widths :
         std::vector<std::vector<std::int64_t>>{{8}, {1, 2}, {64, 32}, {12, 4, 20}, {256, 3, 40}}) {
      std::vector<nn::Tensor> parts;
      std::vector<Data> reads;
      std::int64_t sum = 0;
      for (const std::int64_t width : widths) {
        parts.push_back(Floats({rows, width}));
        reads.push_back(RandomFloats(parts.back(), reads.size()));
        sum += width;
      }
      const nn::Tensor all = Floats({rows, sum});
      Compare(Own(), {{OpKind::kConcat, parts, {all}}, reads, {}, {}, 0});
      nn::Attributes attributes;
      attributes.offset = sum - widths.back();
      Compare(
          Own(),
          {{OpKind::kSlice, {all}, {parts.back()}, attributes}, {RandomFloats(all, 9)}, {}, {}, 0});
    }
  }
}

TEST(KernelsTest, Dropout) {
  PLIMSOLL_NEEDS_GPU();
  for (const std::int64_t count : kCounts) {
    for (const float rate : {0.0F, 0.1F, 0.5F}) {
      const nn::Tensor x = Floats({count});
      nn::Attributes attributes;
      attributes.rate = rate;
      attributes.stream = 0x123456789abcdefU;
      const nn::StepScalars scalars{.seed = 42 + static_cast<std::uint64_t>(count)};
      Compare(Own(), {{OpKind::kDropoutForward, {x}, {x, Bits({count})}, attributes},
                      {RandomFloats(x, 1)},
                      {{0, 0}},
                      scalars});
      Compare(Own(), {{OpKind::kDropoutBackward, {x, Bits({count})}, {x}, attributes},
                      {RandomFloats(x, 1), RandomBits(count, 3)},
                      {{0, 0}},
                      scalars});
    }
  }
}

struct Table {
  std::int64_t vocabulary;
  std::int64_t width;
  std::int64_t tokens;
  std::int64_t highest;  ///< Ids are up to this.
};

TEST(KernelsTest, Embedding) {
  PLIMSOLL_NEEDS_GPU();
  for (const Table& t : {Table{1, 1, 1, 0}, Table{10, 3, 7, 9}, Table{100, 64, 5000, 99},
                         Table{50257, 64, 2048, 50256}, Table{7, 12, 9001, 0}, Table{3, 8, 300, 1},
                         Table{5, 1600, 130, 4}, Table{4, 2056, 4097, 3}}) {
    const nn::Tensor ids = Ints({1, t.tokens});
    const nn::Tensor table = Floats({t.vocabulary, t.width});
    const nn::Tensor y = Floats({1, t.tokens, t.width});
    const Data tokens = IntData(RandomInts(t.tokens, 0, t.highest, 5));
    Compare(Own(),
            {{OpKind::kEmbeddingForward, {ids, table}, {y}}, {tokens, RandomFloats(table, 1)}});
    Compare(Own(), {{OpKind::kEmbeddingBackward, {ids, y}, {table}},
                    {tokens, RandomFloats(y, 2)},
                    {},
                    {},
                    1e-6});
  }
}

TEST(KernelsTest, AddRows) {
  PLIMSOLL_NEEDS_GPU();
  for (const std::int64_t sequences : {1, 3, 65}) {
    for (const std::int64_t width : {1, 12, 64, 768}) {
      const std::int64_t length = 17;
      const nn::Tensor x = Floats({sequences, length, width});
      const nn::Tensor rows = Floats({20, width});
      Compare(Own(), {{OpKind::kAddRowsForward, {x, rows}, {x}},
                      {RandomFloats(x, 1), RandomFloats(rows, 2)},
                      {{0, 0}}});
      Compare(Own(), {{OpKind::kAddRowsBackward, {x}, {rows}}, {RandomFloats(x, 1)}});
    }
  }
}

TEST(KernelsTest, SoftmaxLoss) {
  PLIMSOLL_NEEDS_GPU();
  const std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {
      {1, 1}, {5, 2}, {256, 10}, {33, 1000}, {7, 2048}, {9, 2049}, {12, 50257}, {2000, 3}};
  for (const auto& [rows, classes] : shapes) {
    const nn::Tensor logits = Floats({rows, classes});
    const nn::Tensor one = Floats({1});
    const Data x = RandomFloats(logits, 1, -20, 20);
    // Some labels are negative.
    const Data labels = IntData(RandomInts(rows, rows > 1 ? -1 : 0, classes - 1, 4));
    Compare(Own(), {{OpKind::kSoftmaxLossForward, {logits, Ints({rows})}, {logits, one}},
                    {x, labels},
                    {{0, 0}}});
    Compare(Own(), {{OpKind::kSoftmaxLossBackward, {logits, Ints({rows})}, {logits}},
                    {RandomFloats(logits, 2, 0, 1), labels},
                    {{0, 0}}});
    Compare(Own(), {{OpKind::kCountCorrect, {logits, Ints({rows})}, {one}}, {x, labels}});
  }
}

TEST(KernelsTest, CountsTheFirstOfEqualsAndNoNan) {
  PLIMSOLL_NEEDS_GPU();
  const nn::Tensor logits = Floats({4, 3});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Data x = nn::onednn::FloatData({1, 1, 0, 1, 1, 0, nan, 1, 0, 0, 0, 5});
  const Data labels = IntData({0, 1, 0, 2});
  const auto results = RunCheckedOnCuda(
      Own(), {OpKind::kCountCorrect, {logits, Ints({4})}, {Floats({1})}}, {x, labels});
  EXPECT_EQ(As<float>(results[0])[0], 2);
}

TEST(KernelsTest, NoLabelGivesNoLoss) {
  PLIMSOLL_NEEDS_GPU();
  const nn::Tensor logits = Floats({3, 5});
  const Data labels = IntData({-1, -1, -1});
  Compare(Own(), {{OpKind::kSoftmaxLossForward, {logits, Ints({3})}, {logits, Floats({1})}},
                  {RandomFloats(logits, 1), labels}});
  Compare(Own(), {{OpKind::kSoftmaxLossBackward, {logits, Ints({3})}, {logits}},
                  {RandomFloats(logits, 1), labels}});
}

/// Many parameters at once; on the host one by one.
void CompareUpdates(OpKind kind, const std::vector<std::int64_t>& counts) {
  const std::size_t reads = kind == OpKind::kAdamWUpdate ? 4 : 3;
  Case c{.spec = {.kind = kind, .reads = {}, .writes = {}}, .reads = {}};
  c.spec.attributes.weight_decay = 0.01F;
  c.spec.attributes.momentum = 0.9F;
  c.scalars = {.learning_rate = 0.1F, .step = 7};
  for (const std::int64_t count : counts) {
    for (std::size_t i = 0; i < reads; ++i) {
      c.spec.reads.push_back(Floats({count}));
      c.reads.push_back(RandomFloats(Floats({count}), c.reads.size() + 1, i == 3 ? 0.01F : -1, 1));
      if (i == 1) continue;
      c.in_place.emplace_back(c.spec.reads.size() - 1, c.spec.writes.size());
      c.spec.writes.push_back(Floats({count}));
    }
  }
  Compare(Own(), c, [&](const Case& grouped) {
    std::vector<Data> results;
    for (std::size_t at = 0; at < grouped.reads.size(); at += reads) {
      const auto from = static_cast<std::ptrdiff_t>(at);
      const auto to = static_cast<std::ptrdiff_t>(at + reads);
      nn::OpSpec spec{kind, {}, {}, grouped.spec.attributes};
      spec.reads.assign(grouped.spec.reads.begin() + from, grouped.spec.reads.begin() + to);
      spec.writes.assign(reads - 1, spec.reads[0]);
      const std::vector<Data> data(grouped.reads.begin() + from, grouped.reads.begin() + to);
      for (Data& result : nn::onednn::RunOp(spec, data, {}, grouped.scalars)) {
        results.push_back(std::move(result));
      }
    }
    return results;
  });
}

TEST(KernelsTest, Updates) {
  PLIMSOLL_NEEDS_GPU();
  for (const OpKind kind : {OpKind::kSgdUpdate, OpKind::kAdamWUpdate}) {
    for (const std::int64_t count : kCounts) CompareUpdates(kind, {count});
    CompareUpdates(kind, {1, 3, 4097, 2048, 5});
    for (const std::int64_t groups : {48, 49, 470}) {  // Of each table, and more than one has.
      std::vector<std::int64_t> counts;
      for (std::int64_t i = 0; i < groups; ++i) counts.push_back(1 + i * 37 % 2500);
      CompareUpdates(kind, counts);
    }
  }
}

}  // namespace
}  // namespace plimsoll::cuda
