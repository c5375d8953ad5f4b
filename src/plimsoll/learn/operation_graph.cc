// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/learn/operation_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/index.h"
#include "plimsoll/plan/load_profile.h"

namespace plimsoll::learn {
namespace {

class Builder {
 public:
  Builder(const plan::Problem& problem, const plan::Machine& machine,
          const std::vector<Candidate>& candidates)
      : problem_(problem),
        machine_(machine),
        candidates_(candidates),
        profile_(plan::ProfileLoad(problem)) {
    PLIMSOLL_CHECK(!candidates.empty(), "a graph without candidates");
  }

  OperationGraph Run() {
    AddNodes();
    AddEdges();
    AddFeatures();
    AddActions();
    return std::move(graph_);
  }

 private:
  void AddNodes() {
    std::vector<bool> taken(problem_.variables.size(), false);
    for (const Candidate& candidate : candidates_) taken[At(candidate.gap.variable)] = true;
    const auto accesses = plan::ListAccesses(problem_);
    for (std::size_t v = 0; v < accesses.size(); ++v) {
      if (!taken[v]) continue;
      const plan::Variable& variable = problem_.variables[v];
      const auto index = static_cast<plan::VariableIndex>(v);
      if (!variable.persistent()) AddNode(index, variable.begin);
      for (const plan::Access& access : accesses[v]) AddNode(index, access.time);
      if (!variable.persistent()) AddNode(index, variable.end);
    }
    std::stable_sort(
        graph_.nodes.begin(), graph_.nodes.end(),
        [](const auto& one, const auto& other) { return one.position < other.position; });
    for (std::size_t n = 0; n < graph_.size(); ++n) {
      nodes_of_[graph_.nodes[n].variable].push_back(static_cast<NodeIndex>(n));
    }
  }

  void AddNode(plan::VariableIndex variable, plan::Position position) {
    const plan::Position in_period =
        problem_.cyclic ? position % problem_.period : std::min(position, problem_.period - 1);
    graph_.nodes.push_back({variable, in_period});
  }

  void AddEdges() {
    for (const auto& node : graph_.nodes) times_.push_back(profile_.start_ns[At(node.position)]);
    std::vector<std::map<NodeIndex, float>> edges(graph_.size());
    const auto join = [&](NodeIndex one, NodeIndex other) {
      const float lag = OfIteration(times_[At(other)] - times_[At(one)]);
      edges[At(one)][other] = lag;
      edges[At(other)][one] = lag;
    };
    for (std::size_t n = 0; n < graph_.size(); ++n) edges[n][static_cast<NodeIndex>(n)] = 0;
    for (std::size_t n = 0; n + 1 < graph_.size(); ++n) {
      join(static_cast<NodeIndex>(n), static_cast<NodeIndex>(n + 1));
    }
    for (const auto& [variable, nodes] : nodes_of_) {
      for (std::size_t k = 0; k < nodes.size(); ++k) {
        const std::size_t end = std::min(nodes.size(), k + 1 + OperationGraph::kReach);
        for (std::size_t other = k + 1; other < end; ++other) join(nodes[k], nodes[other]);
      }
    }
    for (const auto& list : edges) {
      graph_.first_neighbour.push_back(static_cast<std::int32_t>(graph_.neighbours.size()));
      for (const auto& [neighbour, weight] : list) {
        graph_.neighbours.push_back(neighbour);
        graph_.weights.push_back(weight);
      }
    }
    graph_.first_neighbour.push_back(static_cast<std::int32_t>(graph_.neighbours.size()));
  }

  float OfIteration(Nanoseconds ns) const {
    const auto whole = static_cast<float>(std::max<Nanoseconds>(problem_.iteration_ns(), 1));
    return static_cast<float>(ns) / whole;
  }

  Bytes SizeOf(plan::VariableIndex v) const { return problem_.variables[At(v)].size_bytes; }
  double CopyNs(plan::VariableIndex v) const {
    return static_cast<double>(machine_.out_ns(SizeOf(v)) + machine_.in_ns(SizeOf(v)));
  }

  void AddFeatures() {
    Bytes largest = 1;
    for (const Candidate& candidate : candidates_) {
      largest = std::max(largest, SizeOf(candidate.gap.variable));
      unit_ns_ += CopyNs(candidate.gap.variable) / static_cast<double>(candidates_.size());
    }
    unit_ns_ = std::max(unit_ns_, 1.0);
    for (const auto& node : graph_.nodes) {
      std::array<float, kFeatures> x{};
      x[kSize] = static_cast<float>(static_cast<double>(SizeOf(node.variable)) / double(largest));
      x[kTransfer] = static_cast<float>(CopyNs(node.variable) / unit_ns_);
      graph_.features.push_back(x);
    }
    for (const auto& [variable, nodes] : nodes_of_) {
      for (std::size_t k = 0; k + 1 < nodes.size(); ++k) {
        graph_.features[At(nodes[k])][kRevisit] =
            OfIteration(times_[At(nodes[k + 1])] - times_[At(nodes[k])]);
      }
    }
  }

  void AddActions() {
    std::vector<bool> taken(graph_.size(), false);
    taken[0] = true;
    graph_.actions.push_back({});
    for (const ActionKind kind : {ActionKind::kSwap, ActionKind::kRemove}) {
      for (std::size_t k = 0; k < candidates_.size(); ++k) {
        const Candidate& candidate = candidates_[k];
        if (!(kind == ActionKind::kSwap ? candidate.can_swap : candidate.can_remove)) continue;
        const NodeIndex node = FindFree(candidate.gap, kind, taken);
        if (node < 0) continue;
        taken[At(node)] = true;
        graph_.actions.push_back({kind, static_cast<std::int32_t>(k), node});
        Describe(candidate, kind, node);
      }
    }
  }

  /// A node of the gap's variable that stands for nothing yet: for a swap, best the use before the
  /// gap, for a removal, the use behind it; else any other, the closest first; -1 if there is none.
  NodeIndex FindFree(const plan::Gap& gap, ActionKind kind, const std::vector<bool>& taken) const {
    const plan::OpIndex op = kind == ActionKind::kSwap ? gap.after : gap.before;
    const plan::Position wanted = problem_.ops[At(op)].position;
    NodeIndex best = -1;
    for (const NodeIndex node : nodes_of_.at(gap.variable)) {
      if (taken[At(node)]) continue;
      if (best < 0 || Distance(node, wanted) < Distance(best, wanted)) best = node;
    }
    return best;
  }
  plan::Position Distance(NodeIndex node, plan::Position position) const {
    return std::abs(graph_.nodes[At(node)].position - position);
  }

  /// The features of a node that stands for an action are those of the action.
  void Describe(const Candidate& candidate, ActionKind kind, NodeIndex node) {
    auto& x = graph_.features[At(node)];
    x[kAction] = kind == ActionKind::kSwap ? 1.0F : -1.0F;
    x[kRecompute] = candidate.can_remove
                        ? std::min(kMostRecompute, static_cast<float>(candidate.recompute_ns) /
                                                       static_cast<float>(unit_ns_))
                        : kMostRecompute;
    const bool around = candidate.gap.end >= problem_.period;
    x[kRevisit] = OfIteration(StartOf(candidate.gap.before) - StartOf(candidate.gap.after)) +
                  (around ? 1.0F : 0.0F);
  }

  Nanoseconds StartOf(plan::OpIndex op) const {
    return profile_.start_ns[At(problem_.ops[At(op)].position)];
  }

  const plan::Problem& problem_;
  const plan::Machine& machine_;
  const std::vector<Candidate>& candidates_;
  const plan::LoadProfile profile_;
  OperationGraph graph_;
  std::map<plan::VariableIndex, std::vector<NodeIndex>> nodes_of_;
  std::vector<Nanoseconds> times_;  // Per node.
  double unit_ns_ = 0;              // Of a copy out and in, the mean over candidates.
};

}  // namespace

NodeIndex OperationGraph::NodeAt(plan::Position position) const {
  const auto place = std::upper_bound(
      nodes.begin(), nodes.end(), position,
      [](plan::Position wanted, const Node& node) { return wanted < node.position; });
  return std::max<NodeIndex>(0, static_cast<NodeIndex>(place - nodes.begin()) - 1);
}

OperationGraph MakeOperationGraph(const plan::Problem& problem, const plan::Machine& machine,
                                  const std::vector<Candidate>& candidates) {
  return Builder(problem, machine, candidates).Run();
}

}  // namespace plimsoll::learn
