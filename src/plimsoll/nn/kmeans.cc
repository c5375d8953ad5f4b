// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/kmeans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/random.h"

namespace plimsoll::nn {
namespace {

using exec::Block;
using exec::Launch;

template <typename T>
T* At(std::byte* address) {
  return reinterpret_cast<T*>(address);
}

/// points, centroids -> distances [n, k].
void Distances(const Launch& launch, const KMeansOptions& o) {
  const auto* points = At<const float>(launch.reads[0]);
  const auto* centroids = At<const float>(launch.reads[1]);
  auto* distances = At<float>(launch.writes[0]);
  for (std::int64_t n = 0; n < o.points; ++n) {
    for (std::int64_t k = 0; k < o.clusters; ++k) {
      float sum = 0;
      for (std::int64_t d = 0; d < o.features; ++d) {
        const float difference = points[n * o.features + d] - centroids[k * o.features + d];
        sum += difference * difference;
      }
      distances[n * o.clusters + k] = sum;
    }
  }
}

/// distances -> labels, the mean of the smallest [1].
void Nearest(const Launch& launch, const KMeansOptions& o) {
  const auto* distances = At<const float>(launch.reads[0]);
  auto* labels = At<std::int32_t>(launch.writes[0]);
  double sum = 0;
  for (std::int64_t n = 0; n < o.points; ++n) {
    const float* row = distances + n * o.clusters;
    const float* smallest = std::min_element(row, row + o.clusters);
    labels[n] = static_cast<std::int32_t>(smallest - row);
    sum += static_cast<double>(*smallest);
  }
  *At<double>(launch.writes[1]) = sum / static_cast<double>(o.points);
}

/// points, labels -> sums [k, d], counts [k].
void Accumulate(const Launch& launch, const KMeansOptions& o) {
  const auto* points = At<const float>(launch.reads[0]);
  const auto* labels = At<const std::int32_t>(launch.reads[1]);
  auto* sums = At<float>(launch.writes[0]);
  auto* counts = At<std::int32_t>(launch.writes[1]);
  std::fill_n(sums, o.clusters * o.features, 0.0F);
  std::fill_n(counts, o.clusters, 0);
  for (std::int64_t n = 0; n < o.points; ++n) {
    ++counts[labels[n]];
    for (std::int64_t d = 0; d < o.features; ++d) {
      sums[labels[n] * o.features + d] += points[n * o.features + d];
    }
  }
}

/// sums, counts, centroids -> centroids; those without points stay where they are.
void Move(const Launch& launch, const KMeansOptions& o) {
  const auto* sums = At<const float>(launch.reads[0]);
  const auto* counts = At<const std::int32_t>(launch.reads[1]);
  const auto* old = At<const float>(launch.reads[2]);
  auto* centroids = At<float>(launch.writes[0]);
  for (std::int64_t k = 0; k < o.clusters; ++k) {
    for (std::int64_t d = 0; d < o.features; ++d) {
      const std::int64_t i = k * o.features + d;
      centroids[i] = counts[k] == 0 ? old[i] : sums[i] / static_cast<float>(counts[k]);
    }
  }
}

/// Frees a block when it goes, however that comes.
class Scoped {
 public:
  Scoped(exec::Device* device, Bytes size_bytes)
      : device_(*device), block_(device->Malloc(size_bytes)) {}
  ~Scoped() {
    try {
      Free();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // Something has failed already, and that is what the caller should see.
    }
  }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

  Block get() const { return block_; }
  void Free() {
    if (block_ != exec::kNoBlock) device_.Free(Release());
  }
  Block Release() { return std::exchange(block_, exec::kNoBlock); }

 private:
  exec::Device& device_;
  Block block_;
};

void Run(exec::Device* device, const char* name, Bytes moved, std::span<const Block> reads,
         std::span<const Block> writes, void (*function)(const Launch&, const KMeansOptions&),
         const KMeansOptions& options) {
  // At ten bytes a nanosecond.
  device->Exec({.name = name, .traits = {.replayable = true}, .expected_ns = 2000 + moved / 10},
               reads, writes,
               [function, options](const Launch& launch) { function(launch, options); });
}

}  // namespace

KMeans::KMeans(exec::Device* device, const KMeansOptions& options)
    : device_(*device), options_(options) {
  if (options.points < 1 || options.features < 1 || options.clusters < 1 ||
      options.clusters > options.points) {
    throw Error(
        fmt::format("k-means of {} points with {} features in {} clusters; expected at "
                    "least one of each, and no more clusters than points",
                    options.points, options.features, options.clusters));
  }
  Random random(options.seed);
  const auto count = [](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(rows * columns);
  };
  std::vector<float> centres(count(options.clusters, options.features));
  for (float& value : centres) value = static_cast<float>(8 * random.Normal());
  std::vector<float> points(count(options.points, options.features));
  for (std::int64_t n = 0; n < options.points; ++n) {
    const std::int64_t centre = random.Below(options.clusters);
    for (std::int64_t d = 0; d < options.features; ++d) {
      points[count(n, options.features) + static_cast<std::size_t>(d)] =
          centres[count(centre, options.features) + static_cast<std::size_t>(d)] +
          static_cast<float>(random.Normal());
    }
  }
  try {
    const auto bytes = [](const std::vector<float>& of) {
      return static_cast<Bytes>(of.size() * sizeof(float));
    };
    points_ = device_.Malloc(bytes(points));
    device_.Write(points_, points.data(), bytes(points));
    // Begins at the first points.
    centroids_ = device_.Malloc(bytes(centres));
    device_.Write(centroids_, points.data(), bytes(centres));
  } catch (...) {
    Release();
    throw;
  }
}

KMeans::~KMeans() { Release(); }

void KMeans::Release() noexcept {
  try {
    for (const Block block : {points_, centroids_}) {
      if (block != exec::kNoBlock) device_.Free(block);
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // The device is broken, which whoever used it last has been told.
  }
}

double KMeans::Iterate() {
  const Bytes point_bytes = options_.points * options_.features * 4;
  const Bytes centroid_bytes = options_.clusters * options_.features * 4;
  device_.EndIteration("iterate");
  Scoped distances(&device_, options_.points * options_.clusters * 4);
  Run(&device_, "distances", options_.clusters * point_bytes, std::array{points_, centroids_},
      std::array{distances.get()}, Distances, options_);
  Scoped labels(&device_, options_.points * 4);
  Scoped mean(&device_, 8);
  Run(&device_, "nearest", options_.points * options_.clusters * 4, std::array{distances.get()},
      std::array{labels.get(), mean.get()}, Nearest, options_);
  distances.Free();
  Scoped sums(&device_, centroid_bytes);
  Scoped counts(&device_, options_.clusters * 4);
  Run(&device_, "accumulate", point_bytes, std::array{points_, labels.get()},
      std::array{sums.get(), counts.get()}, Accumulate, options_);
  labels.Free();
  Scoped moved(&device_, centroid_bytes);
  Run(&device_, "centroids", centroid_bytes, std::array{sums.get(), counts.get(), centroids_},
      std::array{moved.get()}, Move, options_);
  sums.Free();
  counts.Free();
  device_.Free(std::exchange(centroids_, moved.Release()));
  double result = 0;
  device_.Read(mean.get(), &result, sizeof(result));
  mean.Free();
  return result;
}

std::vector<float> KMeans::ReadCentroids() {
  std::vector<float> centroids(static_cast<std::size_t>(options_.clusters * options_.features));
  device_.Read(centroids_, centroids.data(), static_cast<Bytes>(centroids.size() * sizeof(float)));
  return centroids;
}

}  // namespace plimsoll::nn
