"""Loops that differ in their buffers and sizes only are one kernel and one launch: the bits are those of a kernel to a row."""

import io

import numpy as np
import pytest
from flambeau._inductor import aoti_compile_and_package, aoti_load_package

import flambeau as torch
from flambeau import _runtime
from flambeau.inductor import debug
from flambeau.inductor.runtime.records import TableStep
from flambeau.inductor.scheduling.tables import Table
from flambeau.inductor.settings import config

SIZES = [(5,), (1,), (3, 4), (7, 11, 2), (1003,), (33, 65), (1, 1), (9000,)]
LARGE = 1_000_003


def numbers(shapes, dtype=torch.float32, seed=0):
    gen = np.random.default_rng(seed)
    return [torch.from_numpy(gen.normal(size=s).astype(np.float32)).to(dtype) for s in shapes]


def positive(shapes, dtype=torch.float32):
    return [x.abs() + 0.5 for x in numbers(shapes, dtype)]


def compiled(f, *args, dynamic=None, **settings):
    """(results, the launches of the last graph) of a function that is compiled anew."""
    torch._dynamo.reset()
    seen = []
    observer = lambda gm, made, info: seen.append(info.launches)  # noqa: E731
    debug.observers.append(observer)
    try:
        with config.patch(force_disable_caches=True, **settings):
            out = torch.compile(f, dynamic=dynamic)(*args)
    finally:
        debug.observers.remove(observer)
    return out, seen[-1] if seen else []


def rows_of(launches):
    """How many rows each table has."""
    return [len(s.steps) for s in launches if isinstance(s, Table)]


def bits(tensors):
    return [(t.dtype, t.shape, t.numpy().tobytes()) for t in tensors]


# ---- optimizers ----------------------------------------------------------------------------------------------------------------

OPTIMIZERS = [
    ("SGD", dict(), 1),
    ("SGD", dict(momentum=0.9), 1),
    ("SGD", dict(momentum=0.9, nesterov=True, weight_decay=0.01), 1),
    ("SGD", dict(momentum=0.9, maximize=True, foreach=True), 1),
    ("Adam", dict(), 2),
    ("Adam", dict(amsgrad=True, weight_decay=0.01), 2),
    ("Adam", dict(foreach=True, maximize=True), 2),
    ("Adam", dict(fused=True), 2),
    ("Adam", dict(capturable=True), 2),
    ("AdamW", dict(), 2),
    ("AdamW", dict(foreach=True, amsgrad=True), 2),
    ("RMSprop", dict(), 2),
    ("RMSprop", dict(centered=True, momentum=0.9), 2),
    ("Adagrad", dict(), 2),
    ("Adadelta", dict(), 2),
    ("Rprop", dict(), 2),
]


def trained(name, options, dtypes, **settings):
    """(bits of the parameters and the states after three steps, rows of the tables of each graph)."""
    parameters = [torch.nn.Parameter(p.to(dtype)) for dtype in dtypes for p in numbers(SIZES)]
    optimizer = getattr(torch.optim, name)(parameters, lr=0.01, **options)
    torch._dynamo.reset()
    seen = []
    observer = lambda gm, made, info: seen.append(info.launches)  # noqa: E731
    debug.observers.append(observer)
    try:
        with config.patch(force_disable_caches=True, **settings):
            step = torch.compile(optimizer.step)
            for k in range(3):
                for i, p in enumerate(parameters):
                    p.grad = numbers([p.shape], p.dtype, seed=100 * k + i)[0]
                step()
    finally:
        debug.observers.remove(observer)
    states = [t for p in parameters for t in optimizer.state[p].values() if isinstance(t, torch.Tensor)]
    return bits([p.detach() for p in parameters] + states), seen


@pytest.mark.parametrize(("name", "options", "most"), OPTIMIZERS, ids=lambda x: str(x))
def test_a_step_of_an_optimizer(name, options, most):
    got, seen = trained(name, options, [torch.float32])
    assert seen
    for launches in seen:
        assert len(launches) <= most + 1, launches  # rows of one element may have a form of their own
        assert rows_of(launches)
    assert got == trained(name, options, [torch.float32], tables=False)[0]


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_rows_of_other_dtypes_are_tables_of_their_own(name):
    dtypes = [torch.float32, torch.float64, torch.bfloat16]
    got, seen = trained(name, dict(weight_decay=0.1), dtypes)
    rows = sorted(rows_of(seen[-1]))
    if name == "SGD":
        assert rows == [len(SIZES)] * 3
    else:  # parameters of one element are updated with their counts of steps
        assert rows == [6, 6, 6, 18]
    assert got == trained(name, dict(weight_decay=0.1), dtypes, tables=False)[0]


# ---- lists ---------------------------------------------------------------------------------------------------------------------


def chain(xs, ys):
    a = torch._foreach_mul(xs, 0.9)
    torch._foreach_addcmul_(a, ys, ys, 0.1)
    return torch._foreach_div(a, torch._foreach_add(torch._foreach_sqrt(torch._foreach_abs(a)), 1e-3))


def written(xs, ys):
    torch._foreach_mul_(xs, 0.5)
    torch._foreach_add_(xs, ys, alpha=2)
    return list(xs)


def two_lists(xs, ys):
    return torch._foreach_exp(xs) + torch._foreach_maximum(xs, ys)


FUNCTIONS = [chain, written, two_lists]
SHAPES = {
    "sizes": SIZES,
    "with an empty row": [(0,), (5,), (2, 0, 3), (4,), (7,), (1,)],
    "one large row": [(LARGE,), (1,), (5,), (0,), (70,)],
    "equal": [(6, 7)] * 9,
    "one element each": [(), (1,), (1, 1), (), ()],
    "one row": [(12,)],
    "too few": [(3,), (4,), (5,)],
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("threads", [1, 3])
def test_rows(f, shapes, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        runs = []
        for tables in (True, False):
            xs, ys = numbers(shapes), numbers(shapes, seed=1)
            out, launches = compiled(f, xs, ys, tables=tables)
            runs.append(bits([*out, *xs]))
            assert bool(rows_of(launches)) == (tables and sum(0 not in s for s in shapes) >= 4)
        assert runs[0] == runs[1]
        xs, ys = numbers(shapes), numbers(shapes, seed=1)
        for a, b in zip(out, f(xs, ys), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6, atol=1e-6)
    finally:
        torch.set_num_threads(before)


def test_code_does_not_grow_with_the_rows():
    def kernels(n):
        shapes = [(3 + i,) for i in range(n)]
        _, launches = compiled(chain, numbers(shapes), numbers(shapes, seed=1))
        return {s.name for s in launches}, rows_of(launches)

    assert kernels(8)[0] == kernels(80)[0]
    assert kernels(80)[1] == [80]


def test_no_rows():
    for f in (lambda: torch._foreach_add([], 1.0), torch.compile(lambda: torch._foreach_add([], 1.0))):
        with pytest.raises(RuntimeError, match="must have at least one tensor"):
            f()


def broadcast(xs, ys):
    return [x + y[:1] for x, y in zip(xs, ys)]


def turned(xs, ys):
    return [x.t() + y.t() * 2 for x, y in zip(xs, ys)]


def across(xs, ys):
    return [x.t() + y.reshape(x.t().shape) for x, y in zip(xs, ys)]


def flipped(xs, ys):
    return [x.flip(0) + y for x, y in zip(xs, ys)]


@pytest.mark.parametrize(
    ("f", "tables"),
    [(turned, True), (across, False), (flipped, False), (broadcast, False)],
    ids=["turned", "across", "flipped", "broadcast"],
)
def test_rows_in_one_order(f, tables):
    """Rows in another order of memory than C's are rows too, as long as all operands have it."""
    shapes = [(2, 3), (4, 5), (3, 7), (8, 2), (5, 5)]
    xs, ys = numbers(shapes), numbers(shapes, seed=1)
    out, launches = compiled(f, xs, ys)
    assert bool(rows_of(launches)) == tables
    assert bits(out) == bits(f(xs, ys))


def test_what_is_wanted_of_all_rows():
    """A scale that all rows read is made before them."""

    def f(xs):
        scale = torch.stack(torch._foreach_norm(xs)).norm().clamp(min=1).reciprocal()
        return torch._foreach_mul(xs, scale)

    xs = numbers(SIZES)
    out, launches = compiled(f, xs)
    assert rows_of(launches) == [6]  # rows of one element are made with the scale
    for a, b in zip(out, f(xs)):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)


# ---- rows that share memory ----------------------------------------------------------------------------------------------------


def next_row(xs):
    torch._foreach_add_(xs, xs[1:] + xs[:1])


def twice(xs):
    torch._foreach_mul_([*xs, xs[0], xs[1]], 2.0)
    torch._foreach_add_([*xs, xs[0]], 1.0)


def from_before(xs):
    old = torch._foreach_mul(xs, 3.0)
    torch._foreach_mul_(xs, 2.0)
    torch._foreach_add_(xs, old[::-1])


def a_number_of_another_row(xs):
    for k in range(len(xs)):
        xs[k].add_(xs[k - 1][0])


def swapped(xs):
    torch._foreach_copy_(xs, torch._foreach_add(xs[::-1], 0.0))


@pytest.mark.parametrize(
    "f", [next_row, twice, from_before, a_number_of_another_row, swapped], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("n", [6, 5000])
def test_rows_that_read_one_another(f, n):
    want, got = numbers([(n,)] * 7), numbers([(n,)] * 7)
    f(want)
    compiled(f, got)
    assert bits(got) == bits(want)


@pytest.mark.parametrize("step", [0, 1, 3])
def test_rows_that_overlap(step):
    def run(f):
        base = numbers([(40,)])[0]
        f([base[k * step : k * step + 6] for k in range(6)])
        return bits([base])

    def f(xs):
        torch._foreach_mul_(xs, 2.0)
        torch._foreach_add_(xs, 1.0)

    torch._dynamo.reset()
    assert run(torch.compile(f)) == run(f)


# ---- the rest of the system ----------------------------------------------------------------------------------------------------


def test_symbolic_sizes():
    torch._dynamo.reset()
    run = torch.compile(chain, dynamic=True)
    for k in (3, 8, 4):
        shapes = [(k + i, 5) for i in range(6)]
        xs, ys = numbers(shapes), numbers(shapes, seed=1)
        for a, b in zip(run(xs, ys), chain(xs, ys)):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6, atol=1e-6)


def test_epilogues_stay_with_their_products():
    """Loops behind products go through their rows while these are in the cache; a launch of their own would be dearer."""

    def f(x, ws):
        return [torch.nn.functional.gelu(x @ w) for w in ws]

    x, ws = numbers([(256, 64)])[0], numbers([(64, 64 + 16 * k) for k in range(5)])
    _, launches = compiled(f, x, ws)
    assert not rows_of(launches)


def test_a_whole_training_step():
    """Gradients, and the update of all parameters in the same graph."""

    def train(**settings):
        torch.manual_seed(0)
        net = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(5)))
        x = torch.randn(4, 8)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)

        def step(x):
            net(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

        torch._dynamo.reset()
        with config.patch(force_disable_caches=True, **settings):
            run = torch.compile(step)
            for _ in range(3):
                run(x)
        return bits([p.detach() for p in net.parameters()])

    assert train() == train(tables=False)


class _Rows(torch.nn.Module):
    def forward(self, *xs):
        return tuple(chain(list(xs), list(xs)))


def test_a_package_runs_them_too():
    xs, f = numbers(SIZES), io.BytesIO()
    aoti_compile_and_package(torch.export.export(_Rows(), tuple(xs)), package_path=f)
    f.seek(0)
    assert bits(aoti_load_package(f)(*xs)) == bits(compiled(chain, xs, xs)[0])


def test_names_in_profiles():
    xs, ys = numbers(SIZES), numbers(SIZES, seed=1)
    torch._dynamo.reset()
    run = torch.compile(chain)
    run(xs, ys)
    with torch.profiler.profile() as prof:
        run(xs, ys)
    notes = [e.note for e in prof.events() if e.category == "kernel" and e.note is not None]
    (note,) = [n for n in notes if f"{len(SIZES)} rows" in n.label]
    count = sum(int(np.prod(s)) for s in SIZES)
    assert note.bytes == 3 * 4 * count and note.flops >= 6 * count and note.symbol
    assert {name.rpartition(".")[2] for name in note.operators} >= {"mul", "sqrt", "div"}, note.operators


@pytest.mark.parametrize(
    "step",
    [
        TableStep("k", [], 0, 0, 0, 0, 0),
        TableStep("k", [], 2, 1, 0, 0, 0),
        TableStep("k", [], 2**31 - 1, 0, 0, 0, 0),
        TableStep("k", [], 2, 0, 2, 0, 0),
        TableStep("k", [], 2, 0, 0, 1, 1),
        TableStep("k", [], 2, 0, 0, 0, -1),
        TableStep("k", [], 2, 0, 0, 0, 2**31 - 1),
        TableStep("k", [0], 1, 0, 0, 0, 0),
        TableStep("k", [0, 0, 0], 2, 0, 0, 0, 0),
    ],
)
def test_tables_that_are_refused(step):
    with pytest.raises((ValueError, TypeError)):
        _runtime.Graph(0, [0, 0], [([], [])], [], [step], [], 0, None, None)
