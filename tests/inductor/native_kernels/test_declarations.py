"""Native kernels are declared once, and known nowhere by name but where they are made and where somebody says what they are handed."""

import inspect
import re
from collections import defaultdict
from pathlib import Path

import pytest

from flambeau import _runtime
from flambeau.base import kernels
from flambeau.eager.plans.native_kernels import KernelCalls
from flambeau.inductor.lowering.lowering import Lowering

ROOT = Path(__file__).parents[3]
C = {p.name: p.read_text() for p in (ROOT / "csrc").glob("*/*.[chd]*")}
PYTHON = {p.relative_to(ROOT / "src/flambeau").as_posix(): p.read_text() for p in (ROOT / "src/flambeau").rglob("*.py")}


def index(pattern, texts):
    """Which files have each name that the pattern finds."""
    found = defaultdict(list)
    for f, text in texts.items():
        for name in dict.fromkeys(re.findall(pattern, text, re.MULTILINE)):
            found[name].append(f)
    return found


@pytest.fixture(scope="module")
def functions():
    return index(r"^FLB_KERNEL\((\w+)\) \{", C)


@pytest.fixture(scope="module")
def calls():
    return index(r"\bkernels\.(\w+)", PYTHON)


@pytest.mark.parametrize("name", sorted(_runtime.KERNELS))
def test_one_declaration_one_function_and_no_name_elsewhere(name, functions, calls):
    assert len(re.findall(rf"\bKERNEL\({name}\b", C["kernels.def"])) == 1
    assert len(functions[name]) == 1
    callers = calls[name]
    allowed = ("base/", "core/native_kernels/", "core/generator.py", "inductor/lowering/native/", "ops/")
    assert all(f.startswith(allowed) for f in callers), callers
    assert callers or name in {kernel.ways for kernel in _runtime.KERNELS.values()}


def test_nobody_asks_for_the_name_of_a_kernel():
    asks = re.compile(r"kernel\.name (==|!=|in|not in)|strcmp\([^)]*kernel->name")
    assert not [f for f, text in (C | PYTHON).items() if f != "kernels.c" and asks.search(text)]


@pytest.mark.parametrize("handler", [Lowering, KernelCalls])
def test_rules_take_a_handler_and_have_a_name_of_their_own(handler):
    names = [(name, getattr(module, name)) for module in handler.rules for name in module.__all__]
    assert len({name for name, _ in names}) == len(names)
    for name, rule in names:
        assert next(iter(inspect.signature(rule).parameters)) in ("h", "lowering"), name
        assert not hasattr(handler, name) or inspect.isfunction(getattr(handler, name)), name


def test_a_rule_of_lowering_alone_is_no_rule_of_recipes():
    assert callable(Lowering().cholesky) and callable(Lowering().scan)
    with pytest.raises(AttributeError, match="KernelCalls has no cholesky"):
        KernelCalls(None).cholesky  # noqa: B018


def test_every_property_is_one_that_somebody_reads():
    source = "\n".join([*PYTHON.values(), *(text for f, text in C.items() if f not in ("native.h", "kernels.def"))])
    struct = re.search(r"/\* Properties, see kernels\.def\. \*/(.*?)\} NativeKernel;", C["native.h"], re.DOTALL)[1]
    names = re.findall(r"(\w+)(?=[,;)])", re.sub(r"\(const.*?\)", "", struct))
    assert {"empty", "quiet", "draws", "planes"} <= set(names)
    for name in names:
        assert re.search(rf"kernel(?:\([^)]*\))?(?:\.|->){name}\b|find\([^)]*\)\.{name}\b", source), name


def test_a_call_is_the_same_from_all_sides():
    """The numbers that a launch packs are those that a call runs with."""
    given = {"dim": 1, "product": True, "element": kernels.Element.F64}
    assert kernels.named(kernels.scan, kernels.scan.pack(**given)) == given
    real = {"alpha": 0.1, "beta": -2.0}
    assert kernels.named(kernels.product_bf16, kernels.product_bf16.pack(**real)) == real
    dims = {"kind": 1, "f64": True, "scale": 0.5, "dims": (2, 0)}
    assert kernels.named(kernels.fft, kernels.fft.pack(**dims)) == dims
