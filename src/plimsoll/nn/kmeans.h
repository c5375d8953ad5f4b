// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/exec/device.h"

namespace plimsoll::nn {

struct KMeansOptions {
  std::int64_t points = 10'000;
  std::int64_t features = 16;
  std::int64_t clusters = 10;
  std::uint64_t seed = 1;
};

/// Lloyd's algorithm (1982) on points around seeded centres: a client of Device that is no network.
/// New centroids are new blocks, so that some outlive their iteration. Its functions run on memory
/// that the processor can reach. Not thread-safe.
class KMeans {
 public:
  /// Uploads points and first centroids. Keeps a reference to the device, which outlives it. Throws
  /// Error if a number is not positive, and what the device throws; nothing stays allocated then.
  KMeans(exec::Device* device, const KMeansOptions& options);
  ~KMeans();
  KMeans(const KMeans&) = delete;
  KMeans& operator=(const KMeans&) = delete;

  /// Moves the centroids and returns the mean squared distance of points to the nearest one, as it
  /// was before.
  double Iterate();
  std::vector<float> ReadCentroids();

 private:
  void Release() noexcept;

  exec::Device& device_;
  KMeansOptions options_;
  exec::Block points_ = exec::kNoBlock;
  exec::Block centroids_ = exec::kNoBlock;
};

}  // namespace plimsoll::nn
