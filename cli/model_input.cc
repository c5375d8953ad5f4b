// SPDX-License-Identifier: Apache-2.0
#include "cli/model_input.h"

#include <algorithm>

#include "cli/plan_input.h"
#include "plimsoll/base/error.h"
#include "plimsoll/nn/description.h"
#include "plimsoll/nn/lowering.h"

namespace plimsoll::cli {

void AddPrecisionOption(CLI::App* command, std::string* precision) {
  command->add_option("--precision", *precision, "Of activations: fp32, or bf16, mixed with fp32")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
}

nn::Precision ParsePrecision(const std::string& name) {
  return name == "bf16" ? nn::Precision::kBfloat16 : nn::Precision::kFloat32;
}

CLI::Option* AddModelSettings(CLI::App* command, const std::string& model_option,
                              ModelSettings* settings) {
  CLI::Option* model =
      command
          ->add_option(
              model_option, settings->model,
              "A model by name (see \"plimsoll models\"), or a network description (.json)")
          ->required();
  command->add_option("--batch", settings->batch, "Samples in a step; default the model's own")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  command->add_option("--optimizer", settings->optimizer, "sgd or adamw")
      ->check(CLI::IsMember({"sgd", "adamw"}))
      ->capture_default_str();
  AddPrecisionOption(command, &settings->precision);
  command
      ->add_option("--updates", settings->updates,
                   "early: as soon as the gradients of a group of parameters are there; late: all "
                   "at the end; the numbers are the same")
      ->check(CLI::IsMember({"early", "late"}))
      ->capture_default_str();
  command
      ->add_option("--image-size", settings->options.image_size, "Pixels, if not the model's own")
      ->check(CLI::Range(1, 1 << 16));
  command->add_option("--classes", settings->options.classes, "Or words, if not the model's own")
      ->check(CLI::Range(1, 1 << 24));
  command
      ->add_option("--sequence", settings->options.sequence_length,
                   "Tokens or frames, if not the model's own")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--narrow", settings->options.width_divisor,
                   "Divide channels and features by this, for a small instance")
      ->check(CLI::Range(1, 1 << 10));
  command
      ->add_option("--shorten", settings->options.depth_divisor,
                   "Divide the number of repeated blocks by this")
      ->check(CLI::Range(1, 1 << 10));
  return model;
}

nn::Model FindModelOption(const std::string& option, const std::string& name) {
  try {
    return nn::OpenModel(name);
  } catch (const InputError&) {
    throw;
  } catch (const Error& error) {
    throw CLI::ValidationError(option, error.what());
  }
}

ModelInput ReadModel(const ModelSettings& settings) {
  try {
    const nn::Model model = FindModelOption("--model", settings.model);
    ModelInput input{
        .name = model.name, .data = model.data, .network = model.build(settings.options)};
    input.batch = settings.batch > 0 ? settings.batch : model.batch;
    if (settings.optimizer == "adamw") input.optimizer = nn::Optimizer::kAdamW;
    input.precision = ParsePrecision(settings.precision);
    input.early_updates = settings.updates == "early";
    return input;
  } catch (const InputError&) {
    throw;
  } catch (const Error& error) {
    throw CLI::ValidationError("--model", error.what());
  }
}

nn::Program LowerModel(const ModelInput& model, nn::KernelLibrary* library) {
  return nn::Lower(model.network,
                   {.batch = model.batch,
                    .early_updates = model.early_updates,
                    .optimizer = model.optimizer,
                    .precision = model.precision,
                    .keeps_batch = model.keeps_batch},
                   library);
}

LargestOp FindLargestOp(const trace::Trace& trace) {
  LargestOp largest;
  for (const trace::Op& op : trace.ops) {
    std::vector<trace::VariableIndex> operands(trace.reads(op).begin(), trace.reads(op).end());
    operands.insert(operands.end(), trace.writes(op).begin(), trace.writes(op).end());
    std::sort(operands.begin(), operands.end());
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    Bytes sum = 0;
    for (const trace::VariableIndex v : operands) {
      sum += AlignUp(trace.variables[static_cast<std::size_t>(v)].size_bytes, kDefaultAlignment);
    }
    if (sum > largest.size_bytes) {
      largest = {trace.op_names[static_cast<std::size_t>(op.name)], sum};
    }
  }
  return largest;
}

}  // namespace plimsoll::cli
