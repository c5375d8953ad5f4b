// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/fault_backend.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "plimsoll/device/backend_contract_for_test.h"
#include "plimsoll/device/graph_backend_for_test.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/device/null_backend.h"

namespace plimsoll::device {
namespace {

// A wrapper together with what it wraps.
template <typename Wrapper>
class Owning final : public ForwardingBackend {
 public:
  Owning() : ForwardingBackend(&wrapper_), wrapper_(&host_) {}
  Wrapper& wrapper() { return wrapper_; }

 private:
  HostBackend host_;
  Wrapper wrapper_;
};

INSTANTIATE_TEST_SUITE_P(
    Wrapped, BackendContractTest,
    testing::Values(
        BackendCase{"forwarding", [] { return std::make_unique<Owning<ForwardingBackend>>(); }},
        BackendCase{"without_faults", [] { return std::make_unique<Owning<FaultBackend>>(); }},
        BackendCase{"delayed",
                    [] {
                      auto backend = std::make_unique<Owning<FaultBackend>>();
                      backend->wrapper().Delay(20'000, 1);
                      return backend;
                    }}),
    [](const auto& tested) { return tested.param.name; });

class FaultBackendTest : public testing::Test {
 protected:
  // Makes a call of the given kind.
  void Call(FaultyCall call) {
    switch (call) {
      case FaultyCall::kAllocateDevice:
        return backend_.FreeDevice(backend_.AllocateDevice(100));
      case FaultyCall::kAllocateHost:
        return backend_.FreeHost(backend_.AllocateHost(100));
      case FaultyCall::kCopyOut:
        return backend_.CopyOut(nullptr, nullptr, 0);
      case FaultyCall::kCopyIn:
        return backend_.CopyIn(nullptr, nullptr, 0);
      case FaultyCall::kMove:
        return backend_.Move(nullptr, nullptr, 0);
      case FaultyCall::kRun:
        return backend_.Run([](void*) {});
      case FaultyCall::kLaunchGraph:
        return backend_.LaunchGraph(graph_);
    }
  }

  // One letter per call: x if it failed.
  std::string Outcomes(FaultyCall call, int count) {
    std::string outcomes;
    for (int i = 0; i < count; ++i) {
      try {
        Call(call);
        outcomes += '.';
      } catch (const Error&) {
        outcomes += 'x';
      }
    }
    return outcomes;
  }

  // One without anything in it.
  GraphId MakeGraph() {
    graphs_.BeginGraph();
    return graphs_.EndGraph();
  }

  NullBackend null_;
  GraphBackend graphs_{&null_};
  GraphId graph_ = MakeGraph();
  FaultBackend backend_{&graphs_};
};

TEST_F(FaultBackendTest, FailsTheNthCallOnce) {
  for (int i = 0; i < kFaultyCalls; ++i) {
    const auto call = static_cast<FaultyCall>(i);
    backend_.Fail({.call = call, .nth = 3});
    EXPECT_EQ(Outcomes(call, 6), "..x...") << Name(call);
    EXPECT_EQ(backend_.calls(call), 6);
  }
  EXPECT_EQ(backend_.faults(), kFaultyCalls);
}

TEST_F(FaultBackendTest, FailsForEverFromTheNthCallOn) {
  backend_.Fail({.call = FaultyCall::kCopyOut, .nth = 2, .for_ever = true});
  EXPECT_EQ(Outcomes(FaultyCall::kCopyOut, 5), ".xxxx");
  EXPECT_EQ(Outcomes(FaultyCall::kCopyIn, 2), "..");
  backend_.FailNothing();
  EXPECT_EQ(Outcomes(FaultyCall::kCopyOut, 2), "..");
}

TEST_F(FaultBackendTest, ThrowsTypedErrorsAndChangesNothing) {
  backend_.Fail({.call = FaultyCall::kAllocateHost});
  EXPECT_THROW(backend_.AllocateHost(64), OutOfMemory);
  backend_.Fail({.call = FaultyCall::kCopyIn});
  EXPECT_THROW(backend_.CopyIn(nullptr, nullptr, 1), DeviceError);
  EXPECT_EQ(null_.counts().host_bytes, 0);
  EXPECT_EQ(null_.counts().copies_in, 0);
}

TEST_F(FaultBackendTest, HasNoMoreHostMemoryThanItsLimit) {
  backend_.LimitHost(1000);
  std::byte* const a = backend_.AllocateHost(600);
  EXPECT_THROW(backend_.AllocateHost(401), OutOfMemory);
  std::byte* const b = backend_.AllocateHost(400);
  EXPECT_THROW(backend_.AllocateHost(1), OutOfMemory);
  backend_.FreeHost(a);
  backend_.FreeHost(backend_.AllocateHost(600));
  backend_.FreeHost(b);
  EXPECT_EQ(backend_.faults(), 2);
  EXPECT_EQ(null_.counts().host_bytes, 0);
}

TEST_F(FaultBackendTest, FailsLateAndOnce) {
  backend_.Fail({.call = FaultyCall::kCopyOut, .nth = 1, .late = true});
  const EventId event = backend_.CreateEvent();
  EXPECT_EQ(Outcomes(FaultyCall::kCopyOut, 2), "..");
  EXPECT_EQ(null_.counts().copies_out, 1);
  backend_.Record(event, Stream::kCopyOut);
  backend_.Wait(Stream::kCopyIn, event);
  EXPECT_THROW(backend_.Synchronize(event), DeviceError);
  backend_.Synchronize(event);
  backend_.Synchronize();
}

}  // namespace
}  // namespace plimsoll::device
