// SPDX-License-Identifier: Apache-2.0
//
// Gradients of whole networks against finite differences.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/plain_device.h"
#include "plimsoll/nn/builder.h"
#include "plimsoll/nn/data.h"
#include "plimsoll/nn/onednn/library.h"
#include "plimsoll/nn/random.h"
#include "plimsoll/nn/trainer.h"

namespace plimsoll::nn {
namespace {

class GradientTest : public testing::Test {
 protected:
  GradientTest() : device_(&backend_), library_(MakeOneDnnLibrary()) {}

  /// Moves each parameter along its gradient, and along a random direction, and compares how the
  /// loss changes with what the gradient says.
  void Check(const Network& network, DataKind kind, double tolerance = 0.02) {
    Trainer trainer(&device_, library_.get(), network, {.batch = kBatch, .learning_rate = 0});
    const Batch batch = MakeSyntheticData(network, kind, 3)->TrainBatch(0, kBatch);
    std::map<ParameterIndex, std::vector<float>> gradients;
    trainer.set_gradient_hook([&](ParameterIndex parameter, std::span<const float> gradient) {
      gradients[parameter].assign(gradient.begin(), gradient.end());
    });
    trainer.Step(batch);
    trainer.set_gradient_hook({});
    std::size_t trained = 0;
    for (const Parameter& parameter : network.parameters) trained += parameter.trained ? 1 : 0;
    ASSERT_EQ(gradients.size(), trained);
    Random random(11);
    for (const auto& [parameter, gradient] : gradients) {
      SCOPED_TRACE(network.name + " " + network.parameters[parameter].name);
      std::vector<double> along(gradient.begin(), gradient.end());
      CheckAlong(&trainer, batch, parameter, gradient, along, tolerance);
      for (std::size_t i = 0; i < along.size(); ++i) along[i] += Norm(gradient) * random.Normal();
      CheckAlong(&trainer, batch, parameter, gradient, along, tolerance);
    }
  }

  static constexpr std::int64_t kBatch = 3;

 private:
  template <typename T>
  static double Norm(const std::vector<T>& values) {
    double sum = 0;
    for (const T value : values) sum += static_cast<double>(value) * static_cast<double>(value);
    return std::sqrt(sum);
  }

  void CheckAlong(Trainer* trainer, const Batch& batch, ParameterIndex parameter,
                  const std::vector<float>& gradient, std::vector<double> along, double tolerance) {
    const double norm = Norm(along);
    ASSERT_GT(norm, 1e-7) << "the gradient vanishes";
    double expected = 0;
    for (std::size_t i = 0; i < along.size(); ++i) {
      along[i] /= norm;
      expected += along[i] * static_cast<double>(gradient[i]);
    }
    const std::vector<float> values = trainer->ReadPersistent(parameter);
    // As small as the loss, a float, can still tell.
    const double epsilon = 4e-3;
    const auto loss_at = [&](double distance) {
      std::vector<float> moved = values;
      for (std::size_t i = 0; i < moved.size(); ++i) {
        moved[i] = static_cast<float>(moved[i] + distance * along[i]);
      }
      trainer->WritePersistent(parameter, moved);
      trainer->set_step(0);  // The same masks.
      return static_cast<double>(trainer->Step(batch));
    };
    const double measured = (loss_at(epsilon) - loss_at(-epsilon)) / (2 * epsilon);
    trainer->WritePersistent(parameter, values);
    EXPECT_NEAR(measured, expected, tolerance * std::max(0.05, std::abs(expected)));
  }

  device::HostBackend backend_;
  exec::PlainDevice device_;
  std::unique_ptr<KernelLibrary> library_;
};

TEST_F(GradientTest, OfConvolutionsNormsAndBranches) {
  NetworkBuilder net("residual");
  LayerIndex x = net.Image(8, 8, 3);
  x = net.Tanh(net.BatchNorm(net.Conv(x, 8, {.kernel = 3, .padding = 1, .bias = false})));
  LayerIndex y = net.Conv(x, 8, {.kernel = 3, .padding = 1, .groups = 2});
  y = net.Add(net.Sigmoid(y), x);
  x = net.AveragePool(net.Concat({x, y, x}), {.kernel = 2});
  x = net.Lrn(net.Conv(x, 6, {.kernel = {1, 3}, .stride = 2, .padding = {0, 1}}),
              {.size = 3, .alpha = 0.5F});
  net.SoftmaxLoss(net.Linear(net.Flatten(x), 4));
  Check(net.Finish(), DataKind::kImages);
}

TEST_F(GradientTest, OfKinksWhereTheyAreFew) {
  NetworkBuilder net("kinks");
  LayerIndex x = net.Image(8, 8, 3);
  x = net.Relu(net.BatchNorm(net.Conv(x, 6, {.kernel = 3, .padding = 1, .bias = false})));
  x = net.MaxPool(x, {.kernel = 3, .stride = 2, .padding = 1});
  x = net.Dropout(net.GlobalPool(net.Conv(x, 6, {.kernel = 3})), 0.3F);
  net.SoftmaxLoss(net.Linear(x, 4));
  Check(net.Finish(), DataKind::kImages, 0.06);
}

TEST_F(GradientTest, OfTransposedConvolutions) {
  NetworkBuilder net("up");
  const LayerIndex image = net.Image(8, 8, 3);
  const LayerIndex past = net.Tanh(net.Conv(image, 4, {.kernel = 3, .padding = 1}));
  LayerIndex x = net.Tanh(net.Conv(past, 6, {.kernel = 2, .stride = 2}));
  x = net.TransposedConv(x, 4, {.kernel = 2, .stride = 2});
  net.SoftmaxLoss(net.Conv(net.Concat({past, x}), 3, {.kernel = 1}));
  Check(net.Finish(), DataKind::kPixels);
}

TEST_F(GradientTest, OfAttentionWithTiedWeights) {
  NetworkBuilder net("attention");
  const LayerIndex embedding = net.Embedding(net.Tokens(6), 11, 8);
  LayerIndex x = net.Dropout(net.AddPositions(embedding, 9), 0.2F);
  LayerIndex y = net.Attention(net.Linear(net.LayerNorm(x), 24), 2);
  x = net.Add(x, net.Linear(y, 8));
  x = net.Add(x, net.Linear(net.Gelu(net.Linear(net.LayerNorm(x), 16)), 8));
  net.SoftmaxLoss(net.Linear(net.LayerNorm(x), 11,
                             {.bias = false, .shared_weight = net.parameter_of(embedding)}));
  Check(net.Finish(), DataKind::kText);
}

TEST_F(GradientTest, OfRecurrenceOverFrames) {
  NetworkBuilder net("frames");
  LayerIndex x = net.FoldTime(net.Input({4, 6, 6, 3}));
  x = net.Tanh(net.Conv(x, 4, {.kernel = 3, .stride = 2}));
  x = net.Lstm(net.UnfoldTime(net.Flatten(x), 4), 5);
  x = net.Lstm(x, 6);
  net.SoftmaxLoss(net.Linear(x, 3));
  Check(net.Finish(), DataKind::kVideos);
}

}  // namespace
}  // namespace plimsoll::nn
