// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plimsoll/nn/trainer.h"

/// Parameters, running statistics, the optimizer's state and the step, in a file (docs/formats.md).
namespace plimsoll::nn {

/// Writes a checkpoint, whole or not at all: whoever is killed here leaves the one before. Throws
/// FileError, and Error if the name asks for compression.
void SaveCheckpoint(const std::string& path, Trainer* trainer);

/// Reads one into a trainer. Throws InputError, and changes nothing, if the file is cut off or
/// damaged, or is of another network or optimizer: it says which parameter, with both shapes.
void LoadCheckpoint(const std::string& path, Trainer* trainer);

}  // namespace plimsoll::nn
