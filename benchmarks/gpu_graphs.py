#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does it gain to launch a planned iteration as a CUDA graph?

  benchmarks/gpu_graphs.py [--rounds N] [--json FILE] [MODEL:BATCH...]

Trains each network without a limit, as graphs and op by op (--no-graphs) in turn, each time in a
process of its own. Of the medians of the rounds, the shortest counts. Exit code 1 if a run failed,
2 if there is no GPU or no plimsoll.
"""

import argparse
import sys

import gpu_runs

NETWORKS = ["preresnet164:16", "resnet50:32", "resnet152:16", "densenet121:32", "vgg16:32",
            "googlenet:32", "unet:8", "gpt2-small:4", "char-lstm:64"]
STEPS = 30
# What is aimed at, in times as fast as op by op: the same everywhere, but for what runs differ by;
# and more where launches take most of the time.
LEAST = 1.0
NOISE = 0.01
LEAST_OF = {"preresnet164:16": 1.2}
MODES = {"graph": [], "op by op": ["--no-graphs"]}


def measure(plimsoll, network, rounds, timeout_s):
    """Of each mode: the shortest median, or why there is none."""
    model, _, batch = network.partition(":")
    best = {}
    for _ in range(rounds):
        for mode, extra in MODES.items():
            result = gpu_runs.train(plimsoll, model, batch, ["--steps", str(STEPS), *extra],
                                    timeout_s)
            if mode == "graph" and result.get("graph_launches") == 0:
                result = {"error": "nothing was launched as a graph"}
            if "error" in result:
                return {"error": f"{mode}: {result['error']}"}
            best[mode] = min(best.get(mode, float("inf")), result["iteration_ms"])
    return best


def goal(network, ratio):
    """As a line."""
    if network in LEAST_OF:
        text, met = f"at least {LEAST_OF[network]:g}", ratio >= LEAST_OF[network]
    else:
        text, met = f"at least {LEAST:g} within {100 * NOISE:g} %", ratio >= LEAST - NOISE
    return gpu_runs.goal_line(f"{network}: {ratio:.2f} times as fast by graphs, {text}", met)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="MODEL:BATCH",
                        help="default " + " ".join(NETWORKS))
    parser.add_argument("--rounds", type=int, default=2, help="default %(default)s")
    gpu_runs.add_options(parser)
    options = parser.parse_args()
    networks = options.networks or NETWORKS
    for network in networks:
        if not network.partition(":")[2].isdigit():
            parser.error(f"{network}: MODEL:BATCH is expected, such as resnet50:32")
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    gpu_runs.require_gpu("gpu_graphs", options.plimsoll)

    print(f"{'':20} {'as a graph':>12} {'op by op':>12} {'ratio':>7}")
    results = {}
    for network in networks:
        result = results[network] = measure(options.plimsoll, network, options.rounds,
                                            options.timeout)
        if "error" in result:
            print(f"{network:20} failed: {result['error']}", flush=True)
        else:
            result["ratio"] = result["op by op"] / result["graph"]
            print(f"{network:20} {result['graph']:9.2f} ms {result['op by op']:9.2f} ms "
                  f"{result['ratio']:7.2f}", flush=True)
        gpu_runs.write_json(options.json, results)
    measured = {network: result for network, result in results.items() if "ratio" in result}
    print("\ngoals")
    for network, result in measured.items():
        print(goal(network, result["ratio"]))
    sys.exit(0 if len(measured) == len(networks) else 1)


if __name__ == "__main__":
    main()
