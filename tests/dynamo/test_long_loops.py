"""Loops that would be unrolled for long are captured turn by turn: the values, errors and gradients of plain Python, few graphs, short first calls."""

import numpy as np
import pytest
from helpers import Graphs

import flambeau as torch
from flambeau.dynamo.higher_order import long_loops
from flambeau.dynamo.rules import trace_rules

TURNS = 60


@pytest.fixture(autouse=True)
def short_limits(monkeypatch):
    """Loops of some hundred nodes are long, so that the tests are short."""
    monkeypatch.setattr(long_loops, "OF_ARRAYS", 100)
    monkeypatch.setattr(long_loops, "OF_TENSORS", 100)
    torch._dynamo.reset()


class Network:
    """Weights in attributes, which methods replace and write: no native loop."""

    def __init__(self):
        draw = np.random.default_rng(0).random
        self.x, self.y, self.first, self.second = draw((8, 3)), draw((8, 1)), draw((3, 4)), draw((4, 1))
        self.losses = []

    def forward(self):
        self.hidden = np.tanh(self.x @ self.first)
        return self.hidden @ self.second

    def backward(self, error):
        second = self.hidden.T @ error
        self.first -= 0.01 * self.x.T @ (error @ self.second.T * (1 - self.hidden**2))
        self.second -= 0.01 * second

    def train(self, turns):
        for turn in range(turns):
            error = self.forward() - self.y
            self.backward(error)
            if turn % 20 == 0:
                self.losses.append(float((error**2).mean()))
        return error


def test_methods_that_write_attributes():
    plain, captured, graphs = Network(), Network(), Graphs()
    expected = plain.train(TURNS)
    out = torch.compile(Network.train, backend=graphs)(captured, TURNS)
    assert np.allclose(out, expected)
    assert np.allclose(captured.first, plain.first)
    assert captured.losses == pytest.approx(plain.losses)
    assert sum(map(len, graphs.names())) < TURNS * 8  # unrolled, a turn is about twenty nodes


def with_the_number(x):
    for i in range(TURNS):
        x = torch.sin(x) * (i % 3) / TURNS + x * 0.9
    return x, i


def left_early(x):
    for i in range(TURNS):
        x = x + torch.cos(x)
        if i == 40:
            break
    else:
        x = x * 0
    for i in range(3):
        if i == 1:
            continue
        x = x * 2
    return x


def to_the_end(x):
    for _ in range(TURNS):
        x = x + torch.cos(x)
    else:
        x = x - 1
    return x


def nested(x):
    for _ in range(TURNS):
        for k in range(3):
            x = x + torch.cos(x) * k
    return x


def steps(x):
    for _ in range(TURNS):
        x = x + torch.cos(x)
    return x


def in_a_function(x):
    return steps(x * 2).sum() + steps(x).sum()


def kept(x):
    found = []
    for _ in range(TURNS):
        x = x + torch.cos(x)
        found.append(x[0])
    return found


def written(x):
    x = x.clone()
    for i in range(TURNS):
        x[i % 4] += 1
        x.mul_(0.9)
    return x


def under_no_grad(x):
    with torch.no_grad():
        for _ in range(TURNS):
            x = x + torch.cos(x)
    return x


def wrong_at_last(x):
    for i in range(TURNS):
        x = x + torch.cos(x)
        if i == TURNS - 1:
            x.view(3, 3)
    return x


PROGRAMS = [
    with_the_number, left_early, to_the_end, nested, in_a_function, kept, written, under_no_grad, wrong_at_last,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_values_gradients_and_errors(program, backend):
    captured = torch.compile(program, backend=backend)
    for size in (4, 4):
        x = torch.linspace(0.1, 0.7, size)
        try:
            expected = program(x)
        except RuntimeError as error:
            with pytest.raises(RuntimeError) as raised:
                captured(x)
            assert str(raised.value) == str(error)
            continue
        torch.testing.assert_close(captured(x), expected)
        a, b = (x.clone().requires_grad_() for _ in range(2))
        of = [t for t in _tensors(program(a)) if t.requires_grad]
        found = [t for t in _tensors(captured(b)) if t.requires_grad]
        assert len(of) == len(found)
        if of:
            sum(t.sum() for t in of).backward()
            sum(t.sum() for t in found).backward()
            torch.testing.assert_close(b.grad, a.grad, rtol=1e-4, atol=1e-4)


def _tensors(value):
    return [v for v in (value if isinstance(value, tuple | list) else [value]) if isinstance(v, torch.Tensor)]


@pytest.mark.parametrize("program", [steps, nested, in_a_function, written])
def test_a_turn_is_captured_once(program):
    graphs = Graphs()
    torch.compile(program, backend=graphs)(torch.ones(4))
    assert 0 < sum(map(len, graphs.names())) < TURNS * 2


def test_one_graph_where_one_is_wanted():
    graphs = Graphs()
    x = torch.linspace(0.1, 0.7, 4)
    torch.testing.assert_close(torch.compile(steps, backend=graphs, fullgraph=True)(x), steps(x))
    assert len(graphs.gms) == 1
    of = torch.func.grad(lambda x: steps(x).sum())
    torch.testing.assert_close(torch.compile(of)(x), of(x), rtol=1e-4, atol=1e-4)


def test_layers_are_no_long_loop():
    layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(TURNS)])

    def through(x):
        for layer in layers:
            x = torch.relu(layer(x))
        return x

    graphs = Graphs()
    x = torch.ones(2, 4)
    torch.testing.assert_close(torch.compile(through, backend=graphs)(x), through(x))
    assert len(graphs.gms) == 1


def digits(n):
    found = 0
    for i in range(n):
        found += len(str(i * i))
    return found


COMPILED = torch.compile(digits)


def with_a_compiled_function(n):
    found = 0
    while len(str(found)) < n:
        found += COMPILED(found + 100)
    return found


def with_a_tensor(x):
    found = 0
    for i in range(2000):
        found += len(str(i * i))
    return x + found


def test_a_frame_with_too_many_instructions_runs_plainly():
    graphs, x = Graphs(), torch.ones(2)
    with torch._dynamo.config.patch(max_traced_instructions=1000):
        torch.testing.assert_close(torch.compile(with_a_tensor, backend=graphs)(x), with_a_tensor(x))
        assert not graphs.gms
        with pytest.raises(torch._dynamo.exc.Unsupported, match="more than 1000 instructions"):
            torch.compile(with_a_tensor, backend=graphs, fullgraph=True)(x)


def test_a_compiled_function_among_the_globals_is_no_tensor():
    """Such a frame is given up as early as others without a tensor."""
    with torch._dynamo.config.patch(max_traced_instructions_without_tensors=1000):
        for fullgraph in (False, True):
            captured = torch.compile(with_a_compiled_function, fullgraph=fullgraph, backend="eager")
            assert captured(4) == with_a_compiled_function(4)
    assert not trace_rules.is_library_value(COMPILED)
    assert trace_rules.is_library_value(torch.sin)


def lists_of_numbers(n):
    return [list(range(i, i + 100)) for i in range(n)]


def test_long_lists_of_numbers_are_plain_python():
    """Their elements count like instructions."""
    captured, events = torch.compile(lists_of_numbers, backend="eager"), []
    captured.context.listeners.append(events.append)
    with torch._dynamo.config.patch(max_traced_instructions_without_tensors=1000):
        assert captured(30) == lists_of_numbers(30)
    assert [event.skipped for event in events] == ["no tensor was met in 1000 instructions: it is plain Python"]


@pytest.mark.parametrize("place, found", [(0, True), (100, True), (10**6, False)])
def test_long_lists_are_looked_at_to_a_length(place, found):
    held = [1] * (2 * 10**6)
    held[place] = torch.ones(1)
    assert trace_rules.has_tensor(held, 3) is found
    assert trace_rules.has_tensor({"a": [held]}, 3) is found
    assert not trace_rules.has_tensor({"a": [held]}, 2)


LONG: list = [None] * 200_000


def remembered(x, k):
    if LONG[k] is None:
        LONG[k] = k * 2
    return x + LONG[k]


def test_very_long_lists_break_the_graph():
    """A variable for each of their elements would take minutes."""
    captured, x = torch.compile(remembered, backend="eager"), torch.ones(2)
    for k in (5, 5, 7):
        assert torch.equal(captured(x, k), x + 2 * k)
    assert LONG[5] == 10
    assert LONG[6] is None
    with pytest.raises(torch._dynamo.exc.Unsupported, match="a list of 200000 elements"):
        torch.compile(remembered, backend="eager", fullgraph=True)(x, 3)
    assert LONG[3] is None
