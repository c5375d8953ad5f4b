// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/nn/lowering.h"
#include "plimsoll/trace/trace.h"

namespace plimsoll::nn {

/// Returns the trace of a program's iterations without running it or having memory for it: its
/// persistent blocks are there before, its marks begin iterations, its ops take the times that its
/// library expects.
trace::Trace Record(const Program& program, const std::string& name, int iterations = 3);

/// Lowers and records in one.
trace::Trace Record(const Network& network, const LoweringOptions& options, KernelLibrary* library,
                    int iterations = 3);

}  // namespace plimsoll::nn
