#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains small networks in PyTorch and stores what comes out, for nn/pytorch_for_test.h.

    /usr/bin/python3 scripts/make_pytorch_values.py > data/pytorch/values.json

Weights, inputs and labels are given by formulas that the test knows too, so that nothing else needs
to be stored. The layouts are Plimsoll's: weights of convolutions O, H, W, I, images N, H, W, C.

Learning rates are low enough that rounding stays rounding for 20 steps while every loss falls at
each. At 0.1 for SGD and 0.01 for AdamW only "recurrent" is so: the losses of "plain" become 0 in
floats, of which no tolerance is relative, and "residual", with batch norms over four samples, and
"transformer" make a hundred times as much of a last bit. At the rates below, operands of products
and convolutions that are off by 5e-7 at random move losses by up to 3.1e-6, and by what TF32
rounds off up to 0.4 %; at 0.1 that is nearly all of a loss.
"""

import json
import math

import numpy
import torch
import torch.nn.functional as F

STEPS = 20
BATCH = 4


def pattern(count, salt):
    """Numbers between -1 and 1 that look like noise: the same as Pattern() of the test."""
    i = numpy.arange(count, dtype=numpy.uint64)
    mixed = ((i + 1) * 2654435761 + salt * 40503) % 2147483647
    mixed = (mixed * 48271) % 2147483647
    return (mixed % 20001).astype(numpy.float64) / 10000.0 - 1.0


class Parameters:
    """Makes parameters in the order in which Plimsoll has them."""

    def __init__(self):
        self.values = []

    def add(self, shape, scale, offset=0.0, permute=None):
        """`shape` and the formula are Plimsoll's; `permute` gives PyTorch's layout."""
        values = pattern(math.prod(shape), len(self.values) + 1) * scale + offset
        tensor = torch.tensor(values.reshape(shape), dtype=torch.float32)
        if permute:
            tensor = tensor.permute(*permute).contiguous()
        tensor.requires_grad_(True)
        self.values.append(tensor)
        return tensor

    def conv(self, out, kernel, channels):
        scale = math.sqrt(3.0 / (kernel * kernel * channels))
        return self.add((out, kernel, kernel, channels), scale, permute=(0, 3, 1, 2))

    def linear(self, out, features):
        return self.add((out, features), math.sqrt(3.0 / features))

    def vector(self, count, offset=0.0):
        return self.add((count,), 0.1, offset)

    def norm(self, count):
        """Weight and bias; running statistics count as parameters, but are not trained."""
        return self.vector(count, 1.0), self.vector(count)

    def skip(self, count):
        self.values.extend([None] * count)


class Residual:
    name = "residual"
    classes = 5
    learning_rates = {"sgd": 0.003, "adamw": 0.001}

    def __init__(self):
        p = self.p = Parameters()
        self.stem = p.conv(8, 3, 3)
        self.stem_norm = p.norm(8)
        p.skip(2)
        self.one = p.conv(8, 3, 8)
        self.one_norm = p.norm(8)
        p.skip(2)
        self.two = p.conv(12, 3, 8)
        self.two_bias = p.vector(12)
        self.past = p.conv(12, 1, 8)
        self.past_bias = p.vector(12)
        self.fc = p.linear(5, 24)
        self.fc_bias = p.vector(5)

    def batch(self):
        values = pattern(BATCH * 8 * 8 * 3, 1000).reshape(BATCH, 8, 8, 3)
        x = torch.tensor(values, dtype=torch.float32).permute(0, 3, 1, 2).contiguous()
        return x, torch.tensor([(3 * i + 1) % 5 for i in range(BATCH)])

    def loss(self, x, labels):
        def norm(y, w):
            return F.batch_norm(y, None, None, w[0], w[1], training=True, eps=1e-5)

        x = F.relu(norm(F.conv2d(x, self.stem, padding=1), self.stem_norm))
        y = F.relu(norm(F.conv2d(x, self.one, padding=1), self.one_norm))
        y = F.conv2d(y, self.two, self.two_bias, stride=2, padding=1)
        x = F.relu(y + F.conv2d(x, self.past, self.past_bias, stride=2))
        x = torch.cat([x, F.max_pool2d(x, 3, 1, 1)], dim=1)
        x = F.linear(x.mean(dim=(2, 3)), self.fc, self.fc_bias)
        return F.cross_entropy(x, labels)


class Plain:
    """What AlexNet and UNet have: large kernels, LRN, average pooling, transposed convolutions."""

    name = "plain"
    classes = 3
    learning_rates = {"sgd": 0.003, "adamw": 0.001}

    def __init__(self):
        p = self.p = Parameters()
        self.one = p.conv(8, 5, 3)
        self.one_bias = p.vector(8)
        # Ours is O, H, W, I for transposed convolutions as well.
        self.up = p.add((6, 2, 2, 8), 0.3, permute=(3, 0, 1, 2))
        self.up_bias = p.vector(6)
        self.fc = p.linear(3, 384)
        self.fc_bias = p.vector(3)

    def batch(self):
        values = pattern(BATCH * 16 * 16 * 3, 1000).reshape(BATCH, 16, 16, 3)
        x = torch.tensor(values, dtype=torch.float32).permute(0, 3, 1, 2).contiguous()
        return x, torch.tensor([(3 * i + 1) % 3 for i in range(BATCH)])

    def loss(self, x, labels):
        x = torch.sigmoid(F.conv2d(x, self.one, self.one_bias, stride=2, padding=2))
        x = F.local_response_norm(x, 3, alpha=0.5, beta=0.75, k=1.0)
        x = F.avg_pool2d(x, 2)
        x = torch.tanh(F.conv_transpose2d(x, self.up, self.up_bias, stride=2))
        x = x.permute(0, 2, 3, 1).reshape(BATCH, -1)
        return F.cross_entropy(F.linear(x, self.fc, self.fc_bias), labels)


def tokens(length, vocabulary):
    ids = [[(7 * i + 5 * t + i * t) % vocabulary for t in range(length)] for i in range(BATCH)]
    labels = [[(3 * i + 2 * t + 1) % vocabulary for t in range(length)] for i in range(BATCH)]
    return torch.tensor(ids), torch.tensor(labels)


class Transformer:
    name = "transformer"
    classes = 13
    learning_rates = {"sgd": 0.03, "adamw": 0.003}

    def __init__(self):
        p = self.p = Parameters()
        self.table = p.add((13, 16), 0.5)
        self.positions = p.add((10, 16), 0.5)
        self.norm1 = p.norm(16)
        self.qkv = p.linear(48, 16)
        self.qkv_bias = p.vector(48)
        self.project = p.linear(16, 16)
        self.project_bias = p.vector(16)
        self.norm2 = p.norm(16)
        self.up = p.linear(32, 16)
        self.up_bias = p.vector(32)
        self.down = p.linear(16, 32)
        self.down_bias = p.vector(16)

    def batch(self):
        return tokens(8, 13)

    def loss(self, ids, labels):
        def norm(y, w):
            return F.layer_norm(y, (16,), w[0], w[1], eps=1e-5)

        x = F.embedding(ids, self.table) + self.positions[:8]
        y = F.linear(norm(x, self.norm1), self.qkv, self.qkv_bias)
        q, k, v = (part.reshape(BATCH, 8, 2, 8).transpose(1, 2) for part in y.split(16, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(8)
        mask = torch.triu(torch.ones(8, 8, dtype=torch.bool), diagonal=1)
        y = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=3) @ v
        y = y.transpose(1, 2).reshape(BATCH, 8, 16)
        x = x + F.linear(y, self.project, self.project_bias)
        y = F.gelu(F.linear(norm(x, self.norm2), self.up, self.up_bias), approximate="tanh")
        x = x + F.linear(y, self.down, self.down_bias)
        return F.cross_entropy(F.linear(x, self.table).reshape(-1, 13), labels.reshape(-1))


class Recurrent:
    name = "recurrent"
    classes = 11
    learning_rates = {"sgd": 0.1, "adamw": 0.01}

    def __init__(self):
        p = self.p = Parameters()
        self.table = p.add((11, 6), 0.5)
        self.w_input = p.linear(32, 6)
        self.w_hidden = p.linear(32, 8)
        self.bias = p.vector(32)
        self.out = p.linear(11, 8)
        self.out_bias = p.vector(11)

    def batch(self):
        return tokens(7, 11)

    def loss(self, ids, labels):
        x = F.embedding(ids, self.table)
        h = torch.zeros(BATCH, 8)
        c = torch.zeros(BATCH, 8)
        outputs = []
        for t in range(7):
            gates = F.linear(x[:, t], self.w_input, self.bias) + F.linear(h, self.w_hidden)
            i, f, g, o = gates.split(8, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        x = F.linear(torch.stack(outputs, dim=1), self.out, self.out_bias)
        return F.cross_entropy(x.reshape(-1, 11), labels.reshape(-1))


def train(network, optimizer_name):
    """Returns the losses of all steps, and the norms of gradients of the first."""
    rate = network.learning_rates[optimizer_name]
    trained = [value for value in network.p.values if value is not None]
    if optimizer_name == "adamw":
        optimizer = torch.optim.AdamW(trained, lr=rate, weight_decay=0.1)
    else:
        optimizer = torch.optim.SGD(trained, lr=rate, momentum=0.9, weight_decay=0.01)
    x, labels = network.batch()
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = network.loss(x, labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            norms = [None if v is None else v.grad.double().norm().item() for v in network.p.values]
        optimizer.step()
    return {"learning_rate": rate, "losses": losses, "gradient_norms": norms}


def main():
    torch.set_num_threads(1)
    result = {"pytorch": torch.__version__}
    for kind in (Residual, Plain, Transformer, Recurrent):
        result[kind.name] = {name: train(kind(), name) for name in kind.learning_rates}
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
