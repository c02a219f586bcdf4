"""Random calls never crash: any function, any arguments, valid or not. A Python exception is an answer; a signal is not.

The calls run in a process of their own, so that a crash fails the test with the seed that made it. The short run is part of the suite, the
long one is marked slow.
"""

import os
import subprocess
import sys

import pytest

PROGRAM = r"""
import faulthandler, random, sys, warnings

import numpy as np

import flambeau as torch

faulthandler.enable()
warnings.simplefilter("ignore")
seed, count = map(int, sys.argv[1:])
rng = random.Random(seed)
F = torch.nn.functional
LEFT_OUT = {"set_num_threads", "set_default_dtype", "set_default_device", "save", "load", "compile", "manual_seed", "seed", "set_printoptions",
            "set_num_interop_threads", "fork", "wait", "set_grad_enabled", "import_module", "export", "from_file", "set_deterministic_debug_mode",
            "use_deterministic_algorithms", "set_float32_matmul_precision", "set_warn_always", "set_flush_denormal", "set_rng_state"}
places = [(torch, [n for n in dir(torch) if isinstance(getattr(torch, n, None), torch._C.Function)]),
          (F, [n for n in dir(F) if callable(getattr(F, n)) and not isinstance(getattr(F, n), type)]),
          (torch.Tensor, [n for n in dir(torch.Tensor) if callable(getattr(torch.Tensor, n, None)) and not n.startswith("_")]),
          (torch.Tensor, ["__getitem__", "__setitem__", "__add__", "__matmul__", "__pow__", "__rsub__", "__floordiv__"])]
calls = [(getattr(p, n), n) for p, names in places for n in names if n not in LEFT_OUT]
kept = []


def tensor():
    if kept and rng.random() < 0.3:
        return rng.choice(kept)
    shape = [rng.choice((0, 1, 2, 3, 5)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4)))]
    dtype = rng.choice((np.float32,) * 5 + (np.float64, np.int64, np.int64, np.int32, np.uint8, np.bool_, np.float16, np.complex64))
    a = (np.random.default_rng(rng.randrange(99)).random(shape) * rng.choice((1, 4, 200)) - rng.choice((0, 1))).astype(dtype)
    t = torch.from_numpy(np.ascontiguousarray(a).reshape(shape))
    kind = rng.random()
    try:
        if kind < 0.15:
            t = t.expand(rng.choice((1, 2)), *t.shape)
        elif kind < 0.3:
            t = t.transpose(0, -1)
        elif kind < 0.4:
            t = t[..., ::2]
        elif kind < 0.5:
            t = t.detach().clone().requires_grad_()
        elif kind < 0.53:
            t = t.to("meta")
    except (RuntimeError, IndexError):
        pass
    return t


def number():
    return rng.choice((0, 1, -1, 2, 3, -7, 0.5, -1.5, 1e30, float("nan"), float("inf"), True, 2**31, 2**63, -2**63, 2**70, 1j))


def small():
    return rng.choice((0, 1, -1, 2, 3, -2, 5, -7))


def value(depth=0):
    k = rng.random()
    if k < 0.55:
        return tensor()
    if k < 0.7:
        return small()
    if k < 0.78:
        return number()
    if k < 0.9 and depth < 2:
        return rng.choice((list, tuple))(value(depth + 1) if rng.random() < 0.4 else small() for _ in range(rng.randrange(4)))
    return rng.choice((None, "sum", "mean", "none", "floor", slice(None), slice(0, 2), slice(3, None, 2), Ellipsis, torch.float32, torch.int64,
                       torch.bool, torch.device("cpu"), np.float32(2), np.ones(2), {}, object(), "cpu"))


for i in range(count):
    fn, name = rng.choice(calls)
    args = [value() for _ in range(rng.choice((1, 1, 2, 2, 2, 3, 4)))]
    if rng.random() < 0.85:
        args[0] = tensor()
    kwargs = {}
    if rng.random() < 0.2:
        kwargs[rng.choice(("dim", "keepdim", "dtype", "out", "alpha", "value", "other", "reduction", "unknown"))] = value()
    try:
        out = fn(*args, **kwargs)
        if isinstance(out, torch.Tensor) and out.numel() < 1000:
            kept.append(out)
            del kept[:-20]
            if out.requires_grad and rng.random() < 0.3:
                out.sum().backward()
    except RecursionError:
        raise
    except Exception:
        pass
    if not torch.is_grad_enabled():
        torch.set_grad_enabled(True)
print("done", count)
"""


def run(seed: int, count: int):
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n{PROGRAM}"
    r = subprocess.run(
        [sys.executable, "-c", limited, str(seed), str(count)],
        capture_output=True,
        text=True,
        timeout=540,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "FLAMBEAU_EAGER_KERNELS": "0"},
    )
    assert r.returncode == 0 and f"done {count}" in r.stdout, f"seed {seed}: exit {r.returncode}\n{r.stderr[-3000:]}"


def test_some_random_calls():
    run(0, 1500)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 6))
def test_many_random_calls(seed):
    run(seed, 5000)
