// SPDX-License-Identifier: Apache-2.0
//
// LeNet (LeCun et al., 1998, as Caffe has it), Cifar10-quick (Caffe), AlexNet (Krizhevsky, 2014, as
// torchvision has it) and CaffeNet.
#include "plimsoll/nn/models/families_internal.h"

namespace plimsoll::nn {
namespace {

Network BuildLenet(const ModelOptions& options) {
  NetworkBuilder net("lenet");
  const std::int64_t size = OrElse(options.image_size, 28);
  LayerIndex x = net.Image(size, size, 1);
  x = net.MaxPool(net.Conv(x, Narrow(20, options), {.kernel = 5}, "conv1"), {.kernel = 2}, "pool1");
  x = net.MaxPool(net.Conv(x, Narrow(50, options), {.kernel = 5}, "conv2"), {.kernel = 2}, "pool2");
  x = net.Relu(net.Linear(net.Flatten(x), Narrow(500, options), {}, "ip1"), "relu1");
  net.SoftmaxLoss(net.Linear(x, OrElse(options.classes, 10), {}, "ip2"), "loss");
  return net.Finish();
}

Network BuildCifar10Quick(const ModelOptions& options) {
  NetworkBuilder net("cifar10-quick");
  const std::int64_t size = OrElse(options.image_size, 32);
  const PoolOptions pool{.kernel = 3, .stride = 2, .padding = 1};
  const ConvOptions conv{.kernel = 5, .padding = 2};
  LayerIndex x = net.Image(size, size, 3);
  x = net.Relu(net.MaxPool(net.Conv(x, Narrow(32, options), conv, "conv1"), pool, "pool1"),
               "relu1");
  x = net.AveragePool(net.Relu(net.Conv(x, Narrow(32, options), conv, "conv2"), "relu2"), pool,
                      "pool2");
  x = net.AveragePool(net.Relu(net.Conv(x, Narrow(64, options), conv, "conv3"), "relu3"), pool,
                      "pool3");
  x = net.Linear(net.Flatten(x), Narrow(64, options), {}, "ip1");
  net.SoftmaxLoss(net.Linear(x, OrElse(options.classes, 10), {}, "ip2"), "loss");
  return net.Finish();
}

/// What the two end with.
Network Classify(NetworkBuilder* net, LayerIndex x, const ModelOptions& options, bool drop_first) {
  const std::int64_t width = Narrow(4096, options);
  x = net->Flatten(x);
  for (int i = 6; i < 8; ++i) {
    const std::string number = std::to_string(i);
    if (drop_first) x = net->Dropout(x, 0.5F, "drop" + number);
    x = net->Relu(net->Linear(x, width, {}, "fc" + number), "relu" + number);
    if (!drop_first) x = net->Dropout(x, 0.5F, "drop" + number);
  }
  net->SoftmaxLoss(net->Linear(x, OrElse(options.classes, 1000), {}, "fc8"), "loss");
  return net->Finish();
}

Network BuildAlexnet(const ModelOptions& options) {
  NetworkBuilder net("alexnet");
  const std::int64_t size = OrElse(options.image_size, 224);
  const PoolOptions pool{.kernel = 3, .stride = 2};
  LayerIndex x = net.Image(size, size, 3);
  const auto conv = [&](std::int64_t channels, const ConvOptions& how, const std::string& number) {
    x = net.Relu(net.Conv(x, Narrow(channels, options), how, "conv" + number), "relu" + number);
  };
  conv(64, {.kernel = 11, .stride = 4, .padding = 2}, "1");
  x = net.MaxPool(x, pool, "pool1");
  conv(192, {.kernel = 5, .padding = 2}, "2");
  x = net.MaxPool(x, pool, "pool2");
  conv(384, {.kernel = 3, .padding = 1}, "3");
  conv(256, {.kernel = 3, .padding = 1}, "4");
  conv(256, {.kernel = 3, .padding = 1}, "5");
  x = net.MaxPool(x, pool, "pool5");
  return Classify(&net, x, options, /*drop_first=*/true);
}

Network BuildCaffenet(const ModelOptions& options) {
  NetworkBuilder net("caffenet");
  const std::int64_t size = OrElse(options.image_size, 227);
  const PoolOptions pool{.kernel = 3, .stride = 2};
  LayerIndex x = net.Image(size, size, 3);
  const auto conv = [&](std::int64_t channels, const ConvOptions& how, const std::string& number) {
    ConvOptions grouped = how;
    // Too narrow a network has nothing to share.
    if (Narrow(channels, options) % 2 != 0 || net.shape_of(x).back() % 2 != 0) grouped.groups = 1;
    x = net.Relu(net.Conv(x, Narrow(channels, options), grouped, "conv" + number), "relu" + number);
  };
  conv(96, {.kernel = 11, .stride = 4}, "1");
  x = net.Lrn(net.MaxPool(x, pool, "pool1"), {}, "norm1");
  conv(256, {.kernel = 5, .padding = 2, .groups = 2}, "2");
  x = net.Lrn(net.MaxPool(x, pool, "pool2"), {}, "norm2");
  conv(384, {.kernel = 3, .padding = 1}, "3");
  conv(384, {.kernel = 3, .padding = 1, .groups = 2}, "4");
  conv(256, {.kernel = 3, .padding = 1, .groups = 2}, "5");
  x = net.MaxPool(x, pool, "pool5");
  return Classify(&net, x, options, /*drop_first=*/false);
}

std::optional<Model> Find(std::string_view name) {
  if (name == "lenet") {
    return Model{"lenet", "LeNet as in Caffe, 28 pixels", DataKind::kImages, 64, BuildLenet};
  }
  if (name == "cifar10-quick") {
    return Model{"cifar10-quick", "Caffe's quick network for CIFAR-10", DataKind::kImages, 100,
                 BuildCifar10Quick};
  }
  if (name == "alexnet") {
    return Model{"alexnet", "AlexNet on one GPU, 224 pixels", DataKind::kImages, 128, BuildAlexnet};
  }
  if (name == "caffenet") {
    return Model{"caffenet", "AlexNet as in Caffe, with LRN and groups", DataKind::kImages, 256,
                 BuildCaffenet};
  }
  return std::nullopt;
}

}  // namespace

const Family& ClassicFamily() {
  static const Family family{{"lenet", "cifar10-quick", "alexnet", "caffenet"}, Find};
  return family;
}

}  // namespace plimsoll::nn
