"""Loops over elements of arrays that are no native ones and break the graph at each turn run plainly; those that compute with arrays, and all around them, are captured."""

import numpy as np
import pytest
from helpers import Graphs

import flambeau as torch

LIMIT = 0.5


def texts(x):
    kept = []
    for i in range(1, len(x)):
        if x[i] > x[i - 1] and x[i] > LIMIT:
            kept.append(f"{x[i]:.1f}")
    return kept


def ends(x):
    found = {}
    for i in range(len(x)):
        if x[i] > 0.9:
            found["last"] = i
        elif x[i] < 0.1:
            found["first"] = i
    return found


def in_a_while_loop(x):
    i, kept = 0, set()
    while i < len(x):
        if x[i] > LIMIT:
            kept.add((i, float(x[i])))
        i += 1
    return kept


def of_a_grid(x):
    found = []
    for i in range(x.shape[0] // 10):
        for j in range(10):
            if x[i * 10 + j] > LIMIT:
                found.append(f"{i} {j}")
    return found


def written(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        if x[i] > LIMIT:
            y[i] += x[i]
            y[0] = 1
    return [str(v) for v in y]


@pytest.mark.parametrize("f", [texts, ends, in_a_while_loop, of_a_grid])
def test_loops_over_elements_run_plainly(f):
    torch._dynamo.reset()
    graphs, x = Graphs(), np.random.default_rng(0).random(60)
    compiled = torch.compile(f, backend=graphs)
    for _ in range(2):
        assert compiled(x) == f(x)
    assert not graphs.gms  # each was launched for single numbers, which took 10 to 45 times as long as Python


def after_arrays(x):
    y = np.sin(x) * 2 + x
    return peaks_of(y)


def peaks_of(y):
    found = []
    for i in range(1, len(y)):
        if y[i] > y[i - 1]:
            found.append(i)
    return found


def heavy(x):
    total = np.zeros(len(x))
    for i in range(len(x)):
        if x[i] > LIMIT:
            total = total + np.sin(x) * x[i]
    return total.sum().round(6)


def calls(x):
    total = []
    for i in range(len(x)):
        if x[i] > LIMIT:
            total.append(after_arrays(x)[0])
    return total


def tensors(x):
    t = torch.ones(3)
    for i in range(len(x)):
        if x[i] > LIMIT:
            t = t * 2
    return t.tolist()


@pytest.mark.parametrize("f", [after_arrays, heavy, calls, tensors, written])
def test_what_is_more_than_numbers_is_captured(f):
    torch._dynamo.reset()
    graphs, x = Graphs(), np.random.default_rng(0).random(12)
    assert torch.compile(f, backend=graphs)(x) == f(x)
    assert graphs.gms


def test_one_graph_is_asked_for():
    with pytest.raises(torch._dynamo.exc.Unsupported, match="value of a tensor decides"):
        torch.compile(ends, backend="eager", fullgraph=True)(np.random.default_rng(0).random(60))


def by_a_list(x, edges):
    new = np.zeros(len(x))
    for s, t in edges:
        new[t] += x[s] / 2
    return new


def by_a_list_of_arrays(x, edges):
    new = np.zeros(len(x))
    for s, t in edges:
        new += x * s - t
    return new


@pytest.mark.parametrize("f, turns, captured", [(by_a_list, 150, 0), (by_a_list, 40, 1), (by_a_list_of_arrays, 150, 1)])
def test_loops_over_long_lists_that_write_elements_run_plainly(f, turns, captured):
    torch._dynamo.reset()
    graphs, rng = Graphs(), np.random.default_rng(0)
    compiled = torch.compile(f, backend=graphs)
    for _ in range(2):
        x, edges = rng.random(20), rng.integers(0, 20, (turns, 2)).tolist()
        np.testing.assert_array_equal(compiled(x, edges), f(x, edges))
        assert len(graphs.gms) >= captured if captured else not graphs.gms


def test_one_graph_of_a_long_list_is_asked_for():
    x, edges = np.arange(20.0), [[k % 20, (k * 7) % 20] for k in range(150)]
    compiled = torch.compile(by_a_list, backend="eager", fullgraph=True)
    np.testing.assert_array_equal(compiled(x, edges), by_a_list(x, edges))
