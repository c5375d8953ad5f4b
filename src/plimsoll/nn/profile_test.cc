// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>

#include "plimsoll/base/error.h"
#include "plimsoll/device/forwarding_backend.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/nn/bfloat16.h"
#include "plimsoll/nn/cost.h"
#include "plimsoll/nn/fusing_library_for_test.h"
#include "plimsoll/nn/models/model.h"
#include "plimsoll/nn/models/small_for_test.h"
#include "plimsoll/nn/null_library.h"
#include "plimsoll/nn/onednn/library.h"
#include "plimsoll/nn/record.h"

namespace plimsoll::nn {
namespace {

Program LowerSmall(const std::string& name, KernelLibrary* library) {
  const Model model = FindModel(name);
  return Lower(model.build(SmallOptions(model)), {.batch = 2}, library);
}

TEST(ProfileTest, MeasuresEveryOpOfEveryModelWithItsOperandsAlone) {
  const std::unique_ptr<KernelLibrary> library = MakeOneDnnLibrary();
  for (const std::string name :
       {"lenet", "googlenet", "resnet20", "unet", "char-lstm", "gpt2-tiny", "alexnet"}) {
    const Program program = LowerSmall(name, library.get());
    device::HostBackend backend;
    Profiler profiler(&backend, {.repeats = 1});
    const std::vector<Nanoseconds> times = Profile(program, &profiler);
    ASSERT_EQ(times.size(), program.ops.size()) << name;
    EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](Nanoseconds x) { return x > 0; }))
        << name;
    EXPECT_GT(profiler.measured(), 0);
    EXPECT_LE(profiler.measured(), std::ssize(program.ops));
    EXPECT_LT(profiler.peak_bytes(), Measure(program).peak) << name;
    EXPECT_EQ(backend.device_bytes(), 0) << name;
  }
}

TEST(ProfileTest, EqualOpsAreMeasuredOnce) {
  const std::unique_ptr<KernelLibrary> library = MakeOneDnnLibrary();
  const Program program = LowerSmall("resnet20", library.get());
  device::HostBackend backend;
  Profiler profiler(&backend, {.repeats = 1});
  const std::vector<Nanoseconds> times = Profile(program, &profiler);
  EXPECT_LT(profiler.measured(), std::ssize(program.ops));
  const std::int64_t measured = profiler.measured();
  EXPECT_EQ(Profile(program, &profiler), times);
  EXPECT_EQ(profiler.measured(), measured);
}

TEST(ProfileTest, TimesGoIntoTheTrace) {
  const std::unique_ptr<KernelLibrary> library = MakeOneDnnLibrary();
  Program program = LowerSmall("lenet", library.get());
  std::vector<Nanoseconds> times;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    times.push_back(1000 + static_cast<Nanoseconds>(i));
  }
  SetTimes(times, &program);
  const trace::Trace trace = Record(program, "lenet", 1);
  Nanoseconds sum = 0;
  for (const trace::Op& op : trace.ops) sum += op.duration_ns;
  EXPECT_EQ(sum, std::accumulate(times.begin(), times.end(), Nanoseconds{0}));
}

TEST(ProfileTest, WhatHasBeenMeasuredIsKnown) {
  const std::unique_ptr<KernelLibrary> library = MakeOneDnnLibrary();
  Program program = LowerSmall("lenet", library.get());
  device::HostBackend backend;
  Profiler profiler(&backend, {.repeats = 1});
  EXPECT_EQ(profiler.Find(program.ops[0]), 0);
  const Nanoseconds time_ns = profiler.Measure(program.ops[0]);
  SetKnownTimes(profiler, &program);
  EXPECT_EQ(program.ops[0].kernel.expected_ns, time_ns);
  EXPECT_TRUE(program.ops[0].kernel.is_measured);
  EXPECT_FALSE(program.ops[1].kernel.is_measured) << "it was not asked for";
}

TEST(ProfileTest, WhatDoesNotRunTakesTheTimeThatIsExpected) {
  NullLibrary null(FindMachineSpeed("host"));
  const Program program = LowerSmall("lenet", &null);
  device::HostBackend host;
  Profiler profiler(&host);
  for (const ProgramOp& op : program.ops) {
    EXPECT_EQ(profiler.Measure(op), ExpectedTime(op.spec, FindMachineSpeed("host")));
  }
  EXPECT_EQ(profiler.measured(), 0);
}

TEST(ProfileTest, FusedOpsAndGroupsAreMeasuredToo) {
  FusingLibrary library(/*fuses=*/true, /*group=*/5, /*checks=*/false);
  const Program program = LowerSmall("resnet20", &library);
  device::HostBackend backend;
  Profiler profiler(&backend, {.repeats = 1});
  const std::vector<Nanoseconds> times = Profile(program, &profiler);
  EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](Nanoseconds x) { return x > 0; }));
}

/// Checks what it reads in bfloat16.
class CheckingLibrary final : public KernelLibrary {
 public:
  std::string_view name() const override { return "checking"; }
  Kernel Prepare(const OpSpec& spec) override {
    return {.run = [spec](const exec::Launch& launch, const StepScalars&) {
      for (std::size_t i = 0; i < spec.reads.size(); ++i) {
        if (spec.reads[i].type != ElementType::kBfloat16) continue;
        std::vector<std::uint16_t> bits(static_cast<std::size_t>(spec.reads[i].count()));
        std::memcpy(bits.data(), launch.reads[i], bits.size() * sizeof(std::uint16_t));
        EXPECT_TRUE(std::all_of(bits.begin(), bits.end(), [](std::uint16_t x) {
          return FromBfloat16(x) >= 0.5F && FromBfloat16(x) <= 1.5F;
        })) << Name(spec.kind);
      }
    }};
  }
};

TEST(ProfileTest, OperandsInMixedPrecisionAreNumbersNearOne) {
  CheckingLibrary library;
  const Model model = FindModel("resnet20");
  const Program program = Lower(model.build(SmallOptions(model)),
                                {.batch = 2, .precision = Precision::kBfloat16}, &library);
  device::HostBackend backend;
  Profiler profiler(&backend, {.repeats = 1});
  Profile(program, &profiler);
  EXPECT_GT(profiler.measured(), 0);
}

/// Has room for so much and no more.
class SmallBackend final : public device::ForwardingBackend {
 public:
  SmallBackend(device::Backend* backend, int allocations)
      : ForwardingBackend(backend), left_(allocations) {}
  std::byte* AllocateDevice(Bytes size_bytes) override {
    if (left_-- <= 0) throw OutOfMemory(size_bytes, 0, "none is left");
    return ForwardingBackend::AllocateDevice(size_bytes);
  }

 private:
  int left_;
};

TEST(ProfileTest, AnOpThatIsTooLargeLeavesNothingBehind) {
  const std::unique_ptr<KernelLibrary> library = MakeOneDnnLibrary();
  const Program program = LowerSmall("lenet", library.get());
  for (int allocations = 0; allocations < 5; ++allocations) {
    device::HostBackend host;
    SmallBackend small(&host, allocations);
    Profiler profiler(&small);
    EXPECT_THROW(Profile(program, &profiler), OutOfMemory);
    EXPECT_EQ(host.device_bytes(), 0);
  }
}

}  // namespace
}  // namespace plimsoll::nn
