// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/profile.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include "plimsoll/base/check.h"
#include "plimsoll/nn/bfloat16.h"

namespace plimsoll::nn {
namespace {

using device::Stream;

/// For every write of an op: which of its reads is the same block, or -1.
std::vector<std::int32_t> ListShared(const ProgramOp& op) {
  std::vector<std::int32_t> shared;
  for (const SlotIndex slot : op.writes) {
    const auto read = std::find(op.reads.begin(), op.reads.end(), slot);
    shared.push_back(read == op.reads.end()
                         ? -1
                         : static_cast<std::int32_t>(std::distance(op.reads.begin(), read)));
  }
  return shared;
}

/// What tells an op from another as far as its time goes: random numbers may be any.
OpSpec Normalize(OpSpec spec) {
  spec.attributes.stream = 0;
  return spec;
}

std::size_t HashOf(const OpSpec& spec) {
  std::size_t hash = static_cast<std::size_t>(spec.kind);
  const auto mix = [&](const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) {
      hash = hash * 31 + static_cast<std::size_t>(tensor.type);
      for (const std::int64_t extent : tensor.shape) {
        hash = hash * 1'000'003 + static_cast<std::size_t>(extent);
      }
    }
  };
  mix(spec.reads);
  mix(spec.writes);
  return hash;
}

/// Labels and ids that are valid: what they index has this many rows, or classes.
std::int64_t CountIndexed(const OpSpec& spec) {
  switch (spec.kind) {
    case OpKind::kEmbeddingForward:
      return spec.reads[1].shape[0];
    case OpKind::kEmbeddingBackward:
      return spec.writes[0].shape[0];
    default:
      return spec.reads[0].shape.back();
  }
}

using Random = std::mt19937_64;

/// The content of an operand, of which more is the same over again. Floats are positive and near
/// one, so that roots and logarithms of them exist and nothing overflows, however often an op runs
/// in place.
std::vector<std::byte> MakeTile(const OpSpec& spec, const Tensor& tensor, Random* random) {
  constexpr Bytes kTile = 1 << 16;
  std::vector<std::byte> tile(static_cast<std::size_t>(std::min(tensor.size_bytes(), kTile)));
  const auto fill = [&]<typename T>(T, auto make) {
    for (std::size_t at = 0; at + sizeof(T) <= tile.size(); at += sizeof(T)) {
      const T value = make();
      std::memcpy(tile.data() + at, &value, sizeof(T));
    }
  };
  std::uniform_real_distribution<float> near_one(0.5F, 1.5F);
  switch (tensor.type) {
    case ElementType::kFloat:
      fill(float{}, [&] { return near_one(*random); });
      break;
    case ElementType::kBfloat16:
      fill(std::uint16_t{}, [&] { return ToBfloat16(near_one(*random)); });
      break;
    case ElementType::kInt: {
      std::uniform_int_distribution<std::int32_t> index(
          0, static_cast<std::int32_t>(std::max<std::int64_t>(CountIndexed(spec), 1) - 1));
      fill(std::int32_t{}, [&] { return index(*random); });
      break;
    }
    case ElementType::kBit:
    case ElementType::kByte:
      fill(std::uint8_t{}, [&] { return static_cast<std::uint8_t>((*random)() & 0xffU); });
      break;
  }
  return tile;
}

/// Fills memory with a tile over and over: the device copies what it has already.
void Fill(device::Backend* backend, std::byte* memory, Bytes size_bytes,
          const std::vector<std::byte>& tile) {
  auto done = static_cast<Bytes>(tile.size());
  backend->Upload(memory, tile.data(), done);
  for (Bytes more = 0; done < size_bytes; done += more) {
    more = std::min(done, size_bytes - done);
    backend->Move(memory + done, memory, more);
  }
}

/// The operands of one op, and nothing else.
class Operands {
 public:
  explicit Operands(device::Backend* backend) : backend_(*backend) {}
  ~Operands() {
    for (std::byte* const block : owned_) backend_.FreeDevice(block);
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  std::byte* Allocate(Bytes size_bytes) {
    owned_.reserve(owned_.size() + 1);
    owned_.push_back(backend_.AllocateDevice(size_bytes));
    bytes_ += AlignUp(size_bytes, kDefaultAlignment);
    return owned_.back();
  }
  Bytes bytes() const { return bytes_; }

 private:
  device::Backend& backend_;
  std::vector<std::byte*> owned_;
  Bytes bytes_ = 0;
};

/// Two events around a run.
class EventPair {
 public:
  explicit EventPair(device::Backend* backend)
      : backend_(*backend), begin_(backend->CreateEvent()), end_(backend->CreateEvent()) {}
  ~EventPair() {
    backend_.DestroyEvent(begin_);
    backend_.DestroyEvent(end_);
  }
  EventPair(const EventPair&) = delete;
  EventPair& operator=(const EventPair&) = delete;

  Nanoseconds Time(const std::function<void(void*)>& function) {
    backend_.PrepareToTime();
    backend_.Record(begin_, Stream::kCompute);
    backend_.Run(function);
    backend_.Record(end_, Stream::kCompute);
    backend_.Synchronize(end_);
    return backend_.TimeOf(end_) - backend_.TimeOf(begin_);
  }

 private:
  device::Backend& backend_;
  device::EventId begin_;
  device::EventId end_;
};

}  // namespace

Profiler::Profiler(device::Backend* backend, const ProfileOptions& options)
    : backend_(*backend), options_(options) {
  PLIMSOLL_CHECK(options.repeats >= 1, "nothing is measured without a run");
}

Nanoseconds Profiler::Measure(const ProgramOp& op) {
  if (!op.kernel.run || !backend_.capabilities().runs) return op.kernel.expected_ns;
  OpSpec spec = Normalize(op.spec);
  const std::vector<std::int32_t> shared = ListShared(op);
  std::vector<Known>& bucket = known_[HashOf(spec)];
  if (const Nanoseconds known = FindIn(bucket, spec, shared); known > 0) return known;
  // At least a nanosecond: 0 is unknown.
  const Nanoseconds time_ns = std::max<Nanoseconds>(1, Run(op, shared));
  bucket.push_back({std::move(spec), shared, time_ns});
  ++measured_;
  return time_ns;
}

Nanoseconds Profiler::Find(const ProgramOp& op) const {
  const OpSpec spec = Normalize(op.spec);
  const auto bucket = known_.find(HashOf(spec));
  return bucket == known_.end() ? 0 : FindIn(bucket->second, spec, ListShared(op));
}

Nanoseconds Profiler::FindIn(const std::vector<Known>& bucket, const OpSpec& spec,
                             const std::vector<std::int32_t>& shared) {
  for (const Known& known : bucket) {
    if (known.spec == spec && known.shared == shared) return known.time_ns;
  }
  return 0;
}

Nanoseconds Profiler::Run(const ProgramOp& op, const std::vector<std::int32_t>& shared) {
  Random random(options_.seed);
  Operands operands(&backend_);
  std::vector<std::byte*> reads;
  std::vector<std::byte*> writes;
  for (std::size_t i = 0; i < op.spec.reads.size(); ++i) {
    const Tensor& tensor = op.spec.reads[i];
    // One block may be read twice, as in x + x.
    const auto first = std::find(op.reads.begin(), op.reads.end(), op.reads[i]);
    const auto at = static_cast<std::size_t>(std::distance(op.reads.begin(), first));
    if (at < i) {
      reads.push_back(reads[at]);
      continue;
    }
    reads.push_back(operands.Allocate(tensor.size_bytes()));
    Fill(&backend_, reads.back(), tensor.size_bytes(), MakeTile(op.spec, tensor, &random));
  }
  for (std::size_t i = 0; i < op.writes.size(); ++i) {
    const bool is_workspace = i >= op.spec.writes.size();
    if (shared[i] >= 0) {
      writes.push_back(reads[static_cast<std::size_t>(shared[i])]);
    } else {
      writes.push_back(operands.Allocate(is_workspace ? op.kernel.workspace_bytes
                                                      : op.spec.writes[i].size_bytes()));
    }
  }
  peak_bytes_ = std::max(peak_bytes_, operands.bytes());
  const StepScalars scalars{.seed = options_.seed, .learning_rate = 1e-3F, .step = 1};
  const auto run = [&](void* stream) { op.kernel.run({reads, writes, stream}, scalars); };
  EventPair events(&backend_);
  events.Time(run);  // Touches every page, and fills caches.
  Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
  for (int k = 0; k < options_.repeats; ++k) least = std::min(least, events.Time(run));
  return least;
}

std::vector<Nanoseconds> Profile(const Program& program, Profiler* profiler) {
  std::vector<Nanoseconds> times;
  times.reserve(program.ops.size());
  for (const ProgramOp& op : program.ops) times.push_back(profiler->Measure(op));
  return times;
}

void SetKnownTimes(const Profiler& profiler, Program* program) {
  for (ProgramOp& op : program->ops) {
    const Nanoseconds time_ns = profiler.Find(op);
    if (time_ns == 0) continue;
    op.kernel.expected_ns = time_ns;
    op.kernel.is_measured = true;
  }
}

void SetTimes(const std::vector<Nanoseconds>& times, Program* program) {
  PLIMSOLL_CHECK(times.size() == program->ops.size(), "one time for each op");
  for (std::size_t i = 0; i < times.size(); ++i) program->ops[i].kernel.expected_ns = times[i];
}

}  // namespace plimsoll::nn
