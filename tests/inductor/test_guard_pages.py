"""Convolutions and their gradients read and write nothing but their arrays (products: test_products.py, attention: test_attention.py): each lies between two pages that can't be touched, once at either end."""

import subprocess
import sys

import pytest

PROGRAM = '''
import ctypes, itertools, mmap
import numpy as np
import flambeau as torch

libc, PAGE = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE
held = []

def guarded(a, at_end):
    """A copy of `a` that begins right behind, or ends right before, a page that can't be touched."""
    pages = (a.nbytes + PAGE - 1) // PAGE
    m = mmap.mmap(-1, (pages + 2) * PAGE)
    held.append(m)
    base = np.frombuffer(m, np.uint8)
    address = base.ctypes.data
    for place in (address, address + (pages + 1) * PAGE):
        assert libc.mprotect(ctypes.c_void_p(place), ctypes.c_size_t(PAGE), 0) == 0
    start = PAGE + (pages * PAGE - a.nbytes if at_end else 0)
    out = base[start : start + a.nbytes].view(a.dtype).reshape(a.shape)
    out[...] = a
    return out

rng = np.random.default_rng(0)

def convolutions():
    F = torch.nn.functional
    kinds = [(1, 1, 3, 3, 1), (2, 4, 4, 3, 1), (1, 16, 16, 3, 1), (3, 6, 6, 3, 6), (1, 3, 5, 5, 1), (2, 32, 17, 1, 1)]
    for dtype, (images, channels, outputs, size, groups) in itertools.product((np.float32, np.float64), kinds):
        for high, wide, stride, padding, dilation in [(7, 9, 1, 1, 1), (8, 8, 1, 1, 1), (12, 5, 2, 0, 1), (9, 11, 3, 2, 2), (33, 17, 1, 2, 1)]:
            if high + 2 * padding <= dilation * (size - 1) or wide + 2 * padding <= dilation * (size - 1):
                continue
            x = rng.standard_normal((images, channels, high, wide)).astype(dtype)
            w = rng.standard_normal((outputs, channels // groups, size, size)).astype(dtype)
            b = rng.standard_normal(outputs).astype(dtype)
            results = []
            for end in (0, 1, None):
                place = (lambda a: a) if end is None else (lambda a: guarded(a, end))
                args = [torch.from_numpy(place(v)).requires_grad_() for v in (x, w, b)]
                y = F.conv2d(*args, stride=stride, padding=padding, dilation=dilation, groups=groups)
                g = torch.from_numpy(place(np.ones(tuple(y.shape), dtype)))
                results.append([y.detach(), *torch.autograd.grad(y, args, g)])
            for r in results[:2]:
                for got, want in zip(r, results[2]):
                    assert torch.equal(got, want)
            del results, args, y, g
            held.clear()

convolutions()
print("done")
'''


@pytest.mark.parametrize("cpu", ["", "avx2", "default"])
def test_kernels_stay_in_their_arrays(cpu, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CPU", cpu)
    monkeypatch.setenv("FLAMBEAU_PRODUCTS", "own")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "done\n", f"{done.returncode}\n{done.stderr[-2000:]}"
