// SPDX-License-Identifier: Apache-2.0
//
// Small networks against what PyTorch computed, as tests for any device: values.json was made by
// scripts/make_pytorch_values.py, which has the same networks and formulas. Instantiate
// PytorchTest. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "plimsoll/exec/plain_device.h"
#include "plimsoll/nn/builder.h"
#include "plimsoll/nn/trainer.h"

namespace plimsoll::nn {

/// How far numbers may be from PyTorch's, which are of a host.
struct PytorchTolerance {
  double loss = 2e-5;  ///< Of each step, relative.
  /// Of the norm of each gradient of the first step, relative; besides, rounding leaves 1e-5.
  double gradient = 1e-4;
};

/// Where the tests run.
struct PytorchCase {
  std::string name;
  std::function<std::unique_ptr<device::Backend>()> make_backend;
  std::function<std::unique_ptr<KernelLibrary>()> make_library;
  PytorchTolerance with_convolutions{};  ///< Of networks that have some,
  PytorchTolerance without{};            ///< and of the others.
};
inline void PrintTo(const PytorchCase& pytorch_case, std::ostream* out) {
  *out << pytorch_case.name;
}
inline std::string NameOf(const testing::TestParamInfo<PytorchCase>& instance) {
  return instance.param.name;
}

inline constexpr std::int64_t kPytorchBatch = 4;
inline constexpr std::size_t kPytorchSteps = 20;

inline std::vector<float> PytorchPattern(std::int64_t count, std::uint64_t salt, double scale = 1,
                                         double offset = 0) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t mixed =
        ((static_cast<std::uint64_t>(i) + 1) * 2654435761U + salt * 40503U) % 2147483647U;
    mixed = mixed * 48271U % 2147483647U;
    const double noise = static_cast<double>(mixed % 20001U) / 10000.0 - 1.0;
    values.push_back(static_cast<float>(noise * scale + offset));
  }
  return values;
}

/// How the script scales a parameter, by its name and shape.
inline std::vector<float> PytorchValues(const Network& network, std::size_t index) {
  const Parameter& parameter = network.parameters[index];
  const std::uint64_t salt = index + 1;
  const std::int64_t count = Count(parameter.shape);
  const bool is_norm_weight = parameter.initializer == Constant(1);
  if (parameter.shape.size() == 1) return PytorchPattern(count, salt, 0.1, is_norm_weight ? 1 : 0);
  if (parameter.name == "table.weight" || parameter.name == "positions.weight") {
    return PytorchPattern(count, salt, 0.5);
  }
  if (parameter.name == "up.weight" && parameter.shape.size() == 4) {
    return PytorchPattern(count, salt, 0.3);
  }
  const std::int64_t fan_in = count / parameter.shape[0];
  return PytorchPattern(count, salt, std::sqrt(3.0 / static_cast<double>(fan_in)));
}

inline Batch PytorchImages(std::int64_t size, int classes) {
  Batch batch{.size = kPytorchBatch,
              .values = PytorchPattern(kPytorchBatch * size * size * 3, 1000)};
  for (int i = 0; i < kPytorchBatch; ++i) batch.labels.push_back((3 * i + 1) % classes);
  return batch;
}

inline Batch PytorchText(int length, int vocabulary) {
  Batch batch{.size = kPytorchBatch};
  for (int i = 0; i < kPytorchBatch; ++i) {
    for (int t = 0; t < length; ++t) {
      batch.tokens.push_back((7 * i + 5 * t + i * t) % vocabulary);
      batch.labels.push_back((3 * i + 2 * t + 1) % vocabulary);
    }
  }
  return batch;
}

class PytorchTest : public testing::TestWithParam<PytorchCase> {
 protected:
  /// Trains as the script does, and compares.
  static void Compare(const Network& network, const Batch& batch);
};

inline void PytorchTest::Compare(const Network& network, const Batch& batch) {
  std::ifstream file(PLIMSOLL_DATA_DIR "/pytorch/values.json");
  ASSERT_TRUE(file);
  const nlohmann::json stored = nlohmann::json::parse(file).at(network.name);
  const bool convolves =
      std::any_of(network.layers.begin(), network.layers.end(), [](const Layer& layer) {
        return layer.kind == LayerKind::kConv || layer.kind == LayerKind::kTransposedConv;
      });
  const PytorchTolerance& tolerance = convolves ? GetParam().with_convolutions : GetParam().without;
  const std::unique_ptr<device::Backend> backend = GetParam().make_backend();
  exec::PlainDevice device(backend.get());
  const std::unique_ptr<KernelLibrary> library = GetParam().make_library();
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdamW}) {
    const bool adam = optimizer == Optimizer::kAdamW;
    SCOPED_TRACE(adam ? "adamw" : "sgd");
    const nlohmann::json& expected = stored.at(adam ? "adamw" : "sgd");
    ASSERT_EQ(expected.at("losses").size(), kPytorchSteps);
    Trainer trainer(&device, library.get(), network,
                    {.batch = kPytorchBatch,
                     .optimizer = optimizer,
                     .learning_rate = expected.at("learning_rate").get<float>(),
                     .weight_decay = adam ? 0.1F : 0.01F});
    for (std::size_t i = 0; i < network.parameters.size(); ++i) {
      if (!network.parameters[i].trained) continue;
      trainer.WritePersistent(static_cast<SlotIndex>(i), PytorchValues(network, i));
    }
    std::map<ParameterIndex, double> norms;
    trainer.set_gradient_hook([&](ParameterIndex parameter, std::span<const float> gradient) {
      double sum = 0;
      for (const float value : gradient) sum += static_cast<double>(value) * value;
      norms[parameter] = std::sqrt(sum);
    });
    for (std::size_t step = 0; step < kPytorchSteps; ++step) {
      const auto loss = expected.at("losses")[step].get<double>();
      EXPECT_NEAR(trainer.Step(batch), loss, tolerance.loss * loss) << "step " << step;
      if (step > 0) continue;
      const nlohmann::json& stored_norms = expected.at("gradient_norms");
      ASSERT_EQ(stored_norms.size(), network.parameters.size());
      for (std::size_t i = 0; i < stored_norms.size(); ++i) {
        ASSERT_EQ(stored_norms[i].is_null(), !network.parameters[i].trained);
        if (stored_norms[i].is_null()) continue;
        const auto norm = stored_norms[i].get<double>();
        EXPECT_NEAR(norms[static_cast<ParameterIndex>(i)], norm, 1e-5 + tolerance.gradient * norm)
            << network.parameters[i].name;
      }
    }
  }
}

TEST_P(PytorchTest, AgreesOnConvolutionsNormsAndBranches) {
  NetworkBuilder net("residual");
  const ConvOptions three{.kernel = 3, .padding = 1, .bias = false};
  LayerIndex x = net.Image(8, 8, 3);
  x = net.Relu(net.BatchNorm(net.Conv(x, 8, three)));
  LayerIndex y = net.Relu(net.BatchNorm(net.Conv(x, 8, three)));
  y = net.Conv(y, 12, {.kernel = 3, .stride = 2, .padding = 1});
  x = net.Relu(net.Add(y, net.Conv(x, 12, {.kernel = 1, .stride = 2})));
  x = net.Concat({x, net.MaxPool(x, {.kernel = 3, .stride = 1, .padding = 1})});
  net.SoftmaxLoss(net.Linear(net.GlobalPool(x), 5));
  Compare(net.Finish(), PytorchImages(8, 5));
}

TEST_P(PytorchTest, AgreesOnLrnAndTransposedConvolutions) {
  NetworkBuilder net("plain");
  LayerIndex x = net.Image(16, 16, 3);
  x = net.Sigmoid(net.Conv(x, 8, {.kernel = 5, .stride = 2, .padding = 2}));
  x = net.AveragePool(net.Lrn(x, {.size = 3, .alpha = 0.5F}), {.kernel = 2});
  x = net.Tanh(net.TransposedConv(x, 6, {.kernel = 2, .stride = 2}, "up"));
  net.SoftmaxLoss(net.Linear(net.Flatten(x), 3));
  Compare(net.Finish(), PytorchImages(16, 3));
}

TEST_P(PytorchTest, AgreesOnAttentionWithTiedWeights) {
  NetworkBuilder net("transformer");
  const LayerIndex table = net.Embedding(net.Tokens(8), 13, 16, "table");
  LayerIndex x = net.AddPositions(table, 10, "positions");
  LayerIndex y = net.Attention(net.Linear(net.LayerNorm(x), 48), 2);
  x = net.Add(x, net.Linear(y, 16));
  y = net.Gelu(net.Linear(net.LayerNorm(x), 32));
  x = net.Add(x, net.Linear(y, 16));
  net.SoftmaxLoss(net.Linear(x, 13, {.bias = false, .shared_weight = net.parameter_of(table)}));
  Compare(net.Finish(), PytorchText(8, 13));
}

TEST_P(PytorchTest, AgreesOnRecurrence) {
  NetworkBuilder net("recurrent");
  LayerIndex x = net.Embedding(net.Tokens(7), 11, 6, "table");
  net.SoftmaxLoss(net.Linear(net.Lstm(x, 8), 11));
  Compare(net.Finish(), PytorchText(7, 11));
}

}  // namespace plimsoll::nn
