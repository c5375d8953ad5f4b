// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/library.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/cuda/handles.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/nn/op_check.h"
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define PLIMSOLL_HAS_NVTX
#endif

namespace plimsoll::cuda {
namespace {

using nn::Kernel;
using nn::OpSpec;

Kernel PrepareAnew(const OpSpec& spec, Handles* handles) {
  using enum nn::OpKind;
  switch (spec.kind) {
    case kConvForward:
    case kConvBackwardWeights:
    case kConvBackwardData:
    case kTransposedConvForward:
    case kTransposedConvBackwardWeights:
    case kTransposedConvBackwardData:
      return PrepareConvolution(spec, handles);
    case kLinearForward:
    case kLinearBackwardWeights:
    case kLinearBackwardData:
      return PrepareLinear(spec, handles);
    case kAttentionForward:
    case kAttentionBackward:
      return PrepareAttention(spec, handles);
    case kLstmForward:
    case kLstmBackward:
      return PrepareLstm(spec, handles);
    default:
      return PrepareOwn(spec);
  }
}

#ifdef PLIMSOLL_HAS_NVTX
/// What profilers show by a name, as long as it lives.
class Range {
 public:
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};
#endif

/// A kernel that profilers show by the name of its op. All are steady: what changes from step to
/// step they read on the device.
Kernel Named(nn::OpKind kind, Kernel kernel) {
  kernel.steady = true;
#ifdef PLIMSOLL_HAS_NVTX
  kernel.run = [run = std::move(kernel.run), name = std::string(Name(kind))](
                   const exec::Launch& launch, const nn::StepScalars& scalars) {
    const Range range(name.c_str());
    run(launch, scalars);
  };
#endif
  return kernel;
}

class CudaLibrary final : public nn::KernelLibrary {
 public:
  explicit CudaLibrary(const LibraryOptions& options)
      : handles_(std::make_shared<Handles>(options)) {}

  std::string_view name() const override { return "cuda"; }
  bool fuses_batch_norm() const override { return true; }
  int update_group() const override { return 32; }

  Kernel Prepare(const OpSpec& spec) override {
    // Shapes tell most specs apart; the rest are compared.
    std::vector<Entry>& entries = kernels_[Describe(spec)];
    for (const Entry& entry : entries) {
      if (entry.spec == spec) return entry.kernel;
    }
    entries.push_back({spec, Named(spec.kind, PrepareAnew(spec, handles_.get()))});
    return entries.back().kernel;
  }

  bool PreferWorkspaces(Bytes most_bytes) override {
    // Some kernels of ours choose by shape alone; they stay.
    if (!handles_->PreferWorkspaces(most_bytes)) return false;
    kernels_.clear();
    return true;
  }
  void ReleaseScratch() override { handles_->ReleaseScratch(); }

 private:
  struct Entry {
    OpSpec spec;
    Kernel kernel;
  };
  std::shared_ptr<Handles> handles_;
  std::unordered_map<std::string, std::vector<Entry>> kernels_;
};

}  // namespace

std::unique_ptr<nn::KernelLibrary> MakeCudaLibrary(const LibraryOptions& options) {
  return std::make_unique<CudaLibrary>(options);
}

}  // namespace plimsoll::cuda
