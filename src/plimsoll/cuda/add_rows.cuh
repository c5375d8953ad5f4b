// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/nn/op.h"

namespace plimsoll::cuda {

/// Rows that are added to all sequences, forward and backward.
nn::Kernel PrepareAddRows(const nn::OpSpec& spec);

}  // namespace plimsoll::cuda
