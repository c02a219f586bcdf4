"""The table of the process's state: each row is guarded, and is part of the keys of graphs on disk."""

import contextlib

import pytest

import flambeau as torch
from flambeau import _frame
from flambeau.base import process_state
from flambeau.base.process_state import TABLE
from flambeau.compiler import compile
from flambeau.overrides import TorchFunctionMode
from flambeau.utils._python_dispatch import TorchDispatchMode


class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Calls(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def switched(put, value, back):
    put(value)
    try:
        yield
    finally:
        put(back)


CHANGES = {
    "grad mode": torch.no_grad,
    "inference mode": torch.inference_mode,
    "classes that override functions are off": torch._C.DisableTorchFunctionSubclass,
    "transforms": None,  # a block of its own: the call itself is transformed
    "function modes": Functions,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "dispatch modes": Calls,
    "default device": lambda: torch.device("meta"),
    "default dtype": lambda: switched(torch.set_default_dtype, torch.float64, torch.float32),
    "deterministic algorithms": lambda: switched(torch.use_deterministic_algorithms, True, False),
    "float32 matrix products": lambda: switched(torch.set_float32_matmul_precision, "high", "highest"),
    "anomaly mode": lambda: torch.autograd.set_detect_anomaly(True),
    "anomaly mode looks for nan": lambda: torch.autograd.set_detect_anomaly(False, check_nan=False),
}


def test_every_row_is_tested():
    assert list(CHANGES) == [row.name for row in TABLE]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_row_says_how_it_is_compared(row):
    assert (row.field is None) != (row.held is None)
    if row.held is not None:
        table, key = row.held
        assert table[key] is row.read()
    else:
        assert row.field in _frame.STATE


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_each_row_changes_key_and_guards(row):
    keys, graphs = [], []

    def backend(gm, examples):
        graphs.append(gm)
        return gm.forward

    f = compile(lambda x: x * 2, backend=backend)

    def call(x):
        keys.append(dict(process_state.key())[row.name])
        return f(x)

    call(torch.ones(2))
    if row.name == "transforms":
        torch.func.vmap(call)(torch.ones(1, 2))
        torch.func.vmap(call)(torch.ones(1, 2))
    else:
        for _ in range(2):
            with CHANGES[row.name]():
                call(torch.ones(2, device="cpu"))
    call(torch.ones(2))
    assert keys[0] == keys[3] != keys[1] == keys[2]
    assert len(graphs) == 2  # the second one serves the second call in the other state, the first one the last call


@pytest.mark.parametrize("field", list(_frame.STATE))
def test_every_native_field_belongs_to_a_row(field):
    assert any(row.field == field for row in TABLE)
