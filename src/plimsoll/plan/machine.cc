// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/parse.h"

namespace plimsoll::plan {
namespace {

Nanoseconds CopyTime(Nanoseconds latency_ns, Bytes bytes, double bytes_per_s) {
  return latency_ns + std::llround(static_cast<double>(bytes) * 1e9 / bytes_per_s);
}

/// Returns what is wrong with a machine, or an empty string.
std::string FindFault(const Machine& machine) {
  for (const Nanoseconds latency :
       {machine.out_latency_ns, machine.in_latency_ns, machine.handover_ns}) {
    if (latency < 0) return "a latency is negative";
    if (latency > kLongestLatency) return "a latency is longer than 1e12 ns";
  }
  for (const double rate : {machine.out_bytes_per_s, machine.in_bytes_per_s,
                            machine.both_out_bytes_per_s, machine.both_in_bytes_per_s}) {
    // Written so that not-a-number fails too.
    if (!(rate >= kSlowestBytesPerS && rate <= kFastestBytesPerS)) {
      return "every bandwidth must be a positive number of bytes per second, from 1e3 to 1e18";
    }
  }
  if (machine.both_out_bytes_per_s > machine.out_bytes_per_s ||
      machine.both_in_bytes_per_s > machine.in_bytes_per_s) {
    return "a direction cannot be faster while the other one is busy too";
  }
  for (const double slowdown : {machine.slowdown_by_out, machine.slowdown_by_in}) {
    if (!(slowdown >= 1 && slowdown <= kWorstSlowdown)) {
      return "ops can only be slower beside copies: a factor from 1 to 10";
    }
  }
  return "";
}

}  // namespace

Nanoseconds Machine::out_ns(Bytes bytes) const {
  return CopyTime(out_latency_ns, bytes, out_bytes_per_s);
}

Nanoseconds Machine::in_ns(Bytes bytes) const {
  return CopyTime(in_latency_ns, bytes, in_bytes_per_s);
}

const std::vector<Machine>& MachinePresets() {
  // h200: measured, PCIe 5 with pinned memory. v100: paper 002, section 6; its link is one way at a
  // time there, which chains model; here both directions share it. gtx1080ti: the linear fits of
  // the transfers behind paper 001, in nanoseconds per byte.
  static const std::vector<Machine> presets = {
      {"h200", 4'000, 4'000, 55e9, 55e9, 49e9, 49e9},
      {"v100", 10'000, 10'000, 12.2e9, 12.2e9, 6.1e9, 6.1e9},
      {"gtx1080ti", 47'200, 9'700, 1e9 / 0.0756, 1e9 / 0.0823, 1e9 / 0.0756, 1e9 / 0.0823},
  };
  return presets;
}

std::optional<Machine> FindMachine(std::string_view name) {
  for (const Machine& machine : MachinePresets()) {
    if (machine.name == name) return machine;
  }
  return std::nullopt;
}

void CheckMachine(const Machine& machine, const std::string& source, std::int64_t line) {
  const std::string fault = FindFault(machine);
  if (!fault.empty()) throw InputError(source, line, fault);
}

Machine ReadMachine(const std::string& path) {
  std::string text;
  for (LineReader reader(path); reader.Next();) text.append(reader.line()).append("\n");
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    throw InputError(path, 0, "not a machine: one JSON object is expected (docs/formats.md)");
  }
  const auto number = [&](const char* key, std::optional<double> fallback) {
    const auto entry = json.find(key);
    if (entry == json.end() && fallback) return *fallback;
    if (entry == json.end() || !entry->is_number()) {
      throw InputError(path, 0, fmt::format("{} is missing or not a number", Quote(key)));
    }
    return entry->get<double>();
  };
  const auto latency = [&](const char* key) {
    // What is out of range stays so, and fits an integer.
    const double value = number(key, 0);
    const double longest = 2 * static_cast<double>(kLongestLatency);
    return value < 0 ? Nanoseconds{-1} : Nanoseconds{std::llround(std::min(value, longest))};
  };
  Machine machine;
  machine.name = path;
  if (const auto name = json.find("name"); name != json.end()) {
    if (!name->is_string()) throw InputError(path, 0, "\"name\" is not a string");
    machine.name = name->get<std::string>();
  }
  machine.out_latency_ns = latency("out_latency_ns");
  machine.in_latency_ns = latency("in_latency_ns");
  machine.out_bytes_per_s = number("out_bytes_per_s", {});
  machine.in_bytes_per_s = number("in_bytes_per_s", {});
  machine.both_out_bytes_per_s = number("both_out_bytes_per_s", machine.out_bytes_per_s);
  machine.both_in_bytes_per_s = number("both_in_bytes_per_s", machine.in_bytes_per_s);
  machine.slowdown_by_out = number("slowdown_by_out", 1);
  machine.slowdown_by_in = number("slowdown_by_in", 1);
  machine.handover_ns = latency("handover_ns");
  CheckMachine(machine, path);
  return machine;
}

}  // namespace plimsoll::plan
