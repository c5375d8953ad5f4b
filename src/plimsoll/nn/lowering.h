// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/nn/program.h"

namespace plimsoll::nn {

enum class Optimizer : std::uint8_t { kSgd, kAdamW };

/// Of activations, their gradients and inputs that are not integers; the gates and cells that an
/// LSTM keeps count as such. All else is floats in either.
enum class Precision : std::uint8_t { kFloat32, kBfloat16 };

struct LoweringOptions {
  std::int64_t batch = 1;
  bool train = true;  ///< Otherwise an evaluation: no gradients, loss and correct rows only.
  /// Whether parameters are updated as soon as the gradients of a group are complete; otherwise all
  /// are at the end, as programs usually do, and all gradients live until then.
  bool early_updates = true;
  Optimizer optimizer = Optimizer::kSgd;
  float momentum = 0.9F;
  float weight_decay = 0;
  Precision precision = Precision::kFloat32;
  /// Whether input and labels are persistent, filled once by whoever runs the program.
  bool keeps_batch = false;
  /// Which branches of the network are there in this iteration; empty means all.
  std::vector<bool> active_branches{};
};

/// Compiles a network for a batch. Honest for planning: a block is allocated right before the op
/// that first writes it and freed right after the last that touches it; weight gradients come
/// before input gradients, so that a layer's input can go before its gradient is made; what can be
/// computed in place is, if nobody else needs the old content; masks are bits; workspaces are
/// blocks. Gradients of what has several users are summed in place. What is uploaded comes first.
///
/// What the library can do at once becomes one op: in training a batch norm, the ReLU behind it and
/// the addition between them, where nobody else needs what is in between; and updates, of at most
/// 32 MiB of weights together, as all of a group is on the device while it runs.
///
/// Slots begin with the parameters in their order, then the optimizer's first moments of those that
/// are trained, then second moments: the same for every batch and mode.
///
/// Throws Error if the batch is not positive, and what the library throws.
Program Lower(const Network& network, const LoweringOptions& options, KernelLibrary* library);

}  // namespace plimsoll::nn
