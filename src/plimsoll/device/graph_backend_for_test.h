// SPDX-License-Identifier: Apache-2.0
//
// Graphs for backends that have none. For tests only.
#pragma once

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/device/forwarding_backend.h"

namespace plimsoll::device {

/// Keeps what is issued between BeginGraph() and EndGraph() as a list, and issues it again when the
/// graph is launched. Functions are called again then: they own what they need.
class GraphBackend : public ForwardingBackend {
 public:
  explicit GraphBackend(Backend* target) : ForwardingBackend(target) {
    for (EventId& event : joints_) event = target->CreateEvent();
  }
  ~GraphBackend() override {
    for (const EventId event : joints_) target().DestroyEvent(event);
  }

  /// EndGraph() fails from here on.
  void RefuseGraphs() { refuses_ = true; }
  int graphs_made() const { return graphs_made_; }
  int graphs_destroyed() const { return graphs_destroyed_; }

  Capabilities capabilities() const override {
    Capabilities capabilities = ForwardingBackend::capabilities();
    capabilities.graphs = true;
    return capabilities;
  }

  void Run(const std::function<void(void*)>& function) override {
    Issue([this, function] { target().Run(function); });
  }
  void CopyOut(std::byte* host, const std::byte* device, Bytes size_bytes) override {
    Issue([=, this] { target().CopyOut(host, device, size_bytes); });
  }
  void CopyIn(std::byte* device, const std::byte* host, Bytes size_bytes) override {
    Issue([=, this] { target().CopyIn(device, host, size_bytes); });
  }
  void Move(std::byte* to, const std::byte* from, Bytes size_bytes) override {
    Issue([=, this] { target().Move(to, from, size_bytes); });
  }
  void Discard(std::byte* device, Bytes size_bytes) noexcept override {
    Issue([=, this] { target().Discard(device, size_bytes); });
  }
  void Record(EventId event, Stream stream) override {
    Issue([=, this] { target().Record(event, stream); });
  }
  void Wait(Stream stream, EventId event) override {
    Issue([=, this] { target().Wait(stream, event); });
  }

  void BeginGraph() override {
    keeps_ = true;
    kept_.clear();
  }
  GraphId EndGraph() override {
    if (refuses_) throw DeviceError("EndGraph", "this test wants none");
    keeps_ = false;
    ++graphs_made_;
    graphs_.push_back(std::exchange(kept_, {}));
    return static_cast<GraphId>(graphs_.size()) - 1;
  }
  void DropGraph() noexcept override {
    keeps_ = false;
    kept_.clear();
  }
  void LaunchGraph(GraphId graph) override {
    // Copies of both directions come behind compute, and behind each other.
    const auto join = [this](Stream first, Stream second, EventId event) {
      target().Record(event, first);
      target().Wait(second, event);
    };
    join(Stream::kCopyOut, Stream::kCompute, joints_[0]);
    join(Stream::kCopyIn, Stream::kCompute, joints_[1]);
    join(Stream::kCompute, Stream::kCopyOut, joints_[2]);
    join(Stream::kCompute, Stream::kCopyIn, joints_[3]);
    for (const std::function<void()>& command : graphs_[static_cast<std::size_t>(graph)]) command();
    join(Stream::kCopyOut, Stream::kCompute, joints_[0]);
    join(Stream::kCopyIn, Stream::kCompute, joints_[1]);
    join(Stream::kCompute, Stream::kCopyOut, joints_[2]);
    join(Stream::kCompute, Stream::kCopyIn, joints_[3]);
  }
  void DestroyGraph(GraphId graph) noexcept override {
    ++graphs_destroyed_;
    graphs_[static_cast<std::size_t>(graph)].clear();
  }

 private:
  void Issue(std::function<void()> command) {
    if (keeps_) {
      kept_.push_back(std::move(command));
    } else {
      command();
    }
  }

  std::array<EventId, 4> joints_{};
  bool keeps_ = false;
  bool refuses_ = false;
  int graphs_made_ = 0;
  int graphs_destroyed_ = 0;
  std::vector<std::function<void()>> kept_;
  std::vector<std::vector<std::function<void()>>> graphs_;
};

}  // namespace plimsoll::device
