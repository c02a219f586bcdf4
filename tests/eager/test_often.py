"""Small calls that come up often run compiled graphs: the same bits, strides, draws, writes and errors as the first ones."""

import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C
from flambeau.eager import often

OFTEN = 40  # more calls than a description is met before it is compiled


@pytest.fixture
def compiled(monkeypatch):
    """The operators that were given a graph."""
    met = []

    def compile_plan(op, values, plan):
        made = often.compile_plan(op, values, plan)
        met.append((str(op), made is not None))
        return made

    _C.forget_call_plans()
    monkeypatch.setattr(often, "_PATIENCE", 0)
    _C.set_handlers(compile_plan=compile_plan)
    yield met
    _C.set_handlers(compile_plan=often.compile_plan)


def _facts(r):
    if isinstance(r, (tuple, list)):
        return [f for x in r for f in _facts(x)]
    return [(r.dtype, tuple(r.shape), r.stride(), r.numpy().copy())]


x, y = torch.rand(4, 6, dtype=torch.float64) + 0.1, torch.rand(4, 6, dtype=torch.float64) + 0.1
i, j = torch.tensor([3, 0, 2, 2]), torch.tensor([[0, 1, 3, 2, 0, 1]])
SPD = y @ y.t() + torch.eye(4, dtype=torch.float64)
PURE = {
    "log10": lambda: x.log10(),
    "softmax": lambda: torch.softmax(x, 1),
    "softmax, turned": lambda: torch.softmax(x.t(), 1),
    "remainder": lambda: torch.remainder(x - 0.5, y),
    "complex": lambda: torch.complex(x, y),
    "layer_norm": lambda: torch.layer_norm(x, (6,)),
    "index_copy": lambda: x.index_copy(0, i[:2], y[:2]),
    "put": lambda: x.put(i, y[0, :4]),
    "mode": lambda: x.mode(1),
    "hardswish": lambda: torch.nn.functional.hardswish(x - 0.3),
    "gathers": lambda: torch.nn.functional.grid_sample(
        x.reshape(1, 1, 4, 6), torch.stack([x, y], 2)[None], mode="bicubic", align_corners=False
    ),
    "writes that add": lambda: torch.zeros(4, dtype=torch.float64).index_add(
        0, i.repeat(3), torch.cat([x[:, 0], y[:, 1], x[:, 2]])
    ),
    "scatter_reduce": lambda: x.scatter_reduce(0, j, y, "amax"),
    "cholesky": lambda: torch.linalg.cholesky(SPD),
    "lu": lambda: torch.linalg.lu(SPD),
    "fft2": lambda: torch.fft.fft2(x),
    "ihfft": lambda: torch.fft.ihfft(x).resolve_conj(),
    "indices": lambda: torch.triu_indices(3, 4),
    "turned": lambda: x.t().flip(0),
    "no elements": lambda: torch.softmax(x[:0], 1),
    "16 bits": lambda: torch.softmax(x.bfloat16(), 1).float(),
}


# A graph would give other bits (sums of floating-point numbers), or be no faster.
UNCHANGED = {"ihfft", "remainder", "log10", "softmax", "softmax, turned", "layer_norm", "16 bits", "no elements"}
UNCHANGED |= {"mode", "scatter_reduce", "indices"}


@pytest.mark.parametrize("name", PURE)
def test_pure_calls(name, compiled):
    first = _facts(PURE[name]())
    for _ in range(OFTEN):
        again = _facts(PURE[name]())
    assert len(first) == len(again)
    for a, b in zip(first, again):
        assert a[:3] == b[:3]
        assert np.array_equal(a[3], b[3])
    assert name in UNCHANGED or any(made for _, made in compiled)
    assert name != "softmax" or not any(made for _, made in compiled)


DRAWS = {
    "randn": lambda x: torch.randn(5, 3),
    "rand_like": lambda x: torch.rand_like(x.t()),
    "randint": lambda x: torch.randint(3, 90, (7,)),
    "bernoulli": lambda x: torch.bernoulli(x),
    "normal": lambda x: torch.normal(x, x),
    "normal_": lambda x: x.normal_(),
    "uniform_, turned": lambda x: x.t().uniform_(2, 3),
    "exponential_": lambda x: x.exponential_(),
    "geometric_": lambda x: x.geometric_(0.3),
    "bernoulli_": lambda x: x.bernoulli_(0.3),
    "cauchy_, every other": lambda x: x[:, ::2].cauchy_(),
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.5),
    "feature dropout": lambda x: torch.nn.functional.dropout2d(x.reshape(1, 4, 2, 3)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws(name, compiled):
    """The stream of the generator goes on as it would, and a tensor that is filled is the one that is returned."""
    numbers = []
    for _ in range(OFTEN):
        given = torch.full((4, 6), 0.5)
        version = given._version
        torch.manual_seed(3)
        made = DRAWS[name](given)
        after = torch.rand(2)
        written = name.endswith("_") or "_," in name
        assert (given._version > version) == written
        assert not written or made._base is given or made is given
        numbers.append([made.numpy().copy(), given.numpy().copy(), after.numpy()])
    for other in numbers[1:]:
        for a, b in zip(numbers[0], other):
            assert np.array_equal(a, b)
    assert any(made for _, made in compiled)


def test_errors_keep_their_words(compiled):
    torch.manual_seed(0)
    cases = [
        lambda bad: torch.linalg.cholesky(SPD * (-1 if bad else 1)),
        lambda bad: x.index_copy(0, i[:2] + (4 if bad else 0), y[:2]),
        lambda bad: x.put(i + (24 if bad else 0), y[0, :4]),
        lambda bad: torch.bernoulli(x - (9 if bad else 0.1)),
    ]
    for case in cases:
        words = []
        for k in range(OFTEN + 1):
            if k not in (0, OFTEN):
                case(False)
                continue
            with pytest.raises((RuntimeError, IndexError)) as e:
                case(True)
            words.append((type(e.value), str(e.value)))
        assert words[0] == words[1]
    assert any(made for _, made in compiled)


def test_numbers_that_vary(compiled):
    """A description knows a number by its type; the graph was made for one of them."""
    for k in range(2 * OFTEN):
        assert torch.equal(torch.remainder(x, k + 0.5), x - torch.floor(x / (k + 0.5)) * (k + 0.5))
        assert torch.allclose(torch.hypot(x, torch.tensor(float(k))), (x * x + k * k).sqrt())


def test_the_call_that_asks_for_a_graph_is_as_those_before_it(compiled):
    """Sums of a call plan have another order than those of the kernel in the first call."""
    z = torch.rand(3, 62, 17)
    for f in (lambda: z.sum([0, 2]), lambda: z.mean([0, 2])):
        met = [f().numpy() for _ in range(OFTEN)]
        assert all(np.array_equal(met[2], other) for other in met[2:])
    assert compiled


def test_large_calls_are_left_to_the_backend(compiled):
    """It compiles them when they are met again with the same numbers; here both results would be held beside each other."""
    z = torch.rand(300, 512)
    for k in range(OFTEN):
        z + float(k)
        torch.softmax(z, 1)
    assert compiled and not any(made for _, made in compiled)


def test_views_stay_views(compiled):
    for _ in range(OFTEN):
        assert x.reshape(-1)._base is x
        assert x.contiguous() is x
        z = torch.zeros(4, 6)
        z.reshape(24).uniform_(1, 2)
        assert z.min() >= 1


def test_writes_that_are_refused_stay_refused(compiled):
    for _ in range(OFTEN):
        z = torch.zeros(3, 1)
        z.normal_()
        with pytest.raises(RuntimeError, match="single memory location"):
            z.expand(3, 4).normal_()


def test_a_short_program_does_not_import_the_compiler():
    program = "import sys, flambeau as t; x, i = t.rand(4, 4), t.arange(4); [x.index_copy(0, i, x) for _ in range({})]; print('flambeau.inductor.single' in sys.modules)"
    for calls, there in ((200, "False"), (4000, "True")):
        ran = subprocess.run([sys.executable, "-c", program.format(calls)], capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == there


def test_gradients(compiled):
    """The forward operators and those of a backward, compiled."""
    met = []
    for _ in range(OFTEN):
        a = x.clone().requires_grad_()
        torch.nn.functional.hardswish(torch.softmax(a, 1)).index_copy(0, i[:2], y[:2]).pow(2).sum().backward()
        met.append(a.grad.numpy())
    assert np.array_equal(met[0], met[-1])


def test_composites_with_numbers_in_their_bodies_are_call_plans():
    """A number of the body is a constant of the call plan: no call has it."""
    op, image = torch.ops.aten.avg_pool2d.default, torch.rand(1, 2, 6, 6)
    first = [op(image, [2, 2]) for _ in range(3)][0]
    met = []
    sys.setprofile(lambda frame, event, arg: met.append(frame.f_code.co_name) if event == "call" else None)
    again = op(image, [2, 2])
    sys.setprofile(None)
    assert not met and torch.equal(first, again)
