// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "plimsoll/chain/equations.h"
#include "plimsoll/chain/model.h"

namespace plimsoll::chain {

/// The chain in real bytes, for the equations.
Terms<double> RealTerms(const Chain& chain, const Model& model, Bytes limit_bytes);

/// Returns when the no-wait, ordered schedule ends that offloads `amounts[i]` bytes of x_i, if
/// transfers may be interrupted and give up their memory byte by byte; in nanoseconds. Nothing if
/// too little is offloaded. With all or nothing of each activation this is the problem of paper
/// 002, section 5; no schedule that offloads the same activations whole ends earlier.
std::optional<double> InterruptibleMakespan(const Terms<double>& terms, const Model& model,
                                            const std::vector<double>& amounts);

/// Theorem 2: the optimum if activations may be offloaded in part as well. The first activations
/// leave, M_peak - limit bytes in all. No schedule of the chain within the limit ends earlier; at
/// least proposition 3. REQUIRES: limit >= model.smallest_limit_bytes.
Nanoseconds FractionalOptimum(const Chain& chain, const Model& model, Bytes limit_bytes);

}  // namespace plimsoll::chain
