// SPDX-License-Identifier: Apache-2.0
#include "cli/trainee.h"

#include <fmt/format.h>

#include "cli/kmeans_input.h"
#include "plimsoll/base/error.h"
#include "plimsoll/nn/checkpoint.h"
#include "plimsoll/nn/data.h"
#include "plimsoll/nn/profile.h"
#include "plimsoll/nn/record.h"

namespace plimsoll::cli {
namespace {

class NetworkTrainee final : public Trainee {
 public:
  NetworkTrainee(const ModelSettings& settings, const TraineeOptions& options,
                 const TrainingDevice& device)
      : model_(ReadModel(settings)),
        options_(options),
        library_(*device.library),
        profiler_(device.backend.get()),
        data_(nn::OpenData(options.data, model_.network, model_.data, options.seed)) {
    model_.keeps_batch = options.keeps_batch;
    const nn::Program program = LowerModel(model_, &library_);
    if (options.profiles) Measure(program);
    peak_bytes_ = nn::Measure(program).peak;
    largest_op_ = FindLargestOp(nn::Record(program, model_.name, /*iterations=*/1));
  }

  std::string Describe() const override {
    return fmt::format("{}, batch {}, on {}: {} parameters", model_.name, model_.batch,
                       data_->Describe(), nn::TrainedParameterCount(model_.network));
  }
  std::string name() const override { return model_.name; }
  std::int64_t batch() const override { return model_.batch; }
  Bytes peak_bytes() const override { return peak_bytes_; }
  LargestOp largest_op() const override { return largest_op_; }

  void Begin(exec::Device* device) override {
    nn::TrainOptions train;
    train.batch = model_.batch;
    train.optimizer = model_.optimizer;
    train.early_updates = model_.early_updates;
    train.precision = model_.precision;
    train.learning_rate = options_.learning_rate;
    train.seed = options_.seed;
    train.keeps_batch = options_.keeps_batch;
    train.profiler = &profiler_;
    trainer_ = std::make_unique<nn::Trainer>(device, &library_, model_.network, train);
  }
  void Prepare() override {
    if (options_.keeps_batch && next_.size > 0) return;
    next_ = data_->TrainBatch(trainer_->step(), model_.batch);
  }
  double Step() override { return static_cast<double>(trainer_->Step(next_)); }
  std::int64_t steps() const override { return trainer_->step(); }

  std::optional<nn::Evaluation> Evaluate(std::int64_t batches) override {
    nn::Evaluation all;
    double loss = 0;
    for (std::int64_t k = 0; k < batches; ++k) {
      const nn::Evaluation part = trainer_->Evaluate(data_->TestBatch(k, model_.batch));
      loss += static_cast<double>(part.loss) * static_cast<double>(part.rows);
      all.correct += part.correct;
      all.rows += part.rows;
    }
    if (all.rows > 0) all.loss = static_cast<float>(loss / static_cast<double>(all.rows));
    return all;
  }
  bool has_checkpoints() const override { return true; }
  void Load(const std::string& path) override { nn::LoadCheckpoint(path, trainer_.get()); }
  void Save(const std::string& path) override { nn::SaveCheckpoint(path, trainer_.get()); }

 private:
  void Measure(const nn::Program& program) {
    for (const nn::ProgramOp& op : program.ops) {
      try {
        profiler_.Measure(op);
      } catch (const OutOfMemory&) {
        // What is too large to be measured by itself is measured as it runs.
      }
    }
  }

  ModelInput model_;
  const TraineeOptions options_;
  nn::KernelLibrary& library_;
  nn::Profiler profiler_;
  const std::unique_ptr<nn::Dataset> data_;
  Bytes peak_bytes_ = 0;
  LargestOp largest_op_;
  std::unique_ptr<nn::Trainer> trainer_;
  nn::Batch next_;
};

/// The batch is the number of points.
class KMeansTrainee final : public Trainee {
 public:
  KMeansTrainee(const ModelSettings& settings, const TraineeOptions& options) {
    if (!options.data.empty()) throw Error("k-means has synthetic points only; leave --data out");
    if (settings.precision != "fp32") throw Error("k-means has fp32 only; leave --precision out");
    if (settings.updates != "early") throw Error("k-means has one order only; leave --updates out");
    options_ = ReadKMeans(settings);
    options_.seed = options.seed;
    size_ = MeasureKMeans(options_);
  }

  std::string Describe() const override {
    return fmt::format("k-means of {} points with {} features in {} clusters", options_.points,
                       options_.features, options_.clusters);
  }
  std::string name() const override { return std::string(kKMeansName); }
  std::int64_t batch() const override { return options_.points; }
  Bytes peak_bytes() const override { return size_.peak_bytes; }
  LargestOp largest_op() const override { return size_.largest_op; }

  void Begin(exec::Device* device) override {
    kmeans_ = std::make_unique<nn::KMeans>(device, options_);
  }
  double Step() override {
    ++steps_;
    return kmeans_->Iterate();
  }
  std::int64_t steps() const override { return steps_; }
  std::optional<nn::Evaluation> Evaluate(std::int64_t) override { return std::nullopt; }
  bool has_checkpoints() const override { return false; }
  void Load(const std::string&) override { throw Error("k-means has no checkpoints"); }
  void Save(const std::string&) override { throw Error("k-means has no checkpoints"); }

 private:
  nn::KMeansOptions options_;
  KMeansSize size_;
  std::unique_ptr<nn::KMeans> kmeans_;
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Trainee> OpenTrainee(const ModelSettings& model, const TraineeOptions& options,
                                     const TrainingDevice& device) {
  if (model.model != kKMeansName) {
    return std::make_unique<NetworkTrainee>(model, options, device);
  }
  if (device.is_gpu) throw Error("k-means runs on the host only; train it with --device host");
  return std::make_unique<KMeansTrainee>(model, options);
}

}  // namespace plimsoll::cli
