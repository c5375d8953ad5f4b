// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the CSV reader. Whatever it accepts must be well-formed and survive
// being written and read again; whatever it refuses must be refused by an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"
#include "plimsoll/place/csv.h"
#include "plimsoll/place/problem.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::place::Problem problem;
  try {
    problem = plimsoll::place::ParseCsv({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const plimsoll::InputError&) {
    return 0;
  }
  plimsoll::place::CheckWellFormed(problem, "accepted");
  const std::string text = plimsoll::place::FormatCsv(problem);
  const std::string again = plimsoll::place::FormatCsv(plimsoll::place::ParseCsv(text, "written"));
  PLIMSOLL_CHECK(text == again, text + "\nbecame\n" + again);
  return 0;
}
