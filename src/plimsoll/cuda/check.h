// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>

/// Turns what CUDA's libraries answer into DeviceError, with what was being done.
namespace plimsoll::cuda {

void Check(cudaError_t status, const char* what);
void Check(cublasStatus_t status, const char* what);
void Check(cudnnStatus_t status, const char* what);

/// Throws if the launch right before could not be made.
void CheckLaunch(const char* what);

}  // namespace plimsoll::cuda
