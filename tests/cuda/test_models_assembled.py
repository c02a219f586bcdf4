"""The kernels of training steps of models, forward and backward, are made for every architecture: what NVIDIA's devices would be given, without one."""

import re

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.inductor.codegen.kernel import Kernel
from flambeau.inductor.codegen.targets import NVIDIA
from flambeau.inductor.device import compile as device_compile
from flambeau.inductor.machine import nvjitlink, nvptx

F = nn.functional
SHARED = 48 << 10  # bytes that every device has for a block
REGISTERS = 128  # with which two blocks of 256 threads are resident


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, time, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, time, width))
        return x + self.mlp(self.norm2(x))


class Residual(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.c2, self.n2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.short = nn.Conv2d(i, o, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.n2(self.c2(torch.relu(self.n1(self.c1(x))))) + self.short(x))


def gpt():
    model = nn.Sequential(
        nn.Embedding(16, 16), Block(16, 2), nn.LayerNorm(16), nn.Linear(16, 16, bias=False), nn.Flatten(0, 1)
    )
    return model, torch.arange(16).reshape(2, 8) % 16, torch.arange(16)


def residual():
    model = nn.Sequential(Residual(3, 4, 1), Residual(4, 8, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
    return model, torch.linspace(-1, 1, 2 * 3 * 64).reshape(2, 3, 8, 8), torch.tensor([0, 2])


def recurrent():
    model = nn.Sequential(
        nn.Embedding(16, 8),
        nn.Conv1d(4, 4, 3, padding=1),
        nn.Dropout(0.1),
        nn.MaxPool1d(2),
        nn.Flatten(),
        nn.Linear(16, 3),
    )
    return model, torch.arange(8).reshape(2, 4), torch.tensor([0, 2])


@pytest.fixture(params=[gpt, residual, recurrent], ids=lambda f: f.__name__)
def kernels(request, monkeypatch):
    """By text, of a step whose loss and gradients are the CPU's."""
    found, own = {}, device_compile.threads_of

    def both(lowering, groups, outputs, target):
        found.update((k.text, k) for k in own(lowering, groups, outputs, NVIDIA) if isinstance(k, Kernel))
        yield from own(lowering, groups, outputs, target)

    monkeypatch.setattr(device_compile, "threads_of", both)
    torch.compiler.reset()
    torch.manual_seed(0)
    model, x, target = request.param()
    model.eval() if request.param is recurrent else model.train()
    results = []
    for device in ("cpu", "cuda"):
        model.to(device).zero_grad()
        step = torch.compile(lambda x, t: F.cross_entropy(model(x), t))
        loss = step(x.to(device), target.to(device))
        loss.backward()
        results.append([loss.detach().cpu(), *(p.grad.cpu() for p in model.parameters())])
    for a, b in zip(*results):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    return found


def test_every_architecture(kernels):
    assert len(kernels) > 8
    for text, kernel in kernels.items():
        assert not nvptx.refused(text) and kernel.shared <= SHARED
        for architecture in nvptx.ARCHITECTURES:
            made = nvptx.assembly(text, architecture)
            assert f".target {architecture}" in made and ".local" not in made


@pytest.mark.skipif(not nvjitlink.usable(), reason="nvJitLink (flambeau[cuda]) isn't installed")
def test_registers_and_spills(kernels):
    library = nvjitlink._library()
    for text in kernels:
        for architecture in nvptx.ARCHITECTURES:
            handle = library.create(2, [f"-arch={architecture}", "-verbose"])
            assembly = nvptx.assembly(text, architecture).encode() + b"\0"
            library.add_data(handle, library.InputType.PTX, assembly, len(assembly), "kernel")
            library.complete(handle)
            told = bytearray(library.get_info_log_size(handle))
            library.get_info_log(handle, told)
            library.destroy(handle)
            assert not re.search(rb"[1-9]\d* bytes spill", told), told
            assert int(re.search(rb"Used (\d+) registers", told)[1]) <= REGISTERS
