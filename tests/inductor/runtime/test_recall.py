"""Whole compiled graphs on disk: who finds them lowers nothing, what changes the result is in their name, damage is noticed."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from flambeau import _runtime

PROGRAM = """
import sys
import flambeau as torch
from flambeau.inductor import compile as passes
from flambeau.inductor.settings import config
lowered = []
original = passes.compile_program
passes.compile_program = lambda *a, **k: lowered.append(1) or original(*a, **k)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
x, table = torch.randn(5, 6), torch.tensor([2, 0, 1])

def loss(x):
    return (net(x)[:, table] * torch.tensor([1.0, 2.0, 3.0])).logsumexp(1).sum()

f = torch.compile(loss) if CHANGES is None else torch.compile(loss, options=CHANGES)
step = torch.compile(optimizer.step)
for _ in range(3):
    f(x).backward()
    step()
    optimizer.zero_grad()
with torch.no_grad():
    print(len(lowered), f(x).item().hex(), "llvmlite" in sys.modules)
"""


SIZES = """
import sys
import flambeau as torch
from flambeau.inductor import compile as passes
lowered = []
original = passes.compile_program
passes.compile_program = lambda *a, **k: lowered.append(1) or original(*a, **k)
f = torch.compile(lambda x, s, n: (x.exp() * s + x.size(0)).softmax(-1).sum(0) @ x[:n].sum(0), dynamic=True)
total = 0.0
for k in CHANGES:
    torch.manual_seed(k)
    x = torch.randn(k, 5, requires_grad=True)
    y = f(x, k / 4, k - 1)
    y.backward()
    total += y.item() + x.grad.square().sum().item()
print(len(lowered), total.hex(), "llvmlite" in sys.modules)
"""


def ran(cache, changes, program):
    return subprocess.run(
        [sys.executable, "-c", f"CHANGES = {changes!r}\n{program}"],
        env={**os.environ, "FLAMBEAU_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )


def run(cache, changes=None, program=PROGRAM):
    done = ran(cache, changes, program)
    lowered, value, llvm = done.stdout.split()
    return int(lowered), value, llvm == "True", done.stderr


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """What the first process of a cache says, and that cache."""
    cache = tmp_path_factory.mktemp("first")
    return run(cache), cache


@pytest.fixture
def known(first, tmp_path):
    """A copy of it."""
    shutil.copytree(first[1], tmp_path, symlinks=True, dirs_exist_ok=True)
    return first[0]


def test_a_second_process_lowers_nothing(known, tmp_path):
    lowered, value, _, _ = known
    assert lowered >= 3  # forward and backward, the optimizer
    again, same, llvm, _ = run(tmp_path)
    assert (again, same) == (0, value)
    assert not llvm or sys.platform != "linux" or _runtime.load_objects([], []) is None  # nor imports LLVM

    files = sorted(p for p in pathlib.Path(tmp_path, "entries", "graphs").rglob("*") if p.is_file())
    assert files
    for k, path in enumerate(files):
        data = bytearray(path.read_bytes())
        data[(k * 997) % len(data)] ^= 0x20
        path.write_bytes(bytes(data) if k % 2 else bytes(data[: len(data) // 2]))
    mended, same, _, said = run(tmp_path)
    assert (mended, same) == (lowered, value) and said.count("is damaged") == len(files)
    assert run(tmp_path)[0] == 0


def test_graphs_of_symbolic_sizes_are_kept(tmp_path):
    lowered, value, _, _ = run(tmp_path, (4, 7, 9), SIZES)
    assert lowered >= 2
    again, same, llvm, _ = run(tmp_path, (4, 7, 9), SIZES)
    assert (again, same) == (0, value)
    assert not llvm or sys.platform != "linux" or _runtime.load_objects([], []) is None
    fresh = run(tmp_path / "other", (6, 3, 11), SIZES)
    other = run(tmp_path, (6, 3, 11), SIZES)  # other examples, by which sums may be cut elsewhere
    assert float.fromhex(other[1]) == pytest.approx(float.fromhex(fresh[1]), rel=1e-6)


def test_settings_are_part_of_the_name(known, tmp_path):
    _, value, _, _ = known
    other, same, _, _ = run(tmp_path, {"fusion": False})
    assert other > 0 and abs(float.fromhex(same) - float.fromhex(value)) < 1e-4
    assert run(tmp_path, {"force_disable_caches": True})[0] > 0
    assert run(tmp_path)[0] == 0


OBJECTS = [b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + b"\0" * 57, b"\x7fELF\x02\x01\x01" + b"\xff" * 200]


@pytest.mark.parametrize("data", OBJECTS)
def test_what_is_no_object_code_is_left_to_llvm(data):
    assert _runtime.load_objects([data], [("kernel",)]) is None


def test_arguments_of_the_linker_are_checked():
    with pytest.raises(TypeError):
        _runtime.load_objects(["text"], [("kernel",)])
    for names in ("kernel", ["kernel"], (1,)):
        with pytest.raises(TypeError):
            _runtime.load_objects([b""], [names])
    with pytest.raises(ValueError):
        _runtime.load_objects([b""], [])


TEMPLATES = """
import sys
import flambeau as torch
from flambeau.inductor import compile as passes
F = torch.nn.functional
lowered = []
original = passes.compile_program
passes.compile_program = lambda *a, **k: lowered.append(1) or original(*a, **k)
R = lambda *shape: torch.linspace(-1, 1, int(torch.ones(shape).numel())).reshape(shape)
ROWS = {
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1), (R(1, 3, 8, 8), R(4, 3, 3, 3))),
    "attention": (lambda q, k: F.scaled_dot_product_attention(q, k, k), (R(1, 2, 9, 8), R(1, 2, 9, 8))),
    "product": (lambda x, y: (x @ y).relu(), (R(33, 17), R(17, 5))),
    "product of 16 bits": (lambda x, y: x.bfloat16() @ y.bfloat16(), (R(33, 17), R(17, 5))),
    "transform": (lambda x: torch.fft.rfft(x).abs(), (R(16, 32),)),
    "solution": (lambda a, b: torch.linalg.solve(a + 9 * torch.eye(5), b), (R(5, 5), R(5, 2))),
    "order": (lambda x: x.sort(1)[1], (R(9, 33),)),
}

def compute(name):
    f, tensors = ROWS[name]
    print(len(lowered), torch.compile(f)(*tensors).double().sum().item().hex(), flush=True)

"""
TOGETHER = """
for name in CHANGES:
    compute(name)
"""
# Each alone, in a process that has made the operands and nothing else.
APART = """
import os
for name in CHANGES:
    child = os.fork()
    if not child:
        compute(name)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""
NAMES = ["convolution", "attention", "product", "product of 16 bits", "transform", "solution", "order"]


def test_native_kernels_in_a_process_that_lowers_nothing(tmp_path):
    """What lowering finds for a template, as the library of products is, a process that recalls the graph has to find too."""
    cold = ran(tmp_path, NAMES, TEMPLATES + TOGETHER).stdout.splitlines()
    warm = ran(tmp_path, NAMES, TEMPLATES + APART).stdout.splitlines()
    for name, again, line in zip(NAMES, warm, cold, strict=True):
        assert again.split() == ["0", line.split()[1]], name
