// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/nn/program.h"

/// Ops in the order in which they run, on values that are each written once. Who shares a block
/// with whom, and from when to when it is there, is found when all of them are known.
namespace plimsoll::nn {

class Tape {
 public:
  using Value = std::int32_t;
  static constexpr Value kNone = -1;

  struct Operand {
    Value value = kNone;
    Tensor tensor;
  };
  struct Result {
    Tensor tensor;
    Role role = Role::kActivation;
    int shares = -1;  ///< The read whose block it may take, if nobody needs that any more.
    ParameterIndex parameter = -1;  ///< Of a gradient.
  };
  struct Origin {
    trace::Phase phase = trace::Phase::kForward;
    LayerIndex layer = -1;
    std::vector<ParameterIndex> updates{};
  };

  /// A block that is there before and after. All of them come before anything else.
  Value Persistent(Bytes size_bytes, Role role, ParameterIndex parameter);
  /// A block that the program fills before its first use.
  Value External(Bytes size_bytes, Role role);

  /// Returns the values of `results`. A result that shares a persistent read becomes its new
  /// content, and the value stays the same.
  std::vector<Value> Emit(OpKind kind, const Attributes& attributes, const Origin& origin,
                          std::vector<Operand> reads, const std::vector<Result>& results);
  /// Says that the program reads a value when everything has run.
  void Download(Value value) { downloads_.push_back(value); }

  /// Makes the program: prepares kernels, decides on blocks, and puts each malloc right before the
  /// first op that writes the block, each free right behind the last that touches it.
  Program Finish(KernelLibrary* library);
  /// The block of a value. REQUIRES: Finish() has been called.
  SlotIndex slot_of(Value value) const;

 private:
  struct Content {
    Slot slot;
    std::int32_t last_read = -1;  // An op.
    SlotIndex place = -1;
    bool external = false;
    bool downloaded = false;
  };
  struct Written {
    Value value;
    int shares;
  };
  struct Recorded {
    ProgramOp op;
    std::vector<Value> reads;
    std::vector<Written> writes;
  };

  void Share(std::size_t index, Program* program);
  void PlaceSteps(Program* program);
  bool MayTake(const Recorded& recorded, std::size_t index, const Written& written) const;
  Content& at(Value value) { return values_[static_cast<std::size_t>(value)]; }
  const Content& at(Value value) const { return values_[static_cast<std::size_t>(value)]; }

  std::vector<Content> values_;
  std::vector<Recorded> ops_;
  std::vector<Value> downloads_;
};

}  // namespace plimsoll::nn
