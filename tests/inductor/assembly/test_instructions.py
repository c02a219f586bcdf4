"""LLVM instructions as objects: how they are printed, what constants are, and that numbers take the type of what they meet."""

import math

import pytest

from flambeau.inductor.assembly.builder import Builder
from flambeau.inductor.assembly.code import Code, Names
from flambeau.inductor.assembly.instructions import (
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Function,
    Operand,
    ParameterOperand,
    aggregate,
    constant,
    integer,
    label,
)

X, Y, P, C = Operand("%x", FLOAT), Operand("%y", FLOAT), Operand("%p", PTR), Operand("%c", I1)
N, V = Operand("%n", I64), Operand("%v", FLOAT.vector(4))

PRINTED = {
    "%v1 = fadd float %x, %y": lambda c: c.op("fadd", X, Y),
    "%v1 = fadd reassoc float %x, %y": lambda c: c.op("fadd", X, Y, "reassoc"),
    "%v1 = add nsw i64 %n, 3": lambda c: c.op("add", N, 3, "nsw"),
    "%v1 = sub i64 3, %n": lambda c: c.op("sub", 3, N),
    "%v1 = mul i64 3, 4": lambda c: c.op("mul", 3, 4),
    "%v1 = xor i1 %c, true": lambda c: c.flip(C),
    "%v1 = fneg float %x": lambda c: c.neg(X),
    "%v1 = fcmp olt float %x, 0x3FF0000000000000": lambda c: c.cmp("olt", X, 1.0),
    "%v1 = icmp slt i64 0, %n": lambda c: c.cmp("slt", 0, N),
    "%v1 = select i1 %c, float %x, float 0x0000000000000000": lambda c: c.select(C, X, 0.0),
    "%v1 = fpext float %x to double": lambda c: c.to("fpext", X, DOUBLE),
    "%v1 = load float, ptr %p, align 4": lambda c: c.read(FLOAT, P, ", align 4"),
    "store float %x, ptr %p": lambda c: c.write(X, P),
    "store i64 7, ptr %p": lambda c: c.write(7, P),
    "%v1 = getelementptr inbounds float, ptr %p, i64 %n": lambda c: c.place(FLOAT, P, N, inbounds=True),
    "%v1 = call float @llvm.fma.f32(float %x, float %y, float 0x4000000000000000)": lambda c: c.intrinsic("fma", X, Y, 2.0),
    "%v1 = call <4 x float> @llvm.sqrt.v4f32(<4 x float> %v)": lambda c: c.intrinsic("sqrt", V),
    "%v1 = call i64 @llvm.abs.i64(i64 %n, i1 false)": lambda c: c.abs(N),
    "call void @f(ptr %p)": lambda c: c.call(VOID, "@f", P),
    "%v1 = call double %p(ptr %p)": lambda c: c.call(DOUBLE, P, P),
    "%v1 = extractvalue { i64, i1 } %z, 1": lambda c: c.field(Operand("%z", aggregate("{ i64, i1 }")), 1, I1),
    "%slot = alloca [4 x i64], align 64": lambda c: c.named("%slot", "alloca", PTR, flags="[4 x i64]", attributes=", align 64"),
    "br label %there": lambda c: c.jump(label("there")) or c.out[-1],
    "br i1 %c, label %a, label %b, !prof !0": lambda c: c.branch(C, label("a"), label("b"), ", !prof !0") or c.out[-1],
    "there:": lambda c: c.label(label("there")) or c.out[-1],
    "ret void": lambda c: c.do("ret", flags="void"),
    "ret i64 %n": lambda c: c.do("ret", N),
}  # fmt: skip


@pytest.mark.parametrize("text", PRINTED)
def test_is_printed(text):
    assert repr(PRINTED[text](Code(Names(), []))) == text


@pytest.mark.parametrize(
    "type, value, text",
    [
        (FLOAT, 0.1, "0x3FB99999A0000000"),
        (FLOAT, 1e300, "0x7FF0000000000000"),
        (DOUBLE, 0.1, "0x3FB999999999999A"),
        (DOUBLE, -0.0, "0x8000000000000000"),
        (DOUBLE, 0.0, "0x0000000000000000"),
        (DOUBLE, 0, "0x0000000000000000"),
        (DOUBLE, math.nan, "0x7FF8000000000000"),
        (HALF, 1, "0xH3C00"),
        (I1, 1, "true"),
        (I1, False, "false"),
        (I8, 200, "-56"),
        (I64, -1, "-1"),
        (I64, (1 << 64) - 1, "-1"),
        (FLOAT.vector(4), 2, "splat (float 0x4000000000000000)"),
        (I1.vector(2), True, "splat (i1 true)"),
    ],
)
def test_constants(type, value, text):
    assert constant(type, value).text == text
    assert constant(type, 1.0 if type.floating else 1).text == constant(type, True).text


def test_types_are_one_object_each():
    assert FLOAT.vector(8) is FLOAT.vector(8) and FLOAT.vector(1) is FLOAT
    assert FLOAT.vector(8).truth is I1.vector(8) and I32.truth is I1
    assert integer(4).type is I64 and integer(N) is N


def test_lanes():
    b = Builder(Names(), 4, [])
    assert b.splat(N).type is I64.vector(4)
    assert repr(b.shuffle(V, [0, None])).endswith("<4 x float> poison, <2 x i32> <i32 0, i32 poison>")
    assert Builder(Names(), 1, []).extract(X, 0) is X
    b.by_lane(V, b.const("bool", True), "erfc", V)
    assert b.names.declares == {"erfc": "declare float @erfc(float)"}
    assert [i.operation for i in b.names.entry] == ["alloca"]


def test_a_function():
    body = Code(Names(), [])
    body.label(label("entry"))
    body.do("ret", N)
    f = Function("f", I64, (ParameterOperand("%p", PTR, "noalias"), N), body.out, "internal", "nounwind")
    assert f.lines() == ["define internal i64 @f(ptr noalias %p, i64 %n) nounwind {", "entry:", "  ret i64 %n", "}"]
