// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/to_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/base/check.h"

namespace plimsoll::chain {
namespace {

using trace::EventKind;
using trace::Phase;
using trace::VariableIndex;

/// A name that a line of a trace can hold: no spaces, no control characters.
std::string OneWord(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; }, '_');
  return name;
}

class Writer {
 public:
  explicit Writer(const Chain& chain) : chain_(chain) {
    Json metadata = {{"model", chain.name}, {"batch", chain.batch}, {"image", chain.image}};
    trace_.metadata = metadata.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void AddIteration() {
    const std::size_t n = chain_.stages.size();
    trace_.iteration_marks.push_back(static_cast<trace::EventIndex>(trace_.events.size()));
    outputs_ = {Malloc(chain_.input_bytes)};
    insides_.clear();
    Exec("input", Phase::kForward, 0, {}, {outputs_[0]});
    for (std::size_t i = 0; i < n; ++i) Forward(i);
    VariableIndex gradient = Malloc(chain_.output_gradient_bytes);
    Exec("loss", Phase::kForward, 0, {outputs_[n]}, {gradient});
    for (std::size_t i = n; i-- > 0;) gradient = Backward(i, gradient);
    Free(outputs_[0]);
    Free(gradient);
  }

  trace::Trace Take() { return std::move(trace_); }

 private:
  using Json = nlohmann::ordered_json;

  void Forward(std::size_t i) {
    const Stage& stage = chain_.stages[i];
    outputs_.push_back(Malloc(chain_.OutputBytes(i + 1)));
    insides_.push_back(Malloc(stage.inside_bytes));
    const VariableIndex scratch = Malloc(stage.forward_temp_bytes);
    Exec("forward:" + OneWord(stage.name), Phase::kForward, stage.forward_ns, {outputs_[i]},
         {outputs_[i + 1], insides_[i]});
    Free(scratch);
  }

  VariableIndex Backward(std::size_t i, VariableIndex gradient) {
    const Stage& stage = chain_.stages[i];
    const VariableIndex result = Malloc(stage.input_gradient_bytes);
    const VariableIndex scratch = Malloc(stage.backward_temp_bytes);
    Exec("backward:" + OneWord(stage.name), Phase::kBackward, stage.backward_ns,
         {outputs_[i], outputs_[i + 1], insides_[i], gradient}, {result});
    Free(scratch);
    Free(outputs_[i + 1]);
    Free(insides_[i]);
    Free(gradient);
    return result;
  }

  VariableIndex Malloc(Bytes size) {
    const auto variable = static_cast<VariableIndex>(trace_.variables.size());
    trace_.variables.push_back({.id = variable, .size_bytes = size});
    trace_.events.push_back({EventKind::kMalloc, variable});
    return variable;
  }

  void Free(VariableIndex variable) { trace_.events.push_back({EventKind::kFree, variable}); }

  std::int32_t NameIndex(const std::string& name) {
    const auto [place, is_new] =
        names_.try_emplace(name, static_cast<std::int32_t>(trace_.op_names.size()));
    if (is_new) trace_.op_names.push_back(name);
    return place->second;
  }

  void Exec(const std::string& name, Phase phase, Nanoseconds duration,
            std::initializer_list<VariableIndex> reads,
            std::initializer_list<VariableIndex> writes) {
    trace_.events.push_back({EventKind::kExec, static_cast<std::int32_t>(trace_.ops.size())});
    trace_.ops.push_back(
        {NameIndex(name), phase, duration, static_cast<std::int64_t>(trace_.operands.size()),
         static_cast<std::int32_t>(reads.size()), static_cast<std::int32_t>(writes.size())});
    trace_.operands.insert(trace_.operands.end(), reads);
    trace_.operands.insert(trace_.operands.end(), writes);
  }

  const Chain& chain_;
  trace::Trace trace_;
  std::vector<VariableIndex> outputs_;  // Of this iteration: n + 1 of them, x_0 first.
  std::vector<VariableIndex> insides_;  // By stage.
  std::unordered_map<std::string, std::int32_t> names_;
};

}  // namespace

trace::Trace ToTrace(const Chain& chain, int iterations) {
  PLIMSOLL_CHECK(!chain.stages.empty() && iterations >= 1,
                 fmt::format("{} stages, {} iterations", chain.stages.size(), iterations));
  Writer writer(chain);
  for (int k = 0; k < iterations; ++k) writer.AddIteration();
  return writer.Take();
}

}  // namespace plimsoll::chain
