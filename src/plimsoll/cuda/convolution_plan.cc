// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/convolution_plan.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/cuda/cudnn_graph.h"
#include "plimsoll/cuda/fastest.h"
#include "plimsoll/cuda/handles.h"
#include "plimsoll/cuda/weights.h"

namespace plimsoll::cuda {
namespace {

constexpr std::int64_t kX = 1;
constexpr std::int64_t kWeights = 2;
constexpr std::int64_t kY = 3;
/// How many plans are timed for one convolution.
constexpr std::size_t kMostTimed = 8;

/// And how long it may take to make them.
constexpr double kMostSeconds = 1.5;

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point moment) {
  return std::chrono::duration<double>(Clock::now() - moment).count();
}

/// Dimensions are named N, C, H, W, and stored as N, H, W, C.
Descriptor Image(std::int64_t id, std::int64_t images, const std::int64_t (&size)[3],
                 cudnnDataType_t type) {
  const auto& [height, width, channels] = size;
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, {images, channels, height, width})
      .Set(CUDNN_ATTR_TENSOR_STRIDES, {height * width * channels, 1, width * channels, channels})
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {id})
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {16});
  tensor.Finalize();
  return tensor;
}

/// An operation of one node; what a plan is made from stays as long as the plan.
struct Graph {
  Descriptor operation;
  Descriptor graph;
};

std::shared_ptr<const Graph> Describe(const ConvolutionShape& shape, cudnnDataType_t weights_type,
                                      Handles& handles) {
  const cudnnDataType_t type = shape.bfloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const Descriptor x = Image(kX, shape.images, shape.x, type);
  const Descriptor y = Image(kY, shape.images, shape.y, type);
  const Descriptor weights =
      Image(kWeights, shape.y[2], {shape.kernel[0], shape.kernel[1], shape.x[2] / shape.groups},
            weights_type);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2})
      .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode, 1)
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {shape.padding[0], shape.padding[1]})
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {shape.padding[0], shape.padding[1]})
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {1, 1})
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {shape.stride[0], shape.stride[1]});
  convolution.Finalize();

  Descriptor operation = [&]() -> Descriptor {
    switch (shape.pass) {
      case ConvolutionPass::kForward: {
        Descriptor forward(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
        forward.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, weights)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0F)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0F);
        return forward;
      }
      case ConvolutionPass::kBackwardData: {
        Descriptor data(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
        data.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, x)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, weights)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, y)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, convolution)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1.0F)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0.0F);
        return data;
      }
      default: {
        Descriptor filter(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
        filter.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, weights)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, y)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, convolution)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 1.0F)
            .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 0.0F);
        return filter;
      }
    }
  }();
  operation.Finalize();

  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handles.Cudnn(handles.tuning_stream()))
      .Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.Finalize();
  return std::make_shared<const Graph>(Graph{std::move(operation), std::move(graph)});
}

/// A plan of cuDNN's.
class CudnnConvolution final : public ConvolutionPlan {
 public:
  /// `narrow_count` weights are written as bfloat16, and widened afterwards.
  CudnnConvolution(std::shared_ptr<const Graph> graph, Descriptor config, Descriptor plan,
                   Bytes plan_bytes, std::int64_t narrow_count)
      : graph_(std::move(graph)),
        config_(std::move(config)),
        plan_(std::move(plan)),
        plan_bytes_(plan_bytes),
        narrow_count_(narrow_count) {}

  Bytes workspace_bytes() const override { return narrow_bytes() + plan_bytes_; }

  void Run(Handles& handles, const ConvolutionOperands& operands, std::byte* workspace,
           void* stream) const override {
    const std::int64_t ids[] = {kX, kWeights, kY};
    void* addresses[] = {operands.x, narrow_count_ > 0 ? workspace : operands.weights, operands.y};
    void* own = plan_bytes_ > 0 ? workspace + narrow_bytes() : nullptr;
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids, 3)
        .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, addresses, 3)
        .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &own, 1);
    pack.Finalize();
    Check(cudnnBackendExecute(handles.Cudnn(stream), plan_.get(), pack.get()),
          "running a convolution");
    if (narrow_count_ > 0) {
      ToFloats(workspace, static_cast<float*>(operands.weights), narrow_count_, stream);
    }
  }

 private:
  Bytes narrow_bytes() const { return AlignUp(2 * narrow_count_, kDefaultAlignment); }

  std::shared_ptr<const Graph> graph_;
  Descriptor config_;
  Descriptor plan_;
  Bytes plan_bytes_;
  std::int64_t narrow_count_;
};

/// Makes plans for a shape one by one, in the order in which cuDNN proposes them.
class Proposals {
 public:
  /// `narrow`: weights are written as bfloat16.
  Proposals(const ConvolutionShape& shape, bool narrow, Handles& handles)
      : handles_(&handles),
        narrow_count_(narrow ? shape.weight_count() : 0),
        graph_(Describe(shape, WeightsType(shape, narrow), handles)) {
    Add(CUDNN_HEUR_MODE_A);
    if (configs_.empty()) Add(CUDNN_HEUR_MODE_B);
    proposed_ = configs_.size();
    Add(CUDNN_HEUR_MODE_FALLBACK);
    full_floats_ = !shape.bfloat16 && !handles.options().tf32_convolutions;
    if (!shape.bfloat16 && !full_floats_) PreferTf32();
  }

  /// The next that cuDNN can make; null after the last. Without `fallback`, only what heuristics
  /// propose.
  std::shared_ptr<CudnnConvolution> Next(bool fallback) {
    while (next_ < (fallback ? configs_.size() : proposed_)) {
      Descriptor& config = configs_[next_++];
      const NumericalNotes notes = NotesOf(config);
      if (handles_->options().reproducible && notes.nondeterministic) continue;
      if (full_floats_ && notes.tensor_cores) continue;
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handles_->Cudnn(handles_->tuning_stream()))
          .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
      if (!plan.TryFinalize()) continue;
      std::int64_t bytes = 0;
      std::int64_t count = 0;
      if (cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                   CUDNN_TYPE_INT64, 1, &count, &bytes) != CUDNN_STATUS_SUCCESS) {
        continue;
      }
      if (bytes > handles_->options().max_workspace_bytes) continue;
      return std::make_shared<CudnnConvolution>(graph_, std::move(config), std::move(plan), bytes,
                                                narrow_count_);
    }
    return nullptr;
  }

 private:
  static cudnnDataType_t WeightsType(const ConvolutionShape& shape, bool narrow) {
    if (shape.pass == ConvolutionPass::kBackwardWeights && !narrow) return CUDNN_DATA_FLOAT;
    return shape.bfloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  }

  void Add(cudnnBackendHeurMode_t mode) {
    for (Descriptor& config : Propose(graph_->graph, mode)) configs_.push_back(std::move(config));
  }

  /// Leaves out engines that round floats to half precision, if others use tensor cores.
  void PreferTf32() {
    std::vector<Descriptor> kept;
    std::size_t kept_proposed = 0;
    bool tensor_cores = false;
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      const NumericalNotes notes = NotesOf(configs_[i]);
      if (notes.tensor_cores && !notes.rounds_inputs) tensor_cores = true;
    }
    if (!tensor_cores) return;
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      if (NotesOf(configs_[i]).rounds_inputs) continue;
      if (i < proposed_) ++kept_proposed;
      kept.push_back(std::move(configs_[i]));
    }
    configs_ = std::move(kept);
    proposed_ = kept_proposed;
  }

  Handles* handles_;
  std::int64_t narrow_count_;
  std::shared_ptr<const Graph> graph_;
  std::vector<Descriptor> configs_;
  std::size_t proposed_ = 0;  ///< So many of them by heuristics; the others run nearly anything.
  std::size_t next_ = 0;
  bool full_floats_ = false;  ///< Only engines that do not round what they read.
};

std::vector<Proposals> ProposalsFor(const ConvolutionShape& shape, Handles& handles) {
  std::vector<Proposals> result;
  const bool narrow = shape.bfloat16 && shape.pass == ConvolutionPass::kBackwardWeights;
  const auto add = [&](bool as_narrow) {
    try {
      result.emplace_back(shape, as_narrow, handles);
    } catch (const DeviceError&) {
      // cuDNN knows no such operation.
    }
  };
  add(narrow);
  // Few engines write floats from bfloat16; where one does, nothing needs to be widened.
  if (narrow) add(false);
  return result;
}

std::shared_ptr<ConvolutionPlan> First(const ConvolutionShape& shape, Handles& handles) {
  const Clock::time_point started = Clock::now();
  std::shared_ptr<ConvolutionPlan> least;
  for (Proposals& proposals : ProposalsFor(shape, handles)) {
    while (auto plan = proposals.Next(true)) {
      if (least != nullptr && SecondsSince(started) > kMostSeconds) return least;
      if (plan->workspace_bytes() <= handles.preferred_workspace_bytes()) return plan;
      if (least == nullptr || plan->workspace_bytes() < least->workspace_bytes()) {
        least = std::move(plan);
      }
    }
  }
  return least != nullptr ? least : MakePlainConvolution(shape);
}

/// The plans to be timed: as many of each kind.
std::vector<std::shared_ptr<ConvolutionPlan>> Candidates(const ConvolutionShape& shape,
                                                         Handles& handles) {
  const Clock::time_point started = Clock::now();
  std::vector<std::shared_ptr<ConvolutionPlan>> plans;
  std::vector<Proposals> kinds = ProposalsFor(shape, handles);
  for (Proposals& proposals : kinds) {
    for (std::size_t i = 0; i < kMostTimed / kinds.size(); ++i) {
      // Some engines compile first, which takes its time.
      if (!plans.empty() && SecondsSince(started) > kMostSeconds) return plans;
      auto plan = proposals.Next(false);
      if (plan == nullptr) break;
      plans.push_back(std::move(plan));
    }
  }
  const auto is_preferred = [&](const auto& plan) {
    return plan->workspace_bytes() <= handles.preferred_workspace_bytes();
  };
  if (std::none_of(plans.begin(), plans.end(), is_preferred)) {
    if (auto first = First(shape, handles); is_preferred(first)) plans.push_back(std::move(first));
  }
  return plans;
}

std::shared_ptr<ConvolutionPlan> Fastest(const ConvolutionShape& shape, Handles& handles) {
  const auto plans = Candidates(shape, handles);
  Bytes workspace_bytes = 0;
  for (const auto& plan : plans) {
    workspace_bytes = std::max(workspace_bytes, plan->workspace_bytes());
  }
  const Bytes x_bytes = AlignUp(shape.x_count() * shape.element_bytes(), kDefaultAlignment);
  const Bytes y_bytes = AlignUp(shape.y_count() * shape.element_bytes(), kDefaultAlignment);
  const Bytes weight_bytes = AlignUp(shape.weight_count() * 4, kDefaultAlignment);
  const Bytes operand_bytes = x_bytes + y_bytes + weight_bytes;
  std::byte* scratch = plans.empty() ? nullptr : handles.Scratch(operand_bytes + workspace_bytes);
  if (scratch == nullptr) return nullptr;
  FillRandom(scratch, operand_bytes, handles.tuning_stream());
  const ConvolutionOperands operands{
      .x = scratch, .weights = scratch + x_bytes + y_bytes, .y = scratch + x_bytes};
  return FastestWithin(
      handles.preferred_workspace_bytes(), plans,
      [&](const ConvolutionPlan& plan, std::optional<Nanoseconds> best) {
        return handles.Time(
            [&] { plan.Run(handles, operands, scratch + operand_bytes, handles.tuning_stream()); },
            best);
      });
}

}  // namespace

std::shared_ptr<const ConvolutionPlan> PlanConvolution(const ConvolutionShape& shape,
                                                       Handles& handles) {
  std::shared_ptr<const ConvolutionPlan>& plan = handles.convolution_plans()[shape];
  if (plan == nullptr && handles.may_tune()) {
    const Clock::time_point started = Clock::now();
    plan = Fastest(shape, handles);
    handles.SpendTuning(SecondsSince(started));
  }
  if (plan == nullptr) plan = First(shape, handles);
  return plan;
}

}  // namespace plimsoll::cuda
