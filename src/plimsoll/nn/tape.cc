// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/nn/tape_internal.h"

namespace plimsoll::nn {

Tape::Value Tape::Persistent(Bytes size_bytes, Role role, ParameterIndex parameter) {
  PLIMSOLL_CHECK(ops_.empty() && IsPersistent(role), "persistent values come first");
  values_.push_back({.slot = {size_bytes, role, parameter}});
  return static_cast<Value>(values_.size() - 1);
}

Tape::Value Tape::External(Bytes size_bytes, Role role) {
  values_.push_back({.slot = {size_bytes, role}, .external = true});
  return static_cast<Value>(values_.size() - 1);
}

std::vector<Tape::Value> Tape::Emit(OpKind kind, const Attributes& attributes, const Origin& origin,
                                    std::vector<Operand> reads,
                                    const std::vector<Result>& results) {
  Recorded recorded;
  recorded.op.spec.kind = kind;
  recorded.op.spec.attributes = attributes;
  recorded.op.phase = origin.phase;
  recorded.op.layer = origin.layer;
  recorded.op.updates = origin.updates;
  const auto index = static_cast<std::int32_t>(ops_.size());
  for (Operand& read : reads) {
    PLIMSOLL_CHECK(read.value != kNone, "an op reads what nobody wrote");
    recorded.reads.push_back(read.value);
    recorded.op.spec.reads.push_back(std::move(read.tensor));
    at(read.value).last_read = index;
  }
  std::vector<Value> values;
  for (const Result& result : results) {
    recorded.op.spec.writes.push_back(result.tensor);
    Value value = kNone;
    if (result.shares >= 0) {
      const Value shared = recorded.reads[static_cast<std::size_t>(result.shares)];
      if (IsPersistent(at(shared).slot.role)) value = shared;
    }
    if (value == kNone) {
      value = static_cast<Value>(values_.size());
      values_.push_back({.slot = {result.tensor.size_bytes(), result.role, result.parameter}});
    }
    recorded.writes.push_back({value, result.shares});
    values.push_back(value);
  }
  ops_.push_back(std::move(recorded));
  return values;
}

bool Tape::MayTake(const Recorded& recorded, std::size_t index, const Written& written) const {
  if (written.shares < 0) return false;
  const Value read = recorded.reads[static_cast<std::size_t>(written.shares)];
  const Content& old = at(read);
  return old.last_read == static_cast<std::int32_t>(index) && !old.downloaded &&
         !IsPersistent(old.slot.role) && old.slot.role != Role::kLabels &&
         old.slot.size_bytes == at(written.value).slot.size_bytes &&
         std::count(recorded.reads.begin(), recorded.reads.end(), read) == 1;
}

void Tape::Share(std::size_t index, Program* program) {
  Recorded& recorded = ops_[index];
  // A sum takes the block of whichever addend is needed no longer.
  if (recorded.op.spec.kind == OpKind::kAdd && recorded.op.spec.attributes.scale == 1 &&
      !MayTake(recorded, index, recorded.writes[0])) {
    std::swap(recorded.reads[0], recorded.reads[1]);
    if (!MayTake(recorded, index, recorded.writes[0])) {
      std::swap(recorded.reads[0], recorded.reads[1]);
    }
  }
  for (const Written& written : recorded.writes) {
    Content& content = at(written.value);
    if (content.place >= 0) continue;  // Persistent.
    if (MayTake(recorded, index, written)) {
      const SlotIndex place = at(recorded.reads[static_cast<std::size_t>(written.shares)]).place;
      content.place = place;
      // A gradient of a parameter is one wherever it began.
      Slot& slot = program->slots[static_cast<std::size_t>(place)];
      if (content.slot.parameter >= 0) slot = content.slot;
    } else {
      content.place = static_cast<SlotIndex>(program->slots.size());
      program->slots.push_back(content.slot);
    }
  }
}

void Tape::PlaceSteps(Program* program) {
  struct Life {
    std::int32_t first = -1;
    std::int32_t last = -1;
    bool external = false;
  };
  std::vector<Life> lives(program->slots.size());
  for (std::size_t i = 0; i < program->ops.size(); ++i) {
    const auto now = static_cast<std::int32_t>(i);
    const auto touch = [&](SlotIndex slot) {
      Life& life = lives[static_cast<std::size_t>(slot)];
      if (life.first < 0) life.first = now;
      life.last = now;
    };
    std::for_each(program->ops[i].reads.begin(), program->ops[i].reads.end(), touch);
    std::for_each(program->ops[i].writes.begin(), program->ops[i].writes.end(), touch);
  }
  for (const Content& content : values_) {
    if (content.external) lives[static_cast<std::size_t>(content.place)].external = true;
    if (content.downloaded) lives[static_cast<std::size_t>(content.place)].last = -1;
  }
  // All that is uploaded comes at once, before the first op that needs any of it.
  const auto upload = [&] {
    for (std::size_t slot = 0; slot < lives.size(); ++slot) {
      if (!lives[slot].external || lives[slot].first < 0) continue;
      lives[slot].first = -1;
      program->steps.push_back({StepKind::kMalloc, static_cast<SlotIndex>(slot)});
      program->steps.push_back({StepKind::kUpload, static_cast<SlotIndex>(slot)});
    }
  };
  for (std::size_t i = 0; i < program->ops.size(); ++i) {
    const ProgramOp& op = program->ops[i];
    const auto now = static_cast<std::int32_t>(i);
    const auto begin = [&](SlotIndex slot) {
      Life& life = lives[static_cast<std::size_t>(slot)];
      if (life.first != now || IsPersistent(program->slots[slot].role)) return;
      if (life.external) return upload();
      life.first = -1;  // It may occur twice.
      program->steps.push_back({StepKind::kMalloc, slot});
    };
    const auto end = [&](SlotIndex slot) {
      Life& life = lives[static_cast<std::size_t>(slot)];
      if (life.last != now || IsPersistent(program->slots[slot].role)) return;
      life.last = -1;
      program->steps.push_back({StepKind::kFree, slot});
    };
    std::for_each(op.reads.begin(), op.reads.end(), begin);
    std::for_each(op.writes.begin(), op.writes.end(), begin);
    program->steps.push_back({StepKind::kExec, now});
    // The workspace, which came last, goes first.
    std::for_each(op.writes.rbegin(), op.writes.rend(), end);
    std::for_each(op.reads.begin(), op.reads.end(), end);
  }
  for (const Value value : downloads_) {
    program->steps.push_back({StepKind::kDownload, slot_of(value)});
  }
  for (const Value value : downloads_) {
    program->steps.push_back({StepKind::kFree, slot_of(value)});
  }
}

Program Tape::Finish(KernelLibrary* library) {
  Program program;
  for (const Value value : downloads_) at(value).downloaded = true;
  for (Content& content : values_) {
    if (!IsPersistent(content.slot.role) && !content.external) continue;
    content.place = static_cast<SlotIndex>(program.slots.size());
    program.slots.push_back(content.slot);
  }
  program.ops.reserve(ops_.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    Share(i, &program);
    ProgramOp op = std::move(ops_[i].op);
    for (const Value value : ops_[i].reads) op.reads.push_back(slot_of(value));
    for (const Written& written : ops_[i].writes) op.writes.push_back(slot_of(written.value));
    op.kernel = library->Prepare(op.spec);
    if (op.kernel.workspace_bytes > 0) {
      op.writes.push_back(static_cast<SlotIndex>(program.slots.size()));
      program.slots.push_back({op.kernel.workspace_bytes, Role::kWorkspace});
    }
    program.ops.push_back(std::move(op));
  }
  PlaceSteps(&program);
  return program;
}

SlotIndex Tape::slot_of(Value value) const { return value == kNone ? -1 : at(value).place; }

}  // namespace plimsoll::nn
