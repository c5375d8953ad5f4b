// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/index.h"
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/delay_internal.h"
#include "plimsoll/cuda/unique.h"
#include "plimsoll/device/host_share.h"

namespace plimsoll::cuda {
namespace {

using device::EventId;
using device::GraphId;
using device::Stream;

/// Through which ranges that overlap are moved.
constexpr Bytes kScratchBytes = Bytes{8} << 20;
constexpr int kPoison = std::to_integer<int>(device::kPoison);
/// CUDA tells times in milliseconds as floats: farther apart than this they lose too much.
constexpr float kFarMs = 500;
/// In which an op's kernels are launched.
constexpr Nanoseconds kTimeToIssue = 40'000;

/// Throws if there are no kernels for this kind of GPU.
void CheckRunsHere(int device) {
  if (HasKernelsHere()) return;
  cudaDeviceProp properties{};
  Check(cudaGetDeviceProperties(&properties, device), "opening the GPU");
  throw DeviceError(
      "opening the GPU",
      fmt::format("this plimsoll has no kernels for {}, of compute capability {}.{}; build it with "
                  "-DCMAKE_CUDA_ARCHITECTURES={}{}, or train with --device host",
                  properties.name, properties.major, properties.minor, properties.major,
                  properties.minor));
}

/// Also 0 bytes get a place of their own.
std::size_t SizeOf(Bytes size_bytes) {
  return static_cast<std::size_t>(std::max(size_bytes, Bytes{1}));
}

}  // namespace

struct CudaBackend::State {
  struct Event {
    UniqueEvent handle;
    bool recorded = false;
  };

  std::array<UniqueStream, device::kStreams> streams;  // First: the rest goes before them.
  std::vector<Event> events;
  std::vector<EventId> free_events;
  std::vector<UniqueGraph> graphs;
  std::array<UniqueEvent, device::kStreams> joints;  // For Fork() and Join().
  UniqueEvent base;                                  // Times are told from here,
  double base_ns = 0;                                // which is so far from the first base.
  UniqueMemory scratch;
  device::HostShare host_share;
  bool capturing = false;
  std::uint64_t random = 0;

  cudaStream_t stream(Stream which) const { return streams[static_cast<std::size_t>(which)].get(); }
  cudaEvent_t joint(Stream which) const { return joints[static_cast<std::size_t>(which)].get(); }
};

CudaBackend::CudaBackend(const CudaOptions& options)
    : options_(options), state_(std::make_unique<State>()) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    throw DeviceError("opening the GPU", "there is none; train with --device host");
  }
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;
    int runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) {
      throw DeviceError("opening the GPU", "there is no NVIDIA driver; train with --device host");
    }
    throw DeviceError(
        "opening the GPU",
        fmt::format("its driver is for CUDA {}.{}, and {}.{} is needed; update the "
                    "driver, or train with --device host",
                    driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10));
  }
  Check(status, "opening the GPU");
  if (options_.device < 0 || options_.device >= count) {
    throw DeviceError("opening the GPU", fmt::format("there is no number {}; there are 0 to {}",
                                                     options_.device, count - 1));
  }
  const cudaError_t opened = cudaSetDevice(options_.device);
  if (opened == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw DeviceError("opening the GPU",
                      "it does not even have the memory that CUDA itself takes, some 500 MiB; end "
                      "what else runs on it");
  }
  Check(opened, "opening the GPU");
  CheckRunsHere(options_.device);
  State& state = *state_;
  for (UniqueStream& stream : state.streams) stream = NewStream();
  for (UniqueEvent& joint : state.joints) joint = NewEvent(cudaEventDisableTiming);
  state.base = NewEvent();
  Check(cudaEventRecord(state.base.get(), state.stream(Stream::kCompute)), "recording an event");
  state.scratch = NewMemory(At(kScratchBytes));
  state.random = options_.seed;
}

CudaBackend::~CudaBackend() { cudaDeviceSynchronize(); }

std::byte* CudaBackend::AllocateDevice(Bytes size_bytes) {
  std::size_t free = 0;
  std::size_t total = 0;
  Check(cudaMemGetInfo(&free, &total), "asking for free memory");
  void* memory = nullptr;
  const cudaError_t status =
      size_bytes < 0 ? cudaErrorMemoryAllocation : cudaMalloc(&memory, SizeOf(size_bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemory(size_bytes, static_cast<Bytes>(free),
                      "the card has no more; give a lower limit, or end what else runs on it");
  }
  Check(status, "allocating device memory");
  UniqueMemory allocated(static_cast<std::byte*>(memory));
  if (options_.poison) {
    Check(cudaMemset(memory, kPoison, SizeOf(size_bytes)), "poisoning device memory");
    // Our streams would not wait for it.
    Check(cudaDeviceSynchronize(), "poisoning device memory");
  }
  return allocated.release();
}

void CudaBackend::FreeDevice(std::byte* memory) noexcept {
  if (memory != nullptr) cudaFree(memory);
}

std::byte* CudaBackend::AllocateHost(Bytes size_bytes) {
  device::CheckHostShare(size_bytes, state_->host_share.left_bytes());
  void* memory = nullptr;
  const cudaError_t status = size_bytes < 0
                                 ? cudaErrorMemoryAllocation
                                 : cudaHostAlloc(&memory, SizeOf(size_bytes), cudaHostAllocDefault);
  // The driver says so in different ways. Anything else was wrong before.
  if (status == cudaErrorMemoryAllocation || status == cudaErrorInvalidValue ||
      status == cudaErrorOperatingSystem) {
    cudaGetLastError();
    throw OutOfMemory(
        size_bytes, 0,
        fmt::format("so much host memory cannot be pinned ({}); raise the limit of locked memory, "
                    "or that of the device, or use a smaller batch",
                    cudaGetErrorName(status)));
  }
  Check(status, "pinning host memory");
  return static_cast<std::byte*>(memory);
}

void CudaBackend::FreeHost(std::byte* memory) noexcept {
  if (memory != nullptr) cudaFreeHost(memory);
}

void CudaBackend::Run(const std::function<void(void* native_stream)>& function) {
  function(state_->stream(Stream::kCompute));
}

/// In tests, has the stream do nothing for a while.
void CudaBackend::HoldUp(Stream stream) {
  if (options_.jitter_ns <= 0) return;
  std::uint64_t& x = state_->random;
  x = x * 6364136223846793005U + 1442695040888963407U;
  LaunchDelay(static_cast<Nanoseconds>((x >> 33U) % static_cast<std::uint64_t>(options_.jitter_ns)),
              state_->stream(stream));
}

void CudaBackend::CopyOut(std::byte* host, const std::byte* device, Bytes size_bytes) {
  HoldUp(Stream::kCopyOut);
  if (size_bytes == 0) return;
  Check(cudaMemcpyAsync(host, device, At(size_bytes), cudaMemcpyDeviceToHost,
                        state_->stream(Stream::kCopyOut)),
        "copying out");
}

void CudaBackend::CopyIn(std::byte* device, const std::byte* host, Bytes size_bytes) {
  HoldUp(Stream::kCopyIn);
  if (size_bytes == 0) return;
  Check(cudaMemcpyAsync(device, host, At(size_bytes), cudaMemcpyHostToDevice,
                        state_->stream(Stream::kCopyIn)),
        "copying in");
}

void CudaBackend::Move(std::byte* to, const std::byte* from, Bytes size_bytes) {
  if (to == from || size_bytes == 0) return;
  if (to < from + size_bytes && from < to + size_bytes) {
    MoveThroughScratch(to, from, size_bytes);
    return;
  }
  Check(cudaMemcpyAsync(to, from, At(size_bytes), cudaMemcpyDeviceToDevice,
                        state_->stream(Stream::kCompute)),
        "moving");
}

/// Piece by piece, from the end that is overwritten last.
void CudaBackend::MoveThroughScratch(std::byte* to, const std::byte* from, Bytes size_bytes) {
  const cudaStream_t stream = state_->stream(Stream::kCompute);
  std::byte* const scratch = state_->scratch.get();
  const bool down = to < from;
  for (Bytes done = 0; done < size_bytes;) {
    const Bytes piece = std::min(kScratchBytes, size_bytes - done);
    const Bytes at = down ? done : size_bytes - done - piece;
    Check(cudaMemcpyAsync(scratch, from + at, At(piece), cudaMemcpyDeviceToDevice, stream),
          "moving");
    Check(cudaMemcpyAsync(to + at, scratch, At(piece), cudaMemcpyDeviceToDevice, stream), "moving");
    done += piece;
  }
}

void CudaBackend::Discard(std::byte* device, Bytes size_bytes) noexcept {
  if (!options_.poison_on_free || size_bytes == 0) return;
  // What fails is left out, as nobody counts on it.
  const cudaError_t status =
      cudaMemsetAsync(device, kPoison, At(size_bytes), state_->stream(Stream::kCompute));
  if (status != cudaSuccess) cudaGetLastError();
}

void CudaBackend::Upload(std::byte* device, const void* data, Bytes size_bytes) {
  if (size_bytes == 0) return;
  const cudaStream_t stream = state_->stream(Stream::kCompute);
  Check(cudaMemcpyAsync(device, data, At(size_bytes), cudaMemcpyHostToDevice, stream), "uploading");
  // From memory that is pinned, the copy would still be under way.
  cudaPointerAttributes attributes{};
  Check(cudaPointerGetAttributes(&attributes, data), "uploading");
  if (attributes.type != cudaMemoryTypeUnregistered) {
    Check(cudaStreamSynchronize(stream), "uploading");
  }
}

void CudaBackend::Download(void* data, const std::byte* device, Bytes size_bytes) {
  const cudaStream_t stream = state_->stream(Stream::kCompute);
  if (size_bytes > 0) {
    Check(cudaMemcpyAsync(data, device, At(size_bytes), cudaMemcpyDeviceToHost, stream),
          "downloading");
  }
  Check(cudaStreamSynchronize(stream), "downloading");
}

EventId CudaBackend::CreateEvent() { return CreateEventWith(cudaEventDefault); }

EventId CudaBackend::CreateUntimedEvent() { return CreateEventWith(cudaEventDisableTiming); }

EventId CudaBackend::CreateEventWith(unsigned flags) {
  State& state = *state_;
  if (state.free_events.empty()) {
    state.events.emplace_back();
    state.free_events.push_back(static_cast<EventId>(state.events.size()) - 1);
  }
  const EventId event = state.free_events.back();
  state.events[At(event)].handle = NewEvent(flags);
  state.free_events.pop_back();
  return event;
}

void CudaBackend::DestroyEvent(EventId event) noexcept {
  state_->events[At(event)] = {};
  state_->free_events.push_back(event);
}

void CudaBackend::Record(EventId event, Stream stream) {
  State::Event& of = state_->events[At(event)];
  Check(cudaEventRecord(of.handle.get(), state_->stream(stream)), "recording an event");
  // In a graph it happens again and again, but to nobody outside.
  of.recorded = !state_->capturing;
}

void CudaBackend::Wait(Stream stream, EventId event) {
  const State::Event& of = state_->events[At(event)];
  if (!of.recorded && !state_->capturing) return;
  Check(cudaStreamWaitEvent(state_->stream(stream), of.handle.get(), 0), "waiting for an event");
}

bool CudaBackend::HasHappened(EventId event) {
  const State::Event& of = state_->events[At(event)];
  if (!of.recorded) return true;
  const cudaError_t status = cudaEventQuery(of.handle.get());
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  Check(status, "looking at an event");
  return true;
}

void CudaBackend::Synchronize(EventId event) {
  const State::Event& of = state_->events[At(event)];
  if (of.recorded) Check(cudaEventSynchronize(of.handle.get()), "waiting for an event");
}

void CudaBackend::Synchronize() {
  for (const UniqueStream& stream : state_->streams) {
    Check(cudaStreamSynchronize(stream.get()), "waiting for the device");
  }
}

void CudaBackend::PrepareToTime() { LaunchDelay(kTimeToIssue, state_->stream(Stream::kCompute)); }

Nanoseconds CudaBackend::TimeOf(EventId event) {
  State& state = *state_;
  const auto elapsed = [&state](cudaEvent_t to) {
    float ms = 0;
    Check(cudaEventElapsedTime(&ms, state.base.get(), to), "reading a time");
    return ms;
  };
  float ms = elapsed(state.events[At(event)].handle.get());
  if (ms > kFarMs) {
    UniqueEvent base = NewEvent();
    Check(cudaEventRecord(base.get(), state.stream(Stream::kCompute)), "recording an event");
    Check(cudaEventSynchronize(base.get()), "waiting for an event");
    state.base_ns += static_cast<double>(elapsed(base.get())) * 1e6;
    state.base = std::move(base);
    ms = elapsed(state.events[At(event)].handle.get());
  }
  return std::llround(state.base_ns + static_cast<double>(ms) * 1e6);
}

/// Everything that the copy streams do from here on comes behind what compute has done.
void CudaBackend::Fork() {
  const State& state = *state_;
  const cudaEvent_t joint = state.joint(Stream::kCompute);
  Check(cudaEventRecord(joint, state.stream(Stream::kCompute)), "recording an event");
  for (const Stream copies : {Stream::kCopyOut, Stream::kCopyIn}) {
    Check(cudaStreamWaitEvent(state.stream(copies), joint, 0), "waiting for an event");
  }
}

/// The other way round.
void CudaBackend::Join() {
  const State& state = *state_;
  for (const Stream copies : {Stream::kCopyOut, Stream::kCopyIn}) {
    const cudaEvent_t joint = state.joint(copies);
    Check(cudaEventRecord(joint, state.stream(copies)), "recording an event");
    Check(cudaStreamWaitEvent(state.stream(Stream::kCompute), joint, 0), "waiting for an event");
  }
}

void CudaBackend::BeginGraph() {
  Check(cudaStreamBeginCapture(state_->stream(Stream::kCompute), cudaStreamCaptureModeThreadLocal),
        "beginning a graph");
  state_->capturing = true;
  Fork();
}

GraphId CudaBackend::EndGraph() {
  State& state = *state_;
  Join();
  cudaGraph_t graph = nullptr;
  state.capturing = false;
  Check(cudaStreamEndCapture(state.stream(Stream::kCompute), &graph), "ending a graph");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  Check(status, "making a graph ready");
  UniqueGraph ready(executable);
  // What it takes of the card, it takes now: if there is too little, there is no graph.
  Check(cudaGraphUpload(executable, state.stream(Stream::kCompute)), "making a graph ready");
  state.graphs.push_back(std::move(ready));
  return static_cast<GraphId>(state.graphs.size()) - 1;
}

void CudaBackend::DropGraph() noexcept {
  State& state = *state_;
  if (!state.capturing) return;
  state.capturing = false;
  cudaGraph_t graph = nullptr;
  // Streams that were never joined make this fail; the capture is over all the same.
  cudaStreamEndCapture(state.stream(Stream::kCompute), &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();
}

void CudaBackend::LaunchGraph(GraphId graph) {
  Join();
  Check(cudaGraphLaunch(state_->graphs[At(graph)].get(), state_->stream(Stream::kCompute)),
        "launching a graph");
  Fork();
}

void CudaBackend::DestroyGraph(GraphId graph) noexcept { state_->graphs[At(graph)].reset(); }

}  // namespace plimsoll::cuda
