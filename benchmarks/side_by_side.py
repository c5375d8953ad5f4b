#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the same networks with Plimsoll and with PyTorch on one GPU, and compares.

  benchmarks/side_by_side.py [--cases NAME,...] [--modes NAME,...] [--limits] [--json FILE]

Every run is a process of its own, warmed up, on a batch of random data that stays on the card;
times are medians. Memory is what the driver says that the process takes, its context included
("taken"), and what of it the network has ("peak"): of Plimsoll's arena, or
torch.cuda.max_memory_allocated.

Without --limits: no limit, beside PyTorch eager, channels_last and torch.compile. With --limits:
Plimsoll at 60, 50, 40 and 30 % of the peak of PyTorch eager, and at the peaks of what PyTorch
offers to save memory: save_on_cpu, offload on streams of its own, checkpointing of every block and
of every second one, and the memory budgets of torch.compile. Plimsoll without a limit is measured
before and after; overheads are over the mean. In the end of a case: a table, and for each goal
whether it was met. Needs torch, torchvision and, for GPT-2, transformers. Exit code 2 if there is
no torch, no GPU or no plimsoll.
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time

import gpu_runs

# Name: model of Plimsoll, batch, precision, optimizer.
CASES = {
    "resnet50": ("resnet50", 128, "fp32", "sgd"),
    "resnet152": ("resnet152", 64, "fp32", "sgd"),
    "densenet201": ("densenet201", 64, "fp32", "sgd"),
    "vgg16": ("vgg16", 64, "fp32", "sgd"),
    "resnet50-bf16": ("resnet50", 128, "bf16", "sgd"),
    "resnet152-bf16": ("resnet152", 64, "bf16", "sgd"),
    "densenet201-bf16": ("densenet201", 64, "bf16", "sgd"),
    "gpt2-medium-bf16": ("gpt2-medium", 8, "bf16", "adamw"),
    "gpt2-medium": ("gpt2-medium", 8, "fp32", "adamw"),
}
# Some are recorded, and some fourteen show whether graphs are faster: twenty are left, and more.
STEPS = 40
FREE_MODES = ["eager", "channels_last", "compile"]
SAVING_MODES = ["save_on_cpu", "offload", "checkpoint1", "checkpoint2", "budget0.5", "budget0.2"]
UNLIMITED = ("plimsoll", "plimsoll again")

# What is aimed at. At a limit in percent of what PyTorch eager takes, an iteration takes so many
# percent longer than without one, at most:
OVERHEADS = {60: 5, 50: 9, 40: 13, 30: 17}
# Wherever limits have goals, measured times are so many percent from predicted ones, at most:
PREDICTED_WITHIN = 5
# By case: how many times as fast as PyTorch at least, without a limit ("free": beside
# channels_last, GPT-2 beside eager), and at the memory that checkpointing and offload need in it.
GOALS = {
    "resnet50": {"free": 1.2, "limits": OVERHEADS, "checkpoint1": 1.4, "offload": 8},
    "resnet152": {"free": 1.2, "limits": OVERHEADS, "checkpoint1": 1.4, "offload": 8},
    "densenet201": {"free": 1.2, "limits": OVERHEADS, "checkpoint1": 1.4},
    "vgg16": {"free": 1.0},
    "resnet152-bf16": {"free": 1.5},
    "densenet201-bf16": {"free": 1.5},
    "gpt2-medium-bf16": {"free": 0.8, "limits": OVERHEADS, "checkpoint1": 1.4},
    "gpt2-medium": {"limits": OVERHEADS, "checkpoint1": 1.4},
}


class NothingToCheckpoint(Exception):
    """Of a network without blocks that are known."""


def is_text(case):
    return CASES[case][0].startswith("gpt2")


def rival_of(case):
    """What PyTorch is compared with without a limit."""
    return "eager" if is_text(case) else "channels_last"


def modes_of(case, modes):
    """Text has no layout to choose: GPT-2 in channels_last is GPT-2."""
    if not is_text(case):
        return modes
    return list(dict.fromkeys("eager" if mode == "channels_last" else mode for mode in modes))


def run_plimsoll(options, case, limit_bytes=None):
    """Trains with Plimsoll; `limit_bytes` is for the network alone, as PyTorch counts."""
    model, batch, precision, optimizer = CASES[case]
    extra = ["--precision", precision, "--optimizer", optimizer, "--steps", str(STEPS),
             "--learning-rate", "0.0001", *options.extra.split()]
    if limit_bytes is not None:
        extra += ["--limit", str(limit_bytes), "--limit-network"]
    result = gpu_runs.train(options.plimsoll, model, batch, extra, options.timeout)
    if "error" in result:
        return result
    return {"ms": result["iteration_ms"], "peak": result["peak_footprint_bytes"],
            "taken": result["gpu"]["taken_bytes"], "context": result["gpu"]["overhead_bytes"],
            "predicted": result["overhead_predicted"], "predicted_ms": result["predicted_ms"],
            "planned": result["planned_iterations"], "graphs": result["graph_launches"],
            "load": result["peak_load_bytes"], "losses": result["losses"][:3]}


def make_model(torch, case, mode):
    """Returns a model, and a function that computes a loss on random data of its shape."""
    model, batch, _, _ = CASES[case]
    torch.manual_seed(1)
    if is_text(case):
        from transformers import GPT2Config, GPT2LMHeadModel
        # Plimsoll's has no dropout of attention weights.
        config = GPT2Config(n_embd=1024, n_layer=24, n_head=16, attn_pdrop=0.0, use_cache=False)
        net = GPT2LMHeadModel(config).cuda()
        checkpoint_blocks(torch, net, mode)
        tokens = torch.randint(0, config.vocab_size, (batch, 1024), device="cuda")
        run = torch.compile(net) if is_compiled(mode) else net
        return net, lambda: run(tokens, labels=tokens).loss
    import torchvision
    net = getattr(torchvision.models, model)().cuda()
    images = torch.randn(batch, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    if mode != "eager":
        net = net.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    checkpoint_blocks(torch, net, mode)
    run = torch.compile(net) if is_compiled(mode) else net
    return net, lambda: torch.nn.functional.cross_entropy(run(images), labels)


def is_compiled(mode):
    return mode == "compile" or mode.startswith("budget")


def checkpoint_blocks(torch, net, mode):
    """In "checkpoint1" every block of a ResNet, DenseNet or GPT-2 is, in "checkpoint2" every second
    one; in other modes none is."""
    if not mode.startswith("checkpoint"):
        return
    from torch.utils.checkpoint import checkpoint
    every = int(mode[len("checkpoint"):])
    kinds = ("Bottleneck", "BasicBlock", "_DenseLayer", "GPT2Block")
    blocks = [module for module in net.modules() if type(module).__name__ in kinds]
    if len(blocks) < every:
        raise NothingToCheckpoint("no block to checkpoint")
    for module in blocks[every - 1::every]:
        inner = module.forward
        module.forward = lambda *x, inner=inner, **named: checkpoint(
            inner, *x, use_reentrant=False, **named)


class Offload:
    """Saved tensors go to pinned memory on a stream of their own, and come back on another."""

    def __init__(self, torch):
        self.torch = torch
        self.out = torch.cuda.Stream()
        self.into = torch.cuda.Stream()
        self.pool = {}
        self.pending = []

    def hooks(self):
        return self.torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)

    def pack(self, tensor):
        if tensor.numel() < 1024 * 256 or isinstance(tensor, self.torch.nn.Parameter):
            return tensor
        key = (tensor.shape, tensor.dtype, tensor.stride())
        free = self.pool.setdefault(key, [])
        host = free.pop() if free else self.torch.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, pin_memory=True)
        self.out.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(self.out):
            host.copy_(tensor, non_blocking=True)
        # Kept until the copy is over: at most two at a time.
        event = self.torch.cuda.Event()
        event.record(self.out)
        self.pending.append((event, tensor))
        while len(self.pending) > 2:
            event, _ = self.pending.pop(0)
            self.torch.cuda.current_stream().wait_event(event)
        return (host, key)

    def unpack(self, packed):
        if not isinstance(packed, tuple):
            return packed
        host, key = packed
        self.pending.clear()
        self.into.wait_stream(self.out)
        with self.torch.cuda.stream(self.into):
            tensor = host.to("cuda", non_blocking=True)
        self.torch.cuda.current_stream().wait_stream(self.into)
        tensor.record_stream(self.torch.cuda.current_stream())
        self.pool[key].append(host)
        return tensor


def run_torch_here(case, mode):
    import contextlib
    import torch
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    _, _, precision, optimizer = CASES[case]
    if mode.startswith("budget"):
        import torch._functorch.config
        torch._functorch.config.activation_memory_budget = float(mode[len("budget"):])
    torch.zeros(1, device="cuda")
    free, total = torch.cuda.mem_get_info()
    context = total - free
    net, loss_of = make_model(torch, case, mode)
    if optimizer == "adamw":
        step = torch.optim.AdamW(net.parameters(), lr=1e-4)
    else:
        step = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    cast = (torch.autocast("cuda", dtype=torch.bfloat16) if precision == "bf16"
            else contextlib.nullcontext())
    offload = Offload(torch)

    def saving():
        if mode == "save_on_cpu":
            return torch.autograd.graph.save_on_cpu(pin_memory=True)
        if mode == "offload":
            return offload.hooks()
        return contextlib.nullcontext()

    def iterate():
        step.zero_grad(set_to_none=True)
        with saving():
            with cast:
                loss = loss_of()
            loss.backward()
        step.step()

    slow = mode in ("save_on_cpu", "offload")
    for _ in range(3 if slow else 5):
        iterate()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    # Several iterations at a time: PyTorch is allowed to run ahead.
    for _ in range(3 if slow else 5):
        count = 1 if slow else 4
        begin = time.perf_counter()
        for _ in range(count):
            iterate()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin) / count)
    free, _ = torch.cuda.mem_get_info()
    return {"ms": statistics.median(times), "peak": torch.cuda.max_memory_allocated(),
            "taken": total - free, "context": context}


def work(case, mode):
    """What the process of a run in PyTorch does; the answer is its last line."""
    try:
        result = run_torch_here(case, mode)
    except NothingToCheckpoint as error:
        result = {"error": str(error)}
    print(json.dumps(result))


def run_torch(options, case, mode):
    command = [sys.executable, __file__, "--worker", case, mode]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer in {options.timeout:g} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"error": gpu_runs.in_a_line(done.stderr)}


def unlimited_ms(results):
    """Of Plimsoll without a limit: the mean of the runs that there are, or nothing."""
    times = [results[name]["ms"] for name in UNLIMITED if "ms" in results.get(name, {})]
    return statistics.mean(times) if times else None


def percent_over(value, base):
    return 100 * (value - base) / base


def line_of(case, what, result, plimsoll=None, unlimited=None):
    """A run, as it is printed when it ends; beside Plimsoll's run at the same memory, or beside
    Plimsoll's milliseconds without a limit."""
    if "error" in result:
        return f"{case:18} {what:24} failed: {result['error']}"
    unit = "tokens/s" if is_text(case) else "img/s"
    samples = CASES[case][1] * (1024 if is_text(case) else 1)
    line = (f"{case:18} {what:24} {result['ms']:8.2f} ms {samples / result['ms'] * 1e3:10.0f} "
            f"{unit:8} peak {result['peak'] / 2**20:7.0f} MiB, "
            f"taken {result['taken'] / 2**20:7.0f} MiB")
    if plimsoll is not None and "ms" in plimsoll:
        line += f"  Plimsoll is {result['ms'] / plimsoll['ms']:.2f} times as fast"
    if result.get("predicted_ms"):
        line += (f"  predicted {result['predicted_ms']:.2f} ms "
                 f"({percent_over(result['ms'], result['predicted_ms']):+.1f} %)")
    if unlimited is not None:
        line += f"  {percent_over(result['ms'], unlimited):+.1f} % on no limit"
    return line


def table_row(name, result, results):
    """A result of Plimsoll under a limit, beside PyTorch's at the same memory if there is one."""
    what = name[len("plimsoll "):]
    if "error" in result:
        return f"  {what:20} failed"
    row = f"  {what:20} {result['ms']:8.2f}"
    predicted = result.get("predicted_ms")
    row += (f" {predicted:9.2f} {percent_over(result['ms'], predicted):+7.1f} %" if predicted
            else f" {'':9} {'':9}")
    unlimited = unlimited_ms(results)
    row += f" {percent_over(result['ms'], unlimited):+10.1f} %" if unlimited else f" {'':12}"
    theirs = results.get(what[len("as "):], {})
    if "ms" in theirs:
        row += f" {theirs['ms']:10.2f} {theirs['ms'] / result['ms']:7.2f}"
    return row.rstrip()


def table_of(case, results):
    """What a case has come to."""
    model, batch, precision, _ = CASES[case]
    unlimited = unlimited_ms(results)
    runs = [f"{results[name]['ms']:.2f}" for name in UNLIMITED if "ms" in results.get(name, {})]
    lines = [f"{model}, batch {batch}, {precision}; Plimsoll without a limit: "
             + (f"{unlimited:.2f} ms ({' and '.join(runs)})" if runs else "no result"),
             f"  {'':20} {'ms':>8} {'predicted':>9} {'off':>9} {'on no limit':>12} "
             f"{'PyTorch ms':>10} {'speed':>7}"]
    for name, result in results.items():
        if name.startswith("plimsoll ") and name not in UNLIMITED:
            lines.append(table_row(name, result, results))
        elif name in FREE_MODES:
            what = "beside " + name
            if "ms" in result and unlimited:
                lines.append(f"  {what:20} {unlimited:8.2f} {'':32} {result['ms']:10.2f} "
                             f"{result['ms'] / unlimited:7.2f}")
            else:
                lines.append(f"  {what:20} failed")
    return lines


def speed_goal(where, ours_ms, theirs_ms, least):
    if not ours_ms or not theirs_ms:
        return f"{where}: no result (at least {least:g} times as fast)", False
    ratio = theirs_ms / ours_ms
    return f"{where}: {ratio:.2f} times as fast, at least {least:g}", ratio >= least


def overhead_goal(where, result, unlimited, most):
    if "ms" not in result or not unlimited:
        return f"{where}: no result (at most {most} % on no limit)", False
    overhead = percent_over(result["ms"], unlimited)
    return f"{where}: {overhead:+.1f} % on no limit, at most {most} %", overhead <= most


def prediction_goal(where, result):
    if "ms" not in result or not result.get("predicted_ms"):
        return f"{where}: no prediction (within {PREDICTED_WITHIN} %)", False
    off = percent_over(result["ms"], result["predicted_ms"])
    text = f"{where}: {off:+.1f} % off the prediction, within {PREDICTED_WITHIN} %"
    return text, abs(off) <= PREDICTED_WITHIN


def goals_of(case, results):
    """The goals of a case of which anything was tried: pairs of a text and whether it was met."""
    goals = GOALS.get(case, {})
    unlimited = unlimited_ms(results)
    found = []
    rival = rival_of(case)
    if "free" in goals and rival in results:
        found.append(speed_goal(f"beside {rival}", unlimited, results[rival].get("ms"),
                                goals["free"]))
    for percent, most in goals.get("limits", {}).items():
        result = results.get(f"plimsoll at {percent} %")
        if result is not None:
            found.append(overhead_goal(f"at {percent} %", result, unlimited, most))
            found.append(prediction_goal(f"at {percent} %", result))
    for mode in ("checkpoint1", "offload"):
        if mode in goals and mode in results:
            result = results.get(f"plimsoll as {mode}", {})
            where = f"at the memory of {mode}"
            found.append(speed_goal(where, result.get("ms"), results[mode].get("ms"), goals[mode]))
            found.append(prediction_goal(where, result))
    return found


def summary_of(case, results):
    """The table of a case, and a line for each of its goals."""
    goals = goals_of(case, results)
    lines = ["", *table_of(case, results)]
    if goals:
        lines += ["goals", *(gpu_runs.goal_line(text, met) for text, met in goals)]
    return lines


def measure_limits(options, case, results):
    """Plimsoll at percentages of PyTorch's memory, and at what its ways to save memory need. What
    is printed is beside the run without a limit before; tables and goals are beside both."""
    unlimited = unlimited_ms(results)

    def run_at(name, limit_bytes, theirs=None):
        result = results[name] = run_plimsoll(options, case, limit_bytes)
        line = line_of(case, name, result, unlimited=unlimited)
        if theirs is not None and "ms" in result:
            line += f"  {theirs['ms'] / result['ms']:.2f} times PyTorch's speed"
        print(line, flush=True)

    reference = next((mode for mode in ("eager", "channels_last") if mode in results), "eager")
    peak = results.get(reference, {}).get("peak")
    for percent in OVERHEADS if options.percentages else ():
        if peak is not None:
            run_at(f"plimsoll at {percent} %", peak * percent // 100)
        else:
            results[f"plimsoll at {percent} %"] = {"error": "PyTorch's peak is not known"}
    for mode in SAVING_MODES:
        if "peak" in results.get(mode, {}):
            run_at(f"plimsoll as {mode}", results[mode]["peak"], results[mode])


def measure(options, case, results):
    """Fills in `results` by name: of Plimsoll without a limit, of PyTorch by mode, and under
    limits."""
    first = results["plimsoll"] = run_plimsoll(options, case)
    print(line_of(case, "plimsoll", first), flush=True)
    modes = FREE_MODES if not options.limits else ["eager", "channels_last", *SAVING_MODES]
    for mode in modes_of(case, options.modes or modes):
        results[mode] = run_torch(options, case, mode)
        beside = first if mode in FREE_MODES else None
        print(line_of(case, "PyTorch " + mode, results[mode], plimsoll=beside), flush=True)
    if not options.limits:
        return
    measure_limits(options, case, results)
    results["plimsoll again"] = run_plimsoll(options, case)
    print(line_of(case, "plimsoll again", results["plimsoll again"]), flush=True)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="resnet50,resnet152,densenet201,vgg16",
                        help="of " + ", ".join(CASES) + "; default %(default)s")
    parser.add_argument("--modes", help="of PyTorch, of " + ", ".join(FREE_MODES + SAVING_MODES)
                        + "; default by --limits")
    parser.add_argument("--limits", action="store_true", help="measure under limits, too")
    parser.add_argument("--no-percentages", dest="percentages", action="store_false",
                        help="with --limits, only at the memory of what PyTorch offers")
    parser.add_argument("--extra", default="", help="more options for plimsoll train")
    gpu_runs.add_options(parser)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.cases = options.cases.split(",")
    options.modes = options.modes.split(",") if options.modes else []
    for case in options.cases:
        if case not in CASES:
            parser.error(f"--cases: no case is called {case}")
    for mode in options.modes:
        if mode not in FREE_MODES + SAVING_MODES:
            parser.error(f"--modes: no mode is called {mode}")
    return options


def main():
    options = parse_options()
    if options.worker:
        work(*options.worker)
        return
    if importlib.util.find_spec("torch") is None:
        gpu_runs.stop("side_by_side", "torch is missing; install it")
    gpu_runs.require_gpu("side_by_side", options.plimsoll)
    everything = {}
    met = []
    for case in options.cases:
        results = everything[case] = {}
        measure(options, case, results)
        print("\n".join(summary_of(case, results)) + "\n", flush=True)
        met += [is_met for _, is_met in goals_of(case, results)]
        gpu_runs.write_json(options.json, everything)
    print(f"{sum(met)} of {len(met)} goals met")


if __name__ == "__main__":
    main()
