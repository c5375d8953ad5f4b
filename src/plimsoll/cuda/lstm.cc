// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "plimsoll/cuda/bias.h"
#include "plimsoll/cuda/gemm.h"
#include "plimsoll/cuda/handles.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/lstm_steps.h"
#include "plimsoll/nn/op_check.h"

/// An LSTM over whole sequences, from zero states. What does not depend on the step before is one
/// product for all steps.
namespace plimsoll::cuda {
namespace {

using nn::ElementType;
using nn::OpSpec;
using nn::Refuse;

const float* Read(const exec::Launch& launch, std::size_t i) {
  return reinterpret_cast<const float*>(launch.reads[i]);
}
float* Write(const exec::Launch& launch, std::size_t i) {
  return reinterpret_cast<float*>(launch.writes[i]);
}

/// What the address of a row is a multiple of, if that of the first is one of 64.
std::int64_t AlignmentOf(std::int64_t row_floats) {
  std::int64_t alignment = 64;
  while (4 * row_floats % alignment != 0) alignment /= 2;
  return alignment;
}

Bytes FloatBytes(std::int64_t floats) { return AlignUp(4 * floats, kGemmAlignment); }

/// What both passes hold; plans go before the handles.
struct Products {
  std::shared_ptr<Handles> handles;
  std::vector<std::shared_ptr<const GemmPlan>> plans;

  explicit Products(Handles* of) : handles(of->shared_from_this()) {}

  /// Returns its number.
  std::size_t Add(const GemmShape& shape) {
    plans.push_back(PlanGemm(shape, *handles));
    return plans.size() - 1;
  }
  /// One after the other, they use the same workspace.
  Bytes workspace_bytes() const {
    Bytes most = 0;
    for (const auto& plan : plans) most = std::max(most, plan->workspace_bytes());
    return most;
  }
  void Run(std::size_t number, const float* left, const float* right, float* result,
           std::byte* workspace, void* stream) const {
    plans[number]->Run(*handles, {.left = left, .right = right, .result = result}, workspace,
                       stream);
  }
};

nn::Kernel PrepareForward(const OpSpec& spec, const LstmSizes& sizes, Handles* handles) {
  const bool kept = spec.writes.size() == 3;
  const std::int64_t hidden = sizes.hidden;
  const std::int64_t gates = sizes.gates();
  Products products(handles);
  const std::size_t from_input = products.Add({.rows = sizes.rows(),
                                               .columns = gates,
                                               .inner = sizes.inputs,
                                               .left_stride = sizes.inputs,
                                               .right_stride = sizes.inputs,
                                               .result_stride = gates,
                                               .right_transposed = true});
  const std::size_t from_hidden = products.Add({.rows = sizes.sequences,
                                                .columns = gates,
                                                .inner = hidden,
                                                .left_stride = sizes.length * hidden,
                                                .right_stride = hidden,
                                                .result_stride = sizes.length * gates,
                                                .right_transposed = true,
                                                .accumulate = true,
                                                .alignment_bytes = AlignmentOf(hidden)});
  const Bytes gates_bytes = kept ? 0 : FloatBytes(sizes.rows() * gates);
  const Bytes cells_bytes = kept ? 0 : FloatBytes(sizes.rows() * hidden);
  return {
      .workspace_bytes = kGemmAlignment + gates_bytes + cells_bytes + products.workspace_bytes(),
      .run = [=](const exec::Launch& launch, const nn::StepScalars&) {
        void* stream = launch.native_stream;
        std::byte* own = AlignForGemm(launch.writes[kept ? 3 : 1]);
        std::byte* workspace = own + gates_bytes + cells_bytes;
        float* y = Write(launch, 0);
        float* all_gates = kept ? Write(launch, 1) : reinterpret_cast<float*>(own);
        float* cells = kept ? Write(launch, 2) : reinterpret_cast<float*>(own + gates_bytes);
        products.Run(from_input, Read(launch, 0), Read(launch, 1), all_gates, workspace, stream);
        for (std::int64_t t = 0; t < sizes.length; ++t) {
          if (t > 0) {
            products.Run(from_hidden, y + (t - 1) * hidden, Read(launch, 2), all_gates + t * gates,
                         workspace, stream);
          }
          LstmStep(sizes, t, Read(launch, 3), all_gates, cells, y, stream);
        }
      }};
}

nn::Kernel PrepareBackward(const LstmSizes& sizes, Handles* handles) {
  const std::int64_t hidden = sizes.hidden;
  const std::int64_t gates = sizes.gates();
  Products products(handles);
  const std::size_t to_hidden = products.Add({.rows = sizes.sequences,
                                              .columns = hidden,
                                              .inner = gates,
                                              .left_stride = sizes.length * gates,
                                              .right_stride = hidden,
                                              .result_stride = hidden,
                                              .alignment_bytes = AlignmentOf(gates)});
  const std::size_t to_input = products.Add({.rows = sizes.rows(),
                                             .columns = sizes.inputs,
                                             .inner = gates,
                                             .left_stride = gates,
                                             .right_stride = sizes.inputs,
                                             .result_stride = sizes.inputs});
  const std::size_t to_input_weights = products.Add({.rows = gates,
                                                     .columns = sizes.inputs,
                                                     .inner = sizes.rows(),
                                                     .left_stride = gates,
                                                     .right_stride = sizes.inputs,
                                                     .result_stride = sizes.inputs,
                                                     .left_transposed = true});
  // Row r of gates goes with row r - 1 of y, but for the first of each sequence, which had no state
  // before it.
  const std::size_t to_hidden_weights = sizes.rows() == 1
                                            ? 0
                                            : products.Add({.rows = gates,
                                                            .columns = hidden,
                                                            .inner = sizes.rows() - 1,
                                                            .left_stride = gates,
                                                            .right_stride = hidden,
                                                            .result_stride = hidden,
                                                            .left_transposed = true,
                                                            .alignment_bytes = AlignmentOf(gates)});
  const ColumnSums sums(sizes.rows(), gates, false);
  const Bytes dgates_bytes = FloatBytes(sizes.rows() * gates);
  const Bytes state_bytes = FloatBytes(sizes.sequences * hidden);
  const Bytes shared_bytes = std::max(products.workspace_bytes(), sums.workspace_bytes());
  return {.workspace_bytes = kGemmAlignment + dgates_bytes + 2 * state_bytes + shared_bytes,
          .run = [=](const exec::Launch& launch, const nn::StepScalars&) {
            void* stream = launch.native_stream;
            std::byte* own = AlignForGemm(launch.writes[4]);
            auto* dgates = reinterpret_cast<float*>(own);
            auto* dh = reinterpret_cast<float*>(own + dgates_bytes);
            auto* dcell = reinterpret_cast<float*>(own + dgates_bytes + state_bytes);
            std::byte* workspace = own + dgates_bytes + 2 * state_bytes;
            for (std::int64_t t = sizes.length - 1; t >= 0; --t) {
              if (t < sizes.length - 1) {
                products.Run(to_hidden, dgates + (t + 1) * gates, Read(launch, 2), dh, workspace,
                             stream);
              }
              LstmStepBack(sizes, t,
                           {.gates = Read(launch, 4),
                            .cells = Read(launch, 5),
                            .dy = Read(launch, 6),
                            .dh = dh,
                            .dcell = dcell,
                            .dgates = dgates},
                           stream);
            }
            products.Run(to_input, dgates, Read(launch, 1), Write(launch, 0), workspace, stream);
            products.Run(to_input_weights, dgates, Read(launch, 0), Write(launch, 1), workspace,
                         stream);
            sums.Run(dgates, Write(launch, 3), workspace, stream);
            if (sizes.rows() == 1) {
              Check(
                  cudaMemsetAsync(launch.writes[2], 0, static_cast<std::size_t>(4 * gates * hidden),
                                  static_cast<cudaStream_t>(stream)),
                  "clearing gradients");
              return;
            }
            ClearFirstSteps(sizes, dgates, stream);
            products.Run(to_hidden_weights, dgates + gates, Read(launch, 3), Write(launch, 2),
                         workspace, stream);
          }};
}

}  // namespace

nn::Kernel PrepareLstm(const OpSpec& spec, Handles* handles) {
  for (const auto* list : {&spec.reads, &spec.writes}) {
    for (const nn::Tensor& tensor : *list) {
      if (tensor.type == ElementType::kBfloat16) {
        Refuse(spec, "there is no LSTM in bfloat16; train it in fp32");
      }
      RequireType(spec, tensor, ElementType::kFloat);
    }
  }
  const LstmSizes sizes = nn::SizesOfLstm(spec);
  return spec.kind == nn::OpKind::kLstmForward ? PrepareForward(spec, sizes, handles)
                                               : PrepareBackward(sizes, handles);
}

}  // namespace plimsoll::cuda
