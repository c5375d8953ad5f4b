// SPDX-License-Identifier: Apache-2.0
//
// What do pools gain on a GPU? Table I of paper 001, which had SINGA on a GTX 1080 Ti: trains
// networks on random data that stay on the card, and gets the memory of every variable
//
//   - from cudaMalloc and cudaFree;
//   - from cudaMallocAsync and cudaFreeAsync, as they are, and with a pool that keeps what is free;
//   - from CnMem's lists, in an arena that is large enough;
//   - from the planned pool, in an arena that is as large as the plan needs, without and with CUDA
//     graphs; what it needs is found out before, in an arena of the peak load and 3 %.
//
//   gpu_pools [--device N] [--iterations N] [--json] [MODEL[:BATCH]...]
//
// All of them run the same kernels. Times are medians, after a warm-up. What CUDA and its libraries
// take of the card is measured when all kernels have run once, and is not part of any footprint.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_pools/backends.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/cuda/cuda_backend.h"
#include "plimsoll/cuda/devices.h"
#include "plimsoll/cuda/library.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/exec/measure_link.h"
#include "plimsoll/exec/plain_device.h"
#include "plimsoll/nn/data.h"
#include "plimsoll/nn/models/model.h"
#include "plimsoll/nn/trainer.h"

namespace plimsoll {
namespace {

using Json = nlohmann::ordered_json;

struct Subject {
  std::string model;
  std::int64_t batch = 0;  ///< 0 for the model's own.
};

struct Options {
  int device = 0;
  int iterations = 20;
  bool json = false;
  std::vector<Subject> subjects;
};

/// After which a service that is very slow is measured no longer, once it has had a few iterations.
constexpr double kMostSeconds = 6;
constexpr int kFewIterations = 7;
/// An iteration is recorded twice, planned, and made a graph the second time that it is served.
constexpr int kMostStepsToPlan = 12;
constexpr int kWarmUpSteps = 4;
constexpr double kTuningSeconds = 6;
constexpr double kPlanningSeconds = 2;
constexpr Bytes kPage = Bytes{2} << 20;
/// Of a parameter so many values are random; then they repeat.
constexpr std::int64_t kMostRandomValues = 1 << 20;

/// What was measured of one way to have memory.
struct Row {
  std::string service;
  double median_ms = 0;
  int iterations = 0;
  Bytes footprint_bytes = 0;
  std::optional<Bytes> taken_bytes{};  ///< Of the card at most, as the driver says.
  double first_loss = 0;
  std::string note{};
  bool failed = false;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The card, opened once for all models.
struct Card {
  explicit Card(int device) : number(device), memory(device), backend({.device = device}) {
    machine = exec::MeasureLink(&backend);
  }
  const int number;
  cuda::CardMemory memory;  // Made before the card is opened.
  cuda::CudaBackend backend;
  plan::Machine machine;
};

/// One model, trained again and again.
class Bench {
 public:
  Bench(const Subject& subject, const Options& options, Card* card)
      : options_(options),
        card_(*card),
        model_(nn::FindModel(subject.model)),
        batch_size_(subject.batch > 0 ? subject.batch : model_.batch),
        library_(cuda::MakeCudaLibrary({.max_tuning_seconds = kTuningSeconds})),
        network_(model_.build({})) {
    batch_ = nn::MakeSyntheticData(network_, model_.data, 1)->TrainBatch(0, batch_size_);
    InitializeOnce();
    const nn::Program program =
        nn::Lower(network_, {.batch = batch_size_, .keeps_batch = true}, library_.get());
    peak_bytes_ = nn::Measure(program).peak;
    mallocs_ = std::count_if(program.steps.begin(), program.steps.end(), [](const nn::Step& step) {
      return step.kind == nn::StepKind::kMalloc;
    });
    library_->ReleaseScratch();
    RunAllKernels();
    context_bytes_ = card_.memory.taken_bytes();
  }

  void Measure() {
    rows_.push_back(Try("cudaMalloc", [&](Row* row) { MeasureDirect(row); }));
    rows_.push_back(Try("cudaMallocAsync", [&](Row* row) { MeasureAsync(false, row); }));
    rows_.push_back(Try("cudaMallocAsync, keeping", [&](Row* row) { MeasureAsync(true, row); }));
    rows_.push_back(Try("CnMem's lists", [&](Row* row) { MeasureLists(row); }));
    rows_.push_back(Try("planned pool", [&](Row* row) { MeasurePlanned(false, row); }));
    rows_.push_back(Try("planned pool, graphs", [&](Row* row) { MeasurePlanned(true, row); }));
    CheckLosses();
  }

  void Print() const {
    fmt::print("{}, batch {}: {} mallocs an iteration, peak load {}; CUDA and its libraries {}\n\n",
               model_.name, batch_size_, mallocs_, FormatBytes(peak_bytes_),
               FormatBytes(context_bytes_));
    fmt::print("{:<26} {:>10} {:>8} {:>12} {:>10} {:>12}  {}\n", "", "ms", "speedup", "footprint",
               "of peak", "of the card", "iterations");
    const double slowest = rows_.front().median_ms;
    for (const Row& row : rows_) {
      if (row.failed) {
        fmt::print("{:<26} {}\n", row.service, row.note);
        continue;
      }
      fmt::print("{:<26} {:>10.2f} {:>8} {:>12} {:>9.1f}% {:>12}  {}{}\n", row.service,
                 row.median_ms, slowest > 0 ? fmt::format("{:.2f}", slowest / row.median_ms) : "-",
                 FormatBytes(row.footprint_bytes), 100 * OfPeak(row),
                 row.taken_bytes ? FormatBytes(*row.taken_bytes) : "-", row.iterations,
                 row.note.empty() ? "" : "; " + row.note);
    }
    fmt::print("\n");
    std::fflush(stdout);
  }

  Json ToJson() const {
    Json rows = Json::array();
    for (const Row& row : rows_) {
      if (row.failed) {
        rows.push_back({{"service", row.service}, {"error", row.note}});
        continue;
      }
      rows.push_back({{"service", row.service},
                      {"iteration_ms", row.median_ms},
                      {"iterations", row.iterations},
                      {"footprint_bytes", row.footprint_bytes},
                      {"taken_bytes", row.taken_bytes ? Json(*row.taken_bytes) : Json(nullptr)},
                      {"first_loss", row.first_loss},
                      {"note", row.note}});
    }
    return {{"model", model_.name},
            {"batch", batch_size_},
            {"mallocs", mallocs_},
            {"peak_load_bytes", peak_bytes_},
            {"context_bytes", context_bytes_},
            {"services", rows}};
  }

 private:
  double OfPeak(const Row& row) const {
    return static_cast<double>(row.footprint_bytes) / static_cast<double>(peak_bytes_);
  }
  Bytes BeyondContext(Bytes taken_bytes) const { return taken_bytes - context_bytes_; }

  nn::TrainOptions train_options() const {
    nn::TrainOptions train;
    train.batch = batch_size_;
    train.learning_rate = 1e-4F;
    train.keeps_batch = true;
    return train;
  }

  /// Random weights take seconds to make: they are made once, and written to each trainer.
  void InitializeOnce() {
    for (std::size_t i = 0; i < network_.parameters.size(); ++i) {
      nn::Parameter& parameter = network_.parameters[i];
      values_.emplace_back();
      if (parameter.initializer.kind == nn::Initializer::Kind::kConstant) continue;
      nn::Parameter part = parameter;
      part.shape = {std::min(nn::Count(parameter.shape), kMostRandomValues)};
      std::vector<float>& values = values_.back();
      values = nn::InitialValues(part, static_cast<nn::ParameterIndex>(i), 1);
      const std::size_t random = values.size();
      values.resize(static_cast<std::size_t>(nn::Count(parameter.shape)));
      for (std::size_t k = random; k < values.size(); ++k) values[k] = values[k - random];
      parameter.initializer = nn::Constant(0);
    }
  }
  std::unique_ptr<nn::Trainer> MakeTrainer(exec::Device* device) {
    auto trainer = std::make_unique<nn::Trainer>(device, library_.get(), network_, train_options());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].empty()) continue;
      trainer->WritePersistent(static_cast<nn::SlotIndex>(i), values_[i]);
    }
    return trainer;
  }

  /// Code is loaded onto the card when a kernel first runs: what the context takes is known then.
  void RunAllKernels() {
    DirectBackend backend(&card_.backend);
    exec::PlainDevice device(&backend);
    MakeTrainer(&device)->Step(batch_);
    device.Synchronize();
  }

  Row Try(const std::string& service, const std::function<void(Row*)>& measure) {
    Row row{.service = service};
    try {
      measure(&row);
    } catch (const OutOfMemory& error) {
      row.failed = true;
      row.note = error.what();
    }
    return row;
  }

  /// Trains until `ready`, warms up, and times. Then calls `look`, while all is still there, with
  /// what takes one more step.
  void Train(exec::Device* device, const std::function<bool()>& ready,
             const std::function<void(const std::function<void()>& step)>& look, Row* row) {
    const std::unique_ptr<nn::Trainer> trainer = MakeTrainer(device);
    row->first_loss = static_cast<double>(trainer->Step(batch_));
    for (int k = 1; k < kMostStepsToPlan && !ready(); ++k) trainer->Step(batch_);
    for (int k = 0; k < kWarmUpSteps; ++k) trainer->Step(batch_);
    card_.backend.Synchronize();
    std::vector<double> times;
    const Stopwatch all;
    while (static_cast<int>(times.size()) < options_.iterations) {
      if (all.seconds() > kMostSeconds && times.size() >= kFewIterations) break;
      const Stopwatch watch;
      trainer->Step(batch_);
      times.push_back(watch.seconds() * 1e3);
    }
    card_.backend.Synchronize();
    row->median_ms = Median(times);
    row->iterations = static_cast<int>(times.size());
    look([&] {
      trainer->Step(batch_);
      card_.backend.Synchronize();
    });
  }

  /// Of what allocates as it goes: one more iteration, in which the driver is asked every time.
  void Watch(WatchedBackend* backend, const std::function<void()>& step, Row* row) {
    backend->Watch(&card_.memory);
    step();
    backend->Watch(nullptr);
    row->taken_bytes = BeyondContext(backend->most_taken_bytes());
  }

  void MeasureDirect(Row* row) {
    DirectBackend backend(&card_.backend);
    exec::PlainDevice device(&backend);
    Train(
        &device, [] { return true; },
        [&](const std::function<void()>& step) {
          Watch(&backend, step, row);
          row->footprint_bytes = *row->taken_bytes;
        },
        row);
  }

  void MeasureAsync(bool keeps, Row* row) {
    AsyncBackend backend(&card_.backend, card_.number, keeps);
    exec::PlainDevice device(&backend);
    Train(
        &device, [] { return true; },
        [&](const std::function<void()>& step) {
          Watch(&backend, step, row);
          row->footprint_bytes = backend.most_reserved_bytes();
        },
        row);
  }

  void MeasureLists(Row* row) {
    std::size_t free = 0;
    std::size_t total = 0;
    CheckCuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    // Best fit takes the large rest last: how large the arena is does not change where blocks are.
    const Bytes most = static_cast<Bytes>(free) - (Bytes{1} << 30);
    const Bytes wanted = std::max(std::min(3 * peak_bytes_, most), kPage);
    ListsBackend backend(&card_.backend, wanted / kPage * kPage);
    exec::PlainDevice device(&backend);
    Train(
        &device, [] { return true; },
        [&](const std::function<void()>&) { row->footprint_bytes = backend.high_water_bytes(); },
        row);
  }

  exec::ManagedOptions Managed(Bytes limit_bytes, bool graphs) const {
    exec::ManagedOptions managed;
    managed.watch.planning.machine = card_.machine;
    managed.watch.planning.limit_bytes = limit_bytes;
    managed.watch.planning.seconds = kPlanningSeconds;
    managed.watch.plan_at_once = true;
    managed.graphs = graphs;
    return managed;
  }

  /// Of the plan, where there is room enough.
  Bytes PlannedFootprint() {
    const Bytes roomy_bytes = AlignUp(peak_bytes_ + peak_bytes_ * 3 / 100, kPage);
    exec::ManagedDevice device(&card_.backend, Managed(roomy_bytes, /*graphs=*/false));
    const std::unique_ptr<nn::Trainer> trainer = MakeTrainer(&device);
    for (int k = 0; k < kMostStepsToPlan && device.served() == nullptr; ++k) trainer->Step(batch_);
    return device.served() == nullptr ? roomy_bytes : device.served()->plan().footprint_bytes;
  }

  void MeasurePlanned(bool graphs, Row* row) {
    if (planned_bytes_ == 0) planned_bytes_ = PlannedFootprint();
    exec::ManagedDevice device(&card_.backend, Managed(planned_bytes_, graphs));
    const auto planned = [&] { return device.stats().service == exec::Service::kPlanned; };
    Train(
        &device, planned,
        [&](const std::function<void()>& step) {
          const exec::DeviceStats before = device.stats();
          step();
          const exec::DeviceStats after = device.stats();
          row->footprint_bytes = after.footprint_bytes;
          row->taken_bytes = BeyondContext(card_.memory.taken_bytes());
          if (after.copied_out_bytes > before.copied_out_bytes) {
            row->note = fmt::format("copies {} out",
                                    FormatBytes(after.copied_out_bytes - before.copied_out_bytes));
          }
          if (after.replays > before.replays) row->note = "recomputes";
          if (graphs && after.graph_launches == before.graph_launches) row->note = "no graphs";
          if (after.drifts > 0) row->note = "drifted: " + device.last_drift();
          if (!planned()) row->note = "not planned";
        },
        row);
  }

  /// All start from the same weights and data; kernels of cuDNN may differ in the last bits.
  void CheckLosses() const {
    const Row* first = nullptr;
    for (const Row& row : rows_) {
      if (row.failed) continue;
      if (first == nullptr) first = &row;
      // Written so that what is no number is an error.
      if (std::abs(row.first_loss - first->first_loss) <= 1e-3 * std::abs(first->first_loss)) {
        continue;
      }
      throw Error(fmt::format("{}: the first loss is {} by {}, but {} by {}", model_.name,
                              first->first_loss, first->service, row.first_loss, row.service));
    }
  }

  const Options& options_;
  Card& card_;
  const nn::Model model_;
  const std::int64_t batch_size_;
  const std::unique_ptr<nn::KernelLibrary> library_;
  nn::Network network_;
  nn::Batch batch_;
  std::vector<std::vector<float>> values_;  // By parameter; empty where all are the same.
  Bytes peak_bytes_ = 0;
  std::int64_t mallocs_ = 0;
  Bytes context_bytes_ = 0;
  Bytes planned_bytes_ = 0;  // 0 until it is known.
  std::vector<Row> rows_;
};

void Run(const Options& options) {
  Card card(options.device);
  const std::string name = cuda::ListDevices().at(static_cast<std::size_t>(options.device)).name;
  const cuda::Versions versions = cuda::ReadVersions();
  Json models = Json::array();
  if (!options.json) {
    fmt::print("{}, driver for CUDA {}, CUDA {}, cuDNN {}; fp32, products in TF32\n\n", name,
               versions.driver, versions.runtime, versions.cudnn);
  }
  for (const Subject& subject : options.subjects) {
    const Stopwatch watch;
    Bench bench(subject, options, &card);
    bench.Measure();
    if (!options.json) bench.Print();
    models.push_back(bench.ToJson());
    models.back()["seconds"] = watch.seconds();
  }
  if (!options.json) return;
  const Json json = {{"gpu", name},
                     {"driver", versions.driver},
                     {"cuda", versions.runtime},
                     {"cudnn", versions.cudnn},
                     {"models", models}};
  fmt::print("{}\n", json.dump(2));
}

std::int64_t ParseNumber(std::string_view what, const std::string& text, std::int64_t least) {
  std::size_t used = 0;
  std::int64_t number = least - 1;
  try {
    number = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || number < least || number > 1'000'000) {
    throw Error(fmt::format("{} should be a number, {} or more, not \"{}\"", what, least, text));
  }
  return number;
}

Options Parse(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == arguments.size()) throw Error(argument + " needs a number");
      return arguments[++i];
    };
    if (argument == "--json") {
      options.json = true;
    } else if (argument == "--device") {
      options.device = static_cast<int>(ParseNumber("--device", value(), 0));
    } else if (argument == "--iterations") {
      options.iterations = static_cast<int>(ParseNumber("--iterations", value(), 1));
    } else if (argument.starts_with('-')) {
      throw Error("usage: gpu_pools [--device N] [--iterations N] [--json] [MODEL[:BATCH]...]");
    } else {
      const std::size_t colon = argument.find(':');
      Subject subject{.model = argument.substr(0, colon)};
      if (colon != std::string::npos) {
        subject.batch = ParseNumber("a batch", argument.substr(colon + 1), 1);
      }
      options.subjects.push_back(subject);
    }
  }
  if (options.subjects.empty()) {
    options.subjects = {
        {"resnet50", 128}, {"vgg16", 64}, {"densenet121", 64}, {"preresnet164", 128}};
  }
  return options;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  try {
    plimsoll::Run(plimsoll::Parse({argv + 1, argv + argc}));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_pools: {}\n", error.what());
    return 1;
  }
}
