// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/plan_runner.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/device/order_check_for_test.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/plan/replays_for_test.h"

namespace plimsoll::exec {
namespace {

using plan::OpIndex;
using plan::Plan;
using plan::PlanRandom;
using plan::Problem;

/// A program that computes something with the recorded ops of a plan: the content of a variable is
/// one byte, repeated, and depends on all that its ops have found. The reference runs beside it.
class Program {
 public:
  Program(const Problem& problem, device::OrderCheckBackend* order)
      : problem_(problem), order_(*order), content_(problem.variables.size(), std::byte{0}) {
    for (std::size_t v = 0; v < content_.size(); ++v) content_[v] = std::byte(v * 7 + 1);
  }

  /// The function of the next call of an op. It says so if it does not find what it should.
  Function Call(OpIndex index, std::int64_t lap) {
    const plan::Op& op = problem_.ops[At(index)];
    std::vector<std::byte> found;
    std::vector<Bytes> sizes;
    unsigned hash = static_cast<unsigned>(index * 31 + lap * 17);
    std::vector<bool> is_state;
    for (std::int64_t k = 0; k < op.read_count; ++k) {
      const auto v = At(problem_.operands[At(op.first_operand + k)].variable);
      found.push_back(content_[v]);
      sizes.push_back(problem_.variables[v].size_bytes);
      is_state.push_back(IsState(op, v));
      if (!is_state.back()) hash = hash * 131 + static_cast<unsigned>(content_[v]);
    }
    std::vector<std::byte> left;
    for (const plan::Operand& x : problem_.writes(op)) {
      hash = hash * 131 + 5;
      left.push_back(std::byte(hash >> 8));
      sizes.push_back(problem_.variables[At(x.variable)].size_bytes);
      content_[At(x.variable)] = left.back();
    }
    const auto reads = At(op.read_count);
    return [this, index, found, left, sizes, is_state, reads](const Launch& launch) {
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        const bool is_write = k >= reads;
        order_.Touch(is_write ? launch.writes[k - reads] : launch.reads[k], sizes[k], is_write);
      }
      for (std::size_t k = 0; k < reads; ++k) {
        if (sizes[k] == 0 || is_state[k]) continue;
        if (launch.reads[k][0] != found[k] || launch.reads[k][sizes[k] - 1] != found[k]) {
          ADD_FAILURE() << "op " << index << " finds another content in operand " << k;
        }
      }
      for (std::size_t k = 0; k < left.size(); ++k) {
        std::memset(launch.writes[k], std::to_integer<int>(left[k]), At(sizes[reads + k]));
      }
    };
  }

  std::byte content(std::size_t v) const { return content_[v]; }

 private:
  bool IsState(const plan::Op& op, std::size_t v) const {
    for (std::int32_t k = 0; k < std::min(op.read_count, 32); ++k) {
      const bool is_state = (op.traits.state_reads >> k & 1) != 0;
      if (is_state && At(problem_.operands[At(op.first_operand + k)].variable) == v) return true;
    }
    return false;
  }

  const Problem& problem_;
  device::OrderCheckBackend& order_;
  std::vector<std::byte> content_;
};

/// Runs a plan for some iterations and a part of one, and looks at what is where then.
void Follow(const Plan& plan, std::int64_t laps, OpIndex stop, bool poisons) {
  const Problem& original = plan.rewriting ? plan.rewriting->original : plan.problem;
  device::HostBackend host({.poison_on_free = poisons, .jitter_ns = 20'000, .seed = 3});
  device::OrderCheckBackend backend(&host);
  PlanRunner runner(&plan);
  std::byte* arena = backend.AllocateDevice(plan.footprint_bytes);
  std::byte* slab = backend.AllocateHost(plan.host_bytes);
  Program program(original, &backend);
  const auto size_of = [&](std::size_t w) { return At(plan.problem.variables[w].size_bytes); };
  for (std::size_t w = 0; w < runner.scene().size(); ++w) {
    const Whereabouts& where = runner.scene()[w];
    const int byte = std::to_integer<int>(program.content(At(std::max(0, runner.holds()[w]))));
    if (where.device_offset >= 0) std::memset(arena + where.device_offset, byte, size_of(w));
    if (where.host_offset >= 0) std::memset(slab + where.host_offset, byte, size_of(w));
  }
  runner.Enter({&backend, arena, slab});
  for (std::int64_t lap = 0; lap <= laps; ++lap) {
    const auto ops = static_cast<OpIndex>(original.ops.size());
    for (OpIndex op = 0; op < (lap < laps ? ops : stop); ++op) {
      runner.Run(op, program.Call(op, lap));
    }
  }
  backend.Synchronize();
  for (std::size_t w = 0; w < runner.now().size(); ++w) {
    const Whereabouts& where = runner.now()[w];
    const plan::VariableIndex v = runner.holds()[w];
    if (v < 0 || where.version != runner.versions()[At(v)] || size_of(w) == 0) continue;
    if (where.device_offset >= 0) {
      EXPECT_EQ(arena[where.device_offset], program.content(At(v))) << "variable " << w;
    }
    if (where.host_offset >= 0) {
      EXPECT_EQ(slab[where.host_offset], program.content(At(v))) << "variable " << w << " on host";
    }
  }
  // Also where nobody's luck helps: on a device whose compute stream is on its own.
  EXPECT_TRUE(backend.violations().empty()) << backend.violations().front();
  backend.FreeDevice(arena);
  backend.FreeHost(slab);
}

/// A malloc'ed variable that is read before it is written finds bytes of anybody: such a plan is
/// safe, but there is nothing to compare.
bool ReadsUndefined(const Problem& problem) {
  constexpr plan::Position kNever = std::numeric_limits<plan::Position>::max();
  std::vector<plan::Position> written(problem.variables.size(), kNever);
  const auto time_of = [&](const plan::Op& op, const plan::Operand& x) {
    return op.position + x.age * problem.period;
  };
  for (const plan::Op& op : problem.ops) {
    for (const plan::Operand& x : problem.writes(op)) {
      written[At(x.variable)] = std::min(written[At(x.variable)], time_of(op, x));
    }
  }
  for (const plan::Op& op : problem.ops) {
    for (const plan::Operand& x : problem.reads(op)) {
      const bool persistent = problem.variables[At(x.variable)].persistent();
      if (!persistent && written[At(x.variable)] >= time_of(op, x)) return true;
    }
  }
  return false;
}

TEST(PlanRunnerTest, EveryOpFindsWhatItShould) {
  int run = 0;
  for (int seed = 1; seed <= CaseCount(400); ++seed) {
    PlanRandom random(static_cast<std::uint64_t>(seed));
    const auto plan =
        random.OneIn(2) ? plan::RandomPlan(&random) : plan::replays::RandomReplayPlan(&random);
    if (!plan || !plan->problem.cyclic || plan->problem.ops.empty()) continue;
    const Problem& original = plan->rewriting ? plan->rewriting->original : plan->problem;
    if (ReadsUndefined(original)) continue;
    ASSERT_TRUE(plan::CheckPlan(*plan).empty());
    const auto stop = static_cast<OpIndex>(random.Between(0, std::ssize(original.ops) - 1));
    Follow(*plan, 3, stop, /*poisons=*/random.OneIn(2));
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << plan::Dump(*plan);
    ++run;
  }
  EXPECT_GT(run, CaseCount(400) / 20);
}

}  // namespace
}  // namespace plimsoll::exec
