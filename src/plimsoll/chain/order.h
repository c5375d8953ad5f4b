// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plimsoll/chain/model.h"
#include "plimsoll/chain/schedule.h"

/// Recomputation of chains. An order is a row of the model's ops in which forward ops may come
/// again: F_0 .. F_{n-1} first, then B_{n-1} .. B_0, each once, with any forward ops in between
/// that still have their backward op before them.
///
///     F_0 F_1 F_2 F_3  B_3  F_1 F_2  B_2  B_1  B_0
///
/// It says all that there is to say. Whoever reads x_i finds what F_{i-1} has made last, and that
/// lives until its last reader:
///
///   - the output of F_{i-1}, up to the last F_i, B_i or B_{i-1} before it is made again;
///   - what F_{i-1} has saved inside, up to B_{i-1} if that comes before it is made again; else it
///     is gone when F_{i-1} ends.
///
/// So F_all of the literature (Herrmann, Beaumont et al., "Optimal checkpointing for heterogeneous
/// chains") is an F_i whose B_i comes before the next F_i; F_ck and F_null are the others, with a
/// later reader of their input or without. While it runs, an op needs the same memory whether
/// anything of it is kept or not: the same kernels run, on the same temporaries.
///
/// x_i, as made the first time, can be away from F_i until its next reader: whole, or the output
/// alone if the inside is not kept.
namespace plimsoll::chain {

/// Returns the order in which every op runs once.
Order PlainOrder(std::size_t stages);

/// Whether it is an order as above for so many stages.
bool IsOrder(const Order& order, std::size_t stages);

/// Returns the model of a chain that runs in this order: ops are places in it. peak_bytes is what
/// it needs if nothing leaves. REQUIRES: IsOrder(); the chain is well-formed, bandwidth > 0.
Model MakeModel(const Chain& chain, std::int64_t bandwidth_bytes_per_s, Order order);

/// Returns the model of the schedule's own order on the model's link.
Model ModelOf(const Chain& chain, const Model& model, const Schedule& schedule);

/// The bytes that ops which run again make, insides included if they are kept.
Bytes RecomputedBytes(const Chain& chain, const Order& order);

}  // namespace plimsoll::chain
