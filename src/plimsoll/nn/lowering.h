// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/nn/program.h"

namespace plimsoll::nn {

enum class Optimizer : std::uint8_t { kSgd, kAdamW };

struct LoweringOptions {
  std::int64_t batch = 1;
  bool train = true;  ///< Otherwise an evaluation: no gradients, loss and correct rows only.
  /// Whether a parameter is updated as soon as its gradient is complete; otherwise all are at the
  /// end, as programs usually do, and all gradients live until then.
  bool fused_update = false;
  Optimizer optimizer = Optimizer::kSgd;
  float momentum = 0.9F;
  float weight_decay = 0;
  /// Which branches of the network are there in this iteration; empty means all.
  std::vector<bool> active_branches{};
};

/// Compiles a network for a batch. Honest for planning: a block is allocated right before the op
/// that first writes it and freed right after the last that touches it; weight gradients come
/// before input gradients, so that a layer's input can go before its gradient is made; what can be
/// computed in place is, if nobody else needs the old content; masks are bits; workspaces are
/// blocks. Gradients of what has several users are summed in place.
///
/// Slots begin with the parameters in their order, then the optimizer's first moments of those that
/// are trained, then second moments: the same for every batch and mode.
///
/// Throws Error if the batch is not positive, and what the library throws.
Program Lower(const Network& network, const LoweringOptions& options, KernelLibrary* library);

}  // namespace plimsoll::nn
