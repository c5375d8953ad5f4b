// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/data.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/random.h"

namespace plimsoll::nn {

/// A permutation without a table: a Feistel network on the next power of four, walked until it is
/// back in range (Black and Rogaway, 2002).
std::int64_t Shuffle::At(std::int64_t place) const {
  const std::int64_t epoch = place / count_;
  const std::uint64_t key = MixSeeds(seed_, static_cast<std::uint64_t>(epoch));
  int half = 1;
  while ((std::int64_t{1} << (2 * half)) < count_) ++half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto value = static_cast<std::uint64_t>(place % count_);
  do {
    std::uint64_t left = value >> half;
    std::uint64_t right = value & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t mixed = left ^ (MixSeeds(key + round, right) & mask);
      left = right;
      right = mixed;
    }
    value = left << half | right;
  } while (value >= static_cast<std::uint64_t>(count_));
  return static_cast<std::int64_t>(value);
}

std::unique_ptr<Dataset> OpenData(const std::string& path, const Network& network, DataKind kind,
                                  std::uint64_t seed) {
  if (path.empty()) return MakeSyntheticData(network, kind, seed);
  switch (kind) {
    case DataKind::kImages:
      return ReadCifar10(path, network, seed);
    case DataKind::kText:
      return ReadText(path, network, seed);
    case DataKind::kPixels:
    case DataKind::kVideos:
      break;
  }
  throw Error(
      fmt::format("{} trains on {}, for which there is no reader yet: leave --data out for "
                  "synthetic ones",
                  network.name, Name(kind)));
}

}  // namespace plimsoll::nn
