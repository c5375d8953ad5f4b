// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/cuda/compare_for_test.h"

namespace plimsoll::cuda {
namespace {

Tensor F(Shape shape) { return {std::move(shape), ElementType::kFloat}; }
Tensor I(Shape shape) { return {std::move(shape), ElementType::kInt}; }
Tensor Mask(Shape shape) { return {std::move(shape), ElementType::kBit}; }
Tensor Byte(Shape shape) { return {std::move(shape), ElementType::kByte}; }

/// Of each kind one, with activations of that type.
std::vector<OpSpec> OneOfEach(ElementType type) {
  const auto t = [&](Shape shape) { return Tensor{std::move(shape), type}; };
  Attributes window;
  window.kernel[0] = window.kernel[1] = 3;
  window.padding[0] = window.padding[1] = 1;
  Attributes pool;
  pool.kernel[0] = pool.kernel[1] = 2;
  pool.stride[0] = pool.stride[1] = 2;
  Attributes heads;
  heads.heads = 2;
  const Tensor x = t({2, 8, 8, 16});
  const Tensor w = F({16, 3, 3, 16});
  const Tensor c = F({16});
  const Tensor half = t({2, 4, 4, 16});
  const Tensor flat = t({4, 16});
  const Tensor bits = Mask({2, 8, 8, 16});
  const Tensor sequence = t({2, 8, 32});
  const Tensor qkv = t({2, 8, 96});
  using enum OpKind;
  std::vector<OpSpec> specs = {
      {kConvForward, {x, w}, {x}, window},
      {kConvBackwardWeights, {x, x}, {w}, window},
      {kConvBackwardData, {x, w}, {x}, window},
      {kTransposedConvForward, {x, w}, {x}, window},
      {kTransposedConvBackwardWeights, {x, x}, {w}, window},
      {kTransposedConvBackwardData, {x, w}, {x}, window},
      {kLinearForward, {flat, F({8, 16})}, {t({4, 8})}, {}},
      {kLinearBackwardWeights, {flat, t({4, 8})}, {F({8, 16})}, {}},
      {kLinearBackwardData, {t({4, 8}), F({8, 16})}, {flat}, {}},
      {kBatchNormStatistics, {x, c, c}, {c, c, c, c}, {}},
      {kBatchNormNormalize, {x, c, c, c, c}, {x}, {}},
      {kBatchNormInference, {x, c, c, c, c}, {x}, {}},
      {kBatchNormBackward, {x, x, c, c, c}, {x, c, c}, {}},
      {kBatchNormReluForward, {x, c, c, c, c, x}, {x, bits}, {}},
      {kBatchNormReluBackward, {x, x, bits, c, c, c}, {x, c, c, x}, {}},
      {kLayerNormForward, {flat, c, c}, {flat, F({4}), F({4})}, {}},
      {kLayerNormBackward, {flat, flat, c, F({4}), F({4})}, {flat, c, c}, {}},
      {kLrnForward, {x}, {x}, {}},
      {kLrnBackward, {x, x}, {x}, {}},
      {kReluForward, {x}, {x, bits}, {}},
      {kReluBackward, {x, bits}, {x}, {}},
      {kMaxPoolForward, {x}, {half, Byte({2, 4, 4, 16})}, pool},
      {kMaxPoolBackward, {half, Byte({2, 4, 4, 16})}, {x}, pool},
      {kAveragePoolForward, {x}, {half}, pool},
      {kAveragePoolBackward, {half}, {x}, pool},
      {kGlobalPoolForward, {x}, {t({2, 16})}, {}},
      {kGlobalPoolBackward, {t({2, 16})}, {x}, {}},
      {kAdd, {x, x}, {x}, {}},
      {kScale, {x}, {x}, {}},
      {kFill, {}, {x}, {}},
      {kConcat, {x, x}, {t({2, 8, 8, 32})}, {}},
      {kSlice, {t({2, 8, 8, 32})}, {x}, {}},
      {kDropoutForward, {x}, {x, bits}, {}},
      {kDropoutBackward, {x, bits}, {x}, {}},
      {kEmbeddingForward, {I({2, 8}), F({50, 32})}, {sequence}, {}},
      {kEmbeddingBackward, {I({2, 8}), sequence}, {F({50, 32})}, {}},
      {kAddRowsForward, {sequence, F({10, 32})}, {sequence}, {}},
      {kAddRowsBackward, {sequence}, {F({10, 32})}, {}},
      {kAttentionForward, {qkv}, {sequence, F({2, 2, 8})}, heads},
      {kAttentionBackward, {qkv, sequence, sequence, F({2, 2, 8})}, {qkv}, heads},
      {kLstmForward, {F({2, 8, 4}), F({32, 4}), F({32, 8}), F({32})}, {F({2, 8, 8})}, {}},
      {kLstmBackward,
       {F({2, 8, 4}), F({32, 4}), F({32, 8}), F({2, 8, 8}), F({2, 8, 32}), F({2, 8, 8}),
        F({2, 8, 8})},
       {F({2, 8, 4}), F({32, 4}), F({32, 8}), F({32})},
       {}},
      {kSoftmaxLossForward, {flat, I({4})}, {flat, F({1})}, {}},
      {kSoftmaxLossBackward, {flat, I({4})}, {flat}, {}},
      {kCountCorrect, {flat, I({4})}, {F({1})}, {}},
      {kSgdUpdate, {w, w, w}, {w, w}, {}},
      {kAdamWUpdate, {w, w, w, w, c, c, c, c}, {w, w, w, c, c, c}, {}}};
  for (const OpKind kind : {kGeluForward, kTanhForward, kSigmoidForward}) {
    specs.push_back({kind, {x}, {x}, {}});
  }
  for (const OpKind kind : {kGeluBackward, kTanhBackward, kSigmoidBackward}) {
    specs.push_back({kind, {x, x}, {x}, {}});
  }
  return specs;
}

TEST(CudaLibraryTest, HasEveryKind) {
  PLIMSOLL_NEEDS_GPU();
  for (const ElementType type : {ElementType::kFloat, ElementType::kBfloat16}) {
    std::set<OpKind> kinds;
    for (const OpSpec& spec : OneOfEach(type)) {
      kinds.insert(spec.kind);
      EXPECT_NO_THROW(EXPECT_TRUE(Reproducible().Prepare(spec).run)) << Describe(spec);
    }
    EXPECT_FALSE(kinds.contains(OpKind::kBatchNormForward)) << "two ops here";
    EXPECT_EQ(kinds.size() + 1, static_cast<std::size_t>(nn::kOpKinds));
  }
}

TEST(CudaLibraryTest, EveryKindRefusesWhatMakesNoSense) {
  PLIMSOLL_NEEDS_GPU();
  for (int kind = 0; kind < nn::kOpKinds; ++kind) {
    const OpSpec spec{static_cast<OpKind>(kind), {}, {}, {}};
    try {
      Reproducible().Prepare(spec);
      ADD_FAILURE() << nn::Name(spec.kind);
    } catch (const Error& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with(nn::Name(spec.kind))) << error.what();
    }
  }
}

TEST(CudaLibraryTest, KernelsOutliveTheLibrary) {
  PLIMSOLL_NEEDS_GPU();
  Attributes a;
  a.kernel[0] = a.kernel[1] = 3;
  a.padding[0] = a.padding[1] = 1;
  const OpSpec spec{
      OpKind::kConvForward, {F({1, 8, 8, 16}), F({16, 3, 3, 16})}, {F({1, 8, 8, 16})}, a};
  const nn::Kernel kernel = MakeCudaLibrary({.reproducible = true})->Prepare(spec);
  const std::vector<Data> reads = RandomReads(spec);
  const CudaTestBlock x(reads[0].size(), {});
  const CudaTestBlock w(reads[1].size(), {});
  const CudaTestBlock y(reads[0].size(), {});
  const CudaTestBlock workspace(static_cast<std::size_t>(kernel.workspace_bytes), {});
  x.Fill(reads[0]);
  w.Fill(reads[1]);
  std::byte* read_pointers[] = {x.begin(), w.begin()};
  std::vector<std::byte*> write_pointers = {y.begin()};
  if (kernel.workspace_bytes > 0) write_pointers.push_back(workspace.begin());
  const CudaTestStream stream;
  Check(cudaDeviceSynchronize(), "what was filled");
  kernel.run({.reads = read_pointers, .writes = write_pointers, .native_stream = stream.get()}, {});
  stream.Wait();
  EXPECT_TRUE(y.Content() == RunOnCuda(Reproducible(), spec, reads)[0]);
}

TEST(CudaLibraryTest, WorkspacesAreAsSmallAsThoseOfOthersIfTold) {
  PLIMSOLL_NEEDS_GPU();
  // Weights of few channels over large images: the fastest kernels split the sum.
  Attributes a;
  a.kernel[0] = a.kernel[1] = 3;
  a.padding[0] = a.padding[1] = 1;
  const OpSpec spec{OpKind::kConvBackwardWeights,
                    {F({32, 56, 56, 64}), F({32, 56, 56, 64})},
                    {F({64, 3, 3, 64})},
                    a};
  for (const bool tune : {true, false}) {
    const auto library = MakeCudaLibrary({.tune = tune});
    const Bytes before = library->Prepare(spec).workspace_bytes;
    EXPECT_FALSE(library->PreferWorkspaces(before));
    const bool others = before > 0 && library->PreferWorkspaces(before - 1);
    EXPECT_EQ(others, before > 0);
    EXPECT_LE(library->Prepare(spec).workspace_bytes, before);
    // What cannot be is not asked for.
    library->PreferWorkspaces(0);
    EXPECT_TRUE(library->Prepare(spec).run);
  }
}

TEST(CudaLibraryTest, TuningNeedsNoMoreThanItMay) {
  PLIMSOLL_NEEDS_GPU();
  const Bytes most = Bytes{1} << 20;
  const auto library = MakeCudaLibrary({.max_workspace_bytes = most});
  Attributes a;
  a.kernel[0] = a.kernel[1] = 3;
  a.padding[0] = a.padding[1] = 1;
  const OpSpec spec{
      OpKind::kConvForward, {F({8, 32, 32, 64}), F({64, 3, 3, 64})}, {F({8, 32, 32, 64})}, a};
  const nn::Kernel kernel = library->Prepare(spec);
  EXPECT_LE(kernel.workspace_bytes, most);
  EXPECT_GT(kernel.expected_ns, 0);
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t total = 0;
  Check(cudaMemGetInfo(&before, &total), "asking for free memory");
  library->ReleaseScratch();
  Check(cudaMemGetInfo(&after, &total), "asking for free memory");
  EXPECT_GT(after, before);
  EXPECT_EQ(library->name(), "cuda");
}

}  // namespace
}  // namespace plimsoll::cuda
