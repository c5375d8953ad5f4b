// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/joint_rebuild_internal.h"

namespace plimsoll::planners {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Calls `visit` for every op that has written the variable before an op.
template <typename Visit>
void ForWriters(const Touched& inside, plan::OpIndex before, Visit visit) {
  for (const plan::OpIndex writer : inside.writers) {
    if (writer >= before) return;
    visit(At(writer));
  }
}

}  // namespace

RebuildTime::RebuildTime(std::vector<Rebuildable> parts) {
  std::sort(parts.begin(), parts.end(), [](const Rebuildable& a, const Rebuildable& b) {
    return a.ns_per_byte < b.ns_per_byte;
  });
  for (const Rebuildable& part : parts) {
    bytes_.push_back(bytes_.back() + part.bytes);
    ns_.push_back(ns_.back() + part.bytes * part.ns_per_byte);
  }
}

double RebuildTime::operator()(double bytes) const {
  if (bytes >= bytes_.back()) return ns_.back();
  const auto above = static_cast<std::size_t>(
      std::upper_bound(bytes_.begin(), bytes_.end(), bytes) - bytes_.begin());
  if (above == 0) return 0;
  const double share = (bytes - bytes_[above - 1]) / (bytes_[above] - bytes_[above - 1]);
  return ns_[above - 1] + share * (ns_[above] - ns_[above - 1]);
}

Rebuilder::Rebuilder(const plan::Problem& problem, const std::vector<Touched>& inside,
                     const std::vector<std::int32_t>& index)
    : problem_(problem),
      inside_(inside),
      index_(index),
      written_bytes_(problem.ops.size(), 0),
      dead_of_(inside.size(), -1) {}

std::vector<Rebuildable> Rebuilder::List(const std::vector<std::size_t>& away, plan::OpIndex op,
                                         bool inputs) {
  for (const DeadInput& x : dead_) dead_of_[x.variable] = -1;
  dead_.clear();
  std::vector<Item> items;
  for (const std::size_t v : away) {
    if (!CanRebuild(inside_[v], op)) continue;
    items.push_back({v, {}});
    if (inputs) ListDead(inside_[v], op, &items.back());
  }
  ShareOut(items, op);
  std::vector<Rebuildable> parts;
  for (const Item& item : items) AddParts(item, op, &parts);
  return parts;
}

bool Rebuilder::CanRebuild(const Touched& inside, plan::OpIndex before) const {
  bool possible = true;
  ForWriters(inside, before, [&](std::size_t writer) {
    possible = possible && problem_.ops[writer].traits.replayable;
  });
  return possible;
}

/// Lists what the writers of a candidate read that nobody needs any more at an op.
void Rebuilder::ListDead(const Touched& inside, plan::OpIndex op, Item* item) {
  const plan::OpIndex needed = *std::upper_bound(inside.touched.begin(), inside.touched.end(), op);
  ForWriters(inside, op, [&](std::size_t writer) {
    for (const plan::Operand& x : problem_.reads(problem_.ops[writer])) {
      const std::int32_t u = x.age == 0 ? index_[At(x.variable)] : -1;
      if (u < 0 || At(u) == item->variable) continue;
      const Touched& input = inside_[At(u)];
      const auto reader = static_cast<plan::OpIndex>(writer);
      if (input.touched.back() >= op || input.writers.empty()) continue;
      if (input.writers.front() >= reader) continue;
      if (dead_of_[At(u)] < 0) {
        dead_of_[At(u)] = static_cast<std::int32_t>(dead_.size());
        dead_.push_back({At(u), 0, reader, needed, 0});
      }
      const std::size_t place = At(dead_of_[At(u)]);
      DeadInput& dead = dead_[place];
      dead.reader = std::min(dead.reader, reader);
      dead.needed = std::max(dead.needed, needed);
      const auto found = std::find(item->inputs.begin(), item->inputs.end(), place);
      if (found != item->inputs.end()) continue;
      item->inputs.push_back(place);
      dead.reader_bytes += static_cast<double>(inside.size_bytes);
    }
  });
}

/// Shares the time of ops out over all that they have written and that may be rebuilt.
void Rebuilder::ShareOut(const std::vector<Item>& items, plan::OpIndex op) {
  std::fill(written_bytes_.begin(), written_bytes_.end(), 0);
  const auto add = [&](const Touched& inside, plan::OpIndex before) {
    ForWriters(inside, before, [&](std::size_t writer) {
      written_bytes_[writer] += static_cast<double>(inside.size_bytes);
    });
  };
  for (const Item& item : items) add(inside_[item.variable], op);
  for (const DeadInput& x : dead_) {
    if (CanRebuild(inside_[x.variable], x.reader)) add(inside_[x.variable], x.reader);
  }
  for (DeadInput& x : dead_) {
    const Touched& inside = inside_[x.variable];
    x.rebuild_ns = CanRebuild(inside, x.reader) ? ShareNs(inside, x.reader) : kNever;
  }
}

double Rebuilder::ShareNs(const Touched& inside, plan::OpIndex before) const {
  double ns = 0;
  ForWriters(inside, before, [&](std::size_t writer) {
    ns += static_cast<double>(problem_.ops[writer].duration_ns) *
          static_cast<double>(inside.size_bytes) / written_bytes_[writer];
  });
  return ns;
}

/// Adds what rebuilding a candidate gives and takes, from the cheapest bytes on: first with dead
/// inputs held, then with ever more of them rebuilt.
void Rebuilder::AddParts(const Item& item, plan::OpIndex op,
                         std::vector<Rebuildable>* parts) const {
  const Touched& inside = inside_[item.variable];
  const auto size = static_cast<double>(inside.size_bytes);
  std::vector<Rebuildable> steps;  // Bytes that are not held any more, and what that takes.
  double bytes = size;
  double ns = ShareNs(inside, op);
  for (const std::size_t k : item.inputs) {
    const DeadInput& x = dead_[k];
    const double held = static_cast<double>(inside_[x.variable].size_bytes) * size / x.reader_bytes;
    bytes -= held;
    if (x.rebuild_ns == kNever) continue;
    steps.push_back({x.rebuild_ns * size / x.reader_bytes / held, held});
  }
  std::sort(steps.begin(), steps.end(), [](const Rebuildable& a, const Rebuildable& b) {
    return a.ns_per_byte < b.ns_per_byte;
  });
  // As long as a step makes the bytes so far cheaper, or there are none, it is part of the first.
  std::size_t k = 0;
  for (; k < steps.size(); ++k) {
    if (bytes > 0 && steps[k].ns_per_byte * bytes >= ns) break;
    bytes += steps[k].bytes;
    ns += steps[k].ns_per_byte * steps[k].bytes;
  }
  // Rounding must not make something of nothing.
  if (bytes <= 1e-6 * size) return;
  parts->push_back({ns / bytes, bytes});
  parts->insert(parts->end(), steps.begin() + static_cast<std::ptrdiff_t>(k), steps.end());
}

}  // namespace plimsoll::planners
