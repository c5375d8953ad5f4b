#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the same networks with Plimsoll and with PyTorch on one GPU, and compares.

  benchmarks/side_by_side.py --plimsoll build/release/cli/plimsoll [--cases NAME,...] [--modes ...]
                             [--limits] [--json FILE]

Every run is a process of its own, warmed up, on a batch of random data that stays on the card; times
are medians. Memory is what the driver says that the process takes, its context included ("taken"),
and what of it the network has ("peak"): of Plimsoll's arena, or torch.cuda.max_memory_allocated. Without --limits: no limit, beside PyTorch eager,
channels_last and torch.compile. With --limits: Plimsoll at 60, 50, 40 and 30 % of the peak of
PyTorch eager, and at the peaks of what PyTorch offers to save memory. Needs torch, torchvision and,
for GPT-2, transformers.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

# Name: model of Plimsoll, batch, precision, optimizer, steps.
CASES = {
    "resnet50": ("resnet50", 128, "fp32", "sgd", 30),
    "resnet152": ("resnet152", 64, "fp32", "sgd", 24),
    "densenet201": ("densenet201", 64, "fp32", "sgd", 24),
    "vgg16": ("vgg16", 64, "fp32", "sgd", 24),
    "resnet50-bf16": ("resnet50", 128, "bf16", "sgd", 30),
    "resnet152-bf16": ("resnet152", 64, "bf16", "sgd", 24),
    "densenet201-bf16": ("densenet201", 64, "bf16", "sgd", 24),
    "gpt2-medium-bf16": ("gpt2-medium", 8, "bf16", "adamw", 34),
    "gpt2-medium": ("gpt2-medium", 8, "fp32", "adamw", 34),
}
FREE_MODES = ["eager", "channels_last", "compile"]
SAVING_MODES = ["save_on_cpu", "offload", "checkpoint1", "checkpoint2", "budget0.5", "budget0.2"]
LIMITS = [60, 50, 40, 30]


def run_plimsoll(binary, case, limit_bytes=None, extra=()):
    """Trains with Plimsoll; `limit_bytes` is for the network alone, as PyTorch counts."""
    model, batch, precision, optimizer, steps = CASES[case]
    command = [binary, "train", "--model", model, "--batch", str(batch), "--device", "cuda",
               "--precision", precision, "--optimizer", optimizer, "--steps", str(steps),
               "--keep-batch", "--wait-for-plan", "--learning-rate", "0.0001", "--json", *extra]
    if limit_bytes is not None:
        command += ["--limit", str(limit_bytes), "--limit-network"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.strip():
        return {"error": (done.stderr.strip() or done.stdout.strip())[-300:]}
    result = json.loads(done.stdout)
    return {"ms": result["iteration_ms"], "peak": result["peak_footprint_bytes"],
            "taken": result["gpu"]["taken_bytes"], "context": result["gpu"]["overhead_bytes"],
            "predicted": result["overhead_predicted"], "predicted_ms": result["predicted_ms"],
            "planned": result["planned_iterations"], "graphs": result["graph_launches"],
            "load": result["peak_load_bytes"], "losses": result["losses"][:3]}


def make_model(torch, case, mode):
    """Returns a model, and a function that computes a loss on random data of its shape."""
    model, batch, precision, _, _ = CASES[case]
    torch.manual_seed(1)
    if model.startswith("gpt2"):
        from transformers import GPT2Config, GPT2LMHeadModel
        # Plimsoll's has no dropout of attention weights.
        config = GPT2Config(n_embd=1024, n_layer=24, n_head=16, attn_pdrop=0.0, use_cache=False)
        net = GPT2LMHeadModel(config).cuda()
        if mode == "checkpoint1":
            net.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
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
    if mode.startswith("checkpoint"):
        checkpoint_blocks(torch, net, int(mode[-1]))
    run = torch.compile(net) if is_compiled(mode) else net
    return net, lambda: torch.nn.functional.cross_entropy(run(images), labels)


def is_compiled(mode):
    return mode == "compile" or mode.startswith("budget")


def checkpoint_blocks(torch, net, every):
    """Checkpoints every block of a ResNet or DenseNet, or every second one."""
    from torch.utils.checkpoint import checkpoint
    number = 0
    for name, module in net.named_modules():
        if type(module).__name__ not in ("Bottleneck", "BasicBlock", "_DenseLayer"):
            continue
        number += 1
        if number % every != 0:
            continue
        inner = module.forward
        module.forward = lambda *x, inner=inner: checkpoint(inner, *x, use_reentrant=False)


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
    _, _, precision, optimizer, steps = CASES[case]
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


def run_torch(case, mode, timeout):
    command = [sys.executable, __file__, "--worker", case, mode]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer in {timeout} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"error": done.stderr.strip()[-300:]}


def show(case, what, result, base=None):
    if "error" in result:
        print(f"{case:18} {what:22} failed: {result['error']}", flush=True)
        return
    batch = CASES[case][1]
    unit = "tokens/s" if CASES[case][0].startswith("gpt2") else "img/s"
    rate = batch * (1024 if unit == "tokens/s" else 1) / result["ms"] * 1e3
    line = (f"{case:18} {what:22} {result['ms']:8.2f} ms {rate:10.0f} {unit:8} "
            f"peak {result['peak'] / 2**20:7.0f} MiB, taken {result['taken'] / 2**20:7.0f} MiB")
    if base is not None and "ms" in base:
        line += f"  Plimsoll is {result['ms'] / base['ms']:.2f} times as fast"
    if result.get("predicted_ms"):
        line += f"  predicted {result['predicted_ms']:.2f} ms ({100 * (result['ms'] / result['predicted_ms'] - 1):+.1f} %)"
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plimsoll", default="build/release/cli/plimsoll")
    parser.add_argument("--cases", default="resnet50,resnet152,densenet201,vgg16")
    parser.add_argument("--modes", default=None, help="of PyTorch; default by --limits")
    parser.add_argument("--limits", action="store_true")
    parser.add_argument("--timeout", type=float, default=240)
    parser.add_argument("--json", default=None)
    parser.add_argument("--extra", default="", help="more options for plimsoll train")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(run_torch_here(*options.worker)))
        return
    extra = options.extra.split()
    everything = {}
    for case in options.cases.split(","):
        results = everything[case] = {}
        ours = results["plimsoll"] = run_plimsoll(options.plimsoll, case, extra=extra)
        show(case, "plimsoll", ours)
        modes = options.modes.split(",") if options.modes else (
            ["eager", "channels_last"] + SAVING_MODES if options.limits else FREE_MODES)
        for mode in modes:
            results[mode] = run_torch(case, mode, options.timeout)
            show(case, "PyTorch " + mode, results[mode], ours if "ms" in ours else None)
        if not options.limits:
            continue
        reference = results.get("eager") or results.get("channels_last")
        for percent in LIMITS:
            if "peak" not in reference:
                break
            result = run_plimsoll(options.plimsoll, case, reference["peak"] * percent // 100, extra)
            results[f"plimsoll {percent}%"] = result
            show(case, f"plimsoll at {percent} %", result)
            if "ms" in result and "ms" in ours:
                print(f"{'':18} {'':22} {100 * (result['ms'] / ours['ms'] - 1):+.1f} % on no limit",
                      flush=True)
        for mode in modes:
            if mode not in SAVING_MODES or "peak" not in results[mode]:
                continue
            result = run_plimsoll(options.plimsoll, case, results[mode]["peak"], extra)
            results[f"plimsoll as {mode}"] = result
            show(case, f"plimsoll as {mode}", result)
            if "ms" in result:
                print(f"{'':18} {'':22} {results[mode]['ms'] / result['ms']:.2f} times PyTorch's speed "
                      f"at its memory", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1)


if __name__ == "__main__":
    main()
