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
  cudnnHandle_t cudnn = nullptr;
  Check(cudnnCreate(&cudnn), "making a handle of cuDNN");
  cudnn_.reset(cudnn);
  cublasLtHandle_t cublas_lt = nullptr;
  Check(cublasLtCreate(&cublas_lt), "making a handle of cuBLAS");
  cublas_lt_.reset(cublas_lt);
  stream_ = NewStream();
  begin_ = NewEvent();
  end_ = NewEvent();
}

cudnnHandle_t Handles::Cudnn(void* stream) {
  if (stream != cudnn_stream_) {
    Check(cudnnSetStream(cudnn_.get(), static_cast<cudaStream_t>(stream)), "choosing a stream");
    cudnn_stream_ = stream;
  }
  return cudnn_.get();
}

bool Handles::may_tune() const {
  return options_.tune && !options_.reproducible && tuning_seconds_ < options_.max_tuning_seconds;
}

std::byte* Handles::Scratch(Bytes size_bytes) {
  if (size_bytes <= scratch_bytes_) return scratch_.get();
  ReleaseScratch();
  void* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(size_bytes)) != cudaSuccess) {
    cudaGetLastError();  // It is remembered otherwise.
    return nullptr;
  }
  scratch_.reset(static_cast<std::byte*>(memory));
  scratch_bytes_ = size_bytes;
  return scratch_.get();
}

void Handles::ReleaseScratch() {
  scratch_.reset();
  scratch_bytes_ = 0;
}

bool Handles::PreferWorkspaces(Bytes most_bytes) {
  preferred_workspace_bytes_ = most_bytes;
  tuning_seconds_ = 0;
  const auto takes_more = [most_bytes](const auto& entry) {
    return entry.second->workspace_bytes() > most_bytes;
  };
  const std::size_t convolutions = std::erase_if(convolution_plans_, takes_more);
  const std::size_t gemms = std::erase_if(gemm_plans_, takes_more);
  return convolutions + gemms > 0;
}

std::optional<Nanoseconds> Handles::Time(const std::function<void()>& launch,
                                         std::optional<Nanoseconds> best) {
  std::optional<Nanoseconds> result;
  try {
    launch();  // Loads what is needed.
    Check(cudaStreamSynchronize(stream_.get()), "tuning");
    Check(cudaEventRecord(begin_.get(), stream_.get()), "tuning");
    launch();
    Check(cudaEventRecord(end_.get(), stream_.get()), "tuning");
    Check(cudaEventSynchronize(end_.get()), "tuning");
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "tuning");
    const auto once = static_cast<Nanoseconds>(milliseconds * 1e6F);
    // A launch from here takes longer than one of a graph.
    if (!best || once < kMuchSlower * *best + kLaunchNanoseconds) result = TimeCaptured(launch);
  } catch (const DeviceError&) {
    cudaStreamSynchronize(stream_.get());
    cudaGetLastError();
  }
  return result;
}

std::optional<Nanoseconds> Handles::TimeCaptured(const std::function<void()>& launch) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::optional<Nanoseconds> result;
  bool launched = true;
  Check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeRelaxed), "tuning");
  try {
    for (int i = 0; i < kTimedLaunches; ++i) launch();
  } catch (const DeviceError&) {
    launched = false;
  }
  const bool captured =
      cudaStreamEndCapture(stream_.get(), &graph) == cudaSuccess && graph != nullptr;
  float milliseconds = 0;
  if (launched && captured && cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess &&
      cudaGraphUpload(executable, stream_.get()) == cudaSuccess &&
      cudaEventRecord(begin_.get(), stream_.get()) == cudaSuccess &&
      cudaGraphLaunch(executable, stream_.get()) == cudaSuccess &&
      cudaEventRecord(end_.get(), stream_.get()) == cudaSuccess &&
      cudaEventSynchronize(end_.get()) == cudaSuccess &&
      cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()) == cudaSuccess) {
    result = static_cast<Nanoseconds>(milliseconds * 1e6F / kTimedLaunches);
  }
  if (executable != nullptr) cudaGraphExecDestroy(executable);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
  return result;
}

}  // namespace plimsoll::cuda
