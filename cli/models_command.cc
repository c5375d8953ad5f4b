// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/kmeans_input.h"
#include "cli/model_input.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "plimsoll/nn/null_library.h"
#include "plimsoll/report/table.h"

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ModelsOptions {
  std::vector<std::string> names;
  std::int64_t batch = 0;
  std::string precision = "fp32";
  bool json = false;
};

/// What the shapes of a model say, without anything being run or allocated.
struct ModelRow {
  std::string name;
  std::string description;
  std::string data;
  std::int64_t batch = 0;
  std::size_t layers = 0;
  std::size_t ops = 0;
  std::int64_t parameters = 0;
  nn::ProgramBytes bytes;
};

ModelRow Describe(const nn::Model& model, std::int64_t batch, nn::Precision precision) {
  const nn::Network network = model.build({});
  ModelRow row;
  row.name = model.name;
  row.description = model.description;
  row.data = nn::Name(model.data);
  row.batch = batch > 0 ? batch : model.batch;
  row.layers = network.layers.size();
  row.parameters = nn::TrainedParameterCount(network);
  // As `plan` has it unless told otherwise.
  nn::NullLibrary library(nn::FindMachineSpeed(kDefaultSpeed));
  const nn::Program program =
      nn::Lower(network, {.batch = row.batch, .precision = precision}, &library);
  row.ops = program.ops.size();
  row.bytes = nn::Measure(program);
  return row;
}

ModelRow DescribeKMeans(std::int64_t batch) {
  const nn::KMeansOptions kmeans = ReadKMeans({.model = std::string(kKMeansName), .batch = batch});
  const KMeansSize size = MeasureKMeans(kmeans);
  ModelRow row;
  row.name = kKMeansName;
  row.description = fmt::format(
      "k-means, no network: a batch are all points, parameters are the centroids ({} of {} "
      "features), activations whatever an iteration makes",
      kmeans.clusters, kmeans.features);
  row.data = "points";
  row.batch = kmeans.points;
  row.ops = size.ops;
  row.parameters = kmeans.clusters * kmeans.features;
  row.bytes = {.persistent = size.persistent_bytes,
               .kept = size.peak_bytes - size.persistent_bytes,
               .peak = size.peak_bytes};
  return row;
}

Json ToJson(const ModelRow& row) {
  return {{"model", row.name},
          {"description", row.description},
          {"data", row.data},
          {"batch", row.batch},
          {"layers", row.layers},
          {"ops", row.ops},
          {"parameters", row.parameters},
          {"persistent_bytes", row.bytes.persistent},
          {"activation_bytes", row.bytes.kept},
          {"peak_load_bytes", row.bytes.peak}};
}

void PrintRows(const std::vector<ModelRow>& rows) {
  report::Table table({"model", "data", "batch", "ops", "parameters", "persistent", "activations",
                       "peak load", ""});
  table.Left(1);
  table.Left(8);
  for (const ModelRow& row : rows) {
    table.Add({row.name, row.data, std::to_string(row.batch), std::to_string(row.ops),
               std::to_string(row.parameters), FormatBytes(row.bytes.persistent),
               FormatBytes(row.bytes.kept), FormatBytes(row.bytes.peak), row.description});
  }
  fmt::print("{}", table.Render());
}

ExitCode Run(const ModelsOptions& options) {
  std::vector<ModelRow> rows;
  const nn::Precision precision = ParsePrecision(options.precision);
  for (const std::string& name : options.names) {
    rows.push_back(name == kKMeansName
                       ? DescribeKMeans(options.batch)
                       : Describe(FindModelOption("NAME", name), options.batch, precision));
  }
  if (options.names.empty()) {
    for (const nn::Model& model : nn::ListModels()) {
      rows.push_back(Describe(model, options.batch, precision));
    }
    rows.push_back(DescribeKMeans(options.batch));
  }
  if (!options.json) {
    PrintRows(rows);
    return ExitCode::kDone;
  }
  Json json = Json::array();
  for (const ModelRow& row : rows) json.push_back(ToJson(row));
  PrintJson(json);
  return ExitCode::kDone;
}

}  // namespace

void AddModelsCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("models", "List the models by name, with what memory they take");
  auto options = std::make_shared<ModelsOptions>();
  command->add_option("NAME", options->names,
                      "Only these; families have any depth, such as resnet1517");
  command->add_option("--batch", options->batch, "Samples in a step; default the model's own")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  AddPrecisionOption(command, &options->precision);
  command->add_flag("--json", options->json, "Print an array of objects");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli
