// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/gemm.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/cuda/fastest.h"
#include "plimsoll/cuda/handles.h"
#include "plimsoll/cuda/weights.h"

namespace plimsoll::cuda {
namespace {

/// What cuBLAS itself takes on Hopper.
constexpr Bytes kMostWorkspace = Bytes{32} << 20;
constexpr int kMostTimed = 8;

cudaDataType_t Type(bool bfloat16) { return bfloat16 ? CUDA_R_16BF : CUDA_R_32F; }

/// A matrix as cuBLAS sees it: column by column.
class Layout {
 public:
  Layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    Check(cublasLtMatrixLayoutCreate(&layout_, type, static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), stride),
          "describing a matrix");
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

/// Rows that follow each other are, for cuBLAS, columns: it is told of result^T = right^T left^T.
class Description {
 public:
  Description(const GemmShape& s, bool tf32)
      : right_(s.right_transposed ? Layout(Type(s.bfloat16), s.inner, s.columns, s.right_stride)
                                  : Layout(Type(s.bfloat16), s.columns, s.inner, s.right_stride)),
        left_(s.left_transposed ? Layout(Type(s.bfloat16), s.rows, s.inner, s.left_stride)
                                : Layout(Type(s.bfloat16), s.inner, s.rows, s.left_stride)),
        result_(Type(s.result_bfloat16), s.columns, s.rows, s.result_stride),
        bias_(s.bias) {
    Check(cublasLtMatmulDescCreate(
              &product_, tf32 && !s.bfloat16 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
              CUDA_R_32F),
          "describing a product");
    const cublasOperation_t right = s.right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t left = s.left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    Set(CUBLASLT_MATMUL_DESC_TRANSA, right);
    Set(CUBLASLT_MATMUL_DESC_TRANSB, left);
    if (s.bias) {
      Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, Type(s.result_bfloat16));
      // Stands for addresses of that alignment, while kernels are proposed.
      Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
          reinterpret_cast<const void*>(static_cast<std::uintptr_t>(s.alignment_bytes)));
    }
  }
  ~Description() {
    if (product_ != nullptr) cublasLtMatmulDescDestroy(product_);
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  std::vector<cublasLtMatmulHeuristicResult_t> Propose(cublasLtHandle_t handle,
                                                       std::int64_t alignment,
                                                       Bytes most_workspace) const {
    cublasLtMatmulPreference_t preference = nullptr;
    Check(cublasLtMatmulPreferenceCreate(&preference), "describing a product");
    const auto bytes = static_cast<std::uint64_t>(most_workspace);
    const auto address = static_cast<std::uint32_t>(alignment);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &bytes, sizeof(bytes));
    for (const auto name :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      cublasLtMatmulPreferenceSetAttribute(preference, name, &address, sizeof(address));
    }
    std::vector<cublasLtMatmulHeuristicResult_t> results(kMostTimed);
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, product_, right_.get(), left_.get(), result_.get(), result_.get(), preference,
        kMostTimed, results.data(), &found);
    cublasLtMatmulPreferenceDestroy(preference);
    results.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(found) : 0);
    std::erase_if(results, [](const auto& r) { return r.state != CUBLAS_STATUS_SUCCESS; });
    return results;
  }

  /// Kernels run on one thread at a time: the address of the bias is part of the description.
  void Run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
           const GemmOperands& operands, bool accumulate, void* workspace, Bytes workspace_bytes,
           void* stream) const {
    const float alpha = 1;
    const float beta = accumulate ? 1 : 0;
    if (bias_) Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    Check(cublasLtMatmul(handle, product_, &alpha, operands.right, right_.get(), operands.left,
                         left_.get(), &beta, operands.result, result_.get(), operands.result,
                         result_.get(), &algorithm, workspace,
                         static_cast<std::size_t>(workspace_bytes),
                         static_cast<cudaStream_t>(stream)),
          "multiplying matrices");
  }

 private:
  template <typename T>
  void Set(cublasLtMatmulDescAttributes_t name, T value) const {
    Check(cublasLtMatmulDescSetAttribute(product_, name, &value, sizeof(value)),
          "describing a product");
  }

  Layout right_;
  Layout left_;
  Layout result_;
  bool bias_;
  cublasLtMatmulDesc_t product_ = nullptr;
};

/// A kernel of cuBLAS's.
class CublasGemm final : public GemmPlan {
 public:
  CublasGemm(std::shared_ptr<const Description> description, bool accumulate,
             const cublasLtMatmulHeuristicResult_t& proposal)
      : description_(std::move(description)),
        accumulate_(accumulate),
        algorithm_(proposal.algo),
        workspace_bytes_(static_cast<Bytes>(proposal.workspaceSize)) {}

  Bytes workspace_bytes() const override { return workspace_bytes_; }
  void Run(Handles& handles, const GemmOperands& operands, std::byte* workspace,
           void* stream) const override {
    description_->Run(handles.cublas_lt(), algorithm_, operands, accumulate_, workspace,
                      workspace_bytes_, stream);
  }

 private:
  std::shared_ptr<const Description> description_;
  bool accumulate_;
  cublasLtMatmulAlgo_t algorithm_;
  Bytes workspace_bytes_;
};

std::shared_ptr<GemmPlan> Fastest(const GemmShape& shape,
                                  const std::vector<std::shared_ptr<GemmPlan>>& plans,
                                  Handles& handles) {
  const Bytes element = shape.bfloat16 ? 2 : 4;
  const auto stored = [](std::int64_t rows, std::int64_t stride, Bytes size) {
    return AlignUp(rows * stride * size, kDefaultAlignment);
  };
  const Bytes left =
      stored(shape.left_transposed ? shape.inner : shape.rows, shape.left_stride, element);
  const Bytes right =
      stored(shape.right_transposed ? shape.columns : shape.inner, shape.right_stride, element);
  const Bytes result = stored(shape.rows, shape.result_stride, shape.result_bfloat16 ? 2 : 4);
  const Bytes bias = stored(1, shape.columns, 4);
  const Bytes operand_bytes = left + right + result + bias;
  std::byte* scratch = handles.Scratch(operand_bytes + kMostWorkspace);
  if (scratch == nullptr) return nullptr;
  FillRandom(scratch, operand_bytes, handles.tuning_stream());
  const GemmOperands operands{.left = scratch,
                              .right = scratch + left,
                              .bias = scratch + left + right + result,
                              .result = scratch + left + right};
  return FastestOf(plans, [&](const GemmPlan& plan, std::optional<Nanoseconds> best) {
    return handles.Time(
        [&] { plan.Run(handles, operands, scratch + operand_bytes, handles.tuning_stream()); },
        best);
  });
}

std::shared_ptr<GemmPlan> Choose(const GemmShape& shape, Handles& handles) {
  const auto description =
      std::make_shared<const Description>(shape, handles.options().tf32_matmul);
  std::vector<std::shared_ptr<GemmPlan>> plans;
  for (const auto& proposal :
       description->Propose(handles.cublas_lt(), shape.alignment_bytes,
                            std::min({kMostWorkspace, handles.options().max_workspace_bytes,
                                      handles.preferred_workspace_bytes()}))) {
    plans.push_back(std::make_shared<CublasGemm>(description, shape.accumulate, proposal));
  }
  if (plans.empty()) return MakePlainGemm(shape);
  if (handles.may_tune()) {
    const auto started = std::chrono::steady_clock::now();
    auto fastest = Fastest(shape, plans, handles);
    handles.SpendTuning(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
    if (fastest != nullptr) return fastest;
  }
  return plans.front();
}

}  // namespace

std::shared_ptr<const GemmPlan> PlanGemm(const GemmShape& shape, Handles& handles) {
  std::shared_ptr<const GemmPlan>& plan = handles.gemm_plans()[shape];
  if (plan == nullptr) plan = Choose(shape, handles);
  return plan;
}

}  // namespace plimsoll::cuda
