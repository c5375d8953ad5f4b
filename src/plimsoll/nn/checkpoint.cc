// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/checkpoint.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checksum.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"

namespace plimsoll::nn {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

constexpr std::string_view kMagic = "checkpoint 1\n";
constexpr std::size_t kTrailerBytes = 17;  // 16 hexadecimal digits and a newline.

std::string_view Name(Role role) {
  switch (role) {
    case Role::kMomentum:
      return "momentum";
    case Role::kVariance:
      return "variance";
    default:
      return "value";
  }
}

std::string_view Name(Optimizer optimizer) {
  return optimizer == Optimizer::kSgd ? "sgd" : "adamw";
}

/// What the file of a trainer must say about its blocks.
Json DescribeEntries(const Trainer& trainer) {
  Json entries = Json::array();
  for (const Slot& slot : trainer.persistent_slots()) {
    const Parameter& parameter =
        trainer.network().parameters[static_cast<std::size_t>(slot.parameter)];
    entries.push_back(
        {{"name", parameter.name}, {"role", Name(slot.role)}, {"shape", parameter.shape}});
  }
  return entries;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path, 0, "cannot be opened; check the path and its permissions");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns the content without its checksum, which is right.
std::string_view CheckWhole(const std::string& path, std::string_view text) {
  if (!text.starts_with(kMagic)) {
    throw InputError(path, 1, "does not begin with \"checkpoint 1\": is this a checkpoint?");
  }
  const std::string_view body = text.substr(0, text.size() - std::min(text.size(), kTrailerBytes));
  if (text.substr(body.size()) != fmt::format("{:016x}\n", ChecksumOf(body))) {
    throw InputError(path, 0,
                     "is cut off or damaged: its checksum is wrong; take an earlier checkpoint");
  }
  return body;
}

std::string Describe(const Json& entry) {
  return fmt::format("{} ({}, {})", entry.at("name").get<std::string>(),
                     entry.at("role").get<std::string>(),
                     FormatShape(entry.at("shape").get<Shape>()));
}

void CheckEntries(const std::string& path, const Json& header, const Trainer& trainer) {
  if (header.at("optimizer") != Name(trainer.options().optimizer)) {
    throw InputError(
        path, 2,
        fmt::format("has the state of {}, and the training uses {}: choose the same",
                    header.at("optimizer").get<std::string>(), Name(trainer.options().optimizer)));
  }
  const Json& found = header.at("entries");
  const Json expected = DescribeEntries(trainer);
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    if (found[i] == expected[i]) continue;
    throw InputError(path, 2,
                     fmt::format("has {} where {} has {}: it is of another network, {}",
                                 Describe(found[i]), trainer.network().name, Describe(expected[i]),
                                 header.at("network").get<std::string>()));
  }
  if (found.size() != expected.size()) {
    throw InputError(path, 2,
                     fmt::format("has {} blocks, and {} has {}: it is of another network, {}",
                                 found.size(), trainer.network().name, expected.size(),
                                 header.at("network").get<std::string>()));
  }
}

}  // namespace

void SaveCheckpoint(const std::string& path, Trainer* trainer) {
  if (path.ends_with(".gz")) {
    throw Error(fmt::format("{}: checkpoints are not compressed; choose another name", path));
  }
  FileReplacer file(path);
  Checksum checksum;
  const auto write = [&](std::string_view text) {
    checksum.Add(text);
    file.Write(text);
  };
  write(kMagic);
  write(Json{{"network", trainer->network().name},
             {"optimizer", Name(trainer->options().optimizer)},
             {"step", trainer->step()},
             {"entries", DescribeEntries(*trainer)}}
            .dump() +
        "\n");
  const auto slots = static_cast<SlotIndex>(trainer->persistent_slots().size());
  for (SlotIndex slot = 0; slot < slots; ++slot) {
    const std::vector<float> values = trainer->ReadPersistent(slot);
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    write(bytes);
  }
  file.Write(fmt::format("{:016x}\n", checksum.digest()));
  file.Commit();
}

void LoadCheckpoint(const std::string& path, Trainer* trainer) {
  const std::string text = ReadAll(path);
  std::string_view body = CheckWhole(path, text);
  body.remove_prefix(kMagic.size());
  const std::size_t end = body.find('\n');
  std::int64_t step = 0;
  try {
    const Json header = Json::parse(body.substr(0, end));
    CheckEntries(path, header, *trainer);
    step = header.at("step").get<std::int64_t>();
  } catch (const Json::exception&) {
    throw InputError(path, 2, "has a header that is not as docs/formats.md says");
  }
  body.remove_prefix(end + 1);
  Bytes total = 0;
  for (const Slot& slot : trainer->persistent_slots()) total += slot.size_bytes;
  if (static_cast<Bytes>(body.size()) != total || step < 0) {
    throw InputError(
        path, 0,
        fmt::format("has {} bytes of content where its header says {}", body.size(), total));
  }
  const auto slots = static_cast<SlotIndex>(trainer->persistent_slots().size());
  for (SlotIndex slot = 0; slot < slots; ++slot) {
    const auto bytes = static_cast<std::size_t>(
        trainer->persistent_slots()[static_cast<std::size_t>(slot)].size_bytes);
    std::vector<float> values(bytes / sizeof(float));
    std::memcpy(values.data(), body.data(), bytes);
    trainer->WritePersistent(slot, values);
    body.remove_prefix(bytes);
  }
  trainer->set_step(step);
}

}  // namespace plimsoll::nn
