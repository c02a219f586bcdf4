"""Products of the device's library: how cuBLASLt is called (csrc/device/cublas.c, on a library that computes what it is asked for), and graphs with such
products on the simulated device, whose own library stands for it."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cuda.test_nvidia import BEGIN, library, run

import flambeau as torch
from flambeau import _device
from flambeau.base import accelerator
from flambeau.base.enums import Element
from flambeau.inductor.device import launches, single

__all__ = ["library"]

FAKE = Path(__file__).with_name("fake_cublaslt.c")
A, B, C = (
    torch.linspace(-1, 1, 35).reshape(5, 7),
    torch.linspace(2, 3, 21).reshape(7, 3),
    torch.linspace(0, 1, 420).reshape(3, 4, 5, 7),
)
D = torch.linspace(1, 2, 168).sin().reshape(4, 2, 7, 3)
half, bfloat16 = torch.float16, torch.bfloat16

# (program, operands, how many products of the library it takes)
PROGRAMS = [
    (lambda a, b: a @ b, (A, B), 1),
    (lambda a, b: b.t() @ a.t(), (A, B), 1),
    (lambda a, b: a.t().contiguous().t() @ b, (A, B), 1),
    (lambda a, b: a[1:4, 2:5] @ b[:3], (A, B), 1),  # leading dimensions
    (lambda a, b: a @ b, (C[:2].transpose(0, 1)[:, :, 1:], D), 1),  # a batch in two dimensions
    (lambda a, b: a @ b, (C[0], D[:, 0]), 1),
    (lambda a, b: a @ b, (C[0], B), 1),
    (lambda a, b: torch.baddbmm(b, a, a.transpose(1, 2) @ b), (C[0, :, :, :5], D[:, 0, :5]), 2),
    (lambda a, b: torch.addmm(torch.ones(3, device=a.device), a, b).relu(), (A, B), 1),
    (lambda a, b: torch.nn.functional.linear(a, b), (C[0], A), 1),
    (lambda a, b: a @ b, (A.double(), B.double()), 1),
    (lambda a, b: a @ b, (A.half(), B.half()), 1),
    (lambda a, b: a @ b, (A.bfloat16(), B.bfloat16()), 1),
    (lambda a, b: a @ b[:, 0], (A, B), 0),  # a vector: it fuses with its neighbours
    (lambda a, b: a[0].half() @ b.half(), (A, B), 0),
    (lambda a, b: a.long() @ b.long(), (A, B), 0),
    (lambda a, b: a[:0] @ b, (A, B), 0),
]
NUMBERED = pytest.mark.parametrize("program, operands, many", PROGRAMS, ids=range(len(PROGRAMS)))


def forget():
    single._exact.clear()
    single._general.clear()


@pytest.fixture
def with_library():
    forget()
    accelerator.driver().library(1)
    yield
    accelerator.driver().library(0)
    forget()


@pytest.fixture
def products(with_library, monkeypatch):
    """What is launched and multiplied, by name."""
    seen, own = [], launches.Launches.run
    monkeypatch.setattr(
        launches.Launches, "run", lambda part, *rest: seen.extend(s.name for s in part.steps) or own(part, *rest)
    )
    return seen


@NUMBERED
def test_values(program, operands, many, products):
    expected, moved = program(*operands), [t.cuda() for t in operands]
    accurate = {half: 2e-3, bfloat16: 2e-2}.get(expected.dtype, 1e-5)
    for f in (program, torch.compile(program), torch.compile(program, dynamic=True)):
        products.clear()
        found = f(*moved)
        torch.testing.assert_close(found.cpu(), expected, rtol=accurate, atol=accurate)
        assert products.count("product") == many
    if expected.dtype in (half, bfloat16) and many:
        assert products == ["product"]  # nothing is widened before


def test_a_step_of_training(with_library):
    def step(device):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(7, 6), torch.nn.GELU(), torch.nn.Linear(6, 2)).to(device)
        loss = torch.compile(lambda x: model(x).square().mean())(A.to(device))
        loss.backward()
        return [loss.detach().cpu(), *(p.grad.cpu() for p in model.parameters())]

    for a, b in zip(step("cuda"), step("cpu")):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_it_is_recorded(with_library):
    a, b, graph = A.cuda(), B.cuda(), torch.cuda.CUDAGraph()
    a @ b
    with torch.cuda.graph(graph):
        c = a @ b
    a.fill_(2)
    for _ in range(2):
        graph.replay()
    torch.testing.assert_close(c.cpu(), (torch.full((5, 7), 2.0) @ B))


def test_what_the_simulated_device_sees_of_a_product(with_library):
    with pytest.raises(RuntimeError, match="never written .a product"):
        (torch.empty(5, 7, device="cuda") @ B.cuda()).tolist()
    a, b = A.cuda(), B.cuda()
    plan, memory = _device.Plan(0, 3), a._storage.device_memory
    plan.product(Element.F32, False, False, False, [0, 1, 2], [], 0)
    with pytest.raises(RuntimeError, match="invalid address"):  # 6 by 7 elements of 5 by 7
        plan.run(
            [memory, b._storage.device_memory, None],
            [0] * 3,
            memoryview(torch.tensor([0, 0, 72, 0, 0, 6, 3, 7, 7, 3, 3]).numpy()),
        )


# ---- cuBLASLt ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cublas(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("the library is made by a C compiler, and there is none")
    made = tmp_path_factory.mktemp("fake") / "libcublasLt.so.13"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, FAKE], check=True)
    return made


FOUND = """
import sys, types
pathfinder = types.ModuleType("cuda.pathfinder")
pathfinder.load_nvidia_dynamic_lib = lambda name: types.SimpleNamespace(abs_path={path!r})
sys.modules["cuda.pathfinder"] = pathfinder
sys.modules.setdefault("cuda", types.ModuleType("cuda")).pathfinder = pathfinder
"""
ASKED = """
from tests.cuda.test_products import PROGRAMS
from flambeau.inductor.device import launches
fake = ctypes.CDLL({path!r})
fake.fake_cublas_log.restype = ctypes.c_char_p
# Kernels aren't run: what a program does to its operands before is done by the host.
real = launches.Launches.run
products = [launches.ProductStep]
for program, operands, many in PROGRAMS:
    if operands[0].dtype is torch.bfloat16 or many != 1:
        continue
    kinds = []
    launches.Launches.run = lambda part, *rest: kinds.extend(type(s) for s in part.steps) or real(part, *rest)
    found = program(*(t.cuda() for t in operands))
    if kinds == products:
        torch.testing.assert_close(found.cpu(), program(*operands), rtol=1e-3, atol=1e-3)
        print("right", len(kinds))
launches.Launches.run = real
things = fake.fake_cublas_things()
a, b = torch.ones(64, 32).cuda(), torch.ones(32, 16).cuda()
before = len(fake.fake_cublas_log())
for _ in range(3):
    c = a @ b
aligned = [min(256, t.data_ptr() & -t.data_ptr()) for t in (b, a)]
torch.set_float32_matmul_precision("high")
torch.compile(lambda a, b: a @ b)(a, b)
a[:, 2:18].contiguous() @ b[:16]
a[1:] @ b
print("aligned", *aligned)
print(fake.fake_cublas_log()[before:].decode())
print("things", fake.fake_cublas_things() - things, "memory", torch.cuda.memory_allocated())
fake.fake_cublas_refuse(1)
torch.ones(8, 9).cuda() @ torch.ones(9, 8).cuda()
"""


def test_how_cublas_is_called(library, cublas):
    program = FOUND.format(path=str(cublas)) + BEGIN + ASKED.format(path=str(cublas))
    root = Path(__file__).parents[2]
    found = run(library, program, PYTHONPATH=f"{Path(torch.__file__).parents[1]}:{root}")
    lines = found.stdout.splitlines()
    assert lines.count("right 1") >= 7, found.stdout + found.stderr
    own = lines[lines.index("right 1") + lines.count("right 1") :]
    assert own.count("product 16 64 32, batch 1") == 4
    asked = [line for line in own if line.startswith("heuristic")]
    # Once for a shape, for rounded factors, for other sizes, for an operand that begins elsewhere.
    assert len(asked) == 4 and "compute 77 scale 0" in own and asked[3].endswith("aligned 256 128 256 256")
    (aligned,) = (line for line in own if line.startswith("aligned"))
    assert aligned in asked[0] and aligned.split()[1:] == asked[0].split("aligned ")[1].split()[:2]
    (end,) = (line for line in own if line.startswith("things"))
    assert end.split()[1] == "16"  # an operation and three layouts for each
    assert "cuBLASLt's status 15" in found.stderr.splitlines()[-1]


def test_without_cublas_products_are_kernels(library):
    found = run(
        library,
        "import sys\nsys.modules['cuda.pathfinder'] = None\n"
        + BEGIN
        + "accelerator.driver()\nprint(_device.products())",
        TORCH_LOGS="perf_hints",
    )
    assert found.returncode == 0, found.stderr
    assert (
        found.stdout.split() == ["False"]
        and "products don't go through cuBLASLt, which pip install 'flambeau[cuda]' brings" in found.stderr
    )
