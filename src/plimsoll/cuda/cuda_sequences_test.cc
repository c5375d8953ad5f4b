// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/cuda/attention.h"
#include "plimsoll/cuda/compare_for_test.h"

namespace plimsoll::cuda {
namespace {

constexpr auto kFloat = ElementType::kFloat;
constexpr auto kBfloat16 = ElementType::kBfloat16;

struct AttentionCase {
  std::int64_t sequences;
  std::int64_t length;
  std::int64_t heads;
  std::int64_t width;
};

void ExpectAttentionLikeHost(const AttentionCase& c, bool causal, ElementType type) {
  Attributes a;
  a.heads = c.heads;
  a.causal = causal;
  const std::int64_t d = c.heads * c.width;
  const Tensor qkv{{c.sequences, c.length, 3 * d}, type};
  const Tensor y{{c.sequences, c.length, d}, type};
  const Tensor log_sum{{c.sequences, c.heads, c.length}, kFloat};
  const OpSpec forward{OpKind::kAttentionForward, {qkv}, {y, log_sum}, a};
  const OpSpec backward{OpKind::kAttentionBackward, {qkv, y, y, log_sum}, {qkv}, a};
  Data x = RandomData(qkv, 1);
  // Wide enough for some keys to count much more than others.
  for (float& value : As<float>(x)) value *= 2;
  const double tolerance = type == kBfloat16 ? 2e-2 : 1e-4;
  const std::vector<Data> expected = nn::onednn::RunOp(InFloats(forward), {x});
  const std::vector<Data> actual = RunCheckedOnCuda(Reproducible(), forward, Typed(forward, {x}));
  ExpectClose(forward, actual, expected, LargestOf(expected), tolerance, "attention");
  // In evaluation nobody asks for sums.
  const OpSpec inference{OpKind::kAttentionForward, {qkv}, {y}, a};
  EXPECT_TRUE(RunOnCuda(Reproducible(), inference, Typed(inference, {x}))[0] == actual[0]);

  // Backward from what each of them computed.
  const Data dy = RandomData(y, 2);
  const std::vector<Data> slopes =
      nn::onednn::RunOp(InFloats(backward), {x, expected[0], dy, expected[1]});
  ExpectClose(backward,
              RunCheckedOnCuda(Reproducible(), backward,
                               {ToType(x, type), actual[0], ToType(dy, type), actual[1]}),
              slopes, LargestOf(slopes), tolerance, "attention");
}

TEST(CudaSequencesTest, AttentionIsTheHosts) {
  PLIMSOLL_NEEDS_GPU();
  for (const AttentionCase& c :
       {AttentionCase{2, 64, 2, 64}, AttentionCase{1, 200, 3, 64}, AttentionCase{1, 257, 2, 32},
        AttentionCase{2, 1, 2, 16}, AttentionCase{1, 130, 1, 80}, AttentionCase{1, 100, 2, 96},
        AttentionCase{1, 190, 1, 128}, AttentionCase{1, 70, 2, 48}, AttentionCase{1, 129, 1, 112},
        AttentionCase{2, 17, 3, 5}, AttentionCase{1, 40, 1, 200}, AttentionCase{1, 1024, 1, 64}}) {
    for (const bool causal : {true, false}) {
      ExpectAttentionLikeHost(c, causal, kFloat);
      ExpectAttentionLikeHost(c, causal, kBfloat16);
    }
  }
}

TEST(CudaSequencesTest, TensorCoresAgreeWithFloats) {
  PLIMSOLL_NEEDS_GPU();
  const AttentionSizes sizes{.sequences = 2,
                             .length = 300,
                             .heads = 4,
                             .width = 64,
                             .causal = true,
                             .bfloat16 = true,
                             .scale = 0.125F};
  ASSERT_TRUE(CanRunFlash(sizes));
  const Tensor qkv{{2, 300, 3 * 256}, kBfloat16};
  const Tensor y{{2, 300, 256}, kBfloat16};
  const CudaTestBlock x(static_cast<std::size_t>(qkv.size_bytes()), {});
  x.Fill(ToType(RandomData(qkv, 1), kBfloat16));
  std::vector<Data> results;
  for (const bool flash : {false, true}) {
    const CudaTestBlock result(static_cast<std::size_t>(y.size_bytes()), {});
    const CudaTestStream stream;
    Check(cudaDeviceSynchronize(), "what was filled");
    (flash ? RunFlashForward : RunPlainForward)(sizes, {.qkv = x.begin(), .y = result.begin()},
                                                stream.get());
    stream.Wait();
    results.push_back(result.Content());
  }
  const Data expected = ToFloatData(results[0], kBfloat16);
  ExpectClose({OpKind::kAttentionForward, {qkv}, {y}, {}}, {results[1]}, {expected},
              LargestOf({expected}), 1e-2, "flash");
}

TEST(CudaSequencesTest, LstmIsTheHosts) {
  PLIMSOLL_NEEDS_GPU();
  // Steps upon steps make much of what rounding to TF32 leaves out.
  const auto library = MakeCudaLibrary({.reproducible = true, .tf32_matmul = false});
  for (const auto& [n, t, i, h] : std::vector<std::array<std::int64_t, 4>>{
           {2, 5, 8, 16}, {1, 1, 3, 5}, {3, 7, 5, 3}, {16, 12, 64, 128}}) {
    const Tensor x{{n, t, i}, kFloat};
    const Tensor y{{n, t, h}, kFloat};
    const Tensor gates{{n, t, 4 * h}, kFloat};
    const Tensor w_input{{4 * h, i}, kFloat};
    const Tensor w_hidden{{4 * h, h}, kFloat};
    const Tensor bias{{4 * h}, kFloat};
    const OpSpec forward{OpKind::kLstmForward, {x, w_input, w_hidden, bias}, {y, gates, y}, {}};
    const std::vector<Data> reads = RandomReads(forward);
    const std::vector<Data> expected = nn::onednn::RunOp(forward, reads);
    const std::vector<Data> actual = RunCheckedOnCuda(*library, forward, reads);
    ExpectClose(forward, actual, expected, LargestOf(expected), 1e-3, "lstm");
    const OpSpec inference{OpKind::kLstmForward, forward.reads, {y}, {}};
    EXPECT_TRUE(RunOnCuda(*library, inference, reads)[0] == actual[0]);

    const OpSpec backward{OpKind::kLstmBackward,
                          {x, w_input, w_hidden, y, gates, y, y},
                          {x, w_input, w_hidden, bias},
                          {}};
    const std::vector<Data> inputs = {reads[0],    reads[1],    reads[2],        expected[0],
                                      expected[1], expected[2], RandomData(y, 9)};
    const std::vector<Data> slopes = nn::onednn::RunOp(backward, inputs);
    ExpectClose(backward, RunCheckedOnCuda(*library, backward, inputs), slopes, LargestOf(slopes),
                1e-3, "lstm");
  }
}

TEST(CudaSequencesTest, ThereIsNoLstmInBfloat16) {
  PLIMSOLL_NEEDS_GPU();
  const Tensor x{{2, 3, 4}, kBfloat16};
  const OpSpec spec{
      OpKind::kLstmForward, {x, {{16, 4}, kFloat}, {{16, 4}, kFloat}, {{16}, kFloat}}, {x}, {}};
  EXPECT_THROW(Reproducible().Prepare(spec), Error);
}

}  // namespace
}  // namespace plimsoll::cuda
