// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the reader of network descriptions. Whatever it accepts must be lowered,
// or refused as too large; whatever it refuses must be refused by an InputError.
#include <cstddef>
#include <cstdint>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"
#include "plimsoll/nn/description.h"
#include "plimsoll/nn/lowering.h"
#include "plimsoll/nn/null_library.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::nn::Description description;
  try {
    description =
        plimsoll::nn::ParseDescription({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const plimsoll::InputError&) {
    return 0;
  }
  plimsoll::nn::NullLibrary library;
  for (const bool train : {true, false}) {
    try {
      const plimsoll::nn::Program program =
          plimsoll::nn::Lower(description.network, {.batch = 3, .train = train}, &library);
      PLIMSOLL_CHECK(plimsoll::nn::Measure(program).peak > 0, "nothing is ever live");
    } catch (const plimsoll::Error&) {
      return 0;
    }
  }
  return 0;
}
