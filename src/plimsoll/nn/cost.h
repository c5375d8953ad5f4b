// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/nn/op.h"

/// How long ops take, from their shapes: a roofline. Good enough to plan by before anything has
/// been measured.
namespace plimsoll::nn {

/// What a machine reaches in practice, not what its data sheet says.
struct MachineSpeed {
  std::string name;
  double flops_per_s = 1e11;      ///< Of convolutions and matrix products.
  double bytes_per_s = 1e10;      ///< Of device memory.
  Nanoseconds latency_ns = 2000;  ///< Of any op.
  /// What its kernel library does at once: see KernelLibrary.
  bool fuses_batch_norm = false;
  int update_group = 1;
};
/// "host": two cores of a server; "h200-fp32", "h200-tf32", "h200-bf16".
const std::vector<MachineSpeed>& MachineSpeeds();
/// Throws Error that lists the names there are.
const MachineSpeed& FindMachineSpeed(std::string_view name);

/// Arithmetic operations of an op: a multiplication and an addition count as two.
double FlopsOf(const OpSpec& spec);
/// Bytes that it reads and writes.
double BytesMovedBy(const OpSpec& spec);
/// Returns latency + max(flops / speed, bytes / bandwidth).
Nanoseconds ExpectedTime(const OpSpec& spec, const MachineSpeed& speed);

}  // namespace plimsoll::nn
