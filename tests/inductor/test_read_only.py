"""Memory that NumPy says is read-only is not written: by operators, small and large, eager and compiled. Bytes objects never change."""

import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch

I = torch.zeros(2, dtype=torch.int64)
WRITES = {
    "add_": lambda x: x.add_(1),
    "copy_": lambda x: x.copy_(torch.ones_like(x)),
    "a part": lambda x: x[1:].mul_(2),
    "a slice assigned": lambda x: x.__setitem__(slice(0, 5), 1.0),
    "a mask assigned": lambda x: x.__setitem__(x > 1, 1.0),
    "index_put_": lambda x: x.index_put_((I,), torch.ones(2)),
    "scatter_add_": lambda x: x.scatter_add_(0, I, torch.ones(2)),
    "normal_": lambda x: x.normal_(),
    "out=": lambda x: torch.mul(torch.ones_like(x), 2, out=x),
    "_foreach_add_": lambda x: torch._foreach_add_([torch.ones(2), x], 1.0),
    "as integers": lambda x: x.view(torch.int32).add_(1),
    "running mean": lambda x: torch.nn.functional.batch_norm(
        torch.ones(4, len(x)), x, torch.ones(len(x)), training=True
    ),
}


@pytest.mark.parametrize("size", [10, 70_000])
@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
@pytest.mark.parametrize("name", WRITES)
def test_refused(name, backend, size):
    data = np.full(size, 3, np.float32).tobytes()
    kept = bytes(bytearray(data))
    x = torch.from_numpy(np.frombuffer(data, np.float32))
    write = WRITES[name] if backend is None else torch.compile(WRITES[name], backend=backend)
    for _ in range(3):  # large arguments get a kernel at the second call of a description
        with pytest.raises(RuntimeError, match="read-only"):
            write(x)
        assert data == kept


STORED = {
    "an element": lambda s: s.__setitem__(0, 1),
    "all": lambda s: s.fill_(1),
    "copy_": lambda s: s.copy_(torch.ones(s.nbytes(), dtype=torch.uint8).untyped_storage()),
    "set_": lambda s: torch.empty(0).set_(s, 0, (4,), (1,)).add_(1),
}


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("base", ["bytes", "array"])
def test_of_the_storage(base, name):
    """The storage of a read-only view of an array that its owner may write to, too."""
    array = np.zeros(8, np.float32)
    view = array[:] if base == "array" else np.frombuffer(bytes(32), np.float32)
    view.flags.writeable = False
    with pytest.raises((RuntimeError, ValueError), match="read-only"):
        STORED[name](torch.from_numpy(view).untyped_storage())
    assert not view.any()
    array += 1  # what the owner writes is seen
    assert torch.from_numpy(view).sum() == (8 if base == "array" else 0)


def test_of_an_optimizer():
    data = np.full(10, 3, np.float32).tobytes()
    kept = bytes(bytearray(data))
    p = torch.nn.Parameter(torch.from_numpy(np.frombuffer(data, np.float32)))
    optimizer = torch.optim.AdamW([p])
    for _ in range(6):
        p.grad = torch.ones(10)
        with pytest.raises(RuntimeError, match="read-only"):
            optimizer.step()
        assert data == kept


def test_of_a_mapping(tmp_path):
    """A write would be a crash."""
    np.ones(70_000, np.float32).tofile(tmp_path / "x")
    program = f"""
import numpy as np, flambeau as torch
x = torch.from_numpy(np.memmap({str(tmp_path / "x")!r}, np.float32, "r"))
for f in (lambda x: x.add_(1), torch.compile(lambda x: x.mul_(2))):
    try:
        f(x)
    except RuntimeError as e:
        print("read-only" in str(e))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout.split()) == (0, ["True", "True"]), done.stderr


def test_it_stays_so_through_a_kernel():
    x = torch.from_numpy(np.frombuffer(bytes(400_000), np.float32))
    assert not x.numpy().flags.writeable and not x.view(10, -1).numpy().flags.writeable
