"""Calls that also run plainly and are compared: what differs is named, and the world is as after one call."""

import io

import numpy as np
import pytest

import flambeau as torch
from flambeau.debug import strict_calls
from flambeau.debug.strict_calls import StrictCallError
from flambeau.dynamo.config import config

STATE = {"n": 0}


@pytest.fixture(autouse=True)
def strictly():
    strict_calls.counts.clear()
    with config.patch(strict_calls=True):
        yield
    torch._dynamo.reset()


class Counter:
    total = 0

    def __init__(self):
        self.n = 0


def test_effects_happen_once(capsys):
    seen, counter, out = [], Counter(), io.StringIO()

    def f(x, y):
        seen.append(1)
        counter.n += 1
        Counter.total += 1
        STATE["n"] += 1
        out.write("a")
        y.add_(1)
        print("called")
        return x * y + torch.rand(2)

    c = torch.compile(f, backend="eager")
    x, y = torch.ones(2), torch.zeros(2)
    torch.manual_seed(0)
    first = c(x, y)
    torch.manual_seed(0)
    assert torch.equal(first, torch.ones(2) + torch.rand(2))
    c(x, y)
    assert (len(seen), counter.n, Counter.total, STATE["n"], out.getvalue(), y.tolist()) == (2, 2, 2, 2, "aa", [2, 2])
    assert capsys.readouterr().out == "called\ncalled\n"
    assert strict_calls.counts == {"compared": 2}


def wrong(change):
    """A backend whose graphs do something else than they say."""

    def backend(gm, examples):
        def run(*args):
            return change(args, gm(*args))

        return run

    return backend


def test_wrong_values_are_named():
    c = torch.compile(lambda x: x + 1, backend=wrong(lambda a, out: (out[0] * 2,)))
    with pytest.raises(StrictCallError, match="differ in the result"):
        c(torch.ones(2))


def test_wrong_dtypes_and_identities_are_named():
    c = torch.compile(lambda x: x + 1, backend=wrong(lambda a, out: (out[0].double(),)))
    with pytest.raises(StrictCallError, match="float64"):
        c(torch.ones(2))


def test_a_write_that_plain_code_does_not_do():
    c = torch.compile(lambda x: x + 1, backend=wrong(lambda a, out: (out, a[0].add_(1))[0]))
    with pytest.raises(StrictCallError, match="argument 0"):
        c(torch.ones(2))


def test_wrong_gradients_are_named():
    class Detached:
        def __call__(self, gm, examples):
            return lambda *args: tuple(o.detach() + a * 0 for o, a in zip(gm(*args), args))

    c = torch.compile(lambda x: x * 3, backend=Detached())
    with pytest.raises(StrictCallError, match="a gradient"):
        c(torch.ones(2, requires_grad=True))


def test_a_guard_that_is_missing_is_found():
    """The compiled function is called again with the world changed behind its guards' back."""
    hidden = [1]
    torch._dynamo.allow_in_graph(scaled := lambda x: x * hidden[0])
    c = torch.compile(lambda x: scaled(x) + hidden[0] * 0, backend=frozen)
    c(torch.ones(2))
    hidden[0] = 2
    with pytest.raises(StrictCallError, match="differ in the result"):
        c(torch.ones(2))


def frozen(gm, examples):
    remembered = [t.clone() for t in gm(*examples)]
    return lambda *args: tuple(remembered)


def test_memory_versions_and_history_are_the_caller_s():
    w = torch.ones(3, requires_grad=True)
    x = w * 2
    version, node = x._version, x.grad_fn
    y = x[:2]
    base = torch.zeros(4)
    part = base[1:3]

    def f(x, base, part):
        part.mul_(2).add_(1)
        return x * base.sum()

    c = torch.compile(f, backend="aot_eager")
    out = c(x, base, part)
    assert (x._version, x.grad_fn) == (version, node) and base.tolist() == [0, 1, 1, 0] and part._base is base
    assert y._base is x
    out.sum().backward()
    assert w.grad.tolist() == [4, 4, 4]


def test_errors_are_those_of_plain_code():
    def f(x, k):
        return x[k]

    c = torch.compile(f, backend="eager")
    for _ in range(2):
        with pytest.raises(IndexError):
            c(torch.ones(2), 5)
    assert c(torch.ones(2), 1) == 1


def test_what_cannot_be_made_twice_is_made_once():
    turns = iter([1, 2, 3])
    c = torch.compile(lambda x, it: x + next(it), backend="eager")
    assert c(torch.zeros(1), turns) == 1 and c(torch.zeros(1), turns) == 2
    assert strict_calls.counts == {"an iterator that has begun: list_iterator": 2}


def test_arrays():
    a = np.ones(3)

    def f(a):
        a += 1
        return np.sin(a)

    assert np.allclose(torch.compile(f)(a), np.sin(2)) and a.tolist() == [2, 2, 2]
