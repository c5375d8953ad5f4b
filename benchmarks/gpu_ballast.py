#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does training come to its end on a card where nothing but its limit is free?

  benchmarks/gpu_ballast.py [--model NAME] [--batch N] [--limits SIZE,...] [--json FILE]

For each limit, memory of the card is taken until no more than the limit is free (2 MiB less at
most; the context of this program counts), and a network is trained under that limit. A run ends
well if all of its steps were taken, their losses are numbers, and it took no more of the card than
the limit. Needs torch, which takes the memory. Exit code 1 if a run did not end well, 2 if there is
no torch, no GPU or no plimsoll.
"""

import argparse
import math
import os
import sys

import gpu_runs

STEPS = 24
MOST_AT_ONCE = 1 << 30
PAGE = 2 << 20  # What the driver gives out.


def free_bytes(torch):
    return torch.cuda.mem_get_info()[0]


def take_all_but(torch, limit):
    """Takes memory of the card until at most `limit` is free; returns what holds it."""
    held = []
    most = MOST_AT_ONCE
    while (beyond := free_bytes(torch) - limit) > 0:
        pages = min(-(-beyond // PAGE), most // PAGE)
        try:
            held.append(torch.empty(pages * PAGE, dtype=torch.uint8, device="cuda"))
        except RuntimeError:  # It is out of memory: none in one piece.
            if pages == 1:
                break
            most = pages // 2 * PAGE
    return held


def why_not_well(result, limit, free):
    """Nothing if the run ended well."""
    if "error" in result:
        return result["error"]
    if free > limit:
        return "more than the limit was free"
    losses = result["losses"]
    if len(losses) != STEPS:
        return f"{len(losses)} of {STEPS} steps"
    if not all(loss is not None and math.isfinite(loss) for loss in losses):
        return "a loss is no number"
    if result["gpu"]["taken_bytes"] > limit:
        return "it took more than the limit"
    return ""


def open_torch():
    """Has torch give back what it is given back, so that what is free can be chosen."""
    os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    try:
        import torch
    except ImportError:
        gpu_runs.stop("gpu_ballast", "torch is missing, which fills the card; install it")
    if not torch.cuda.is_available():
        gpu_runs.stop("gpu_ballast", "torch finds no GPU")
    torch.zeros(1, device="cuda")  # The context is there from here on.
    return torch


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--limits", default="3.5GB,3.0GB,2.5GB,2.0GB,1.8GB",
                        help="sizes such as 2GB, 512MiB or 1048576; default %(default)s")
    gpu_runs.add_options(parser)
    options = parser.parse_args()
    try:
        limits = [gpu_runs.parse_bytes(text) for text in options.limits.split(",")]
    except ValueError:
        limits = []
    if not limits or min(limits) <= 0:
        parser.error(f"--limits {options.limits}: sizes such as 2GB,512MiB are expected")
    torch = open_torch()
    gpu_runs.require_gpu("gpu_ballast", options.plimsoll)

    print(f"{options.model}, batch {options.batch}, {STEPS} steps")
    print(f"{'free':>10} {'limit':>10} {'ms':>8} {'taken in all':>13}")
    results = []
    for limit in limits:
        held = take_all_but(torch, limit)
        free = free_bytes(torch)
        result = gpu_runs.train(options.plimsoll, options.model, options.batch,
                                ["--limit", str(limit), "--steps", str(STEPS)], options.timeout)
        held.clear()
        why = why_not_well(result, limit, free)
        results.append({"limit": limit, "free": free, "why_not_well": why, **result})
        line = f"{free / 1e9:7.3f} GB {limit / 1e9:7.3f} GB"
        if "error" not in result:
            line += f" {result['iteration_ms']:8.2f} {result['gpu']['taken_bytes'] / 1e9:10.3f} GB"
        print(line + ("  failed: " + why if why else "  to its end"), flush=True)
        gpu_runs.write_json(options.json, results)
    sys.exit(1 if any(result["why_not_well"] for result in results) else 0)


if __name__ == "__main__":
    main()
