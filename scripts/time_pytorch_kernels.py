#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's CPU ops on the shapes of benchmarks/kernels.cc.

Needs PyTorch (Debian's python3-torch). Prints lines of the same names, each with the fastest of
many runs, for images laid out as N, C, H, W and as N, H, W, C (channels_last).

With --against FILE, the output of benchmarks/kernels, prints PyTorch's time over Plimsoll's too.

Usage: time_pytorch_kernels.py [--threads N] [--against FILE] [substring of names]
"""

import argparse
import re
import time

import torch
import torch.nn.functional as functional

parser = argparse.ArgumentParser()
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--against")
parser.add_argument("filter", nargs="?", default="")
options = parser.parse_args()
torch.set_num_threads(options.threads)
# On one thread, the processor's time: others may use the machine too.
now = time.process_time if options.threads == 1 else time.perf_counter
ours = {}
if options.against:
    for line in open(options.against, encoding="utf-8"):
        match = re.match(r"(.*?)\s+([\d.]+) ms ", line)
        if match:
            ours[match.group(1)] = float(match.group(2))


def fastest(function):
    """Returns the milliseconds of the fastest run in a while."""
    best = 1e9
    start = now()
    runs = 0
    while runs < 5 or (runs < 500 and now() - start < 0.3):
        before = now()
        function()
        best = min(best, (now() - before) * 1e3)
        runs += 1
    return best


def show(name, make):
    """Prints one line: `make(layout)` returns what is to be timed."""
    if options.filter not in name:
        return
    times = [fastest(make(layout)) for layout in (torch.contiguous_format, torch.channels_last)]
    text = f"{name:<34} nchw {times[0]:9.3f} ms  nhwc {times[1]:9.3f} ms"
    if name in ours:
        text += f"  ratios {times[0] / ours[name]:6.2f} {times[1] / ours[name]:6.2f}"
    print(text, flush=True)


def images(n, c, h, layout):
    return torch.full((n, c, h, h), 0.01).contiguous(memory_format=layout)


def convolution(n, ic, h, oc, k, stride, groups=1):
    name = f"conv n{n} {ic}>{oc} {h}x{h} k{k} s{stride}" + (f" g{groups}" if groups > 1 else "")
    out = (h + 2 * (k // 2) - k) // stride + 1

    def operands(layout):
        weights = torch.full((oc, ic // groups, k, k), 0.01).contiguous(memory_format=layout)
        return images(n, ic, h, layout), weights, images(n, oc, out, layout)

    def forward(layout):
        x, w, _ = operands(layout)
        return lambda: functional.conv2d(x, w, None, stride, k // 2, 1, groups)

    def backward(mask):
        def make(layout):
            x, w, dy = operands(layout)
            return lambda: torch.ops.aten.convolution_backward(
                dy, x, w, None, [stride] * 2, [k // 2] * 2, [1, 1], False, [0, 0], groups, mask
            )

        return make

    show(name + " fwd", forward)
    show(name + " dw", backward([False, True, False]))
    show(name + " dx", backward([True, False, False]))


def elementwise(n, h, c):
    name = f"n{n} {h}x{h} c{c}"
    row = torch.ones(c)

    def batch_norm(layout):
        x = images(n, c, h, layout)
        mean, variance = torch.zeros(c), torch.ones(c)
        return lambda: torch.ops.aten.native_batch_norm(
            x, row, row, mean, variance, True, 0.1, 1e-5
        )

    def batch_norm_back(layout):
        x = images(n, c, h, layout)
        return lambda: torch.ops.aten.native_batch_norm_backward(
            x, x, row, row, row, row, row, True, 1e-5, [True, True, True]
        )

    def unary(function):
        def make(layout):
            x = images(n, c, h, layout)
            return lambda: function(x)

        return make

    def pool_back(layout):
        x = images(n, c, h, layout)
        y, index = torch.ops.aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
        return lambda: torch.ops.aten.max_pool2d_with_indices_backward(
            y, x, [2, 2], [2, 2], [0, 0], [1, 1], False, index
        )

    show("bn " + name + " fwd", batch_norm)
    show("bn " + name + " bwd", batch_norm_back)
    show("relu " + name + " fwd", unary(torch.relu))
    show("relu " + name + " bwd", unary(lambda x: torch.ops.aten.threshold_backward(x, x, 0)))
    show("add " + name, unary(lambda x: x + x))
    show("dropout " + name + " fwd", unary(lambda x: functional.dropout(x, 0.5)))
    show("gelu " + name + " fwd", unary(lambda x: functional.gelu(x, approximate="tanh")))
    show("maxpool " + name + " fwd", unary(lambda x: functional.max_pool2d(x, 2, 2)))
    show("maxpool " + name + " bwd", pool_back)


def linear(rows, inputs, outputs):
    name = f"linear {rows} {inputs}>{outputs}"
    x, w = torch.full((rows, inputs), 0.01), torch.full((outputs, inputs), 0.01)
    b, y = torch.zeros(outputs), torch.full((rows, outputs), 0.01)
    show(name + " fwd", lambda layout: lambda: functional.linear(x, w, b))
    show(name + " dw", lambda layout: lambda: (y.t() @ x, y.sum(0)))
    show(name + " dx", lambda layout: lambda: y @ w)


with torch.no_grad():
    for shape in [
        (64, 3, 32, 64, 3, 1),
        (64, 64, 32, 64, 3, 1),
        (64, 64, 32, 128, 3, 2),
        (64, 64, 32, 128, 1, 2),
        (64, 128, 16, 128, 3, 1),
        (64, 128, 8, 256, 3, 1),
        (64, 256, 8, 256, 3, 1),
        (64, 512, 4, 512, 3, 1),
        (64, 512, 2, 512, 3, 1),
        (16, 3, 224, 64, 3, 1),
        (16, 64, 112, 128, 3, 1),
        (16, 256, 56, 256, 3, 1),
        (16, 512, 28, 512, 3, 1),
        (16, 512, 14, 512, 3, 1),
        (16, 256, 56, 64, 1, 1),
        (16, 64, 56, 256, 1, 1),
        (16, 3, 224, 64, 7, 2),
        (16, 128, 28, 128, 3, 1, 128),
        (64, 16, 32, 16, 3, 1),
    ]:
        convolution(*shape)
    for shape in [(64, 32, 64), (64, 16, 128), (64, 4, 512), (64, 32, 16)]:
        elementwise(*shape)
    for shape in [(64, 512, 10), (64, 4096, 4096), (1024, 768, 3072), (1024, 3072, 768)]:
        linear(*shape)
