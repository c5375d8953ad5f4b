#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains ResNet-18 (CIFAR-size input) and VGG-11 in Plimsoll, without a limit, and in PyTorch.

Both run on the same threads, in turn, several times; the medians of their steps are compared. Needs
PyTorch (Debian's python3-torch will do). Usage: compare_pytorch.py [PLIMSOLL] [--threads N]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def resnet18(nn):
    class Block(nn.Module):
        def __init__(self, inside, outside, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outside)
            self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outside)
            self.relu = nn.ReLU(inplace=True)
            self.shortcut = nn.Sequential()
            if stride != 1 or inside != outside:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
                )

        def forward(self, x):
            y = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))

    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    inside = 64
    for stage, outside in enumerate([64, 128, 256, 512]):
        for block in range(2):
            layers.append(Block(inside, outside, 2 if stage > 0 and block == 0 else 1))
            inside = outside
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
    return nn.Sequential(*layers)


def vgg11(nn):
    layers = []
    inside = 3
    for outside in [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"]:
        if outside == "M":
            layers.append(nn.MaxPool2d(2, 2))
            continue
        layers += [nn.Conv2d(inside, outside, 3, padding=1), nn.ReLU(inplace=True)]
        inside = outside
    layers += [nn.Flatten(), nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True), nn.Dropout()]
    layers += [nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers)


# Name in Plimsoll, network in PyTorch, pixels, classes.
NETWORKS = [("resnet18-cifar", resnet18, 32, 10), ("vgg11", vgg11, 224, 1000)]


def time_pytorch(build, pixels, classes, batch, steps, threads, channels_last):
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = build(torch.nn).train()
    data = torch.randn(batch, 3, pixels, pixels)
    labels = torch.randint(classes, (batch,))
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        data = data.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_function = torch.nn.CrossEntropyLoss()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_function(model(data), labels)
        loss.backward()
        optimizer.step()
        loss.item()
        times.append((time.perf_counter() - begin) * 1e3)
    return times[2:]


def time_plimsoll(program, model, batch, steps, threads):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    command = [program, "train", "--model", model, "--batch", str(batch), "--steps", str(steps)]
    output = subprocess.run(command + ["--json"], env=environment, check=True, capture_output=True)
    return json.loads(output.stdout)["step_ms"][2:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plimsoll", nargs="?", default="build/release/cli/plimsoll")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="one of " + ", ".join(name for name, *_ in NETWORKS))
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("PyTorch is missing: install python3-torch", file=sys.stderr)
        return 1
    print(f"PyTorch {torch.__version__}, batch {arguments.batch}, {arguments.threads} threads")
    print(f"{'network':<16}{'plimsoll ms':>12}{'pytorch ms':>12}{'channels_last':>15}{'speed':>8}")
    for name, build, pixels, classes in NETWORKS:
        if arguments.only and arguments.only != name:
            continue
        steps = 8 if pixels == 32 else 3
        ours, plain, last = [], [], []
        for _ in range(arguments.rounds):
            common = (build, pixels, classes, arguments.batch, steps, arguments.threads)
            ours += time_plimsoll(arguments.plimsoll, name, arguments.batch, steps, arguments.threads)
            plain += time_pytorch(*common, False)
            last += time_pytorch(*common, True)
        own, theirs, best = (statistics.median(x) for x in (ours, plain, last))
        speed = min(theirs, best) / own
        print(f"{name:<16}{own:>12.1f}{theirs:>12.1f}{best:>15.1f}{speed:>8.2f}")
    print("speed: of Plimsoll, over the faster one of PyTorch's layouts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
