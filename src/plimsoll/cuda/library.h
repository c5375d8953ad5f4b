// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "plimsoll/base/bytes.h"
#include "plimsoll/nn/op.h"

namespace plimsoll::cuda {

/// How a library chooses among kernels that do the same.
struct LibraryOptions {
  /// Only kernels that give equal bits each time, chosen alike by every process: nothing is timed.
  bool reproducible = false;
  /// Times some of the kernels that cuDNN and cuBLAS propose, and takes the fastest. Needs scratch
  /// memory while ops are prepared: ReleaseScratch().
  bool tune = true;
  /// Of all ops together; those that are prepared later take what is proposed first.
  double max_tuning_seconds = 120;
  /// No convolution or product asks for more.
  Bytes max_workspace_bytes = Bytes{1} << 30;
  /// Whether products of floats may round their inputs to TF32. PyTorch does not, unless it is
  /// told to.
  bool tf32_matmul = true;
  /// The same of convolutions; PyTorch does.
  bool tf32_convolutions = true;
};

/// Kernels for the current NVIDIA GPU: convolutions by cuDNN, products of matrices by cuBLAS, the
/// rest by kernels of our own. Throws DeviceError if there is no GPU.
///
/// Everything but cuDNN's convolutions gives equal bits for equal inputs, wherever they are; with
/// LibraryOptions::reproducible, those too.
///
/// The library is not thread-safe. Kernels are launched by one thread at a time, and outlive the
/// library. Addresses of operands are multiples of 256.
std::unique_ptr<nn::KernelLibrary> MakeCudaLibrary(const LibraryOptions& options = {});

}  // namespace plimsoll::cuda
