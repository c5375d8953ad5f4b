// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "plimsoll/trace/traits.h"

namespace plimsoll::plan {

using trace::OpTraits;

/// Returns the traits of an op by its name: those of PyTorch's ops; replayable for a chain's
/// `forward:` stages; and nothing for names that are not known. What a trace says of its ops comes
/// before it.
OpTraits TraitsOf(std::string_view op_name);

}  // namespace plimsoll::plan
