// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plimsoll/nn/lstm_sizes.h"

/// What an LSTM does element by element in one step of all sequences.
namespace plimsoll::cuda {

using nn::LstmSizes;

/// Of [n, t, ...] each: gates hold sums before and i f g o afterwards.
void LstmStep(const LstmSizes& sizes, std::int64_t time, const float* bias, float* gates,
              float* cells, float* y, void* stream);

/// The same backward. `dh` [n, h] is what later steps want of y and not read in the last step;
/// `dcell` [n, h] goes from step to step.
struct LstmStepBackOperands {
  const float* gates = nullptr;
  const float* cells = nullptr;
  const float* dy = nullptr;
  const float* dh = nullptr;
  float* dcell = nullptr;
  float* dgates = nullptr;
};
void LstmStepBack(const LstmSizes& sizes, std::int64_t time, const LstmStepBackOperands& operands,
                  void* stream);

/// Sets rows of the first step of each sequence to zero.
void ClearFirstSteps(const LstmSizes& sizes, float* gates, void* stream);

}  // namespace plimsoll::cuda
