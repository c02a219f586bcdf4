"""Signatures and documentation of the functions that are made from the operators' declarations."""

import doctest
import inspect

import pytest

import flambeau
import flambeau as torch
from flambeau.core.bindings import Binder
from flambeau.core.declare import EXPOSED
from flambeau.core.operator import namespace
from flambeau.ops.manual import entries
from flambeau.testing.samples import TABLE, load, to_tensors

aten = namespace("aten")
PLACES = {
    "torch": torch,
    "Tensor": torch.Tensor,
    "nn.functional": torch.nn.functional,
    "linalg": torch.linalg,
    "special": torch.special,
    "fft": torch.fft,
}
FUNCTIONS = {
    f"{place}.{name}": getattr(where, name)
    for place, where in PLACES.items()
    for name in dir(where)
    if not name.startswith("_") and isinstance(getattr(where, name, None), flambeau._C.Function)
}


def test_every_function_has_a_sentence_and_a_signature():
    assert len(FUNCTIONS) > 1300
    bare = [
        name
        for name, fn in FUNCTIONS.items()
        if not fn.__doc__ or fn.__doc__.startswith(("Arguments:", "Overloads:")) or not inspect.signature(fn)
    ]
    assert bare == []


def test_entries_of_the_manual_are_operators():
    assert [name for name in entries() if aten._packet(name) is None] == []


@pytest.mark.parametrize("name", [n for n, (_, example) in entries().items() if example])
def test_example(name):
    torch.manual_seed(0)
    example = doctest.DocTestParser().get_doctest(entries()[name][1], {"torch": torch}, name, None, 0)
    said = []
    doctest.DocTestRunner().run(example, out=said.append)
    assert not said, "".join(said)


load()
BY_OPERATOR = {op: public for public, op in EXPOSED["function"].items()}
# A function that is written in Python has the signature of its source.
ROWS = [
    n
    for n in TABLE
    if (public := BY_OPERATOR.get(n.partition(".")[0])) and isinstance(getattr(torch, public).impl, Binder)
]


@pytest.mark.parametrize("name", ROWS)
def test_signature_takes_what_the_function_takes(name):
    """Each sample of an operator can be bound to the signature of the function of its name."""
    row = TABLE[name]
    fn = getattr(torch, BY_OPERATOR[name.partition(".")[0]])
    signature = inspect.signature(fn)
    for call in row.calls:
        args, kwargs = to_tensors(call.args), to_tensors(call.kwargs)
        kwargs = {"input" if k == "self" else k: v for k, v in kwargs.items()}
        signature.bind(*args, **kwargs)


def test_help_shows_signature_text_and_example(capsys):
    help(torch.add)
    shown = capsys.readouterr().out
    assert "alpha" in shown and "The sum of the arguments" in shown and ">>> torch.add(" in shown


def test_methods_have_self_and_bound_ones_do_not():
    assert list(inspect.signature(torch.Tensor.sum).parameters)[0] == "self"
    assert list(inspect.signature(torch.ones(1).sum).parameters)[0] == "dim"
    assert list(inspect.signature(torch.sum).parameters)[0] == "input"


def test_overloads_that_disagree_are_listed():
    assert list(inspect.signature(torch.max).parameters) == ["input", "args", "dim", "keepdim", "other", "out"]
    assert torch.max.__doc__.count("\n    max(") == 3


def test_what_is_assigned_is_kept():
    fn = flambeau._C.Function("named", lambda x: x)
    assert list(inspect.signature(fn).parameters) == ["x"] and fn.__doc__ is None
    fn.__doc__ = "Mine."
    fn.__signature__ = inspect.Signature()
    assert fn.__doc__ == "Mine." and str(inspect.signature(fn)) == "()"
    del fn.__doc__
    assert fn.__doc__ is None
    with pytest.raises(AttributeError):
        del fn.__doc__
