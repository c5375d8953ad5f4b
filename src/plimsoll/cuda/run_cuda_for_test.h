// SPDX-License-Identifier: Apache-2.0
//
// Runs ops of a library on a GPU, on memory of a test's choice. For tests only.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "plimsoll/cuda/check.h"
#include "plimsoll/nn/onednn/run_for_test.h"
#include "plimsoll/nn/op.h"

namespace plimsoll::cuda {

using nn::onednn::As;
using nn::onednn::Data;
using nn::onednn::Memory;

/// Whether there is a GPU to run on.
inline bool HasGpu() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count > 0;
  cudaGetLastError();
  return false;
}

/// Ends a test, saying so, where there is none.
#define PLIMSOLL_NEEDS_GPU() \
  if (!::plimsoll::cuda::HasGpu()) GTEST_SKIP() << "there is no GPU"

/// A block on the device at a multiple of 256 bytes, and not of 512 if the shift is odd.
class CudaTestBlock {
 public:
  CudaTestBlock(std::size_t size, const Memory& memory)
      : size_(size), before_(512 + kUnit * memory.shift), poison_(memory.poison) {
    Check(cudaMalloc(&storage_, total()), "cudaMalloc");
    Check(cudaMemset(storage_, poison_, total()), "cudaMemset");
  }
  ~CudaTestBlock() { cudaFree(storage_); }
  CudaTestBlock(CudaTestBlock&& other) noexcept
      : storage_(std::exchange(other.storage_, nullptr)),
        size_(other.size_),
        before_(other.before_),
        poison_(other.poison_) {}
  CudaTestBlock(const CudaTestBlock&) = delete;
  CudaTestBlock& operator=(const CudaTestBlock&) = delete;
  CudaTestBlock& operator=(CudaTestBlock&&) = delete;

  std::byte* begin() const { return static_cast<std::byte*>(storage_) + before_; }
  void Fill(const Data& data) const {
    Check(cudaMemcpy(begin(), data.data(), data.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  Data Content() const {
    Data data(size_);
    Check(cudaMemcpy(data.data(), begin(), size_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return data;
  }
  /// Whether nothing beyond the block was written.
  bool Intact() const {
    const auto poisoned = [this](const std::byte* from, std::size_t count) {
      Data data(count);
      Check(cudaMemcpy(data.data(), from, count, cudaMemcpyDeviceToHost), "cudaMemcpy");
      for (const std::byte byte : data) {
        if (byte != std::byte{poison_}) return false;
      }
      return true;
    };
    return poisoned(static_cast<const std::byte*>(storage_), before_) &&
           poisoned(begin() + size_, kBehind);
  }

 private:
  static constexpr std::size_t kUnit = 256;
  static constexpr std::size_t kBehind = 1024;
  std::size_t total() const { return before_ + size_ + kBehind; }

  void* storage_ = nullptr;
  std::size_t size_;
  std::size_t before_;
  unsigned char poison_;
};

/// A stream of its own, as kernels get one. Where they launch on another, capturing fails.
class CudaTestStream {
 public:
  CudaTestStream() {
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~CudaTestStream() { cudaStreamDestroy(stream_); }
  CudaTestStream(const CudaTestStream&) = delete;
  CudaTestStream& operator=(const CudaTestStream&) = delete;
  cudaStream_t get() const { return stream_; }
  void Wait() const { Check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Launches what `function` launches on the stream as a graph, twice: a graph is there to be
/// launched often. `between` makes everything as it was before.
template <typename Function, typename Between>
void RunAsGraph(const CudaTestStream& stream, const Function& function, const Between& between) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  Check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "capture");
  function();
  Check(cudaStreamEndCapture(stream.get(), &graph), "capture");
  Check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; i < 2; ++i) {
    if (i > 0) between();
    Check(cudaGraphLaunch(ready, stream.get()), "cudaGraphLaunch");
    stream.Wait();
  }
  Check(cudaGraphExecDestroy(ready), "cudaGraphExecDestroy");
  Check(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

/// How an op is run; the result must not depend on it.
enum class How {
  kPlain,    ///< Launched, with the step's scalars by value.
  kInGraph,  ///< Captured and launched as a graph, the step's scalars in Launch::constants only.
};

inline std::vector<Data> RunHow(How how, nn::KernelLibrary& library, const nn::OpSpec& spec,
                                const std::vector<Data>& reads, const Memory& memory,
                                const nn::StepScalars& scalars) {
  const nn::Kernel kernel = library.Prepare(spec);
  nn::onednn::OpBlocks<CudaTestBlock> blocks(spec, kernel.workspace_bytes, reads, memory);
  const CudaTestStream stream;
  exec::Launch launch = blocks.launch();
  launch.native_stream = stream.get();
  if (how == How::kPlain) {
    Check(cudaDeviceSynchronize(), "what was filled");
    kernel.run(launch, scalars);
    stream.Wait();
    return blocks.Results();
  }
  std::byte* const constants = blocks.Add(sizeof(scalars));
  Check(cudaMemcpy(constants, &scalars, sizeof(scalars), cudaMemcpyHostToDevice), "cudaMemcpy");
  launch.constants = constants;
  const nn::StepScalars wrong{.seed = ~scalars.seed, .learning_rate = -7, .step = 1234567};
  Check(cudaDeviceSynchronize(), "what was filled");
  RunAsGraph(
      stream, [&] { kernel.run(launch, wrong); },
      [&] {
        blocks.Fill();
        Check(cudaDeviceSynchronize(), "what was filled");
      });
  return blocks.Results();
}

/// Runs an op, and returns what it wrote.
inline std::vector<Data> RunOnCuda(nn::KernelLibrary& library, const nn::OpSpec& spec,
                                   const std::vector<Data>& reads, const Memory& memory = {},
                                   const nn::StepScalars& scalars = {}) {
  return RunHow(How::kPlain, library, spec, reads, memory, scalars);
}

/// Runs an op, checks that neither memory, nor a second run, nor a graph changes a bit of what it
/// writes, and returns that.
inline std::vector<Data> RunCheckedOnCuda(
    nn::KernelLibrary& library, const nn::OpSpec& spec, const std::vector<Data>& reads,
    const std::vector<std::pair<std::size_t, std::size_t>>& in_place = {},
    const nn::StepScalars& scalars = {}) {
  const std::vector<Data> results = RunOnCuda(library, spec, reads, {}, scalars);
  const auto same = [&](const std::vector<Data>& others, const char* what) {
    // Not EXPECT_EQ, which would print megabytes.
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(results[i] == others[i])
          << nn::Name(spec.kind) << ": " << what << ", output " << i;
    }
  };
  same(RunOnCuda(library, spec, reads, {}, scalars), "a second run");
  same(RunOnCuda(library, spec, reads, {.poison = 0, .shift = 1, .shared = {}}, scalars),
       "elsewhere");
  same(RunOnCuda(library, spec, reads, {.poison = 0x7f, .shift = 2, .shared = in_place}, scalars),
       "in place");
  same(RunHow(How::kInGraph, library, spec, reads, {.poison = 0x55, .shift = 3, .shared = in_place},
              scalars),
       "in a graph");
  return results;
}

}  // namespace plimsoll::cuda
