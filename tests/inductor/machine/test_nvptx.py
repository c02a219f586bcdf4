"""Assembly for NVIDIA's devices from a kernel's text, and what is refused."""

import re

import pytest
from tests.cuda.kernels import kernels_of, program_of

import flambeau as torch
from flambeau.inductor.codegen.targets import NVIDIA
from flambeau.inductor.machine import nvptx

A = torch.ops.aten
X = torch.ones(3, 2000)


def texts(op, *args):
    return [k.text for k in kernels_of(program_of(op, op.full(*args)), NVIDIA)]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_a_sum(architecture):
    (text,) = texts(A.sum.dim_IntList, X, [1])
    made = nvptx.assembly(text, architecture)
    assert f".target {architecture}\n" in made and ".address_size 64" in made
    assert re.search(r"\.visible \.entry KERNEL\(\s*\.param \.align 8 \.b8 KERNEL_param_0\[24\]", made)
    assert made.count("shfl.sync.bfly") == 5 and made.count("bar.sync") == 1
    assert re.search(r"\.shared \.align 16 \.b8 KERNEL_\S+\[64\]", made) and ".extern" not in made


def test_products_and_sums_are_not_contracted():
    """x * y + z is rounded twice, as on the host."""
    (text,) = texts(A.addcmul.default, X, X, X)
    made = nvptx.assembly(text, "sm_80")
    assert "fma" not in made and "mul.rn.f32" in made and "add.rn.f32" in made


# (operator, dtype) -> what no device has
REFUSED = [
    (A.sin.default, torch.float32, ["sinf"]),
    (A.sin.default, torch.float64, ["sin"]),
    (A.cos.default, torch.float32, ["cosf"]),
    (A.tan.default, torch.float32, ["tanf"]),
    (A.erfc.default, torch.float32, []),
    (A.erfc.default, torch.float64, []),
    (A.exp.default, torch.float64, []),
    (A.sqrt.default, torch.float32, []),
    (A.floor.default, torch.float64, []),
]


@pytest.mark.parametrize("op, dtype, missing", REFUSED, ids=[f"{op}-{t}" for op, t, _ in REFUSED])
def test_functions_of_the_c_library_are_refused(op, dtype, missing):
    (text,) = texts(op, torch.ones(300, dtype=dtype))
    assert nvptx.refused(text) == missing
    if missing:
        with pytest.raises(NotImplementedError, match=f"^no device has {missing[0]}$"):
            nvptx.assembly(text, "sm_90")
    else:
        assert ".visible .entry KERNEL" in nvptx.assembly(text, "sm_90")


@pytest.mark.parametrize("name, has", [("pow.f64", False), ("sin.f32", False), ("fma.f32", True), ("nvvm.barrier0", True), ("smax.i64", True)])  # fmt: skip
def test_intrinsics_without_a_pattern_are_refused(name, has):
    text = f"  %a = call double @llvm.{name}(double %x)\n  %b = call double @llvm.{name}(double %a)\n"
    assert nvptx.refused(text) == ([] if has else [f"llvm.{name}"])


def test_a_text_that_is_wrong():
    with pytest.raises(RuntimeError, match="expected type"):
        nvptx.assembly("define void @KERNEL( {", "sm_80")


def test_a_function_that_the_assembler_adds_is_refused():
    """LLVM makes calls of what it has no instruction for."""
    text = "define ptx_kernel void @KERNEL(ptr %p) {\n  %x = load i8, ptr @elsewhere\n  store i8 %x, ptr %p\n  ret void\n}\n@elsewhere = external global i8\n"  # fmt: skip
    with pytest.raises(NotImplementedError, match="no device has elsewhere"):
        nvptx.assembly(text, "sm_80")


@pytest.mark.parametrize(
    "major, minor, architecture",
    [(8, 0, "sm_80"), (8, 6, "sm_86"), (9, 0, "sm_90"), (10, 0, "sm_100"), (11, 0, "sm_103"), (13, 5, "sm_121")],
)
def test_the_architecture_of_a_device(major, minor, architecture):
    assert nvptx.architecture_of({"major": major, "minor": minor}) == architecture
    assert f".target {architecture}" in nvptx.assembly(texts(A.neg.default, X)[0], architecture)


def test_a_device_that_is_too_old():
    with pytest.raises(NotImplementedError, match="compute capability 7.5: 8.0 or later"):
        nvptx.architecture_of({"major": 7, "minor": 5})
