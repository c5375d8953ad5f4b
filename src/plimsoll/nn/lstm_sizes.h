// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plimsoll::nn {

struct OpSpec;

/// Of an LSTM over whole sequences.
struct LstmSizes {
  std::int64_t sequences = 0;
  std::int64_t length = 0;
  std::int64_t inputs = 0;
  std::int64_t hidden = 0;

  std::int64_t rows() const { return sequences * length; }
  std::int64_t gates() const { return 4 * hidden; }
};

/// Those of an LSTM op, forward or backward; forward may write no gates and cells. Throws Error if
/// its operands do not go together.
LstmSizes SizesOfLstm(const OpSpec& spec);

}  // namespace plimsoll::nn
