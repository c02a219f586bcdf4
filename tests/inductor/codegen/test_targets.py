"""What each target writes for a thread, alone and as the form of a function."""

import re

import pytest

from flambeau.inductor.assembly.code import Code, Names
from flambeau.inductor.assembly.instructions import FLOAT, I32, I64, PTR, Operand, ParameterOperand, label
from flambeau.inductor.codegen.kernel import Kernel
from flambeau.inductor.codegen.targets import NVIDIA, SIMULATED, WARP, Target

X = Operand("%x", I32)


def written(write):
    """(lines, the operand that came out, functions that are declared)"""
    code = Code(Names(), [])
    out = write(code)
    return [repr(i) for i in code.out], out, code.names.declares


def kernel(shared=0, args=("a", "b"), params=()):
    k = object.__new__(Kernel)
    k.args, k.params, k.shared = list(args), list(params), shared
    return k


# What is asked of a target, NVIDIA's register or function for it, and the field of FlbThread (csrc/device/threads.h) that the simulated one reads.
ASKED = [
    (lambda t, c: t.thread(c), "@llvm.nvvm.read.ptx.sreg.tid.x()", 0),
    (lambda t, c: t.block(c), "@llvm.nvvm.read.ptx.sreg.ctaid.x()", 1),
    (lambda t, c: t.barrier(c), "@llvm.nvvm.barrier0()", 6),
    (lambda t, c: t.shuffle(c, X, 4), "@llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %x, i32 4, i32 31)", 7),
]


@pytest.mark.parametrize("ask, function, field", ASKED)
def test_what_a_thread_asks(ask, function, field):
    lines, _, _ = written(lambda c: ask(NVIDIA, c))
    assert sum(function in line for line in lines) == 1 and not any("%here" in line for line in lines)
    lines, _, declares = written(lambda c: ask(SIMULATED, c))
    assert re.fullmatch(rf"%\w+ = getelementptr i64, ptr %here, i64 {field}", lines[0]) and not declares


def test_numbers_of_threads_are_wide():
    for target in (NVIDIA, SIMULATED):
        for ask in (target.thread, target.block):
            assert written(ask)[1].type is I64
        assert written(lambda c, t=target: t.shuffle(c, X, 1))[1].type is I32


def test_shared_memory():
    (line,), place, _ = written(lambda c: NVIDIA.shared(c, 24))
    assert "@KERNEL.shared" in line and line.endswith("i64 24") and place.type is PTR
    lines, place, _ = written(lambda c: SIMULATED.shared(c, 24))
    assert lines[0].endswith("%here, i64 4") and lines[-1].endswith("i64 24") and "@KERNEL" not in "".join(lines)


def element(code):
    """A load of ``%a[%i]``, of which ``%a`` is an argument, and one from memory of the thread's own."""
    code.label(label("entry"))
    a = code.named("%a", "load", PTR, ParameterOperand("%args", PTR))
    own = code.named("%own", "alloca", PTR, flags="i64")
    i = code.named("%i", "load", I64, own)
    code.read(FLOAT, code.place(FLOAT, a, i))
    code.read(FLOAT, code.place(FLOAT, own, 0))
    code.do("ret", flags="void")
    return a


def whole(target, shared=0, **given):
    code = Code(Names(), [])
    a = element(code)
    return target.text(kernel(shared, **given), code.out, code.names, [(a, "f32")])


def test_the_function_of_nvidias():
    text = whole(NVIDIA, params=("n", "m"))
    # Two addresses, that of the status words, and two sizes.
    assert "define ptx_kernel void @KERNEL(ptr byval([5 x i64]) align 8 %args)" in text and "shared" not in text
    assert "[96 x i8]" in whole(NVIDIA, 96) and "addrspace(3)" in whole(NVIDIA, 96)
    assert "icmp" not in text  # nobody looks at addresses


def test_the_simulated_function_looks_at_each_address_of_an_argument():
    text = whole(SIMULATED, 96)
    assert "define void @KERNEL(ptr noalias readonly %args, ptr noalias %here)" in text and "addrspace" not in text
    assert text.count("icmp uge") == 1  # that of its own memory isn't looked at
    limit = re.search(r"(%\w+) = udiv i64 %\w+, 4", text).group(1)  # elements in the bytes that lie there
    guard = text.index(f"icmp uge i64 %i, {limit}")
    assert text.index("%a = load") < text.index(limit) < guard < text.index("getelementptr float, ptr %a, i64 %i")
    assert re.search(r"call void %\w+\(ptr %here, i64 0, i64 %i\)", text)  # the argument's number, and the element


def test_names_tell_targets_apart():
    assert len({t.name for t in (NVIDIA, SIMULATED, Target())}) == 3 and WARP == 32


def test_a_target_answers_everything():
    asked = [f for f in vars(Target) if callable(getattr(Target, f))]
    assert asked and all(f in vars(type(t)) for f in asked for t in (NVIDIA, SIMULATED))
    with pytest.raises(NotImplementedError):
        Target().thread(Code(Names(), []))
