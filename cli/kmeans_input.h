// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cli/model_input.h"
#include "plimsoll/nn/kmeans.h"

/// k-means among the models: a client of Device that is no network. Its batch are all of its
/// points, its classes the clusters, its parameters the centroids.
namespace plimsoll::cli {

inline constexpr std::string_view kKMeansName = "kmeans";

/// Never more clusters than points, unless that is what was asked for.
nn::KMeansOptions ReadKMeans(const ModelSettings& settings);

/// What an iteration takes, known before anything runs.
struct KMeansSize {
  std::size_t ops = 0;
  Bytes persistent_bytes = 0;  ///< Points and centroids.
  Bytes peak_bytes = 0;
  LargestOp largest_op;
};
KMeansSize MeasureKMeans(const nn::KMeansOptions& options);

}  // namespace plimsoll::cli
