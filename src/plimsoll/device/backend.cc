// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/backend.h"

#include "plimsoll/base/error.h"

namespace plimsoll::device {

std::string_view Name(Stream stream) {
  switch (stream) {
    case Stream::kCompute:
      return "compute";
    case Stream::kCopyOut:
      return "copy-out";
    case Stream::kCopyIn:
      return "copy-in";
  }
  return "unknown";
}

void Backend::BeginGraph() { throw DeviceError("BeginGraph", "this device keeps no graphs"); }

GraphId Backend::EndGraph() { throw DeviceError("EndGraph", "this device keeps no graphs"); }

void Backend::LaunchGraph(GraphId /*graph*/) {
  throw DeviceError("LaunchGraph", "this device keeps no graphs");
}

}  // namespace plimsoll::device
