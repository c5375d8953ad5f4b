// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plimsoll/trace/trace.h"

namespace plimsoll::trace {

/// What a synthetic training run looks like.
struct GenerateOptions {
  std::uint64_t seed = 1;
  int layers = 16;
  int iterations = 3;
  /// The size of the largest activations; it plays the part of the batch size. At most 2^40.
  Bytes scale_bytes = Bytes{1} << 20;
  /// The first iteration allocates the momenta, which otherwise exist before the first event, and
  /// scratch that no other iteration needs.
  bool differing_first = false;
  /// The last iteration is an evaluation: forward only, and nothing is kept.
  bool differing_last = false;
  /// Every iteration drops layers at random, so that no two are alike (as far as the number of
  /// layers allows).
  bool stochastic = false;
  /// One variable is allocated in each iteration and freed in the next, after its successor was
  /// made, as the centroids of k-means are.
  bool rotating = false;
};

/// Returns a trace of training a made-up network by gradient descent with momentum:
///
///     load
///       ▲            ╱╲    activations wait for backward; convolutions need workspaces for the
///       │         ╱╲╱  ╲   length of an op; temporaries come and go; some variables are empty
///       │      ╱╲╱      ╲__
///       │   ╱╲╱            ╲   gradients of weights wait for the update
///       │  ╱                ╲_
///       ┼──────────────────────▶ time
///        forward   backward  update
///
/// Iterations are alike event by event, unless an option says otherwise; their ops' durations
/// differ by up to three percent. The same options give the same trace on every platform.
///
/// REQUIRES: layers >= 1, iterations >= 1, 1 <= scale_bytes <= 2^40.
Trace GenerateTrace(const GenerateOptions& options);

}  // namespace plimsoll::trace
