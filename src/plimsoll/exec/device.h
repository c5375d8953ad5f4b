// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/trace/trace.h"
#include "plimsoll/trace/traits.h"

/// What a training program allocates and computes through (paper 001, section V). The program goes
/// on as ever: it asks for blocks, gives them back, and runs functions on them. Where a block is,
/// it learns only while a function runs:
///
///     const Block x = device.Malloc(bytes);
///     device.Exec({.name = "scale", .traits = {.replayable = true}}, {{x}}, {{y}},
///                 [](const Launch& launch) { ... launch.reads[0] ... launch.writes[0] ... });
///     device.Free(x);
///
/// so a block may be elsewhere each time, away in between, or made again by running the function
/// that made it once more.
namespace plimsoll::exec {

/// A block of device memory by number, never by address. Numbers are not used twice.
enum class Block : std::int64_t {};
inline constexpr Block kNoBlock{-1};

/// What a function finds when it runs. Valid until it returns.
struct Launch {
  std::span<std::byte* const> reads;   ///< In the order of Exec's lists. A block that is in both
  std::span<std::byte* const> writes;  ///< is at one address in both.
  void* native_stream = nullptr;       ///< On a GPU, where to launch kernels.
  /// Where the iteration's constants are, in memory that kernels can read; null if there are none.
  const std::byte* constants = nullptr;
};

/// May run later than Exec() returns, and more than once if the op is replayable: everything that
/// it needs besides its blocks it holds by value.
using Function = std::function<void(const Launch&)>;

/// What is known of an op besides what it touches.
struct OpInfo {
  std::string_view name;
  trace::Phase phase = trace::Phase::kForward;
  trace::OpTraits traits{};
  /// How long it is expected to take, for devices that run nothing, and for all if it has been
  /// measured before; else it is measured as it runs.
  Nanoseconds expected_ns = 0;
  bool is_measured = false;
  /// Whether the function, given the same addresses, has the device do the same each time: it holds
  /// nothing that changes from one iteration to the next, and waits for nothing. On a device that
  /// keeps graphs it may then be called once, and what it launched be launched again for every op
  /// of this name on these operands.
  bool steady = false;
};

/// How calls are served.
enum class Service : std::uint8_t {
  kUnlimited,  ///< Every block has memory of its own.
  kRecording,  ///< On demand, while the iteration is being learned.
  kPlanned,    ///< By a plan.
  kDrifted,    ///< On demand, after a call that the plan did not expect.
};
std::string_view Name(Service service);

/// Where a device stands. Sums are since its beginning.
struct DeviceStats {
  Service service = Service::kUnlimited;
  Bytes limit_bytes = 0;  ///< Of the arena; 0 if there is none.
  Bytes live_bytes = 0;   ///< Of all live blocks, wherever they are.
  Bytes peak_live_bytes = 0;
  Bytes footprint_bytes =
      0;  ///< The highest top of what is on the device now; of the plan, in planned service.
  Bytes peak_footprint_bytes = 0;
  Bytes host_bytes = 0;  ///< Of the slab that evicted blocks go to.
  std::int64_t execs = 0;
  std::int64_t replays = 0;
  std::int64_t copies_out = 0;
  std::int64_t copies_in = 0;
  Bytes copied_out_bytes = 0;
  Bytes copied_in_bytes = 0;
  std::int64_t iterations = 0;          ///< That were marked, or found.
  std::int64_t planned_iterations = 0;  ///< Served by a plan from their beginning to their end.
  std::int64_t drifts = 0;
  std::int64_t plans_made = 0;
  std::int64_t graph_launches = 0;
  /// Whether planned iterations are served as all later ones will be; not while they are tried op
  /// by op and as graphs.
  bool settled = true;
};

/// Not thread-safe: one thread calls, as one compute stream runs.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Returns a block of undefined content. Zero bytes are allowed. Throws Error if the size is
  /// negative, OutOfMemory if it can never fit; nothing has changed then.
  [[nodiscard]] virtual Block Malloc(Bytes size_bytes) = 0;
  /// Gives a block back. Throws Error if it is not live.
  virtual void Free(Block block) = 0;

  /// Runs a function on blocks. A block that is written and not read may keep parts of its old
  /// content. Throws OutOfMemory if the blocks of this op alone exceed the limit, naming the op and
  /// the bytes, and whatever the function throws if it runs on the calling thread.
  virtual void Exec(const OpInfo& info, std::span<const Block> reads, std::span<const Block> writes,
                    Function function) = 0;

  /// Says that an iteration ends here: optional, as iterations are found without it. `next` names
  /// what comes next, such as "train" or "evaluate", so that the right one of several plans is at
  /// hand.
  virtual void EndIteration(std::string_view next) = 0;
  void EndIteration() { EndIteration({}); }

  /// Sets what differs from one iteration to the next though its ops are the same, such as a
  /// learning rate: at most kMaxConstantBytes, at the beginning of an iteration. Functions find it
  /// in Launch::constants from here on; a GPU that runs a whole iteration at once sees only what is
  /// there. A device may have none.
  static constexpr std::size_t kMaxConstantBytes = 256;
  virtual void SetConstants(std::span<const std::byte> /*constants*/) {}

  /// Copies between a block and memory of the program; they are ops like any other, named "upload"
  /// and "download". Write() holds a copy of the data by value if it needs it later; Read() returns
  /// when the data is there. REQUIRES: size_bytes is at most the block's size.
  void Write(Block block, const void* data, Bytes size_bytes);
  void Read(Block block, void* data, Bytes size_bytes);

  /// Waits until everything that was asked for has run.
  virtual void Synchronize() = 0;

  virtual DeviceStats stats() const = 0;

 protected:
  /// Copies between an address on the device and memory of the program, in the order of the compute
  /// stream. CopyToProgram() returns when the data is there.
  virtual void CopyToDevice(std::byte* device, const void* data, Bytes size_bytes) = 0;
  virtual void CopyToProgram(void* data, const std::byte* device, Bytes size_bytes) = 0;
};

}  // namespace plimsoll::exec
