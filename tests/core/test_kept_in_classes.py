"""Functions kept as attributes of classes: those that PyTorch has in C are read as they are, those that it has in Python are methods."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

AS_THEY_ARE = [
    torch.add,
    torch.relu,
    torch.conv2d,
    torch.where,
    torch.nonzero,
    torch.is_complex,
    torch.tensor,
    torch.linalg.svd,
]
AS_THEY_ARE += [torch.fft.fft, torch.special.erf, F.conv2d, F.linear, F.gelu, F.avg_pool2d]
METHODS = [
    F.relu,
    F.softmax,
    F.cross_entropy,
    torch.einsum,
    torch.split,
    torch.unique,
    torch.Tensor.add,
    torch.Tensor.to,
]


@pytest.mark.parametrize("f", AS_THEY_ARE + METHODS, ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_what_an_instance_reads(f):
    class Holder:
        kept = f

    assert (Holder().kept is f) is any(f is g for g in AS_THEY_ARE) and Holder.kept is f


@pytest.mark.parametrize("backend", [None, "eager", "inductor"])
def test_a_module_calls_what_its_class_keeps(backend):
    class Doubled(nn.Module):
        conv = torch.conv2d
        combine = torch.add

        def forward(self, x, w):
            return self.combine(self.conv(x, w), 1)

    model, x, w = Doubled(), torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)
    if backend:
        model = torch.compile(model, backend=backend, fullgraph=True)
    assert torch.equal(model(x, w), torch.full((1, 1, 2, 2), 5.0))


def test_tensors_are_given_methods():
    class Mine(torch.Tensor):
        activated = F.relu

    x = torch.tensor([-1.0, 2.0]).as_subclass(Mine)
    assert x.activated().tolist() == [0, 2]
