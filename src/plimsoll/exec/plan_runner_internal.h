// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/device/backend.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::exec {

inline device::Stream StreamOf(plan::Queue queue) {
  switch (queue) {
    case plan::Queue::kCompute:
      return device::Stream::kCompute;
    case plan::Queue::kCopyOut:
      return device::Stream::kCopyOut;
    case plan::Queue::kCopyIn:
      return device::Stream::kCopyIn;
  }
  return device::Stream::kCompute;
}

}  // namespace plimsoll::exec
