// SPDX-License-Identifier: Apache-2.0
//
// How much memory and time does Layrub's reuse take? Paper 003's figures 9 to 11 and its tables 5
// and 6, from the shapes of the networks:
//
//   none    what Caffe holds: the data and the gradient of every layer, to the end
//   intra, inter, hybrid: the planners of that name
//   joint   at the smallest limit at which there is a plan, and its overhead where hybrid is
//
// Figures 9 to 11 count what the paper counts, activations and their gradients; weights, their
// gradients and moments are left out of the problem. With --total, all of it, as in table 6. Times
// are of the paper's K40M, by the cost model. With --relu: what is kept for the backward of ReLU.
//
//   layrub [--total | --relu] [--seconds S] [MODEL...]
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/nn/lowering.h"
#include "plimsoll/nn/models/model.h"
#include "plimsoll/nn/null_library.h"
#include "plimsoll/nn/record.h"
#include "plimsoll/plan/gaps.h"
#include "plimsoll/planners/planner.h"
#include "plimsoll/planners/smallest.h"

namespace plimsoll {
namespace {

/// What is reached in training, by table 5's VGGNet: 64 images in 4.6 s. Its link is PCIe 3.
const nn::MachineSpeed kSpeed{"k40m", 1.3e12, 1.8e11, 10'000};
const plan::Machine kLink{"k40m", 10'000, 10'000, 10.5e9, 10.5e9, 10.5e9, 10.5e9};

struct Case {
  std::string model;
  std::int64_t batch = 0;
  std::int64_t sequence_length = 0;
};

/// Figure 9, figure 10 and figure 11.
const std::vector<Case> kFigures = {
    {"resnet34", 32},   {"resnet50", 32},   {"resnet101", 32},     {"resnet152", 32},
    {"resnet1001", 32}, {"resnet1517", 32}, {"wrn16-10", 128},     {"wrn28-10", 128},
    {"wrn8-128", 128},  {"wrn8-256", 128},  {"lenet", 64},         {"cifar10-quick", 100},
    {"alexnet", 128},   {"caffenet", 256},  {"vgg16", 64},         {"vgg19", 64},
    {"googlenet", 128}, {"cnn-lstm", 24},   {"char-lstm", 64, 512}};
/// Table 6.
const std::vector<Case> kDepths = {{"resnet34", 32},   {"resnet50", 32},   {"resnet302", 32},
                                   {"resnet695", 32},  {"resnet1001", 32}, {"resnet1172", 32},
                                   {"resnet1304", 32}, {"resnet1517", 32}};

double Megabytes(Bytes bytes) { return static_cast<double>(bytes) / 1e6; }

nn::Program Lower(const Case& item) {
  nn::NullLibrary library(kSpeed);
  const nn::Network network =
      nn::FindModel(item.model).build({.sequence_length = item.sequence_length});
  // As in Caffe, which the paper changed.
  return nn::Lower(network, {.batch = item.batch, .early_updates = false}, &library);
}

/// Every layer's data and gradient; of what else forward keeps, as much as we do.
Bytes WholeNetwork(const nn::Program& program) {
  Bytes sum = 0;
  for (const nn::Slot& slot : program.slots) {
    const bool is_kept = slot.role == nn::Role::kInput || slot.role == nn::Role::kLabels ||
                         slot.role == nn::Role::kSaved;
    if (slot.role == nn::Role::kActivation) sum += 2 * slot.size_bytes;
    if (is_kept) sum += slot.size_bytes;
  }
  return sum;
}

/// Leaves out what the paper does not count: weights, their gradients and their moments.
plan::Problem KeepActivations(const plan::Problem& problem) {
  plan::Problem kept = problem;
  kept.variables.clear();
  kept.operands.clear();
  std::vector<plan::VariableIndex> index(problem.variables.size(), -1);
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const plan::VariableKind kind = problem.variables[v].kind;
    if (kind == plan::VariableKind::kPersistent || kind == plan::VariableKind::kGradient) continue;
    index[v] = static_cast<plan::VariableIndex>(kept.variables.size());
    kept.variables.push_back(problem.variables[v]);
  }
  const auto copy = [&](std::span<const plan::Operand> operands) {
    std::int32_t count = 0;
    for (const plan::Operand& operand : operands) {
      if (index[At(operand.variable)] < 0) continue;
      kept.operands.push_back({index[At(operand.variable)], operand.age});
      ++count;
    }
    return count;
  };
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    kept.ops[i].first_operand = std::ssize(kept.operands);
    kept.ops[i].read_count = copy(problem.reads(problem.ops[i]));
    kept.ops[i].write_count = copy(problem.writes(problem.ops[i]));
  }
  return kept;
}

struct Answer {
  Bytes footprint_bytes = 0;
  double overhead = 0;
};

Answer Ask(const char* planner, const plan::Problem& problem, Bytes limit_bytes,
           double seconds = 0) {
  planners::PlannerOptions options;
  options.limit_bytes = limit_bytes;
  options.time_budget_seconds = seconds;
  const planners::Outcome outcome =
      planners::MakePlan(*planners::FindPlanner(planner), problem, kLink, options);
  if (!outcome.plan) return {outcome.misfit.needed_bytes, -1};
  const double ratio = static_cast<double>(outcome.timeline.iteration_ns) /
                       static_cast<double>(problem.iteration_ns());
  return {outcome.plan->footprint_bytes, 100 * (ratio - 1)};
}

constexpr Bytes kAmple = kMaxBytes / 4;

/// Returns the smallest limit at which a plan was found, with a longer search for addresses than
/// usual.
Bytes FindSmallest(const plan::Problem& problem) {
  planners::PlannerOptions options;
  options.place_nodes = 400'000;
  return planners::SmallestLimit(problem, kLink, options);
}

void PrintFigure(const Case& item, double seconds) {
  const nn::Program program = Lower(item);
  const plan::Problem problem =
      KeepActivations(plan::Unroll(plan::MakeProblem(nn::Record(program, item.model))));
  const Bytes none = WholeNetwork(program);
  const Answer intra = Ask("layrub-intra", problem, kAmple);
  const Answer inter = Ask("layrub-inter", problem, kAmple);
  const Answer hybrid = Ask("layrub-hybrid", problem, kAmple);
  const Bytes smallest = FindSmallest(problem);
  const Answer joint = Ask("joint", problem, hybrid.footprint_bytes, seconds);
  fmt::print("{:<14}{:>6}{:>10.1f}{:>10.1f}{:>9.1f}{:>9.1f}{:>9.1f}{:>9.1f}{:>8.1f}{:>8.1f}",
             item.model, item.batch, Megabytes(none), Megabytes(intra.footprint_bytes),
             Megabytes(inter.footprint_bytes), Megabytes(hybrid.footprint_bytes),
             Megabytes(smallest), intra.overhead, inter.overhead, hybrid.overhead);
  fmt::print("{:>8}\n", joint.overhead < 0 ? "-" : fmt::format("{:.1f}", joint.overhead));
  std::fflush(stdout);
}

void PrintFigures(const std::vector<Case>& cases, double seconds) {
  fmt::print(
      "megabytes of activations and their gradients; overhead in percent, link {}, joint with "
      "{} s\n\n"
      "{:<14}{:>6}{:>10}{:>10}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>8}\n",
      kLink.name, seconds, "model", "batch", "none", "intra", "inter", "hybrid", "joint", "intra %",
      "inter", "hybrid", "joint");
  for (const Case& item : cases) PrintFigure(item, seconds);
}

void PrintTotals(const std::vector<Case>& cases) {
  fmt::print("megabytes of everything, weights, gradients and moments included\n\n{:<14}", "model");
  fmt::print("{:>9}{:>10}{:>10}{:>10}\n", "ops", "intra", "hybrid", "joint");
  for (const Case& item : cases) {
    const plan::Problem problem =
        plan::Unroll(plan::MakeProblem(nn::Record(Lower(item), item.model)));
    fmt::print("{:<14}{:>9}{:>10.1f}{:>10.1f}{:>10.1f}\n", item.model, problem.ops.size(),
               Megabytes(Ask("layrub-intra", problem, kAmple).footprint_bytes),
               Megabytes(Ask("layrub-hybrid", problem, kAmple).footprint_bytes),
               Megabytes(planners::SmallestLimit(problem, kLink, {})));
    std::fflush(stdout);
  }
}

void PrintRelu(const std::vector<Case>& cases) {
  fmt::print(
      "megabytes that backward of ReLU needs: whole inputs, the paper's bytes, our bits\n\n");
  fmt::print("{:<14}{:>6}{:>10}{:>10}{:>10}\n", "model", "batch", "floats", "bytes", "bits");
  for (const Case& item : cases) {
    std::int64_t count = 0;
    Bytes bits = 0;
    for (const nn::ProgramOp& op : Lower(item).ops) {
      if (op.spec.kind != nn::OpKind::kReluForward) continue;
      count += op.spec.reads[0].count();
      bits += op.spec.writes[1].size_bytes();
    }
    fmt::print("{:<14}{:>6}{:>10.1f}{:>10.1f}{:>10.1f}\n", item.model, item.batch,
               Megabytes(4 * count), Megabytes(count), Megabytes(bits));
  }
}

int Run(const std::vector<std::string_view>& arguments) {
  bool total = false;
  bool relu = false;
  double seconds = 2;
  std::vector<std::string_view> names;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (arguments[k] == "--total") {
      total = true;
    } else if (arguments[k] == "--relu") {
      relu = true;
    } else if (arguments[k] == "--seconds" && k + 1 < arguments.size()) {
      seconds = std::strtod(arguments[++k].data(), nullptr);
    } else {
      names.push_back(arguments[k]);
    }
  }
  std::vector<Case> cases = total ? kDepths : kFigures;
  std::erase_if(cases, [&](const Case& item) {
    return !names.empty() && std::find(names.begin(), names.end(), item.model) == names.end();
  });
  if (cases.empty() || !(seconds > 0)) {
    fmt::print(stderr, "usage: layrub [--total | --relu] [--seconds S] [MODEL...]\n");
    return 2;
  }
  if (total) {
    PrintTotals(cases);
  } else if (relu) {
    PrintRelu(cases);
  } else {
    PrintFigures(cases, seconds);
  }
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  try {
    return plimsoll::Run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "layrub: {}\n", error.what());
    return 4;
  }
}
