"""Kernels that list their operations on floats: what is listed, the layout of an entry, and derivatives of second order by way of it."""

import ctypes
import json

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.assembly.instructions import DOUBLE, PTR, Operand
from flambeau.inductor.machine import cache
from flambeau.loops import operator
from flambeau.loops.gradients.listing import ListEmitter
from flambeau.loops.gradients.operations import ENTRY, NUMBERS
from flambeau.loops.gradients.tape import TAPE_RECORD
from flambeau.loops.values import Declined

P = Operand("%p", PTR)


def listed(dtype=np.float64):
    """An emitter, and a number that was read from memory: it is in the list."""
    e = ListEmitter()
    return e, e.load(P, np.dtype(dtype))


def entries(e):
    """(operation, number of the first operand, of the second, their values) of each entry that is written, as they are in the text."""
    calls = [i for i in e.out if i.operation == "call" and i.args[0].text == "@fld_note"]
    return [[i.args[k].text for k in (2, 3, 5, 4, 6)] for i in calls]


@pytest.mark.parametrize(
    "op, name", [("fadd", "ADD"), ("fsub", "SUB"), ("fmul", "MUL"), ("fdiv", "DIV"), ("frem", "FREM")]
)
def test_arithmetic_is_listed_with_its_operands(op, name):
    e, x = listed()
    v = e.op(op, x, 2.0)
    assert entries(e) == [[str(NUMBERS[name]), e.notes[x].text, "0", x.text, "0x4000000000000000"]]
    e.op(op, v, x)
    assert entries(e)[1] == [str(NUMBERS[name]), e.notes[v].text, e.notes[x].text, v.text, x.text]


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "cbrt", "sin"])
def test_functions_of_one_number_have_no_second_operand(name):
    e, x = listed()
    assert e.external(name, DOUBLE, x) in e.notes
    assert entries(e) == [[str(NUMBERS[name.upper()]), e.notes[x].text, "0", x.text, "0x0000000000000000"]]


@pytest.mark.parametrize("name", ["pow", "atan2", "hypot", "fmod"])
def test_functions_of_two_numbers(name):
    e, x = listed()
    y = e.load(P, np.dtype(np.float64))
    e.external(name, DOUBLE, y, x)
    assert entries(e) == [[str(NUMBERS[name.upper()]), e.notes[y].text, e.notes[x].text, y.text, x.text]]


def test_values_are_listed_as_doubles():
    e, x = listed(np.float32)
    e.op("fmul", x, x)
    ((_, a, b, first, second),) = entries(e)
    assert a == b == e.notes[x].text and first != x.text and second != x.text  # widened


def test_steps_are_not_listed():
    e, x = listed()
    e.external("floor", DOUBLE, x)
    e.cmp("olt", x, 1.0)
    assert entries(e) == []


def test_what_has_no_number_is_declined():
    e, x = listed()
    with pytest.raises(Declined, match="lgamma has no derivative in a loop"):
        e.recorded("lgamma", x, x)


# ---- the function that writes an entry -------------------------------------------------------------------------------
def note(tape, *given):
    """Call it."""
    text, *others = ListEmitter().own_functions()
    assert not others  # without arrays of the loop's own there is no arena
    head = "i32 @{}(ptr %tape, i32 %op, i32 %a, double %x, i32 %b, double %y)"
    call = "call i32 @fld_note(ptr %tape, i32 %op, i32 %a, double %x, i32 %b, double %y)"
    text = f"; a list\ndefine {head.format('KERNEL')} {{\n  %r = {call}\n  ret i32 %r\n}}\n{text}"
    name = cache.kernel_name(text)
    address = cache.addresses({name: text.replace("@KERNEL", f"@{name}")})[name]
    i32, f64 = ctypes.c_int32, ctypes.c_double
    return ctypes.CFUNCTYPE(i32, ctypes.c_void_p, i32, i32, f64, i32, f64)(address)(tape.ctypes.data, *given)


def tape_of(room, first):
    """The record of a tape with this room, whose next entry has this number."""
    tape = np.zeros((), TAPE_RECORD)
    tape["next"], tape["end"], tape["notes"] = first, len(room), room.ctypes.data
    return tape


def state(tape):
    return [int(tape[name]) for name in ("next", "end", "full")]


def test_an_entry_is_what_lists_are_made_of():
    room = np.zeros(5, ENTRY)
    tape = tape_of(room, 3)
    assert note(tape, NUMBERS["MUL"], 1, 0.5, 2, -4.0) == 3
    assert note(tape, NUMBERS["SIN"], 3, -2.0, 0, 0.0) == 4
    assert room[3].tolist() == (NUMBERS["MUL"], 1, 2, 0, 0.5, -4.0)
    assert room[4].tolist() == (NUMBERS["SIN"], 3, 0, 0, -2.0, 0.0)
    assert state(tape) == [5, 5, 0]
    assert not room[:3].view(np.uint8).any()


def test_constants_are_not_listed_and_a_full_list_is_told():
    room = np.zeros(2, ENTRY)
    tape = tape_of(room, 1)
    assert note(tape, NUMBERS["ADD"], 0, 1.0, 0, 2.0) == 0 and state(tape) == [1, 2, 0]
    assert note(tape, NUMBERS["ADD"], 0, 1.0, 1, 2.0) == 1 and state(tape) == [2, 2, 0]
    assert note(tape, NUMBERS["ADD"], 1, 1.0, 1, 2.0) == 0 and state(tape) == [2, 2, 1]


def test_a_full_list_calls_what_makes_room():
    rooms = [np.zeros(2, ENTRY), np.zeros(2, ENTRY)]
    tape, called = tape_of(rooms[0], 1), []

    def more(address):
        called.append(address == tape.ctypes.data)
        tape["end"], tape["notes"] = 4, rooms[1].ctypes.data - 2 * ENTRY.itemsize

    hook = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(more)
    tape["hook"] = ctypes.cast(hook, ctypes.c_void_p).value
    assert [note(tape, NUMBERS["ADD"], 1, float(k), 1, 2.0) for k in range(3)] == [1, 2, 3]
    assert called == [True] and state(tape) == [4, 4, 0]
    assert rooms[0]["x"].tolist() == [0, 0] and rooms[1]["x"].tolist() == [1, 2]


# ---- whole loops ---------------------------------------------------------------------------------------------------------
def test_second_derivatives(monkeypatch):
    """Of the sum of a[i] * a[i - 1] * sin(a[i]), beside the formula."""
    programs, known = [], operator.program
    monkeypatch.setattr(operator, "program", lambda *given: programs.append(json.loads(t := known(*given))) or t)

    def f(a):
        s = 0.0
        for i in range(1, len(a)):
            s += a[i] * a[i - 1] * np.sin(a[i])
        return s

    x, v = np.linspace(0.1, 1, 60), np.linspace(-1, 1, 60)
    grad = torch.func.grad(f)
    found = torch.func.grad(lambda a: (grad(a) * v).sum())(x)
    one, two = np.sin(x) + x * np.cos(x), 2 * np.cos(x) - x * np.sin(x)
    expected = np.zeros(60)
    expected[1:] += x[:-1] * two[1:] * v[1:] + one[1:] * v[:-1]
    expected[:-1] += one[1:] * v[1:]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert any("@fld_note" in p["listed"] and f"i32 {NUMBERS['SIN']}," in p["listed"] for p in programs)
