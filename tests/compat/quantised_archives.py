"""The models of quantised layers of ``script_archives.py``: what PyTorch's eager flow makes of them, scripted, traced and frozen."""

import torch
from torch import nn
from torch.ao import quantization


class Images(nn.Module):
    """Convolutions, fused and in groups, a sum, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.grouped = nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.fc = nn.Linear(4 * 16, 5)
        self.sums = torch.ao.nn.quantized.FloatFunctional()

    def forward(self, x):
        x = self.relu(self.bn(self.conv(self.quant(x))))
        x = self.sums.add(x, self.grouped(x))
        return self.dequant(self.fc(x.flatten(1)))


class Held(nn.Module):
    """A layer inside of a module, which may be replaced."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTMCell(6, 5), nn.GRUCell(5, 5)
        self.tanh, self.relu = nn.RNNCell(5, 5), nn.RNNCell(5, 5, nonlinearity="relu")

    def forward(self, x):
        h, c = self.lstm(x)
        return self.relu(self.tanh(self.gru(h, c)), c)


class Sequences(nn.Module):
    """An LSTM that runs sequences of different lengths."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, bidirectional=True, batch_first=True)

    def forward(self, x, lengths: torch.Tensor):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, (h, c) = self.lstm(packed)
        return nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0], h, c


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags, self.rows = nn.EmbeddingBag(10, 8, mode="sum"), nn.Embedding(10, 8)

    def forward(self, x):
        return self.bags(x), self.rows(x)


def converted(model, data, qconfig=None):
    """The model with quantised layers, whose scales ``data`` gives."""
    model.qconfig = qconfig or quantization.get_default_qconfig("fbgemm")
    ready = quantization.prepare(model)
    ready(data)
    return quantization.convert(ready)


def between(*layers):
    return nn.Sequential(quantization.QuantStub(), *layers, quantization.DeQuantStub()).eval()


def dynamic(model, kinds, dtype=torch.qint8):
    return quantization.quantize_dynamic(model.eval(), kinds, dtype=dtype)


def modules():
    """{name: (module of TorchScript, its calls)}."""
    torch.backends.quantized.engine = "fbgemm"
    script, trace, freeze = torch.jit.script, torch.jit.trace, torch.jit.freeze
    image, rows, steps = torch.randn(2, 1, 6, 6), torch.randn(3, 6), torch.randn(4, 2, 6)
    line, cube = torch.randn(2, 4, 9), torch.randn(2, 4, 4, 4, 4)
    whole = quantization.QConfig(quantization.default_observer, quantization.default_weight_observer)
    images = converted(quantization.fuse_modules(Images().eval(), [["conv", "bn", "relu"]]), image)
    deep = converted(between(nn.Conv3d(4, 3, 2), nn.Conv3d(3, 2, 2)), cube, whole)
    lines = converted(between(nn.Conv1d(4, 6, 3, padding=1), nn.ReLU()), line, whole)
    up = converted(
        between(nn.ConvTranspose2d(1, 3, 3, 2, 1, 1), nn.Conv2d(3, 2, 3, padding=1, padding_mode="reflect")),
        image,
        whole,
    )
    tables = Tables().eval()
    tables.qconfig = quantization.float_qparams_weight_only_qconfig
    lstm = dynamic(Held(nn.LSTM(6, 5, 2, bidirectional=True)), {nn.LSTM})
    linear = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    half = nn.Sequential(nn.Linear(6, 6), Held(nn.GRU(6, 5)))
    cells = dynamic(Cells(), {nn.LSTMCell, nn.GRUCell, nn.RNNCell})
    indices, padded = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.randn(3, 4, 6)
    return {
        "codes_scripted": (script(images), [("forward", (image,))]),
        "codes_frozen": (freeze(script(images)), [("forward", (image,))]),
        "codes_volumes": (freeze(script(deep)), [("forward", (cube,))]),
        "codes_lines": (freeze(script(lines)), [("forward", (line,))]),
        "codes_transposed": (freeze(script(up)), [("forward", (image,))]),
        "codes_tables": (freeze(script(quantization.convert(quantization.prepare(tables)))), [("forward", (indices,))]),
        "codes_linear": (trace(dynamic(linear, {nn.Linear}), rows), [("forward", (rows,))]),
        "codes_lstm": (script(lstm), [("forward", (steps,))]),
        "codes_cells": (freeze(script(cells)), [("forward", (rows,))]),
        "codes_sequences": (
            script(dynamic(Sequences(), {nn.LSTM})),
            [("forward", (padded, torch.tensor([2, 4, 1])))],
        ),
        "halves": (
            freeze(script(dynamic(half, {nn.Linear, nn.GRU}, torch.float16))),
            [("forward", (steps,))],
        ),
    }
