// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plimsoll/trace/trace.h"

namespace plimsoll::trace {

/// Imports an event log as SINGA's memory pool writes it, plain or gzip; one event a line,
///
///     EVENT POINTER BYTES NANOSECONDS        Malloc 0x54f7f50 26214400 1529635706083669368
///
/// with EVENT one of Malloc, Free, Read, Mutable (a write) and Layer, and NANOSECONDS the moment of
/// the event. The log knows blocks and moments, not ops, so this is how it is read:
///
/// - Every Malloc is a new variable, because pointers are used again.
/// - A pointer that is touched but was not allocated before is a variable that was alive before the
///   log began (a weight, or a gradient of the iteration before), of the largest size that it is
///   touched with. The load of the imported trace therefore contains the weights; numbers published
///   for such logs may count only what the log allocates.
/// - Reads and Mutables in a row, with no Malloc or Free between them, are one op called "exec". A
///   Read of a block that the same op has written begins the next op: the writer must have ended.
///   Without this rule the update of all weights would be one op that needs them all at once.
/// - A Mutable right before the Free of the same block is part of the Free: SINGA asks a block for
///   its address to free it, and logs that, too. No op needs the block there.
/// - An op reads what was Read and writes what was Mutable; a block is both only if it was both.
/// - An op takes as long as from its first event to the first line after its last one, whatever
///   that is. Host work between two events is thus counted as time of the op. An op at the end of
///   the log ends with its last event.
/// - Layer lines list the blocks of a layer and touch nothing: they are read as moments only.
/// - The log does not tell forward from backward, so every phase is forward; and it has no marks,
/// so
///   neither has the trace.
///
/// Throws InputError with the line: on malformed lines, moments that go back, a Malloc of a pointer
/// that is alive, a Free or a touch of a pointer that was freed, a Free of a pointer never seen,
/// and a touch or a Free that contradicts the size allocated.
Trace ReadSingaLog(const std::string& path);

}  // namespace plimsoll::trace
