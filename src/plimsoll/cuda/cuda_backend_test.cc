// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/cuda_backend.h"

#include <gtest/gtest.h>

#include <memory>

#include "plimsoll/cuda/devices.h"
#include "plimsoll/device/backend_contract_for_test.h"

namespace plimsoll::device {
namespace {

bool HasDevice() { return !cuda::ListDevices().empty(); }

BackendCase CaseOf(const char* name, const cuda::CudaOptions& options) {
  return {name, [options] { return std::make_unique<cuda::CudaBackend>(options); }, false};
}

std::vector<BackendCase> Cases() {
  if (!HasDevice()) return {};
  return {CaseOf("plain", {}), CaseOf("jittered", {.jitter_ns = 300'000}),
          CaseOf("poisoned", {.poison = true, .poison_on_free = true})};
}

// Without a device there are no cases, and CudaBackendTest says so.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendContractTest);
INSTANTIATE_TEST_SUITE_P(Cuda, BackendContractTest, testing::ValuesIn(Cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(CudaBackendTest, SaysWhatIsWrongWithoutADevice) {
  if (HasDevice()) GTEST_SKIP() << "there is a device";
  try {
    cuda::CudaBackend backend;
    FAIL() << "there is no device";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("--device host"), std::string::npos) << error.what();
  }
}

TEST(CudaBackendTest, RefusesNumbersThatAreNotThere) {
  if (!HasDevice()) GTEST_SKIP() << "there is no GPU here";
  EXPECT_THROW(cuda::CudaBackend({.device = 99}), DeviceError);
  EXPECT_THROW(cuda::CudaBackend({.device = -1}), DeviceError);
}

TEST(CudaBackendTest, SaysHowMuchIsFree) {
  if (!HasDevice()) GTEST_SKIP() << "there is no GPU here";
  cuda::CudaBackend backend;
  try {
    backend.AllocateDevice(Bytes{1} << 50);
    FAIL() << "no card has so much";
  } catch (const OutOfMemory& error) {
    EXPECT_GT(error.free(), 0);
    EXPECT_EQ(error.asked(), Bytes{1} << 50);
  }
}

TEST(CudaBackendTest, MeasuresWhatTheProcessTakes) {
  if (!HasDevice()) GTEST_SKIP() << "there is no GPU here";
  const cuda::CardMemory card(0);
  cuda::CudaBackend backend;
  const Bytes before = card.taken_bytes();
  constexpr Bytes kSize = Bytes{1} << 30;
  std::byte* const memory = backend.AllocateDevice(kSize);
  EXPECT_NEAR(static_cast<double>(card.taken_bytes() - before), static_cast<double>(kSize), 64e6);
  backend.FreeDevice(memory);
}

TEST(CudaBackendTest, MovesLargeOverlappingRanges) {
  if (!HasDevice()) GTEST_SKIP() << "there is no GPU here";
  cuda::CudaBackend backend;
  constexpr Bytes kSize = 40 << 20;  // Larger than the scratch that they go through.
  std::vector<std::byte> data(static_cast<std::size_t>(kSize));
  TestRandom random(1);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random.Between(0, 255));
  for (const Bytes shift : {Bytes{512}, Bytes{10} << 20}) {
    std::byte* const memory = backend.AllocateDevice(kSize + shift);
    std::vector<std::byte> found(data.size());
    backend.Upload(memory, data.data(), kSize);
    backend.Move(memory + shift, memory, kSize);
    backend.Download(found.data(), memory + shift, kSize);
    EXPECT_TRUE(found == data) << shift;
    backend.Move(memory, memory + shift, kSize);
    backend.Download(found.data(), memory, kSize);
    EXPECT_TRUE(found == data) << shift;
    backend.FreeDevice(memory);
  }
}

}  // namespace
}  // namespace plimsoll::device
