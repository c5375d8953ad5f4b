// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/lstm_steps.h"

namespace plimsoll::cuda {
namespace {

constexpr int kThreads = 256;

__device__ float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

/// One thread for each element of the hidden state of each sequence.
__global__ void Step(LstmSizes s, std::int64_t time, const float* __restrict__ bias, float* gates,
                     float* cells, float* y) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= s.sequences * s.hidden) return;
  const std::int64_t j = at % s.hidden;
  const std::int64_t row = at / s.hidden * s.length + time;
  float* mine = gates + row * 4 * s.hidden + j;
  const float i = Sigmoid(mine[0] + bias[j]);
  const float f = Sigmoid(mine[s.hidden] + bias[s.hidden + j]);
  const float g = tanhf(mine[2 * s.hidden] + bias[2 * s.hidden + j]);
  const float o = Sigmoid(mine[3 * s.hidden] + bias[3 * s.hidden + j]);
  const float before = time > 0 ? cells[(row - 1) * s.hidden + j] : 0;
  const float c = f * before + i * g;
  mine[0] = i;
  mine[s.hidden] = f;
  mine[2 * s.hidden] = g;
  mine[3 * s.hidden] = o;
  cells[row * s.hidden + j] = c;
  y[row * s.hidden + j] = o * tanhf(c);
}

__global__ void StepBack(LstmSizes s, std::int64_t time, LstmStepBackOperands operands) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= s.sequences * s.hidden) return;
  const std::int64_t j = at % s.hidden;
  const std::int64_t row = at / s.hidden * s.length + time;
  const bool last = time == s.length - 1;
  const float* gates = operands.gates + row * 4 * s.hidden + j;
  const float i = gates[0];
  const float f = gates[s.hidden];
  const float g = gates[2 * s.hidden];
  const float o = gates[3 * s.hidden];
  const float t = tanhf(operands.cells[row * s.hidden + j]);
  const float before = time > 0 ? operands.cells[(row - 1) * s.hidden + j] : 0;
  const float d = operands.dy[row * s.hidden + j] + (last ? 0 : operands.dh[at]);
  const float dc = (last ? 0 : operands.dcell[at]) + d * o * (1 - t * t);
  float* dgates = operands.dgates + row * 4 * s.hidden + j;
  dgates[0] = dc * g * i * (1 - i);
  dgates[s.hidden] = dc * before * f * (1 - f);
  dgates[2 * s.hidden] = dc * i * (1 - g * g);
  dgates[3 * s.hidden] = d * t * o * (1 - o);
  operands.dcell[at] = dc * f;
}

unsigned BlocksOf(const LstmSizes& sizes) {
  return static_cast<unsigned>((sizes.sequences * sizes.hidden + kThreads - 1) / kThreads);
}

}  // namespace

void LstmStep(const LstmSizes& sizes, std::int64_t time, const float* bias, float* gates,
              float* cells, float* y, void* stream) {
  Step<<<BlocksOf(sizes), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(sizes, time, bias,
                                                                            gates, cells, y);
  CheckLaunch("running a step of an LSTM");
}

void LstmStepBack(const LstmSizes& sizes, std::int64_t time, const LstmStepBackOperands& operands,
                  void* stream) {
  StepBack<<<BlocksOf(sizes), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(sizes, time,
                                                                                operands);
  CheckLaunch("running a step of an LSTM backward");
}

void ClearFirstSteps(const LstmSizes& sizes, float* gates, void* stream) {
  const auto row_bytes = static_cast<std::size_t>(4 * sizes.gates());
  Check(cudaMemset2DAsync(gates, row_bytes * static_cast<std::size_t>(sizes.length), 0, row_bytes,
                          static_cast<std::size_t>(sizes.sequences),
                          static_cast<cudaStream_t>(stream)),
        "clearing gradients");
}

}  // namespace plimsoll::cuda
