"""Samples of all operators with one or two arguments changed: a tensor of another shape or dtype, another number. Compiled, a call gives what the
eager one gives, or fails where that fails; a change that no rule sees would read or write outside of memory.

Values are compared by the samples' own tests; here shapes and dtypes are."""

import copy
import random

import pytest

import flambeau as torch
from flambeau.testing.checks import flat
from flambeau.testing.samples import load, operator, to_tensors

pytestmark = pytest.mark.slow

CHANGES = 8  # of each operator
LARGEST = 2**30
DTYPES = (
    torch.int64,
    torch.float64,
    torch.bool,
    torch.int32,
    torch.uint8,
    torch.float32,
    torch.complex64,
    torch.bfloat16,
)
# What they give depends on a state that the first call changes, or on memory that nothing has written.
LEFT_OUT = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted", "randperm"}


def rows():
    for name, row in load().items():
        try:
            operator(name)
        except AttributeError:
            continue  # samples may be ahead of the operator
        if row.calls and name not in LEFT_OUT and not name.startswith("_"):
            yield pytest.param(row, id=name)


def places(x, at=()):
    """(where it lies, value) of the tensors and numbers among arguments."""
    if isinstance(x, (torch.Tensor, int, float)):
        yield at, x
    elif isinstance(x, dict):
        for k, v in x.items():
            yield from places(v, (*at, k))
    elif isinstance(x, (list, tuple)):
        for k, v in enumerate(x):
            yield from places(v, (*at, k))


def replaced(x, at, value):
    if not at:
        return value
    if isinstance(x, dict):
        return {k: replaced(v, at[1:], value) if k == at[0] else v for k, v in x.items()}
    return type(x)([replaced(v, at[1:], value) if k == at[0] else v for k, v in enumerate(x)])


def changed(value, rng):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, 0, 7, -3, 2**40, value * 1.5])
    if isinstance(value, float):
        return rng.choice([-value, 0.0, 1.0, float("nan"), float("inf"), 3])
    return changed_tensor(value, rng) if value.layout is torch.strided else value


def changed_tensor(t, rng):
    ways = [lambda: t.unsqueeze(0), lambda: t.unsqueeze(-1), lambda: t.reshape(-1), lambda: t.to(rng.choice(DTYPES))]
    if t.ndim:
        d = rng.randrange(t.ndim)
        ways += [
            lambda: t.narrow(d, 0, max(t.shape[d] - 1, 0)).clone(),
            lambda: torch.cat([t, t.narrow(d, 0, min(1, t.shape[d]))], d),
            lambda: t.narrow(d, 0, 0).clone(),
            lambda: torch.cat([t, t]),
            lambda: t.transpose(0, -1).contiguous(),
        ]
    if t.ndim and t.shape[0]:
        ways.append(lambda: t.select(0, 0))
    return rng.choice(ways)()


def mutated(row, rng):
    """Arguments of one of the samples, changed."""
    sample = rng.choice(row.calls)
    made = (tuple(to_tensors(sample.args)), dict(to_tensors(sample.kwargs)))
    for _ in range(rng.choice([1, 1, 2])):
        found = list(places(made))
        if found:
            at, value = rng.choice(found)
            made = replaced(made, at, changed(value, rng))
    return made


def outcome(fn, arguments):
    """What a call gives, or its error."""
    torch.manual_seed(0)
    try:
        return [t for t in flat(fn(*arguments)) if isinstance(t, torch.Tensor)]
    except Exception as error:
        return error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", list(rows()))
def test_compiled_as_eager(row):
    def f(args, kwargs):
        return row.op(*args, **kwargs)

    rng = random.Random(row.name)
    for _ in range(CHANGES):
        arguments = mutated(row, rng)
        if (
            any(not isinstance(v, torch.Tensor) and abs(v) > LARGEST for _, v in places(arguments))
            and rng.random() < 0.7
        ):
            continue  # most are refused alike, for the memory
        eager = outcome(f, copy.deepcopy(arguments))
        torch._dynamo.reset()
        compiled = outcome(torch.compile(f), copy.deepcopy(arguments))
        what = f"{row.name}{arguments}: {eager!r}, compiled {compiled!r}"
        assert isinstance(eager, Exception) == isinstance(compiled, Exception), what
        if not isinstance(eager, Exception):
            assert [(t.shape, t.dtype) for t in eager] == [(t.shape, t.dtype) for t in compiled], what
