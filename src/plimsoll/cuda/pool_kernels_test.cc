// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/cuda/compare_for_test.h"
#include "plimsoll/cuda/own_kernels_for_test.h"

namespace plimsoll::cuda {
namespace {

using nn::OpKind;
using nn::onednn::ByteTensor;
using nn::onednn::Floats;
using nn::onednn::RandomFloats;

OwnKernels& Own() {
  static OwnKernels library;
  return library;
}

struct Pool {
  std::int64_t images, height, width, channels;
  std::int64_t kernel, stride, padding;
  bool ceil;
};

/// Windows that overlap, touch and leave gaps; that reach beyond the image; odd channels.
const std::vector<Pool> kPools = {
    {1, 1, 1, 1, 1, 1, 0, false},    {2, 5, 7, 3, 2, 2, 0, false},
    {2, 5, 7, 3, 2, 2, 0, true},     {3, 9, 9, 8, 3, 2, 1, false},
    {2, 9, 8, 12, 3, 2, 0, true},    {1, 6, 6, 64, 3, 1, 1, false},
    {4, 56, 56, 16, 3, 2, 1, false}, {2, 10, 10, 5, 2, 3, 0, false},
    {1, 8, 8, 2048, 8, 8, 0, false}, {2, 30, 200, 40, 5, 3, 2, false}};

nn::OpSpec ForwardSpec(OpKind kind, const Pool& p) {
  nn::Attributes attributes;
  nn::Shape out = {p.images, 0, 0, p.channels};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    attributes.kernel[axis] = p.kernel;
    attributes.stride[axis] = p.stride;
    attributes.padding[axis] = p.padding;
    const std::int64_t extent = axis == 0 ? p.height : p.width;
    const std::int64_t room = extent + 2 * p.padding - p.kernel;
    out[axis + 1] = (p.ceil ? (room + p.stride - 1) / p.stride : room / p.stride) + 1;
    // A window that would begin in the padding is none.
    if ((out[axis + 1] - 1) * p.stride >= extent + p.padding) --out[axis + 1];
  }
  return {kind, {Floats({p.images, p.height, p.width, p.channels})}, {Floats(out)}, attributes};
}

TEST(PoolKernelsTest, MaxPool) {
  PLIMSOLL_NEEDS_GPU();
  for (const Pool& p : kPools) {
    nn::OpSpec forward = ForwardSpec(OpKind::kMaxPoolForward, p);
    // Few values, so that there are equals.
    Data x = RandomFloats(forward.reads[0], 1, 0, 8);
    for (float& value : As<float>(x)) value = std::floor(value);
    Compare(Own(), {.spec = forward, .reads = {x}, .tolerance = 0});
    const nn::Tensor index = ByteTensor(forward.writes[0].shape);
    forward.writes.push_back(index);
    Compare(Own(), {.spec = forward, .reads = {x}, .tolerance = 0});
    const Data found = nn::onednn::RunOp(forward, {x})[1];
    const nn::OpSpec backward{OpKind::kMaxPoolBackward,
                              {forward.writes[0], index},
                              {forward.reads[0]},
                              forward.attributes};
    Compare(Own(), {.spec = backward, .reads = {RandomFloats(forward.writes[0], 2), found}});
  }
}

TEST(PoolKernelsTest, AveragePool) {
  PLIMSOLL_NEEDS_GPU();
  for (const Pool& p : kPools) {
    const nn::OpSpec forward = ForwardSpec(OpKind::kAveragePoolForward, p);
    Compare(Own(), {.spec = forward, .reads = {RandomFloats(forward.reads[0], 1)}});
    const nn::OpSpec backward{OpKind::kAveragePoolBackward, forward.writes, forward.reads,
                              forward.attributes};
    Compare(Own(), {.spec = backward, .reads = {RandomFloats(forward.writes[0], 2)}});
  }
}

TEST(PoolKernelsTest, GlobalPool) {
  PLIMSOLL_NEEDS_GPU();
  for (const Pool& p : kPools) {
    const nn::Tensor x = Floats({p.images, p.height, p.width, p.channels});
    const nn::Tensor y = Floats({p.images, p.channels});
    Compare(Own(), {.spec = {OpKind::kGlobalPoolForward, {x}, {y}}, .reads = {RandomFloats(x, 1)}});
    Compare(Own(),
            {.spec = {OpKind::kGlobalPoolBackward, {y}, {x}}, .reads = {RandomFloats(y, 2)}});
  }
}

}  // namespace
}  // namespace plimsoll::cuda
