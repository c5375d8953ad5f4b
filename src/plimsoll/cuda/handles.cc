// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/handles.h"

#include "plimsoll/base/error.h"

namespace plimsoll::cuda {
namespace {

/// How often an op runs while it is timed.
constexpr int kTimedLaunches = 3;
/// Beyond this many times the best, an op is not timed to the end.
constexpr Nanoseconds kMuchSlower = 2;
constexpr Nanoseconds kLaunchNanoseconds = 20000;

}  // namespace

Handles::Handles(const LibraryOptions& options) : options_(options) {
  try {
    Check(cudnnCreate(&cudnn_), "making a handle of cuDNN");
    Check(cublasLtCreate(&cublas_lt_), "making a handle of cuBLAS");
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream to tune on");
    Check(cudaEventCreate(&begin_), "making an event");
    Check(cudaEventCreate(&end_), "making an event");
  } catch (...) {
    Release();
    throw;
  }
}

Handles::~Handles() { Release(); }

void Handles::Release() {
  ReleaseScratch();
  convolution_plans_.clear();
  gemm_plans_.clear();
  if (end_ != nullptr) cudaEventDestroy(end_);
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
  if (cublas_lt_ != nullptr) cublasLtDestroy(cublas_lt_);
  if (cudnn_ != nullptr) cudnnDestroy(cudnn_);
}

cudnnHandle_t Handles::Cudnn(void* stream) {
  if (stream != cudnn_stream_) {
    Check(cudnnSetStream(cudnn_, static_cast<cudaStream_t>(stream)), "choosing a stream");
    cudnn_stream_ = stream;
  }
  return cudnn_;
}

bool Handles::may_tune() const {
  return options_.tune && !options_.reproducible && tuning_seconds_ < options_.max_tuning_seconds;
}

std::byte* Handles::Scratch(Bytes size_bytes) {
  if (size_bytes <= scratch_bytes_) return scratch_;
  ReleaseScratch();
  void* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(size_bytes)) != cudaSuccess) {
    cudaGetLastError();  // It is remembered otherwise.
    return nullptr;
  }
  scratch_ = static_cast<std::byte*>(memory);
  scratch_bytes_ = size_bytes;
  return scratch_;
}

void Handles::ReleaseScratch() {
  if (scratch_ != nullptr) cudaFree(scratch_);
  scratch_ = nullptr;
  scratch_bytes_ = 0;
}

std::optional<Nanoseconds> Handles::Time(const std::function<void()>& launch,
                                         std::optional<Nanoseconds> best) {
  std::optional<Nanoseconds> result;
  try {
    launch();  // Loads what is needed.
    Check(cudaStreamSynchronize(stream_), "tuning");
    Check(cudaEventRecord(begin_, stream_), "tuning");
    launch();
    Check(cudaEventRecord(end_, stream_), "tuning");
    Check(cudaEventSynchronize(end_), "tuning");
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, begin_, end_), "tuning");
    const auto once = static_cast<Nanoseconds>(milliseconds * 1e6F);
    // A launch from here takes longer than one of a graph.
    if (!best || once < kMuchSlower * *best + kLaunchNanoseconds) result = TimeCaptured(launch);
  } catch (const DeviceError&) {
    cudaStreamSynchronize(stream_);
    cudaGetLastError();
  }
  return result;
}

std::optional<Nanoseconds> Handles::TimeCaptured(const std::function<void()>& launch) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::optional<Nanoseconds> result;
  bool launched = true;
  Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "tuning");
  try {
    for (int i = 0; i < kTimedLaunches; ++i) launch();
  } catch (const DeviceError&) {
    launched = false;
  }
  const bool captured = cudaStreamEndCapture(stream_, &graph) == cudaSuccess && graph != nullptr;
  float milliseconds = 0;
  if (launched && captured && cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess &&
      cudaGraphUpload(executable, stream_) == cudaSuccess &&
      cudaEventRecord(begin_, stream_) == cudaSuccess &&
      cudaGraphLaunch(executable, stream_) == cudaSuccess &&
      cudaEventRecord(end_, stream_) == cudaSuccess && cudaEventSynchronize(end_) == cudaSuccess &&
      cudaEventElapsedTime(&milliseconds, begin_, end_) == cudaSuccess) {
    result = static_cast<Nanoseconds>(milliseconds * 1e6F / kTimedLaunches);
  }
  if (executable != nullptr) cudaGraphExecDestroy(executable);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
  return result;
}

}  // namespace plimsoll::cuda
