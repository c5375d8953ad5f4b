// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/kmeans.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/plain_device.h"
#include "plimsoll/exec/trace_recorder.h"
#include "plimsoll/trace/period.h"

namespace plimsoll::nn {
namespace {

TEST(KMeansTest, FindsTheCentres) {
  device::HostBackend backend;
  {
    exec::PlainDevice device(&backend);
    {
      KMeans kmeans(&device, {.points = 2000, .features = 4, .clusters = 5, .seed = 3});
      double last = kmeans.Iterate();
      const double first = last;
      for (int i = 0; i < 20; ++i) {
        const double now = kmeans.Iterate();
        EXPECT_LE(now, last + 1e-6);
        last = now;
      }
      EXPECT_LT(last, first);
      EXPECT_EQ(kmeans.ReadCentroids().size(), 20U);
    }
    EXPECT_EQ(device.stats().live_bytes, 0);
    EXPECT_EQ(device.stats().iterations, 21);
  }
  EXPECT_EQ(backend.device_bytes(), 0);
}

TEST(KMeansTest, ItsTraceRepeats) {
  exec::TraceRecorder recorder;
  KMeans kmeans(&recorder, {});
  recorder.Start();
  for (int i = 0; i < 4; ++i) kmeans.Iterate();
  EXPECT_TRUE(trace::FindPeriod(recorder.Finish()).has_value());
}

TEST(KMeansTest, RefusesNumbersThatCannotBe) {
  exec::TraceRecorder recorder;
  EXPECT_THROW(KMeans(&recorder, {.points = 3, .clusters = 4}), Error);
  EXPECT_THROW(KMeans(&recorder, {.features = 0}), Error);
}

}  // namespace
}  // namespace plimsoll::nn
