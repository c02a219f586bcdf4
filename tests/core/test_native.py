"""The native call paths: leaks, threads, release of deep graphs, agreement of the fast and the general path."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode


class Pass(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


X, Y = torch.ones(4), torch.ones(4)
G = torch.ones(4, requires_grad=True)
CALLS = {
    "add": lambda: X + Y,
    "number": lambda: X * 2.0,
    "method": lambda: X.sum(0),
    "view": lambda: X.view(2, 2),
    "overload": lambda: torch.max(X, 0),
    "factory": lambda: torch.zeros(2, 2),
    "grad": lambda: (G * G).sum(),
    "operator": lambda: torch.ops.aten.add.Tensor(X, Y, alpha=2),
    "property": lambda: X.shape,
    "index": lambda: X[1:],
    "error": lambda: _refused(),
}


def _refused():
    with pytest.raises(RuntimeError):
        X + torch.ones(3)


@pytest.mark.parametrize("mode", [False, True], ids=["plain", "mode"])
@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_no_references(name, mode):
    f = CALLS[name]
    watched = [X, Y, G, X.dtype, X.device, torch.Tensor, None]

    def run(n):
        for _ in range(n):
            f()

    def counts():
        gc.collect()
        return [sys.getrefcount(o) for o in watched]

    def measure():
        if mode:
            with Pass():
                run(5)
        else:
            run(5)
        before = counts()
        if mode:
            with Pass():
                run(200)
        else:
            run(200)
        return max(abs(a - b) for a, b in zip(before, counts()))

    # What is made once (a compiled plan, a module that is imported) isn't made a second time.
    assert measure() < 100 or measure() < 100


def test_results_are_released():
    t = X + Y
    ref = weakref.ref(t)
    del t
    assert ref() is None
    a = np.ones(3)
    before = sys.getrefcount(a)
    t = torch.from_numpy(a)
    t = t + 1
    del t
    assert sys.getrefcount(a) == before


def test_deep_graph_is_released_without_recursion():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(30_000):
        y = y + 1
    del y
    gc.collect()


def test_threads_share_operators():
    errors = []

    def work(k):
        try:
            for i in range(300):
                x = torch.full((3,), float(k))
                with Pass():
                    assert (x + i).sum().item() == 3.0 * (k + i)
                assert torch.max(x, 0)[0].item() == k
        except BaseException as e:  # noqa: BLE001
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


@pytest.mark.parametrize("name", ["exp", "neg", "sqrt", "sin", "abs"])
@pytest.mark.parametrize("size", [5, 1 << 16])
def test_fast_and_general_path_agree(name, size):
    x = torch.linspace(0.1, 2.0, size)
    fast = getattr(x, name)()
    with Pass():
        general = getattr(x, name)()
    plain = getattr(np, {"neg": "negative", "abs": "absolute"}.get(name, name))(x.numpy())
    for r in (fast, general):
        assert r.dtype is torch.float32 and np.allclose(r.numpy(), plain, rtol=1e-6)


def test_a_factory_on_another_device_after_one_on_the_cpu():
    assert torch.ones(2).device.type == "cpu"
    meta = torch.ones(2, device="meta")
    assert meta.device.type == "meta" and meta._array is None


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (2, 3), (1,)])
def test_equal_of_each_shape(shape):
    a = torch.ones(shape)
    assert torch.equal(a, torch.ones(shape)) and not torch.equal(a, torch.ones(*shape, 2))
    assert torch.equal(a, torch.zeros(shape)) is (a.numel() == 0)
