// SPDX-License-Identifier: Apache-2.0
//
// What holds for every program. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plimsoll/nn/program.h"

namespace plimsoll::nn {

/// Checks that blocks are there when ops touch them, are written before they are read, appear right
/// before their first op, but for labels, which come with the input, and go right after their last;
/// and that no op touches a weight once it is updated.
inline void ExpectHonest(const Program& program) {
  struct Life {
    bool live = false;
    bool written = false;
    int mallocs = 0;
    std::size_t fresh_since = 0;  // Ops that had run at its malloc.
    std::size_t last_touched = 0;
    bool touched = false;
  };
  std::vector<Life> lives(program.slots.size());
  std::vector<bool> updated(program.slots.size());  // Parameters; nobody wants the new ones.
  std::size_t ran = 0;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    lives[i].live = lives[i].written = IsPersistent(program.slots[i].role);
  }
  for (const Step& step : program.steps) {
    const auto index = static_cast<std::size_t>(step.index);
    if (step.kind == StepKind::kExec) {
      const ProgramOp& op = program.ops[index];
      ASSERT_EQ(index, ran) << "ops run once, in order";
      ++ran;
      const std::string name(Name(op.spec.kind));
      ASSERT_EQ(op.reads.size(), op.spec.reads.size()) << name;
      ASSERT_GE(op.writes.size(), op.spec.writes.size()) << name;
      for (std::size_t i = 0; i < op.reads.size(); ++i) {
        Life& life = lives[op.reads[i]];
        ASSERT_TRUE(life.live && life.written) << name << " reads slot " << op.reads[i];
        ASSERT_EQ(program.slots[op.reads[i]].size_bytes, op.spec.reads[i].size_bytes()) << name;
      }
      for (std::size_t i = 0; i < op.spec.writes.size(); ++i) {
        ASSERT_EQ(program.slots[op.writes[i]].size_bytes, op.spec.writes[i].size_bytes()) << name;
      }
      for (const auto* slots : {&op.reads, &op.writes}) {
        for (const SlotIndex slot : *slots) {
          ASSERT_FALSE(updated[static_cast<std::size_t>(slot)])
              << name << " comes after the update of slot " << slot;
          Life& life = lives[slot];
          ASSERT_TRUE(life.live) << name;
          if (!life.touched && !IsPersistent(program.slots[slot].role) &&
              program.slots[slot].role != Role::kLabels) {
            ASSERT_EQ(life.fresh_since + 1, ran) << name << " slot " << slot << " came early";
          }
          life.touched = true;
          life.last_touched = ran;
        }
      }
      for (const SlotIndex slot : op.writes) {
        lives[slot].written = true;
        if (program.slots[slot].role != Role::kParameter) continue;
        ASSERT_FALSE(op.updates.empty()) << name << " writes a weight";
        updated[static_cast<std::size_t>(slot)] = true;
      }
      continue;
    }
    Life& life = lives[index];
    switch (step.kind) {
      case StepKind::kMalloc:
        ASSERT_FALSE(life.live);
        life.live = true;
        ++life.mallocs;
        life.fresh_since = ran;
        break;
      case StepKind::kFree:
        ASSERT_TRUE(life.live);
        if (program.slots[index].role != Role::kResult) {
          ASSERT_EQ(life.last_touched, ran);
        }
        life.live = false;
        break;
      case StepKind::kUpload:
      case StepKind::kDownload:
        ASSERT_TRUE(life.live);
        life.written = true;
        break;
      case StepKind::kExec:
        break;
    }
  }
  ASSERT_EQ(ran, program.ops.size());
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const bool persistent = IsPersistent(program.slots[i].role);
    ASSERT_EQ(lives[i].live, persistent) << "slot " << i;
    if (!persistent) {
      ASSERT_LE(lives[i].mallocs, 1) << "slot " << i;
    }
  }
}

}  // namespace plimsoll::nn
