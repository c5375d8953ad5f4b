// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/exec/on_demand_for_test.h"

namespace plimsoll::exec {
namespace {

using device::Fault;
using device::FaultyCall;

// A program that needs every kind of call often. Returns how many of its actions failed.
int RunProgram(CheckedMemory* memory, bool stop_at_first) {
  int failures = 0;
  TestRandom random(7);
  for (int step = 0; step < 150; ++step) {
    const auto which = random.Index(1000);
    const Bytes size_bytes = random.Between(1, 4000);
    try {
      if (memory->count() < 8 || (memory->count() < 14 && random.OneIn(4))) {
        memory->Add(size_bytes);
      } else if (random.OneIn(12)) {
        memory->Remove(memory->Nth(which));
      } else if (random.OneIn(12)) {
        memory->Arrange(random.OneIn(2));
      } else {
        memory->Run({memory->Nth(which), memory->Nth(which + 3)}, {memory->Nth(which + 5)});
      }
    } catch (const OutOfMemory&) {
      ++failures;
    } catch (const DeviceError&) {
      ++failures;
    }
    if (failures > 0 && stop_at_first) break;
  }
  return failures;
}

std::string Describe(const Fault& fault) {
  return std::string(Name(fault.call)) + " " + std::to_string(fault.nth) +
         (fault.for_ever ? " for ever" : " once") + (fault.late ? ", late" : "");
}

class OnDemandFaultTest : public testing::TestWithParam<FaultyCall> {
 protected:
  // How often the program makes the call if nothing fails.
  static std::int64_t CallsWithoutFaults() {
    CheckedMemory memory({});
    EXPECT_EQ(RunProgram(&memory, false), 0);
    return memory.faults().calls(GetParam());
  }
};

TEST_P(OnDemandFaultTest, GoesOnWithTheRightContentsAfterAFault) {
  const std::int64_t calls = CallsWithoutFaults();
  ASSERT_GE(calls, 2);
  for (std::int64_t nth = 1; nth <= calls; ++nth) {
    for (const bool late : {false, true}) {
      const Fault fault{.call = GetParam(), .nth = nth, .late = late};
      // What a move has lost is not known before the next wait.
      if (late && fault.call == FaultyCall::kMove) continue;
      SCOPED_TRACE(Describe(fault));
      CheckedMemory memory({});
      memory.faults().Fail(fault);
      RunProgram(&memory, false);
      EXPECT_GE(memory.faults().faults(), 1);
      memory.faults().FailNothing();
      memory.CheckAll();
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_P(OnDemandFaultTest, EndsInATypedErrorIfItFailsForEver) {
  const std::int64_t calls = CallsWithoutFaults();
  for (std::int64_t nth = 1; nth <= calls; ++nth) {
    for (const bool late : {false, true}) {
      const Fault fault{.call = GetParam(), .nth = nth, .for_ever = true, .late = late};
      SCOPED_TRACE(Describe(fault));
      const Stopwatch watch;
      CheckedMemory memory({});
      memory.faults().Fail(fault);
      if (late && fault.call == FaultyCall::kMove) memory.CheckNoContents();
      const int failures = RunProgram(&memory, /*stop_at_first=*/true);
      // The slab may have had room enough; a late fault at the end may have nobody to wait for it.
      EXPECT_TRUE(failures == 1 || late || fault.call == FaultyCall::kAllocateHost);
      EXPECT_LT(watch.seconds(), 5);
      ASSERT_FALSE(HasFailure());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, OnDemandFaultTest,
                         testing::Values(FaultyCall::kAllocateHost, FaultyCall::kCopyOut,
                                         FaultyCall::kCopyIn, FaultyCall::kMove),
                         [](const auto& tested) { return std::string(Name(tested.param)); });

}  // namespace
}  // namespace plimsoll::exec
