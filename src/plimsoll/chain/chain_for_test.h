// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "plimsoll/chain/order.h"
#include "plimsoll/chain/planner.h"
#include "plimsoll/chain/validator.h"

/// What the tests of this folder share: small chains, and the judge that every schedule meets.
namespace plimsoll::chain {

/// One byte per nanosecond: a transfer takes as many nanoseconds as it has bytes.
inline constexpr std::int64_t kByteLink = 1'000'000'000;

struct RandomChainOptions {
  std::size_t least_stages = 1;
  std::size_t most_stages = 8;
  std::int64_t most_bytes = 20;  ///< Of an activation; at least 1.
  std::int64_t most_ns = 20;     ///< Of an op; at least 1.
  bool insides = false;          ///< Whether a part of what is kept is no output.
};

inline std::int64_t DrawBetween(std::int64_t least, std::int64_t most, std::mt19937_64* random) {
  return least +
         static_cast<std::int64_t>((*random)() % static_cast<std::uint64_t>(most - least + 1));
}

inline Chain RandomChain(const RandomChainOptions& options, std::mt19937_64* random) {
  Chain chain;
  chain.name = "random";
  chain.batch = 1;
  chain.input_bytes = DrawBetween(1, options.most_bytes, random);
  const auto count = DrawBetween(static_cast<std::int64_t>(options.least_stages),
                                 static_cast<std::int64_t>(options.most_stages), random);
  for (std::int64_t i = 0; i < count; ++i) {
    Stage stage;
    stage.name = std::to_string(i);
    stage.forward_ns = DrawBetween(1, options.most_ns, random);
    stage.backward_ns = DrawBetween(1, options.most_ns, random);
    stage.kept_bytes = DrawBetween(1, options.most_bytes, random);
    stage.forward_temp_bytes = DrawBetween(0, options.most_bytes / 2, random);
    stage.backward_temp_bytes = DrawBetween(0, options.most_bytes / 2, random);
    stage.input_gradient_bytes = DrawBetween(0, options.most_bytes / 2, random);
    if (options.insides) stage.inside_bytes = DrawBetween(0, stage.kept_bytes, random);
    chain.stages.push_back(stage);
  }
  return chain;
}

inline Bytes RandomLimit(const Model& model, std::mt19937_64* random) {
  return DrawBetween(model.smallest_limit_bytes, model.peak_bytes, random);
}

/// Expects that the judge has nothing to say.
inline void ExpectValid(const Question& question, const Schedule& schedule,
                        const std::string& what) {
  for (const Violation& violation : FindViolations(
           question.chain, question.model.bandwidth_bytes_per_s, schedule, question.limit_bytes)) {
    ADD_FAILURE() << what << ": " << violation.message;
  }
  EXPECT_LE(
      MeasureFootprint(ModelOf(question.chain, question.model, schedule), schedule).device_bytes,
      question.limit_bytes)
      << what;
}

/// Three stages, easy to follow by hand: x_0 = 4, x_1 = 6, x_2 = 2, x_3 = 1 bytes.
inline Chain SmallChain() {
  Chain chain;
  chain.name = "small";
  chain.batch = 8;
  chain.input_bytes = 4;
  chain.stages = {{"a", 3, 5, 6, 1, 2, 1}, {"b", 2, 4, 2, 0, 1, 3}, {"c", 1, 2, 1, 0, 0, 2}};
  return chain;
}

}  // namespace plimsoll::chain
