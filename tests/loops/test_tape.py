"""What is noted of a loop that is differentiated: a rule for each operation on floats, and a reason where there is none."""

import numpy as np
import pytest

from flambeau.inductor.assembly.instructions import DOUBLE, FLOAT, I64, PTR, Operand
from flambeau.loops.gradients.tape import TapeEmitter
from flambeau.loops.values import Declined

P = Operand("%p", PTR)


def noted(dtype=np.float64):
    """An emitter, and a number that was read from memory: it has a note."""
    e = TapeEmitter()
    return e, e.load(P, np.dtype(dtype))


def notes(e):
    return [i for i in e.out if i.operation == "call" and i.args[0].text == "@fld_note"]


@pytest.mark.parametrize("operation", ["fadd", "fsub", "fmul", "fdiv", "frem"])
def test_arithmetic_is_noted_once(operation):
    e, x = noted()
    v = e.op(operation, x, 2.0)
    (note,) = notes(e)
    assert e.notes[v] is note and [a.type for a in note.args[1:]][1::2] == [note.type, note.type]
    assert note.args[2] is e.notes[x] and note.args[4].text == "0"  # a constant has note 0


def test_the_square_has_one_part():
    e, x = noted()
    e.op("fmul", x, x)
    (note,) = notes(e)
    assert note.args[2] is e.notes[x] and note.args[3].operation == "fadd"  # x + x


@pytest.mark.parametrize(
    "write",
    [lambda e, x: e.op("fadd", 1.0, 2.0), lambda e, x: e.cmp("olt", x, 1.0), lambda e, x: e.to("fptosi", x, I64)],
)
def test_what_no_gradient_goes_through_is_not_noted(write):
    e, x = noted()
    v = write(e, x)
    assert not notes(e) and v not in e.notes


def test_conversions_and_choices_pass_notes_on():
    e, x = noted(np.float32)
    assert e.notes[e.to("fpext", x, DOUBLE)] is e.notes[x]
    chosen = e.select(e.cmp("olt", x, 1.0), x, 0.0)
    assert e.notes[chosen].operation == "select" and e.notes[chosen].args[2].text == "0"
    e.set("y", FLOAT, chosen)
    assert e.get("y", FLOAT) in e.notes


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "erf", "cbrt"])
def test_functions_are_noted(name):
    e, x = noted()
    assert e.external(name, DOUBLE, x) in e.notes
    assert len(notes(e)) == 1


def test_steps_are_not_noted():
    e, x = noted()
    assert e.intrinsic("floor", x) not in e.notes


def test_what_has_no_rule_is_declined():
    e, x = noted()
    with pytest.raises(Declined, match="would go through the instruction bitcast"):
        e.to("bitcast", x, I64)
    with pytest.raises(Declined, match="would go through the instruction call"):
        e.call(DOUBLE, "@f", x)
    with pytest.raises(Declined, match="tgamma has no derivative in a loop"):
        e.external("tgamma", DOUBLE, x)
    with pytest.raises(Declined, match="complex numbers"):
        e.load(P, np.dtype(np.complex128))
