// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/tiles.cuh"

/// Copies of columns from matrix to matrix, several in one launch.
namespace plimsoll::cuda {
namespace {

/// So many copies in one launch: their table is a parameter of the kernel.
constexpr std::size_t kMostCopies = 32;

/// Numbers are in words of the copy, each 2, 4, 8 or 16 bytes.
struct Copy {
  const std::byte* from;
  std::byte* to;
  std::int64_t from_stride;
  std::int64_t to_stride;
  Tiling tiling;  ///< Of the words that are copied.
};

struct Copies {
  Copy copies[kMostCopies];
};

template <typename Word>
__global__ void __launch_bounds__(kTileThreads) CopyColumns(__grid_constant__ const Copies table) {
  constexpr int kUnroll = 4;
  const Copy& copy = table.copies[blockIdx.z];
  if (blockIdx.x >= copy.tiling.tiles || blockIdx.y >= copy.tiling.chunks) return;
  const Place<1> place(copy.tiling, blockIdx.x);
  if (!place.active) return;
  const auto* from = reinterpret_cast<const Word*>(copy.from) + place.channel;
  auto* to = reinterpret_cast<Word*>(copy.to) + place.channel;
  const std::int64_t begin = blockIdx.y * copy.tiling.chunk;
  const std::int64_t end = min(begin + copy.tiling.chunk, copy.tiling.rows);
  for (std::int64_t row = begin + place.y; row < end; row += kUnroll * place.step) {
    Word words[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const std::int64_t at = row + i * place.step;
      if (at < end) words[i] = from[at * copy.from_stride];
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const std::int64_t at = row + i * place.step;
      if (at < end) to[at * copy.to_stride] = words[i];
    }
  }
}

/// A copy in bytes, before it is known which of several operands it is from or to.
struct Columns {
  std::int64_t from_stride;
  std::int64_t from_offset;
  std::int64_t to_stride;
  std::int64_t to_offset;
  std::int64_t width;
};

/// The largest word that all of it is a multiple of.
std::int64_t WordOf(const std::vector<Columns>& columns) {
  std::int64_t word = 16;
  for (const Columns& c : columns) {
    for (const std::int64_t bytes :
         {c.from_stride, c.from_offset, c.to_stride, c.to_offset, c.width}) {
      word = std::gcd(word, bytes);
    }
  }
  return word;
}

void Launch(std::int64_t word, const Copies& table, dim3 grid, cudaStream_t stream) {
  if (word == 16) {
    CopyColumns<uint4><<<grid, kTileThreads, 0, stream>>>(table);
  } else if (word == 8) {
    CopyColumns<uint2><<<grid, kTileThreads, 0, stream>>>(table);
  } else if (word == 4) {
    CopyColumns<std::uint32_t><<<grid, kTileThreads, 0, stream>>>(table);
  } else {
    CopyColumns<std::uint16_t><<<grid, kTileThreads, 0, stream>>>(table);
  }
  CheckLaunch("concat");
}

/// Copies from each read to the one write.
nn::Kernel PrepareCopies(std::int64_t rows, const std::vector<Columns>& columns) {
  const std::int64_t word = WordOf(columns);
  std::vector<Tiling> tilings;
  tilings.reserve(columns.size());
  for (const Columns& c : columns) {
    tilings.push_back(Tile(rows, c.width / word, 1, kProcessors * 16));
  }
  return {.run = [=](const exec::Launch& launch, const nn::StepScalars&) {
    for (std::size_t begin = 0; begin < columns.size(); begin += kMostCopies) {
      Copies table{};
      const std::size_t count = std::min(columns.size() - begin, kMostCopies);
      dim3 grid(1, 1, static_cast<unsigned>(count));
      for (std::size_t i = 0; i < count; ++i) {
        const Columns& c = columns[begin + i];
        const Tiling& tiling = tilings[begin + i];
        table.copies[i] = {.from = launch.reads[begin + i] + c.from_offset,
                           .to = launch.writes[0] + c.to_offset,
                           .from_stride = c.from_stride / word,
                           .to_stride = c.to_stride / word,
                           .tiling = tiling};
        grid.x = std::max(grid.x, tiling.tiles);
        grid.y = std::max(grid.y, tiling.chunks);
      }
      Launch(word, table, grid, StreamOf(launch));
    }
  }};
}

}  // namespace

nn::Kernel PrepareConcat(const nn::OpSpec& spec) {
  const bool slice = spec.kind == nn::OpKind::kSlice;
  nn::RequireOperands(spec, slice ? 1 : std::max<std::size_t>(spec.reads.size(), 1), 1);
  const std::int64_t rows = nn::Rows(spec, spec.writes[0]);
  const std::int64_t to = nn::Columns(spec, spec.writes[0]);
  const std::int64_t bytes =
      ActivationType(spec, {&spec.writes[0]}) == nn::ElementType::kFloat ? 4 : 2;
  std::vector<Columns> columns;
  std::int64_t sum = 0;
  for (const nn::Tensor& tensor : spec.reads) {
    ActivationType(spec, {&tensor, &spec.writes[0]});
    if (nn::Rows(spec, tensor) != rows) nn::Refuse(spec, "all should have as many rows");
    const std::int64_t from = nn::Columns(spec, tensor);
    const std::int64_t offset = slice ? spec.attributes.offset : 0;
    columns.push_back({.from_stride = from * bytes,
                       .from_offset = offset * bytes,
                       .to_stride = to * bytes,
                       .to_offset = sum * bytes,
                       .width = (slice ? to : from) * bytes});
    if (slice && (offset < 0 || offset + to > from)) nn::Refuse(spec, "the slice is outside");
    sum += slice ? to : from;
  }
  if (sum != to) nn::Refuse(spec, "the last dimensions should add up");
  return PrepareCopies(rows, columns);
}

}  // namespace plimsoll::cuda
