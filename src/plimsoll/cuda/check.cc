// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/check.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"

namespace plimsoll::cuda {
namespace {

[[noreturn]] void Throw(const char* library, const char* name, const char* text, const char* what) {
  throw DeviceError(what, fmt::format("{} says {}: {}", library, name, text));
}

}  // namespace

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  // A failure of a call is remembered by the runtime and would come again with the next.
  cudaGetLastError();
  Throw("CUDA", cudaGetErrorName(status), cudaGetErrorString(status), what);
}

void Check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  Throw("cuBLAS", cublasGetStatusName(status), cublasGetStatusString(status), what);
}

void Check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char text[512] = "";
  cudnnGetLastErrorString(text, sizeof(text));
  Throw("cuDNN", cudnnGetErrorString(status), text, what);
}

void CheckLaunch(const char* what) { Check(cudaGetLastError(), what); }

}  // namespace plimsoll::cuda
