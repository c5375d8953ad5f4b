// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/op_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plimsoll/base/error.h"

namespace plimsoll::nn {
namespace {

std::string List(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const Tensor& tensor : tensors) text += fmt::format(" [{}]", fmt::join(tensor.shape, ","));
  return text.empty() ? " nothing" : text;
}

}  // namespace

std::string Describe(const OpSpec& spec) {
  return fmt::format("{}: reads{}, writes{}", Name(spec.kind), List(spec.reads), List(spec.writes));
}

void Refuse(const OpSpec& spec, const std::string& reason) {
  throw Error(fmt::format("{}: {}", Describe(spec), reason));
}

void RequireOperands(const OpSpec& spec, std::size_t reads, std::size_t writes,
                     std::size_t writes_most) {
  const std::size_t most = std::max(writes, writes_most);
  if (spec.reads.size() != reads) Refuse(spec, fmt::format("it takes {} reads", reads));
  if (spec.writes.size() < writes || spec.writes.size() > most) {
    Refuse(spec, fmt::format("it takes {} to {} writes", writes, most));
  }
  for (const auto* list : {&spec.reads, &spec.writes}) {
    for (const Tensor& tensor : *list) {
      if (std::any_of(tensor.shape.begin(), tensor.shape.end(), [](auto d) { return d <= 0; })) {
        Refuse(spec, "every extent must be positive");
      }
    }
  }
}

void RequireShape(const OpSpec& spec, const Tensor& tensor, const Shape& shape) {
  if (tensor.shape != shape) {
    Refuse(spec,
           fmt::format("[{}] should be [{}]", fmt::join(tensor.shape, ","), fmt::join(shape, ",")));
  }
}

void RequireRank(const OpSpec& spec, const Tensor& tensor, std::size_t rank) {
  if (tensor.shape.size() != rank) {
    Refuse(spec, fmt::format("[{}] should have {} dimensions", fmt::join(tensor.shape, ","), rank));
  }
}

void RequireCount(const OpSpec& spec, const Tensor& tensor, std::int64_t count) {
  if (tensor.count() != count) {
    Refuse(spec, fmt::format("[{}] should have {} elements", fmt::join(tensor.shape, ","), count));
  }
}

void RequireType(const OpSpec& spec, const Tensor& tensor, ElementType type) {
  if (tensor.type != type) {
    Refuse(spec, fmt::format("[{}] has elements of the wrong type", fmt::join(tensor.shape, ",")));
  }
}

std::int64_t Columns(const OpSpec& spec, const Tensor& tensor) {
  if (tensor.shape.empty()) Refuse(spec, "there must be a dimension");
  return tensor.shape.back();
}

std::int64_t Rows(const OpSpec& spec, const Tensor& tensor) {
  return tensor.count() / Columns(spec, tensor);
}

}  // namespace plimsoll::nn
