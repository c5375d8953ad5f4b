// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plimsoll/nn/models/model.h"
#include "plimsoll/nn/program.h"
#include "plimsoll/nn/trainer.h"
#include "plimsoll/trace/trace.h"

/// What commands that are about networks are asked: a model, a batch, an optimizer, a precision.
namespace plimsoll::cli {

struct ModelSettings {
  std::string model;
  std::int64_t batch = 0;  ///< 0 for the model's own.
  nn::ModelOptions options{};
  std::string optimizer = "sgd";
  std::string precision = "fp32";
  std::string updates = "early";
};
/// Adds "--precision", which AddModelSettings() does too.
void AddPrecisionOption(CLI::App* command, std::string* precision);
/// REQUIRES: a name that the option takes.
nn::Precision ParsePrecision(const std::string& name);

/// `model_option` is what names the model: "--model", or a positional name. Returns that option,
/// which is required.
CLI::Option* AddModelSettings(CLI::App* command, const std::string& model_option,
                              ModelSettings* settings);

struct ModelInput {
  std::string name;
  nn::DataKind data = nn::DataKind::kImages;
  nn::Network network;
  std::int64_t batch = 0;
  nn::Optimizer optimizer = nn::Optimizer::kSgd;
  nn::Precision precision = nn::Precision::kFloat32;
  bool early_updates = true;  ///< As in nn::LoweringOptions,
  bool keeps_batch = false;   ///< and this too.
};
/// Returns the model of a name, or of a description. Throws CLI::ValidationError of the option for
/// an unknown name, which lists near ones, InputError for a bad file.
nn::Model FindModelOption(const std::string& option, const std::string& name);

/// Builds the model of a name, or reads a description. Throws CLI::ValidationError for an unknown
/// name, InputError for a bad file.
ModelInput ReadModel(const ModelSettings& settings);

/// The training program of a model as a library sees it.
nn::Program LowerModel(const ModelInput& model, nn::KernelLibrary* library);

/// What the op that needs most takes by itself, in sizes rounded up to the alignment.
struct LargestOp {
  std::string name;
  Bytes size_bytes = 0;
};
LargestOp FindLargestOp(const trace::Trace& trace);

}  // namespace plimsoll::cli
