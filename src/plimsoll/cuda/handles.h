// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/convolution_plan.h"
#include "plimsoll/cuda/gemm.h"
#include "plimsoll/cuda/library.h"
#include "plimsoll/cuda/unique.h"

/// What kernels of one library share: handles, plans, and scratch memory to tune in.
namespace plimsoll::cuda {

class Handles : public std::enable_shared_from_this<Handles> {
 public:
  explicit Handles(const LibraryOptions& options);
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  const LibraryOptions& options() const { return options_; }
  /// cuDNN, about to launch on that stream.
  cudnnHandle_t Cudnn(void* stream);
  cublasLtHandle_t cublas_lt() const { return cublas_lt_.get(); }

  /// Whether ops may be timed: by the options, and as long as there is time left.
  bool may_tune() const;
  void SpendTuning(double seconds) { tuning_seconds_ += seconds; }
  /// A stream for tuning only.
  cudaStream_t tuning_stream() const { return stream_.get(); }
  /// Memory to tune in, valid until the next call; null if the device has none to spare.
  std::byte* Scratch(Bytes size_bytes);
  void ReleaseScratch();

  /// How long something takes that launches on tuning_stream(). Nothing if it fails, if it cannot
  /// be captured in a graph, or if it is much slower than `best`.
  std::optional<Nanoseconds> Time(const std::function<void()>& launch,
                                  std::optional<Nanoseconds> best);

  /// Where there is a choice, no plan takes more workspace. Plans that do are forgotten, and there
  /// is time to tune others; returns whether there were any.
  bool PreferWorkspaces(Bytes most_bytes);
  Bytes preferred_workspace_bytes() const { return preferred_workspace_bytes_; }

  /// Plans that were made before.
  std::map<ConvolutionShape, std::shared_ptr<const ConvolutionPlan>>& convolution_plans() {
    return convolution_plans_;
  }
  std::map<GemmShape, std::shared_ptr<const GemmPlan>>& gemm_plans() { return gemm_plans_; }

 private:
  std::optional<Nanoseconds> TimeCaptured(const std::function<void()>& launch);

  LibraryOptions options_;
  // Plans go before the handles that they were made with.
  std::unique_ptr<cudnnContext, Giver<cudnnDestroy>> cudnn_;
  void* cudnn_stream_ = nullptr;
  std::unique_ptr<cublasLtContext, Giver<cublasLtDestroy>> cublas_lt_;
  UniqueStream stream_;
  UniqueEvent begin_;
  UniqueEvent end_;
  UniqueMemory scratch_;
  Bytes scratch_bytes_ = 0;
  double tuning_seconds_ = 0;
  Bytes preferred_workspace_bytes_ = kMaxBytes;
  std::map<ConvolutionShape, std::shared_ptr<const ConvolutionPlan>> convolution_plans_;
  std::map<GemmShape, std::shared_ptr<const GemmPlan>> gemm_plans_;
};

}  // namespace plimsoll::cuda
