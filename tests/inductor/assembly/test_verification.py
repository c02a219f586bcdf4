"""Functions that LLVM would refuse are refused by verify, with what is wrong."""

import pytest

from flambeau.inductor.assembly.code import Code, Names
from flambeau.inductor.assembly.instructions import (
    FLOAT,
    I1,
    I32,
    I64,
    PTR,
    VOID,
    Function,
    Instruction,
    Operand,
    constant,
    label,
)
from flambeau.inductor.assembly.verification import verify

X, N, P, C = Operand("%x", FLOAT), Operand("%n", I64), Operand("%p", PTR), Operand("%c", I1)
V = Operand("%v", FLOAT.vector(4))


def function(write, end=True):
    code = Code(Names("t"), [])
    code.label(label("entry"))
    write(code)
    if end:
        code.do("ret", flags="void")
    return Function("f", VOID, (X, N, P, C, V), code.out)


def raw(operation, type, *args):
    return lambda c: c.emit(operation, type, args)


def two_blocks(c):
    c.label(label("next"))


def behind_the_end(c):
    c.do("ret", flags="void")
    c.write(N, P)


def twice(c):
    c.named("%t", "add", I64, N, N)
    c.named("%t", "add", I64, N, N)


BROKEN = {
    "isn't defined before": lambda c: c.op("add", N, Operand("%m", I64)),
    "is defined twice": twice,
    "goes on into another one": two_blocks,
    "stands behind the end of a block": behind_the_end,
    "isn't a block": lambda c: c.branch(C, label("entry"), label("nowhere")),
}
ILL_TYPED = {
    "float and integer": raw("add", I64, N, X),
    "an integer's operation on floats": raw("add", FLOAT, X, X),
    "a float's operation on integers": raw("fadd", I64, N, N),
    "another result": raw("add", I32, N, N),
    "a comparison's result": raw("icmp", I64, N, N),
    "a condition that is a number": raw("select", I64, N, N, N),
    "branches of two types": raw("select", I64, C, N, X),
    "a load from a number": raw("load", I64, N),
    "an address in a number": raw("getelementptr", PTR, N, N),
    "a longer truncation": raw("trunc", I64, constant(I32, 1)),
    "a float cut as an integer": raw("trunc", I32, X),
    "a bitcast to another width": raw("bitcast", I64, X),
    "a vector's conversion to one": raw("fptosi", I32, V),
    "an element of another type": raw("insertelement", V.type, V, N, N),
    "an element that is a vector": raw("extractelement", V.type, V, N),
    "a store into a number": lambda c: c.write(N, N),
    "a branch on a number": lambda c: c.do("br", N, label("entry"), label("entry")),
}


@pytest.mark.parametrize("why", BROKEN)
def test_refuses(why):
    with pytest.raises(ValueError, match=why):
        verify(function(BROKEN[why]))


@pytest.mark.parametrize("what", ILL_TYPED)
def test_refuses_types(what):
    with pytest.raises(ValueError, match="types don't fit"):
        verify(function(ILL_TYPED[what], end="br" not in str(what)))


def test_refuses_a_body_without_an_end():
    with pytest.raises(ValueError, match="the last block has no end"):
        verify(function(lambda c: None, end=False))


def test_refuses_a_result_without_a_name():
    with pytest.raises(ValueError, match="a result without a type or a name"):
        verify(function(lambda c: c.out.append(Instruction("", I64, "add", (N, N)))))


def test_takes_what_is_right():
    def write(c):
        again, done = label("again"), label("done")
        c.jump(again)
        c.label(again)
        y = c.to("sitofp", c.op("add", N, 1), FLOAT)
        c.write(c.select(c.cmp("olt", y, X), y, X), c.place(FLOAT, P, N))
        c.branch(C, again, done)
        c.label(done)
        c.emit("extractelement", FLOAT, (V, constant(I32, 0)))

    verify(function(write))
    verify(function(lambda c: c.op("add", N, Operand("%m", I64))), known=["%m"])
