// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/runner.h"

#include <array>

namespace plimsoll::nn {
namespace {

using exec::Block;

/// The blocks of a program's slots; frees what is left when it goes.
class Blocks {
 public:
  Blocks(exec::Device* device, std::size_t slots, std::span<const Block> persistent)
      : device_(*device), blocks_(slots, exec::kNoBlock), persistent_(persistent.size()) {
    std::copy(persistent.begin(), persistent.end(), blocks_.begin());
  }
  ~Blocks() {
    for (std::size_t slot = persistent_; slot < blocks_.size(); ++slot) {
      if (blocks_[slot] == exec::kNoBlock) continue;
      // Something has failed already, and that is what the caller should see.
      try {
        device_.Free(blocks_[slot]);
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      }
    }
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  void Malloc(SlotIndex slot, Bytes size_bytes) { at(slot) = device_.Malloc(size_bytes); }
  void Free(SlotIndex slot) {
    device_.Free(at(slot));
    at(slot) = exec::kNoBlock;
  }
  Block& at(SlotIndex slot) { return blocks_[static_cast<std::size_t>(slot)]; }

 private:
  exec::Device& device_;
  std::vector<Block> blocks_;
  std::size_t persistent_;
};

void Execute(exec::Device* device, const ProgramOp& op, const StepScalars& scalars,
             Blocks* blocks) {
  std::vector<Block> reads;
  std::vector<Block> writes;
  for (const SlotIndex slot : op.reads) reads.push_back(blocks->at(slot));
  for (const SlotIndex slot : op.writes) writes.push_back(blocks->at(slot));
  exec::Function function;
  if (op.kernel.run) {
    function = [run = op.kernel.run, scalars](const exec::Launch& launch) { run(launch, scalars); };
  }
  device->Exec({.name = Name(op.spec.kind),
                .phase = op.phase,
                .traits = TraitsOf(op.spec.kind),
                .expected_ns = op.kernel.expected_ns,
                .is_measured = op.kernel.is_measured,
                .steady = op.kernel.steady},
               reads, writes, std::move(function));
}

}  // namespace

std::vector<Block> AllocatePersistent(exec::Device* device, const Program& program) {
  std::vector<Block> blocks;
  try {
    for (const Slot& slot : program.slots) {
      if (!IsPersistent(slot.role)) break;
      blocks.push_back(device->Malloc(slot.size_bytes));
    }
  } catch (...) {
    for (const Block block : blocks) device->Free(block);
    throw;
  }
  return blocks;
}

void RunProgram(exec::Device* device, const Program& program, std::span<const Block> persistent,
                const StepScalars& scalars, const RunHooks& hooks) {
  Blocks blocks(device, program.slots.size(), persistent);
  for (const Step& step : program.steps) {
    switch (step.kind) {
      case StepKind::kMalloc:
        blocks.Malloc(step.index, program.slots[static_cast<std::size_t>(step.index)].size_bytes);
        break;
      case StepKind::kFree:
        blocks.Free(step.index);
        break;
      case StepKind::kUpload:
        if (hooks.upload) {
          hooks.upload(step.index, blocks.at(step.index));
        } else {
          device->Exec({.name = "upload"}, {}, std::array{blocks.at(step.index)}, {});
        }
        break;
      case StepKind::kDownload:
        if (hooks.download) {
          hooks.download(step.index, blocks.at(step.index));
        } else {
          device->Exec({.name = "download"}, std::array{blocks.at(step.index)}, {}, {});
        }
        break;
      case StepKind::kExec: {
        const ProgramOp& op = program.ops[static_cast<std::size_t>(step.index)];
        if (hooks.before_update && !op.updates.empty()) {
          const std::size_t each = op.reads.size() / op.updates.size();
          for (std::size_t i = 0; i < op.updates.size(); ++i) {
            hooks.before_update(op.updates[i], blocks.at(op.reads[i * each + 1]));
          }
        }
        Execute(device, op, scalars, &blocks);
        break;
      }
    }
  }
}

}  // namespace plimsoll::nn
