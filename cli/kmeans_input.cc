// SPDX-License-Identifier: Apache-2.0
#include "cli/kmeans_input.h"

#include <algorithm>

#include "plimsoll/exec/trace_recorder.h"

namespace plimsoll::cli {

nn::KMeansOptions ReadKMeans(const ModelSettings& settings) {
  nn::KMeansOptions options;
  if (settings.batch > 0) options.points = settings.batch;
  options.clusters = settings.options.classes > 0 ? settings.options.classes
                                                  : std::min(options.clusters, options.points);
  return options;
}

KMeansSize MeasureKMeans(const nn::KMeansOptions& options) {
  constexpr int kIterations = 3;  // Centroids of the first iteration are freed in the second.
  exec::TraceRecorder recorder;
  nn::KMeans dry(&recorder, options);
  KMeansSize size;
  size.persistent_bytes = recorder.stats().live_bytes;
  recorder.Start();
  for (int k = 0; k < kIterations; ++k) dry.Iterate();
  size.peak_bytes = recorder.stats().peak_live_bytes;
  const trace::Trace trace = recorder.Finish();
  size.ops = trace.ops.size() / kIterations;
  size.largest_op = FindLargestOp(trace);
  return size;
}

}  // namespace plimsoll::cli
