// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the trace reader. Whatever it accepts must survive being written and
// read again; whatever it refuses must be refused by an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"
#include "plimsoll/trace/reader.h"
#include "plimsoll/trace/trace.h"
#include "plimsoll/trace/writer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::trace::Trace trace;
  try {
    trace = plimsoll::trace::ParseTrace({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const plimsoll::InputError&) {
    return 0;
  }
  const std::string text = plimsoll::trace::FormatTrace(trace);
  const std::string again =
      plimsoll::trace::FormatTrace(plimsoll::trace::ParseTrace(text, "written"));
  PLIMSOLL_CHECK(text == again, text + "\nbecame\n" + again);
  return 0;
}
