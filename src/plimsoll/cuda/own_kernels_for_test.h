// SPDX-License-Identifier: Apache-2.0
//
// A library of the kernels that are written by hand, without those of vendors: it needs no GPU to
// be made. For tests only.
#pragma once

#include <string_view>

#include "plimsoll/cuda/kernels.h"

namespace plimsoll::cuda {

class OwnKernels final : public nn::KernelLibrary {
 public:
  std::string_view name() const override { return "own"; }
  bool fuses_batch_norm() const override { return true; }
  nn::Kernel Prepare(const nn::OpSpec& spec) override { return PrepareOwn(spec); }
};

}  // namespace plimsoll::cuda
