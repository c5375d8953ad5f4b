// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/device/null_backend.h"
#include "plimsoll/device/order_check_for_test.h"

namespace plimsoll::device {
namespace {

class OrderCheckTest : public testing::Test {
 protected:
  ~OrderCheckTest() override {
    backend_.FreeDevice(device_);
    backend_.FreeHost(host_);
  }

  NullBackend null_;
  OrderCheckBackend backend_{&null_};
  std::byte* device_ = backend_.AllocateDevice(1000);
  std::byte* host_ = backend_.AllocateHost(1000);
  EventId a_ = backend_.CreateEvent();
  EventId b_ = backend_.CreateEvent();
};

TEST_F(OrderCheckTest, EventsMakeAnOrder) {
  backend_.Touch(device_, 1000, true);
  backend_.Record(a_, Stream::kCompute);
  backend_.Wait(Stream::kCopyOut, a_);
  backend_.CopyOut(host_, device_, 1000);
  backend_.Record(b_, Stream::kCopyOut);
  backend_.Wait(Stream::kCopyIn, b_);
  // Through the copy out, the copy in is also after the run.
  backend_.CopyIn(device_, host_, 1000);
  backend_.Record(a_, Stream::kCopyIn);
  backend_.Synchronize(a_);
  backend_.Touch(device_, 1000, false);
  EXPECT_THAT(backend_.violations(), testing::IsEmpty());
  backend_.Synchronize();
}

TEST_F(OrderCheckTest, MissingWaitsAreSeen) {
  backend_.Touch(device_, 1000, true);
  backend_.CopyOut(host_, device_, 10);
  EXPECT_THAT(backend_.violations(), testing::SizeIs(1));
  backend_.Synchronize();
  // A wait for a record that came too early.
  backend_.Record(a_, Stream::kCopyOut);
  backend_.CopyOut(host_, device_, 10);
  backend_.Wait(Stream::kCopyIn, a_);
  backend_.CopyIn(device_, host_, 10);
  EXPECT_THAT(backend_.violations(), testing::SizeIs(3));
  backend_.Synchronize();
}

TEST_F(OrderCheckTest, ReadersAndOtherBytesNeedNoOrder) {
  backend_.Touch(device_, 500, false);
  backend_.CopyOut(host_, device_, 500);
  backend_.CopyIn(device_ + 500, host_ + 500, 500);
  EXPECT_THAT(backend_.violations(), testing::IsEmpty());
  backend_.Synchronize();
}

TEST_F(OrderCheckTest, FreesThatComeTooEarlyAreSeen) {
  std::byte* const memory = backend_.AllocateDevice(10);
  backend_.Touch(memory, 10, true);
  backend_.FreeDevice(memory);
  EXPECT_THAT(backend_.violations(), testing::SizeIs(1));
  backend_.Synchronize();
}

}  // namespace
}  // namespace plimsoll::device
