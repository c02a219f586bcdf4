"""Convolutions and their gradients read and write nothing but their arrays (products: test_products.py, attention: test_attention.py): each lies between two pages that can't be touched, once at either end."""

import itertools

import numpy as np
import pytest
from rows import level

import flambeau as torch
from flambeau.testing import guard_pages


def convolutions() -> None:
    rng = np.random.default_rng(0)
    F = torch.nn.functional
    kinds = [
        (1, 1, 3, 3, 1),
        (2, 4, 4, 3, 1),
        (1, 16, 16, 3, 1),
        (3, 6, 6, 3, 6),
        (2, 21, 21, 3, 21),
        (1, 3, 5, 5, 1),
        (2, 32, 17, 1, 1),
    ]
    for dtype, (images, channels, outputs, size, groups) in itertools.product((np.float32, np.float64), kinds):
        for high, wide, stride, padding, dilation in [
            (7, 9, 1, 1, 1),
            (8, 8, 1, 1, 1),
            (12, 5, 2, 0, 1),
            (9, 11, 3, 2, 2),
            (33, 17, 1, 2, 1),
        ]:
            if high + 2 * padding <= dilation * (size - 1) or wide + 2 * padding <= dilation * (size - 1):
                continue
            x = rng.standard_normal((images, channels, high, wide)).astype(dtype)
            w = rng.standard_normal((outputs, channels // groups, size, size)).astype(dtype)
            b = rng.standard_normal(outputs).astype(dtype)
            results = []
            for place in (guard_pages.GuardPages(False), guard_pages.GuardPages(True), lambda a: a):
                args = [torch.from_numpy(place(v)).requires_grad_() for v in (x, w, b)]
                y = F.conv2d(*args, stride=stride, padding=padding, dilation=dilation, groups=groups)
                g = torch.from_numpy(place(np.ones(tuple(y.shape), dtype)))
                results.append([y.detach(), *torch.autograd.grad(y, args, g)])
            for r in results[:2]:
                for got, want in zip(r, results[2]):
                    assert torch.equal(got, want)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
@pytest.mark.parametrize("cpu", ["", level("avx2"), "default"])
def test_kernels_stay_in_their_arrays(cpu):
    guard_pages.run_alone(__file__, "convolutions()", FLAMBEAU_CPU=cpu, FLAMBEAU_PRODUCTS="own")
