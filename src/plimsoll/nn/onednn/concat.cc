// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::nn::onednn {
namespace {

/// Copies `columns` floats from each row of one matrix to each of another.
void CopyColumns(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride,
                 std::int64_t columns, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    std::memcpy(to + row * to_stride, from + row * from_stride,
                static_cast<std::size_t>(columns) * sizeof(float));
  }
}

Kernel PrepareSlice(const OpSpec& spec) {
  RequireOperands(spec, 1, 1);
  const std::int64_t rows = Rows(spec, spec.reads[0]);
  const std::int64_t columns = Columns(spec, spec.reads[0]);
  const std::int64_t taken = Columns(spec, spec.writes[0]);
  const std::int64_t offset = spec.attributes.offset;
  if (Rows(spec, spec.writes[0]) != rows) Refuse(spec, "both should have as many rows");
  if (offset < 0 || offset + taken > columns) Refuse(spec, "the slice is outside");
  const Partition partition = Cut(rows, kLeastFloats / taken + 1);
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      CopyColumns(Read(launch, 0) + begin * columns + offset, columns,
                  Write(launch, 0) + begin * taken, taken, taken, end - begin);
    });
  }};
}

}  // namespace

Kernel PrepareConcat(const OpSpec& spec) {
  if (spec.kind == OpKind::kSlice) return PrepareSlice(spec);
  RequireOperands(spec, spec.reads.size(), 1);
  const std::int64_t rows = Rows(spec, spec.writes[0]);
  const std::int64_t columns = Columns(spec, spec.writes[0]);
  std::vector<std::int64_t> parts;
  std::int64_t sum = 0;
  for (const Tensor& tensor : spec.reads) {
    if (Rows(spec, tensor) != rows) Refuse(spec, "all should have as many rows");
    parts.push_back(Columns(spec, tensor));
    sum += parts.back();
  }
  if (sum != columns) Refuse(spec, "the last dimensions should add up");
  const Partition partition = Cut(rows, kLeastFloats / columns + 1);
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      std::int64_t offset = 0;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        CopyColumns(Read(launch, i) + begin * parts[i], parts[i],
                    Write(launch, 0) + begin * columns + offset, columns, parts[i], end - begin);
        offset += parts[i];
      }
    });
  }};
}

}  // namespace plimsoll::nn::onednn
