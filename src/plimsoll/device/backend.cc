// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/backend.h"

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

}  // namespace plimsoll::device
