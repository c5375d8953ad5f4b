// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "plimsoll/base/bytes.h"

/// The seam to what runs things: memory, three streams, events and copies. A backend knows nothing
/// of plans; whoever stands above it decides what goes where.
///
///     compute    ──[run]──[run]──record e──[run]──▶
///     copy out         wait e ──[copy]──record f──▶
///     copy in                     wait f ──[copy]──▶
///
/// Commands of one stream run in the order in which they were issued; streams run concurrently. An
/// event marks a place in a stream: it has happened once everything issued to that stream before
/// Record() has ended. A wait holds back everything issued later to the waiting stream until the
/// event's latest Record() at the time of the call has happened.
namespace plimsoll::device {

enum class Stream : std::uint8_t { kCompute, kCopyOut, kCopyIn };
inline constexpr int kStreams = 3;
std::string_view Name(Stream stream);

/// Number of an event, and of a graph, of a backend.
using EventId = std::int32_t;
using GraphId = std::int32_t;

/// What poisoned memory holds: as a float of any kind, not a number.
inline constexpr std::byte kPoison{0xff};

/// What a backend can do at all.
struct Capabilities {
  bool runs = true;              ///< Whether functions and copies are really run.
  bool host_addressable = true;  ///< Whether the program may dereference addresses in the arena.
  bool graphs = false;           ///< Whether commands can be kept, and issued again in one call.
  bool poisons = false;          ///< Whether Discard() does anything.
};

/// Calls are made by one thread at a time. Calls that issue commands do not wait for them, but a
/// backend may run compute on the calling thread; there, a wait of the compute stream blocks the
/// caller. What goes wrong on a stream of its own is thrown, as DeviceError, by the next call that
/// blocks, whatever it waits for, once; the stream goes on with the next command, so that nobody
/// waits for ever.
class Backend {
 public:
  virtual ~Backend() = default;
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual std::string_view name() const = 0;
  virtual Capabilities capabilities() const = 0;

  /// Device memory, aligned to kDefaultAlignment at least. Throws OutOfMemory; nothing has changed
  /// then. A size of zero gives a pointer that may only be freed.
  virtual std::byte* AllocateDevice(Bytes size_bytes) = 0;
  virtual void FreeDevice(std::byte* memory) noexcept = 0;
  /// Host memory that copies are fast from and to; on a GPU it is pinned.
  virtual std::byte* AllocateHost(Bytes size_bytes) = 0;
  virtual void FreeHost(std::byte* memory) noexcept = 0;

  /// Runs a function on the compute stream. On a GPU the function launches kernels on the stream
  /// whose native handle it is given. What it throws leaves Run(), or the next call that waits.
  virtual void Run(const std::function<void(void* native_stream)>& function) = 0;
  /// Issues a copy from device to host memory on kCopyOut, or from host to device memory on
  /// kCopyIn. Both ranges stay allocated until the copy has ended.
  virtual void CopyOut(std::byte* host, const std::byte* device, Bytes size_bytes) = 0;
  virtual void CopyIn(std::byte* device, const std::byte* host, Bytes size_bytes) = 0;
  /// Issues a copy within device memory on kCompute; the ranges may overlap, as for memmove.
  virtual void Move(std::byte* to, const std::byte* from, Bytes size_bytes) = 0;
  /// Says, in the order of the compute stream, that nobody needs what these bytes of device memory
  /// hold. A backend that poisons fills them with kPoison: whoever reads them all the same is seen
  /// to. It is a write like any other to whoever uses the bytes on another stream.
  virtual void Discard(std::byte* /*device*/, Bytes /*size_bytes*/) noexcept {}

  /// Copies between device memory and memory of the program in the order of the compute stream;
  /// when they return, `data` may be given up, or is there. May be called by a function that Run()
  /// runs.
  virtual void Upload(std::byte* device, const void* data, Bytes size_bytes) = 0;
  virtual void Download(void* data, const std::byte* device, Bytes size_bytes) = 0;

  virtual EventId CreateEvent() = 0;
  /// One whose time nobody will ask for: cheaper on some devices.
  virtual EventId CreateUntimedEvent() { return CreateEvent(); }
  virtual void DestroyEvent(EventId event) noexcept = 0;
  virtual void Record(EventId event, Stream stream) = 0;
  /// An event that was never recorded has happened.
  virtual void Wait(Stream stream, EventId event) = 0;
  virtual bool HasHappened(EventId event) = 0;
  /// Blocks the calling thread until the event, or everything issued, has happened.
  virtual void Synchronize(EventId event) = 0;
  virtual void Synchronize() = 0;
  /// Between these two, commands are not run but kept: Run(), copies, Discard(), Record() and
  /// Wait() for events that were recorded since BeginGraph(). No other call is made; functions
  /// launch what they launch into the graph, and must not wait for the device. To whoever waits for
  /// it later, an event that was recorded into a graph was never recorded. If anything fails, or
  /// the device cannot keep what was issued, DeviceError is thrown, by EndGraph() at the latest,
  /// and there is no graph; DropGraph() ends one that is not wanted. REQUIRES:
  /// capabilities().graphs.
  virtual void BeginGraph();
  virtual GraphId EndGraph();
  virtual void DropGraph() noexcept {}
  /// Issues all commands of a graph, behind everything that was issued before on any stream;
  /// everything that is issued later, on any stream, comes behind it.
  virtual void LaunchGraph(GraphId graph);
  virtual void DestroyGraph(GraphId /*graph*/) noexcept {}

  /// Says that what is issued next on the compute stream will be timed, so that a device to which
  /// issuing takes longer than running holds still until it has been issued.
  virtual void PrepareToTime() {}
  /// When the latest Record() happened, from some moment that is the same for all events of the
  /// backend. REQUIRES: it has happened.
  virtual Nanoseconds TimeOf(EventId event) = 0;
};

}  // namespace plimsoll::device
