// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/place/problem.h"

namespace plimsoll::place {

/// Reads a placement problem in minimalloc's CSV format (docs/formats.md), plain or gzip:
///
///     id,lower,upper,size,alignment,gaps,offset
///     weights,0,12,4096,512,3-5 7-9,0
///     scratch,3,5,1024,1,,
///
/// Columns come in any order; alignment, gaps and offset may be absent. An offset fixes the buffer
/// there; an empty cell leaves it free. `start` and `begin` are read as lower, `buffer` and
/// `buffer_id` as id, and `end` as an inclusive upper, which makes the ends of gaps inclusive too.
///
/// A gap may carry a window, `3-5@0:256`: bytes of the buffer that stay occupied in the gap. Such a
/// gap is read as no gap at all, which is safe and may cost some bytes.
///
/// Throws InputError with the line and what to do about it. Every problem that comes back passes
/// CheckWellFormed and has distinct ids; a header alone is an empty problem.
Problem ReadCsv(const std::string& path);

/// Does the same for text in memory, not compressed; errors name `source` as their file.
Problem ParseCsv(std::string_view text, const std::string& source);

/// Writes a problem so that ReadCsv gives it back. There is an alignment column if any alignment is
/// not 1, a gaps column if there are gaps, and an offset column if `offsets` is not null (it then
/// has one offset per buffer) or else if any buffer is fixed. Throws Error if an id is empty or
/// has a comma or a control character.
std::string FormatCsv(const Problem& problem, const std::vector<Bytes>* offsets = nullptr);

}  // namespace plimsoll::place
