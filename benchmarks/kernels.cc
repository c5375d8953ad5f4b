// SPDX-License-Identifier: Apache-2.0
//
// How fast are the host's kernels? Prints a line for each op of networks that are often trained:
// its name, the milliseconds of the fastest of many runs, and what that comes to in GFLOP/s or
// GB/s. scripts/time_pytorch_kernels.py prints the same lines for PyTorch.
//
// Usage: kernels [substring of names]
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "plimsoll/nn/onednn/library.h"

namespace plimsoll::nn {
namespace {

/// On one thread, the processor's time: others may use the machine too.
double NowMs() {
  static const bool one_thread = omp_get_max_threads() == 1;
  timespec now{};
  clock_gettime(one_thread ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// Runs an op on made-up content for a while, and prints its fastest run.
void Time(KernelLibrary& library, const std::string& name, const std::string& filter,
          const OpSpec& spec, double flops) {
  if (name.find(filter) == std::string::npos) return;
  const Kernel kernel = library.Prepare(spec);
  std::vector<std::vector<float>> blocks;
  std::vector<std::byte*> reads;
  std::vector<std::byte*> writes;
  Bytes bytes = 0;
  const auto add = [&](Bytes size, float value, std::vector<std::byte*>& list) {
    blocks.emplace_back(static_cast<std::size_t>(size / 4 + 32), value);
    auto address = reinterpret_cast<std::uintptr_t>(blocks.back().data());
    list.push_back(reinterpret_cast<std::byte*>((address + 63) / 64 * 64));
  };
  for (const Tensor& tensor : spec.reads) {
    add(tensor.size_bytes(), tensor.type == ElementType::kFloat ? 0.01F : 0.0F, reads);
    bytes += tensor.size_bytes();
  }
  for (const Tensor& tensor : spec.writes) {
    add(tensor.size_bytes(), 0, writes);
    bytes += tensor.size_bytes();
  }
  if (kernel.workspace_bytes > 0) add(kernel.workspace_bytes, 0, writes);
  double best = 1e9;
  const double start = NowMs();
  for (int i = 0; i < 500 && (i < 5 || NowMs() - start < 300); ++i) {
    const double before = NowMs();
    kernel.run({.reads = reads, .writes = writes}, {});
    best = std::min(best, NowMs() - before);
  }
  fmt::print("{:<34} {:9.3f} ms  {:8.1f} {}  workspace {}\n", name, best,
             (flops > 0 ? flops : static_cast<double>(bytes)) / best * 1e-6,
             flops > 0 ? "GFLOP/s" : "GB/s", kernel.workspace_bytes);
  std::fflush(stdout);
}

struct Bench {
  KernelLibrary& library;
  std::string filter;

  void Convolution(std::int64_t n, std::int64_t ic, std::int64_t h, std::int64_t oc, std::int64_t k,
                   std::int64_t stride, std::int64_t groups = 1) {
    Attributes a{.groups = groups};
    for (int i = 0; i < 2; ++i) {
      a.kernel[i] = k;
      a.stride[i] = stride;
      a.padding[i] = k / 2;
    }
    const std::int64_t oh = (h + 2 * (k / 2) - k) / stride + 1;
    const Tensor x{{n, h, h, ic}};
    const Tensor w{{oc, k, k, ic / groups}};
    const Tensor y{{n, oh, oh, oc}};
    const double flops = 2.0 * static_cast<double>(y.count() * ic / groups * k * k);
    std::string name = fmt::format("conv n{} {}>{} {}x{} k{} s{}", n, ic, oc, h, h, k, stride);
    if (groups > 1) name += fmt::format(" g{}", groups);
    Time(library, name + " fwd", filter, {OpKind::kConvForward, {x, w}, {y}, a}, flops);
    Time(library, name + " dw", filter, {OpKind::kConvBackwardWeights, {x, y}, {w}, a}, flops);
    Time(library, name + " dx", filter, {OpKind::kConvBackwardData, {y, w}, {x}, a}, flops);
  }

  void Elementwise(std::int64_t n, std::int64_t h, std::int64_t c) {
    const Tensor x{{n, h, h, c}};
    const Tensor mask{{n, h, h, c}, ElementType::kBit};
    const Tensor r{{c}};
    const std::string name = fmt::format("n{} {}x{} c{}", n, h, h, c);
    using enum OpKind;
    Time(library, "bn " + name + " fwd", filter,
         {kBatchNormForward, {x, r, r, r, r}, {x, r, r, r, r}, {}}, 0);
    Time(library, "bn " + name + " bwd", filter,
         {kBatchNormBackward, {x, x, r, r, r}, {x, r, r}, {}}, 0);
    Time(library, "relu " + name + " fwd", filter, {kReluForward, {x}, {x, mask}, {}}, 0);
    Time(library, "relu " + name + " bwd", filter, {kReluBackward, {x, mask}, {x}, {}}, 0);
    Time(library, "add " + name, filter, {kAdd, {x, x}, {x}, {}}, 0);
    Time(library, "dropout " + name + " fwd", filter, {kDropoutForward, {x}, {x, mask}, {}}, 0);
    Time(library, "gelu " + name + " fwd", filter, {kGeluForward, {x}, {x}, {}}, 0);
    Time(library, "gelu " + name + " bwd", filter, {kGeluBackward, {x, x}, {x}, {}}, 0);
    Time(library, "sgd " + name, filter, {kSgdUpdate, {x, x, x}, {x, x}, {}}, 0);
    Attributes a;
    for (int i = 0; i < 2; ++i) a.kernel[i] = a.stride[i] = 2;
    const Tensor y{{n, h / 2, h / 2, c}};
    const Tensor index{y.shape, ElementType::kByte};
    Time(library, "maxpool " + name + " fwd", filter, {kMaxPoolForward, {x}, {y, index}, a}, 0);
    Time(library, "maxpool " + name + " bwd", filter, {kMaxPoolBackward, {y, index}, {x}, a}, 0);
    Time(library, "lrn " + name + " fwd", filter, {kLrnForward, {x}, {x}, {}}, 0);
  }

  void Linear(std::int64_t rows, std::int64_t inputs, std::int64_t outputs) {
    const Tensor x{{rows, inputs}};
    const Tensor w{{outputs, inputs}};
    const Tensor b{{outputs}};
    const Tensor y{{rows, outputs}};
    const Attributes a{.bias = true};
    const double flops = 2.0 * static_cast<double>(rows * inputs * outputs);
    const std::string name = fmt::format("linear {} {}>{}", rows, inputs, outputs);
    Time(library, name + " fwd", filter, {OpKind::kLinearForward, {x, w, b}, {y}, a}, flops);
    Time(library, name + " dw", filter, {OpKind::kLinearBackwardWeights, {x, y}, {w, b}, a}, flops);
    Time(library, name + " dx", filter, {OpKind::kLinearBackwardData, {y, w}, {x}, a}, flops);
  }

  void Attention(std::int64_t n, std::int64_t t, std::int64_t heads, std::int64_t width) {
    const std::int64_t d = heads * width;
    const Tensor qkv{{n, t, 3 * d}};
    const Tensor y{{n, t, d}};
    const Tensor sums{{n, heads, t}};
    const Attributes a{.heads = heads};
    const double flops = 2.0 * static_cast<double>(n * t * t * d);  // Half of two products.
    const std::string name = fmt::format("attention n{} t{} {}x{}", n, t, heads, width);
    Time(library, name + " fwd", filter, {OpKind::kAttentionForward, {qkv}, {y, sums}, a}, flops);
    Time(library, name + " bwd", filter, {OpKind::kAttentionBackward, {qkv, y, y, sums}, {qkv}, a},
         2.5 * flops);
    const Tensor r{{d}};
    const Tensor rows{{n * t}};
    Time(library, "layernorm " + name + " fwd", filter,
         {OpKind::kLayerNormForward, {y, r, r}, {y, rows, rows}, {}}, 0);
    Time(library, "layernorm " + name + " bwd", filter,
         {OpKind::kLayerNormBackward, {y, y, r, rows, rows}, {y, r, r}, {}}, 0);
  }

  void Lstm(std::int64_t n, std::int64_t t, std::int64_t i, std::int64_t h) {
    const Tensor x{{n, t, i}};
    const Tensor wi{{4 * h, i}};
    const Tensor wh{{4 * h, h}};
    const Tensor b{{4 * h}};
    const Tensor y{{n, t, h}};
    const Tensor g{{n, t, 4 * h}};
    const double flops = 8.0 * static_cast<double>(n * t * h * (i + h));
    const std::string name = fmt::format("lstm n{} t{} {}>{}", n, t, i, h);
    Time(library, name + " fwd", filter, {OpKind::kLstmForward, {x, wi, wh, b}, {y, g, y}, {}},
         flops);
    Time(library, name + " bwd", filter,
         {OpKind::kLstmBackward, {x, wi, wh, y, g, y, y}, {x, wi, wh, b}, {}}, 2 * flops);
  }
};

}  // namespace
}  // namespace plimsoll::nn

int main(int argc, char** argv) {
  const auto library = plimsoll::nn::MakeOneDnnLibrary();
  plimsoll::nn::Bench bench{*library, argc > 1 ? argv[1] : ""};
  // ResNet-18 and VGG-11 on 32-pixel images.
  bench.Convolution(64, 3, 32, 64, 3, 1);
  bench.Convolution(64, 64, 32, 64, 3, 1);
  bench.Convolution(64, 64, 32, 128, 3, 2);
  bench.Convolution(64, 64, 32, 128, 1, 2);
  bench.Convolution(64, 128, 16, 128, 3, 1);
  bench.Convolution(64, 128, 8, 256, 3, 1);
  bench.Convolution(64, 256, 8, 256, 3, 1);
  bench.Convolution(64, 512, 4, 512, 3, 1);
  bench.Convolution(64, 512, 2, 512, 3, 1);
  // VGG-11 on 224-pixel images.
  bench.Convolution(16, 3, 224, 64, 3, 1);
  bench.Convolution(16, 64, 112, 128, 3, 1);
  bench.Convolution(16, 256, 56, 256, 3, 1);
  bench.Convolution(16, 512, 28, 512, 3, 1);
  bench.Convolution(16, 512, 14, 512, 3, 1);
  // ResNet-50, MobileNet and ResNet-20.
  bench.Convolution(16, 256, 56, 64, 1, 1);
  bench.Convolution(16, 64, 56, 256, 1, 1);
  bench.Convolution(16, 3, 224, 64, 7, 2);
  bench.Convolution(16, 128, 28, 128, 3, 1, 128);
  bench.Convolution(64, 16, 32, 16, 3, 1);
  bench.Elementwise(64, 32, 64);
  bench.Elementwise(64, 16, 128);
  bench.Elementwise(64, 4, 512);
  bench.Elementwise(64, 32, 16);
  bench.Linear(64, 512, 10);
  bench.Linear(64, 4096, 4096);
  bench.Linear(1024, 768, 3072);
  bench.Linear(1024, 3072, 768);
  bench.Attention(4, 256, 12, 64);
  bench.Lstm(32, 64, 128, 256);
  return 0;
}
