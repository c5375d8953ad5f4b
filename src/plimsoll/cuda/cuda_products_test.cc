// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/cuda/compare_for_test.h"
#include "plimsoll/cuda/convolution_plan.h"
#include "plimsoll/cuda/gemm.h"
#include "plimsoll/cuda/handles.h"

namespace plimsoll::cuda {
namespace {

constexpr auto kFloat = ElementType::kFloat;
constexpr auto kBfloat16 = ElementType::kBfloat16;

/// Products are linear in both operands: what is summed up bounds what rounding can do.
void ExpectLikeHost(const OpSpec& spec) {
  const std::vector<Data> reads = RandomReads(spec);
  std::vector<Data> absolute = reads;
  for (Data& data : absolute) {
    for (float& x : As<float>(data)) x = std::abs(x);
  }
  const OpSpec on_host = InFloats(spec);
  const std::vector<Data> expected = nn::onednn::RunOp(on_host, reads);
  const std::vector<Data> bounds = nn::onednn::RunOp(on_host, absolute);
  const bool narrow = spec.reads[0].type == kBfloat16;
  const std::vector<Data> typed = Typed(spec, reads);
  ExpectClose(spec, RunCheckedOnCuda(Reproducible(), spec, typed), expected, bounds,
              narrow ? 1e-2 : 5e-3, "reproducible");
  ExpectClose(spec, RunOnCuda(Tuned(), spec, typed), expected, bounds, narrow ? 1e-2 : 5e-3,
              "tuned");
}

struct ConvolutionCase {
  std::int64_t images;
  std::int64_t height;
  std::int64_t width;
  std::int64_t inputs;
  std::int64_t outputs;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;
  std::int64_t groups = 1;
  bool bias = false;
};

constexpr ConvolutionCase kConvolutions[] = {
    {2, 8, 8, 16, 32, 3, 1, 1},           {2, 8, 8, 64, 64, 1, 1, 0},
    {2, 9, 7, 8, 16, 3, 2, 1, 1, true},    // The last row and column are not reached.
    {3, 32, 32, 3, 16, 7, 2, 3, 1, true},  // As the first of a ResNet.
    {1, 12, 12, 3, 5, 3, 1, 0, 1, true},   // Channels that suit nobody.
    {2, 8, 8, 32, 64, 1, 2, 0},           {2, 6, 6, 16, 32, 3, 1, 1, 4},
    {2, 6, 6, 8, 8, 3, 1, 1, 8, true},  // Each channel for itself.
    {1, 8, 8, 16, 16, 5, 3, 2},
};

std::vector<OpSpec> SpecsOf(const ConvolutionCase& c, ElementType type, bool transposed) {
  Attributes a;
  a.kernel[0] = a.kernel[1] = c.kernel;
  a.stride[0] = a.stride[1] = c.stride;
  a.padding[0] = a.padding[1] = c.padding;
  a.groups = c.groups;
  a.bias = c.bias;
  const auto after = [&](std::int64_t n) { return (n + 2 * c.padding - c.kernel) / c.stride + 1; };
  Tensor x{{c.images, c.height, c.width, c.inputs}, type};
  Tensor y{{c.images, after(c.height), after(c.width), c.outputs}, type};
  if (transposed) {
    std::swap(x.shape[1], y.shape[1]);
    std::swap(x.shape[2], y.shape[2]);
  }
  const Tensor w{{c.outputs, c.kernel, c.kernel, c.inputs / c.groups}, kFloat};
  const Tensor bias{{c.outputs}, kFloat};
  using enum OpKind;
  std::vector<OpSpec> specs = {
      {transposed ? kTransposedConvForward : kConvForward, {x, w}, {y}, a},
      {transposed ? kTransposedConvBackwardWeights : kConvBackwardWeights, {x, y}, {w}, a},
      {transposed ? kTransposedConvBackwardData : kConvBackwardData, {y, w}, {x}, a}};
  if (c.bias) {
    specs[0].reads.push_back(bias);
    specs[1].writes.push_back(bias);
  }
  return specs;
}

TEST(CudaProductsTest, ConvolutionsAreTheHosts) {
  PLIMSOLL_NEEDS_GPU();
  for (const ConvolutionCase& c : kConvolutions) {
    for (const ElementType type : {kFloat, kBfloat16}) {
      for (const OpSpec& spec : SpecsOf(c, type, false)) ExpectLikeHost(spec);
    }
  }
}

TEST(CudaProductsTest, TransposedConvolutionsAreTheHosts) {
  PLIMSOLL_NEEDS_GPU();
  for (const ConvolutionCase& c : kConvolutions) {
    for (const ElementType type : {kFloat, kBfloat16}) {
      for (const OpSpec& spec : SpecsOf(c, type, true)) ExpectLikeHost(spec);
    }
  }
}

struct LinearCase {
  Shape rows;
  std::int64_t inputs;
  std::int64_t outputs;
  bool bias;
};

TEST(CudaProductsTest, LinearLayersAreTheHosts) {
  PLIMSOLL_NEEDS_GPU();
  for (const LinearCase& c : {LinearCase{{32}, 64, 128, true}, LinearCase{{1}, 7, 3, true},
                              LinearCase{{5, 13}, 96, 10, false}, LinearCase{{600}, 33, 257, true},
                              LinearCase{{8, 64}, 256, 1000, true}}) {
    for (const ElementType type : {kFloat, kBfloat16}) {
      Attributes a;
      a.bias = c.bias;
      Tensor x{c.rows, type};
      Tensor y{c.rows, type};
      x.shape.push_back(c.inputs);
      y.shape.push_back(c.outputs);
      const Tensor w{{c.outputs, c.inputs}, kFloat};
      const Tensor bias{{c.outputs}, kFloat};
      OpSpec forward{OpKind::kLinearForward, {x, w}, {y}, a};
      OpSpec weights{OpKind::kLinearBackwardWeights, {x, y}, {w}, a};
      if (c.bias) {
        forward.reads.push_back(bias);
        weights.writes.push_back(bias);
      }
      ExpectLikeHost(forward);
      ExpectLikeHost(weights);
      ExpectLikeHost({OpKind::kLinearBackwardData, {y, w}, {x}, a});
    }
  }
}

/// On the device, in one block each.
Data OnDevice(const Data& data, std::byte* at) {
  Data result(data.size());
  Check(cudaMemcpy(result.data(), at, data.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return result;
}

TEST(CudaProductsTest, PlainConvolutionsAreTheSame) {
  PLIMSOLL_NEEDS_GPU();
  const auto handles = std::make_shared<Handles>(LibraryOptions{.reproducible = true});
  for (const ConvolutionCase& c : kConvolutions) {
    const OpSpec spec = SpecsOf(c, kFloat, false)[0];
    const Shape& x = spec.reads[0].shape;
    const Shape& y = spec.writes[0].shape;
    ConvolutionShape shape{.images = c.images,
                           .x = {x[1], x[2], x[3]},
                           .y = {y[1], y[2], y[3]},
                           .kernel = {c.kernel, c.kernel},
                           .stride = {c.stride, c.stride},
                           .padding = {c.padding, c.padding},
                           .groups = c.groups};
    for (const auto pass : {ConvolutionPass::kForward, ConvolutionPass::kBackwardData,
                            ConvolutionPass::kBackwardWeights}) {
      shape.pass = pass;
      const Tensor tensors[] = {spec.reads[0], spec.reads[1], spec.writes[0]};
      const std::size_t written = pass == ConvolutionPass::kForward        ? 2
                                  : pass == ConvolutionPass::kBackwardData ? 0
                                                                           : 1;
      std::vector<Data> results;
      for (const bool plain : {false, true}) {
        const std::shared_ptr<const ConvolutionPlan> plan =
            plain ? MakePlainConvolution(shape) : PlanConvolution(shape, *handles);
        std::vector<CudaTestBlock> blocks;
        for (std::size_t i = 0; i < 3; ++i) {
          const Data data = RandomData(tensors[i], i + 1);
          blocks.emplace_back(data.size(), Memory{});
          if (i != written) blocks.back().Fill(data);
        }
        const CudaTestBlock workspace(static_cast<std::size_t>(plan->workspace_bytes()), {});
        const CudaTestStream stream;
        Check(cudaDeviceSynchronize(), "what was filled");
        plan->Run(*handles, {blocks[0].begin(), blocks[1].begin(), blocks[2].begin()},
                  workspace.begin(), stream.get());
        stream.Wait();
        results.push_back(blocks[written].Content());
      }
      const OpSpec named{spec.kind, spec.reads, {tensors[written]}, {}};
      ExpectClose(named, {results[1]}, {results[0]}, LargestOf({results[0]}), 5e-3, "plain");
    }
  }
}

TEST(CudaProductsTest, PlainProductsAreTheSame) {
  PLIMSOLL_NEEDS_GPU();
  const auto handles = std::make_shared<Handles>(LibraryOptions{.reproducible = true});
  for (int flags = 0; flags < 16; ++flags) {
    const GemmShape shape{.rows = 24,
                          .columns = 40,
                          .inner = 56,
                          .left_stride = 64,
                          .right_stride = 72,
                          .result_stride = 48,
                          .left_transposed = (flags & 1) != 0,
                          .right_transposed = (flags & 2) != 0,
                          .bias = (flags & 4) != 0,
                          .accumulate = (flags & 8) != 0};
    const Data left = RandomData({{64, 64}, kFloat}, 1);
    const Data right = RandomData({{64, 72}, kFloat}, 2);
    const Data bias = RandomData({{40}, kFloat}, 3);
    const Data result = RandomData({{24, 48}, kFloat}, 4);
    std::vector<Data> results;
    for (const bool plain : {false, true}) {
      const std::shared_ptr<const GemmPlan> plan =
          plain ? MakePlainGemm(shape) : PlanGemm(shape, *handles);
      std::vector<CudaTestBlock> blocks;
      for (const Data* data : {&left, &right, &bias, &result}) {
        blocks.emplace_back(data->size(), Memory{});
        blocks.back().Fill(*data);
      }
      const CudaTestBlock workspace(static_cast<std::size_t>(plan->workspace_bytes()), {});
      const CudaTestStream stream;
      Check(cudaDeviceSynchronize(), "what was filled");
      plan->Run(*handles,
                {blocks[0].begin(), blocks[1].begin(), blocks[2].begin(), blocks[3].begin()},
                workspace.begin(), stream.get());
      stream.Wait();
      results.push_back(OnDevice(result, blocks[3].begin()));
    }
    const OpSpec named{OpKind::kLinearForward, {}, {{{24, 48}, kFloat}}, {}};
    ExpectClose(named, {results[1]}, {results[0]}, LargestOf({results[0]}), 5e-3, "plain");
  }
}

}  // namespace
}  // namespace plimsoll::cuda
