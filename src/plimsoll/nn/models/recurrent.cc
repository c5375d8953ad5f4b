// SPDX-License-Identifier: Apache-2.0
//
// char-lstm: a language model of bytes. cnn-lstm: CaffeNet up to its first linear layer on each
// frame, then an LSTM over time (Donahue et al., 2015), as in paper 003.
#include <fmt/format.h>

#include "plimsoll/nn/models/families_internal.h"

namespace plimsoll::nn {
namespace {

Network BuildCharLstm(const ModelOptions& options) {
  NetworkBuilder net("char-lstm");
  const std::int64_t vocabulary = OrElse(options.classes, 256);
  LayerIndex x = net.Tokens(OrElse(options.sequence_length, 128));
  x = net.Embedding(x, vocabulary, Narrow(128, options), "embedding");
  x = net.Lstm(x, Narrow(512, options), "lstm1");
  x = net.Lstm(x, Narrow(512, options), "lstm2");
  net.SoftmaxLoss(net.Linear(x, vocabulary, {}, "out"), "loss");
  return net.Finish();
}

Network BuildCnnLstm(const ModelOptions& options) {
  NetworkBuilder net("cnn-lstm");
  const std::int64_t size = OrElse(options.image_size, 227);
  const std::int64_t frames = OrElse(options.sequence_length, 16);
  const PoolOptions pool{.kernel = 3, .stride = 2};
  LayerIndex x = net.FoldTime(net.Input({frames, size, size, 3}), "fold");
  const auto conv = [&](std::int64_t channels, const ConvOptions& how, const char* number) {
    x = net.Conv(x, Narrow(channels, options), how, fmt::format("conv{}", number));
    x = net.Relu(x, fmt::format("relu{}", number));
  };
  conv(96, {.kernel = 11, .stride = 4}, "1");
  x = net.Lrn(net.MaxPool(x, pool, "pool1"), {}, "norm1");
  conv(256, {.kernel = 5, .padding = 2}, "2");
  x = net.Lrn(net.MaxPool(x, pool, "pool2"), {}, "norm2");
  conv(384, {.kernel = 3, .padding = 1}, "3");
  conv(384, {.kernel = 3, .padding = 1}, "4");
  conv(256, {.kernel = 3, .padding = 1}, "5");
  x = net.Flatten(net.MaxPool(x, pool, "pool5"), "flat");
  x = net.Dropout(net.Relu(net.Linear(x, Narrow(4096, options), {}, "fc6"), "relu6"), 0.5F,
                  "drop6");
  x = net.Lstm(net.UnfoldTime(x, frames, "unfold"), Narrow(256, options), "lstm");
  net.SoftmaxLoss(net.Linear(x, OrElse(options.classes, 101), {}, "out"), "loss");
  return net.Finish();
}

std::optional<Model> Find(std::string_view name) {
  if (name == "char-lstm") {
    return Model{"char-lstm", "two LSTM layers that predict the next byte", DataKind::kText, 64,
                 BuildCharLstm};
  }
  if (name == "cnn-lstm") {
    return Model{"cnn-lstm", "CaffeNet on frames, an LSTM over 16 of them", DataKind::kVideos, 24,
                 BuildCnnLstm};
  }
  return std::nullopt;
}

}  // namespace

const Family& RecurrentFamily() {
  static const Family family{{"char-lstm", "cnn-lstm"}, Find};
  return family;
}

}  // namespace plimsoll::nn
