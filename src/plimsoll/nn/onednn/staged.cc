// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/onednn/staged.h"

#include <utility>

namespace plimsoll::nn::onednn {
namespace {

Bytes Aligned(std::size_t size) { return static_cast<Bytes>((size + 63) / 64 * 64); }

}  // namespace

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

const dnnl::stream& Stream() {
  static const dnnl::stream stream(Engine());
  return stream;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

StagedPrimitive::StagedPrimitive(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
                                 const std::vector<StagedArgument>& arguments,
                                 std::size_t workspace_index)
    : primitive_(std::move(primitive)),
      scratchpad_(scratchpad, Engine(), DNNL_MEMORY_NONE),
      workspace_index_(workspace_index),
      workspace_bytes_(Aligned(scratchpad.get_size())) {
  for (const StagedArgument& argument : arguments) {
    Stage stage;
    stage.outer = dnnl::memory(argument.plain, Engine(), DNNL_MEMORY_NONE);
    stage.inner = stage.outer;
    if (argument.wanted != argument.plain) {
      stage.offset = workspace_bytes_;
      workspace_bytes_ += Aligned(argument.wanted.get_size());
      stage.inner = dnnl::memory(argument.wanted, Engine(), DNNL_MEMORY_NONE);
      const dnnl::memory::desc& from = argument.is_write ? argument.wanted : argument.plain;
      const dnnl::memory::desc& to = argument.is_write ? argument.plain : argument.wanted;
      stage.reorder = dnnl::reorder(
          dnnl::reorder::primitive_desc(Engine(), from, Engine(), to, dnnl::primitive_attr()));
    }
    arguments_.emplace(argument.argument, stage.inner);
    stage.argument = argument;
    stages_.push_back(std::move(stage));
  }
  arguments_.emplace(DNNL_ARG_SCRATCHPAD, scratchpad_);
}

void StagedPrimitive::Run(const exec::Launch& launch) {
  std::byte* workspace = workspace_bytes_ > 0 ? launch.writes[workspace_index_] : nullptr;
  const dnnl::stream& stream = Stream();
  scratchpad_.set_data_handle(workspace);
  for (Stage& stage : stages_) {
    const StagedArgument& argument = stage.argument;
    stage.outer.set_data_handle(argument.is_write ? launch.writes[argument.index]
                                                  : launch.reads[argument.index]);
    if (stage.offset < 0) continue;
    stage.inner.set_data_handle(workspace + stage.offset);
    if (!argument.is_write) stage.reorder.execute(stream, stage.outer, stage.inner);
  }
  primitive_.execute(stream, arguments_);
  for (Stage& stage : stages_) {
    if (stage.offset >= 0 && stage.argument.is_write) {
      stage.reorder.execute(stream, stage.inner, stage.outer);
    }
  }
}

}  // namespace plimsoll::nn::onednn
