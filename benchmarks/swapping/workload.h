// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/problem.h"
#include "plimsoll/planners/planner.h"

/// What the parts of the benchmark `swapping` share.
namespace plimsoll::swapping {

/// One iteration of training.
struct Workload {
  std::string name;        ///< The file's, such as vgg16_cifar_b100.
  plan::Problem recorded;  ///< With lives as the program has them.
  plan::Problem problem;   ///< What is planned: plan::ProblemToPlan().
  Bytes peak_bytes = 0;    ///< Of the recorded load.

  /// Time of one iteration of the program.
  Nanoseconds iteration_ns() const { return problem.iteration_ns() / problem.laps; }
};

Workload ReadWorkload(const std::string& trace);
Workload ReadSingaWorkload(const std::string& log);

/// How long VGG16 takes for an iteration on the GTX 1080 Ti of paper 001: the ops of the SINGA log,
/// with the touches that belong to its frees.
inline constexpr Nanoseconds kVgg16Ns = 56'803'000;

/// The name of the trace that is the paper's VGG16.
inline constexpr const char* kVgg16 = "vgg16_cifar_b100";

/// Returns the factor by which ops on the machine of the traces are faster than on the paper's: the
/// paper's time for VGG16 over the one in the traces. One factor for all networks. Throws
/// InputError if that trace is not there.
double PaperSlowdown(const std::vector<Workload>& workloads);

/// Returns the workload with ops that take `factor` times as long.
Workload WithSlowerOps(const Workload& workload, double factor);

/// Returns the workload at another batch size, by a linear model: times, and the sizes of all
/// variables but persistent ones and gradients that wait for the update, grow with the batch.
Workload WithBatch(const Workload& workload, int batch);

/// Returns the batch size that the name ends in (`_b100`), or 0.
int BatchOf(const std::string& name);

Bytes PercentOf(Bytes bytes, int percent);
std::string Megabytes(Bytes bytes);
std::string Percent(double fraction);
/// Time of one iteration of the program.
double Milliseconds(const Workload& workload);

/// Plans at a limit. Judges the plan once more; throws Error if it is not what it should be: within
/// the limit and valid, or a misfit that needs more than the limit.
planners::Outcome Plan(const planners::Planner& planner, const Workload& workload,
                       const plan::Machine& machine, Bytes limit_bytes);

/// Returns the overhead of an outcome as a percentage, "-" if there is no plan.
std::string OverheadCell(const Workload& workload, const planners::Outcome& outcome);

/// Tells on stderr what is being done.
void Report(const std::string& what);

// The parts.
void PrintFigure9(const Workload& singa);
void PrintTable2(const std::vector<Workload>& workloads);
void PrintFigures(const std::vector<Workload>& workloads);
/// Limits are in percent of the peak load. Returns how many plans threw something.
int PrintGrid(const std::vector<Workload>& workloads, const std::vector<int>& limits);

}  // namespace plimsoll::swapping
