// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/exec/device.h"

namespace plimsoll::nn::onednn {

/// The processor, and the stream that everything runs on at once.
const dnnl::engine& Engine();
const dnnl::stream& Stream();
/// Attributes of every primitive: scratch memory comes from the workspace.
dnnl::primitive_attr UserScratchpad();

/// An argument of a primitive: what the program has, and what the primitive wants.
struct StagedArgument {
  int argument = 0;  ///< DNNL_ARG_…
  bool is_write = false;
  std::size_t index = 0;      ///< In the launch's reads or writes.
  dnnl::memory::desc plain;   ///< As the program lays it out.
  dnnl::memory::desc wanted;  ///< As the primitive does. If it differs, it is put in the workspace.
};

/// A primitive on blocks of a launch. Reads that it wants laid out otherwise are brought into that
/// layout first, and writes out of it afterwards, all in the workspace:
///
///     | scratchpad | operand | operand | …        each at a multiple of 64 bytes
class StagedPrimitive {
 public:
  /// `workspace_index` is that of the workspace among the writes of the launch.
  StagedPrimitive(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
                  const std::vector<StagedArgument>& arguments, std::size_t workspace_index);

  Bytes workspace_bytes() const { return workspace_bytes_; }
  void Run(const exec::Launch& launch);

 private:
  struct Stage {
    StagedArgument argument;
    Bytes offset = -1;  ///< In the workspace; -1 if the program's own layout is right.
    dnnl::memory outer;
    dnnl::memory inner;
    dnnl::reorder reorder;
  };

  dnnl::primitive primitive_;
  std::vector<Stage> stages_;
  std::unordered_map<int, dnnl::memory> arguments_;
  dnnl::memory scratchpad_;
  std::size_t workspace_index_;
  Bytes workspace_bytes_ = 0;
};

}  // namespace plimsoll::nn::onednn
