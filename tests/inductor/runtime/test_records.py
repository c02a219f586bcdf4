"""The native tables are checked where they are built and where sizes come from outside."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import _runtime
from flambeau.base import blas
from flambeau.inductor.runtime.records import (
    ArenaSlot,
    Binding,
    BindStep,
    CallStep,
    GemmStep,
    InputSlot,
    KernelStep,
    LayoutRecord,
    NativeStep,
    RowsStep,
    SlotOutput,
    ValueOutput,
    ViewRecord,
)

BIG = 2**31 - 2
FLOAT = LayoutRecord(0, 0, np.float32)


def graph(**changes):
    tables = {
        "ninputs": 0,
        "frame": [0, 0],
        "stages": [([], [])],
        "slots": [],
        "steps": [],
        "outputs": [],
        "arena": 0,
    } | changes
    return _runtime.Graph(*tables.values(), None, None)


def test_an_empty_graph():
    assert graph()() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"arena": BIG},
        {"ninputs": -1},
        {"steps": [KernelStep("k", [], 0, 0, BIG, BIG)]},
        {"steps": [KernelStep("k", [], 0, 0, 1, 2)]},
        {"steps": [GemmStep("f32", [0, 0, 0], "N", "N", BIG, BIG, 0)]},
        {"steps": [GemmStep("f32", [0, 0, 0], ord("N"), ord("N"), 0, 0, 0)]},
        {"steps": [NativeStep("scan", [], [], [])]},
        {
            "steps": [NativeStep("scan", [-1, 0], [None, ViewRecord(0, FLOAT)], [0, 0, 0])],
            "slots": [ArenaSlot(0, FLOAT)],
        },
        {
            "steps": [NativeStep("scan", [0, 0], [None, ViewRecord(0, FLOAT)], [0, 0, 0])],
            "slots": [ArenaSlot(0, FLOAT)],
        },
        {
            "steps": [NativeStep("scan", [0, 0], [ViewRecord(0, FLOAT)] * 2, [0, 0, 2])],
            "slots": [ArenaSlot(0, FLOAT)],
            "frame": [0, 0, 99],
        },
        {"steps": [NativeStep("scam", [], [], [])]},
        {
            "steps": [BindStep([0], [ViewRecord(0, FLOAT)], 1)],
            "slots": [ArenaSlot(0, FLOAT)],
            "stages": [([], []), ([], [])],
        },
        {"steps": [CallStep(print, [], [], [0], 0)]},
        {"steps": [RowsStep(1, 1, 1, 1, [], [CallStep(print, [], [], [], 0)], [(1, 1)], 0)]},
        {"slots": [ArenaSlot(0, LayoutRecord(1, BIG, np.float32))]},
        {"slots": [ArenaSlot(0, None)], "outputs": [SlotOutput(0, 0, None)]},
        {"slots": [InputSlot(2**40, FLOAT)]},
        {"outputs": [ValueOutput(2**31 - 1)]},
        {"stages": [([Binding(0, 9, 0, 0, 0, 1, 1, 1)], [])]},
        {"stages": [([], [(99, 0, 0, 0)])]},
        {"stages": [0]},
    ],
)
def test_places_outside_the_tables(changes):
    with pytest.raises((ValueError, MemoryError, OverflowError, TypeError)):
        graph(**changes)


class Odd:
    """A record that Python makes as it is read."""

    def __init__(self, tables, **fields):
        self.tables, self.fields = tables, fields

    def __getattr__(self, name):
        for table in self.tables:
            table.clear()
        return self.fields[name]


@pytest.mark.parametrize("kind", [-1, 99, None, "kernel", 2**70])
@pytest.mark.parametrize("table", ["slots", "steps", "outputs"])
def test_records_of_no_kind(table, kind):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        graph(**{table: [Odd([], kind=kind)]})
    with pytest.raises(AttributeError):
        graph(**{table: [("kernel", 0)]})


def test_tables_that_change_as_they_are_read():
    slots = [ArenaSlot(0, FLOAT)]
    steps = [None]
    steps[0] = Odd([slots, steps], kind=0, address=0, slots=[0], total=0, grain=0, params=0, nparams=0)
    steps.append(KernelStep("k", [0], 0, 0, 0, 0))
    made = graph(slots=slots, steps=steps)
    assert made.nsteps == 2 and not steps and not slots


def test_sizes_of_a_convolution_that_overflow():
    torch.nn.functional.conv1d(torch.ones(1, 1, 5), torch.ones(1, 1, 5))  # finds the library
    x, w = np.ones((1, 1, 5), np.float32), np.ones((1, 1, 5), np.float32)
    for dilation in (2**62, 2**61, 2**63 - 1):
        with pytest.raises(ValueError, match="fit"):
            blas.convolve(0, x, w, None, (), (1,), (0,), (dilation,), 1, False)
    with pytest.raises(ValueError, match="fit"):
        blas.convolve(0, x, w, None, (), (1,), (2**62,), (1,), 1, False)
    with pytest.raises(RuntimeError):
        torch.nn.functional.conv1d(torch.ones(1, 1, 5), torch.ones(1, 1, 5), dilation=2**62)
