// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/lstm_sizes.h"

#include "plimsoll/nn/op_check.h"

namespace plimsoll::nn {

LstmSizes SizesOfLstm(const OpSpec& spec) {
  const bool forward = spec.kind == OpKind::kLstmForward;
  RequireOperands(spec, forward ? 4 : 7, forward ? 1 : 4, forward ? 3 : 4);
  RequireRank(spec, spec.reads[0], 3);
  RequireRank(spec, spec.reads[2], 2);
  const Shape& x = spec.reads[0].shape;
  const std::int64_t hidden = spec.reads[2].shape[1];
  RequireShape(spec, spec.reads[1], {4 * hidden, x[2]});
  RequireShape(spec, spec.reads[2], {4 * hidden, hidden});
  const LstmSizes sizes{.sequences = x[0], .length = x[1], .inputs = x[2], .hidden = hidden};
  const Shape y = {sizes.sequences, sizes.length, sizes.hidden};
  const Shape gates = {sizes.sequences, sizes.length, sizes.gates()};
  if (forward) {
    if (spec.writes.size() == 2) Refuse(spec, "gates and cells are both there, or neither");
    const bool kept = spec.writes.size() == 3;
    RequireCount(spec, spec.reads[3], sizes.gates());
    RequireShape(spec, spec.writes[0], y);
    if (kept) RequireShape(spec, spec.writes[1], gates);
    if (kept) RequireShape(spec, spec.writes[2], y);
    return sizes;
  }
  RequireShape(spec, spec.reads[4], gates);
  for (const std::size_t i : {3, 5, 6}) RequireShape(spec, spec.reads[i], y);
  for (std::size_t i = 0; i < 3; ++i) RequireShape(spec, spec.writes[i], spec.reads[i].shape);
  RequireCount(spec, spec.writes[3], sizes.gates());
  return sizes;
}

}  // namespace plimsoll::nn
