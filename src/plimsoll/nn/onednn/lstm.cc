// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/nn/lstm_sizes.h"
#include "plimsoll/nn/onednn/columns.h"
#include "plimsoll/nn/onednn/gemm.h"
#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/onednn/vector_math.h"

/// An LSTM over whole sequences, from zero states. What does not depend on the step before is one
/// product for all steps.
namespace plimsoll::nn::onednn {
namespace {

struct Sizes : LstmSizes {
  Partition partition;  ///< Of sequences.
};

/// One step of one sequence: gates hold sums on entry, and i f g o on exit.
PLIMSOLL_VECTORIZED void Step(float* gates, const float* bias, const float* cell_before,
                              float* cell, float* y, std::int64_t hidden) {
#pragma omp simd
  for (std::int64_t j = 0; j < hidden; ++j) {
    const float i = Sigmoid(gates[j] + bias[j]);
    const float f = Sigmoid(gates[hidden + j] + bias[hidden + j]);
    const float g = Tanh(gates[2 * hidden + j] + bias[2 * hidden + j]);
    const float o = Sigmoid(gates[3 * hidden + j] + bias[3 * hidden + j]);
    const float c = f * cell_before[j] + i * g;
    gates[j] = i;
    gates[hidden + j] = f;
    gates[2 * hidden + j] = g;
    gates[3 * hidden + j] = o;
    cell[j] = c;
    y[j] = o * Tanh(c);
  }
}

/// The same backward. `dh` is what later steps want of y; `dcell` goes from step to step.
PLIMSOLL_VECTORIZED void StepBack(const float* gates, const float* cell, const float* cell_before,
                                  const float* dy, const float* dh, float* dcell, float* dgates,
                                  std::int64_t hidden) {
#pragma omp simd
  for (std::int64_t j = 0; j < hidden; ++j) {
    const float i = gates[j];
    const float f = gates[hidden + j];
    const float g = gates[2 * hidden + j];
    const float o = gates[3 * hidden + j];
    const float t = Tanh(cell[j]);
    const float d = dy[j] + dh[j];
    const float dc = dcell[j] + d * o * (1.0F - t * t);
    dgates[j] = dc * g * i * (1.0F - i);
    dgates[hidden + j] = dc * cell_before[j] * f * (1.0F - f);
    dgates[2 * hidden + j] = dc * i * (1.0F - g * g);
    dgates[3 * hidden + j] = d * t * o * (1.0F - o);
    dcell[j] = dc * f;
  }
}

/// Forward needs a row of zeros and, where nobody keeps them, gates and cells.
void RunForward(const Sizes& sizes, bool kept, const exec::Launch& launch) {
  const std::int64_t hidden = sizes.hidden;
  const std::int64_t length = sizes.length;
  float* workspace = Write(launch, launch.writes.size() - 1);
  float* y = Write(launch, 0);
  float* zeros = workspace;
  float* gates = kept ? Write(launch, 1) : workspace + hidden;
  float* cells = kept ? Write(launch, 2) : gates + sizes.rows() * sizes.gates();
  std::fill_n(zeros, hidden, 0.0F);
  Gemm(sizes.rows(), sizes.gates(), sizes.inputs, 1, {Read(launch, 0), sizes.inputs},
       {Read(launch, 1), sizes.inputs, true}, false, gates, sizes.gates());
  for (std::int64_t t = 0; t < length; ++t) {
    if (t > 0) {
      Gemm(sizes.sequences, sizes.gates(), hidden, 1, {y + (t - 1) * hidden, length * hidden},
           {Read(launch, 2), hidden, true}, true, gates + t * sizes.gates(),
           length * sizes.gates());
    }
    ForParts(sizes.partition, [&](int, std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        const std::int64_t row = n * length + t;
        Step(gates + row * sizes.gates(), Read(launch, 3),
             t > 0 ? cells + (row - 1) * hidden : zeros, cells + row * hidden, y + row * hidden,
             hidden);
      }
    });
  }
}

/// What backward keeps in the workspace.
struct BackwardSpace {
  ColumnSums sums;
  Sizes sizes;

  Bytes sums_bytes() const { return (sums.workspace_bytes() + 63) / 64 * 64; }
  Bytes workspace_bytes() const {
    return sums_bytes() +
           4 * (sizes.rows() * sizes.gates() + 2 * sizes.sequences * sizes.hidden + sizes.hidden);
  }
};

void BackThroughSteps(const Sizes& sizes, const exec::Launch& launch, float* dgates) {
  const std::int64_t hidden = sizes.hidden;
  const std::int64_t length = sizes.length;
  float* dh = dgates + sizes.rows() * sizes.gates();
  float* dcell = dh + sizes.sequences * hidden;
  float* zeros = dcell + sizes.sequences * hidden;
  std::fill_n(dh, 2 * sizes.sequences * hidden + hidden, 0.0F);
  for (std::int64_t t = length - 1; t >= 0; --t) {
    if (t < length - 1) {
      Gemm(sizes.sequences, hidden, sizes.gates(), 1,
           {dgates + (t + 1) * sizes.gates(), length * sizes.gates()}, {Read(launch, 2), hidden},
           false, dh, hidden);
    }
    ForParts(sizes.partition, [&](int, std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        const std::int64_t row = n * length + t;
        const float* cells = Read(launch, 5);
        StepBack(Read(launch, 4) + row * sizes.gates(), cells + row * hidden,
                 t > 0 ? cells + (row - 1) * hidden : zeros, Read(launch, 6) + row * hidden,
                 dh + n * hidden, dcell + n * hidden, dgates + row * sizes.gates(), hidden);
      }
    });
  }
}

void RunBackward(const BackwardSpace& space, const exec::Launch& launch) {
  const Sizes& sizes = space.sizes;
  const std::int64_t gates = sizes.gates();
  std::byte* workspace = launch.writes[4];
  auto* dgates = reinterpret_cast<float*>(workspace + space.sums_bytes());
  BackThroughSteps(sizes, launch, dgates);
  Gemm(sizes.rows(), sizes.inputs, gates, 1, {dgates, gates}, {Read(launch, 1), sizes.inputs},
       false, Write(launch, 0), sizes.inputs);
  Gemm(gates, sizes.inputs, sizes.rows(), 1, {dgates, gates, true}, {Read(launch, 0), sizes.inputs},
       false, Write(launch, 1), sizes.inputs);
  space.sums.Sums(dgates, workspace);
  for (std::int64_t i = 0; i < gates; ++i) {
    Write(launch, 3)[i] = static_cast<float>(space.sums.first(workspace, i));
  }
  // Row r of gates goes with row r - 1 of y, but for the first of each sequence, which had no state
  // before it.
  for (std::int64_t n = 0; n < sizes.sequences; ++n) {
    std::fill_n(dgates + n * sizes.length * gates, gates, 0.0F);
  }
  if (sizes.rows() == 1) {
    std::fill_n(Write(launch, 2), gates * sizes.hidden, 0.0F);
    return;
  }
  Gemm(gates, sizes.hidden, sizes.rows() - 1, 1, {dgates + gates, gates, true},
       {Read(launch, 3), sizes.hidden}, false, Write(launch, 2), sizes.hidden);
}

}  // namespace

Kernel PrepareLstm(const OpSpec& spec) {
  const LstmSizes shape = SizesOfLstm(spec);
  const Sizes sizes{shape, Cut(shape.sequences, kLeastFloats / 16 / shape.hidden + 1)};
  if (spec.kind == OpKind::kLstmForward) {
    const bool kept = spec.writes.size() == 3;
    const std::int64_t floats =
        sizes.hidden + (kept ? 0 : sizes.rows() * (sizes.gates() + sizes.hidden));
    return {.workspace_bytes = floats * 4,
            .run = [=](const exec::Launch& launch, const StepScalars&) {
              RunForward(sizes, kept, launch);
            }};
  }
  const BackwardSpace space{ColumnSums(CutColumns(sizes.rows(), sizes.gates())), sizes};
  return {
      .workspace_bytes = space.workspace_bytes(),
      .run = [=](const exec::Launch& launch, const StepScalars&) { RunBackward(space, launch); }};
}

}  // namespace plimsoll::nn::onednn
