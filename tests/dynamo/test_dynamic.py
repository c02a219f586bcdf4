"""Sizes and numbers that vary: how often a program is compiled, that every size gives what plain Python gives, and what is said about it."""

import itertools
import math

import flambeau._dynamo
import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.base.logs import ARTIFACTS
from flambeau.base.shape_env import ConstraintViolationError
from flambeau.dynamo import exc
from flambeau.dynamo.config import config
from flambeau.nn import functional as F

SIZES = (5, 7, 4, 9, 6)


class Counter:
    """A backend that counts, over another one."""

    def __init__(self, name="eager"):
        self.name, self.graphs = name, []

    def __call__(self, gm, examples):
        self.graphs.append(gm)
        return torch._dynamo.lookup_backend(self.name)(gm, examples)


@pytest.fixture(autouse=True)
def strict():
    torch._dynamo.reset()
    with config.patch(strict_guards=True, strict_capture=True):
        yield


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.shape == b.shape and a.dtype is b.dtype and torch.allclose(a, b, atol=1e-4)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def equal(a, b):
    """Whether they are the same bit by bit."""
    if isinstance(a, torch.Tensor):
        return a.dtype is b.dtype and torch.equal(a.nan_to_num(7), b.nan_to_num(7))
    return type(a) is type(b) and (all(map(equal, a, b)) if isinstance(a, tuple) else a == b)


R = torch.randn
LINEAR, NORM, CONV = nn.Linear(6, 6), nn.LayerNorm(6), nn.Conv2d(3, 4, 3)
PROGRAMS = {
    "gelu layer_norm": (lambda x: NORM(F.gelu(LINEAR(x))), lambda n: (R(n, 6),)),
    "view": (lambda x: x.view(x.size(0), -1, 2).transpose(1, 2).reshape(x.size(0), -1), lambda n: (R(n, 6),)),
    "flatten": (lambda x: x.flatten() * x.numel(), lambda n: (R(n, 6),)),
    "cat of slices": (lambda x: torch.cat([x, x[1:]], 0)[: x.shape[0] // 2], lambda n: (R(n, 6),)),
    "mask": (lambda x: torch.ones(x.shape[0], x.shape[0]).tril() @ x, lambda n: (R(n, 6),)),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), lambda n: (R(2, 2, n, 4),)),
    "convolution": (lambda x: F.max_pool2d(CONV(x), 2), lambda n: (R(2, 3, n + 4, n + 4),)),
    "cross_entropy": (lambda x, t: F.cross_entropy(x, t), lambda n: (R(n, 6), torch.arange(n) % 6)),
    "len": (lambda x: x * len(x), lambda n: (R(n, 6),)),
    "square root": (lambda x: x / math.sqrt(x.shape[0]) * x.shape[1] ** -0.5, lambda n: (R(n, 6),)),
    "maximum": (lambda x: x[: max(x.shape[0] - 2, 1)], lambda n: (R(n, 6),)),
    "sizes are returned": (lambda x: (x.sum(), x.shape[0] * 2, x.shape[0] / 2, x.shape), lambda n: (R(n, 6),)),
    "isinstance": (lambda x: x + isinstance(x.shape[0], int), lambda n: (R(n, 6),)),
    "int argument": (lambda x, k: x[:k] * k, lambda n: (R(40), n)),
    "float argument": (lambda x, a: x * a + math.exp(a) if a > 0.1 else x, lambda n: (R(3), n / 7)),
    "matrix product": (lambda x, y: x @ y, lambda n: (R(n, 6), R(6, n + 1))),
    "in place": (lambda x: x.add_(1).mul_(x.shape[0]), lambda n: (R(n, 6),)),
    "containers": (lambda d: d["a"][0] * d["k"], lambda n: ({"a": [R(n, 6)], "k": n},)),
    "tuple of ints": (lambda x, s: x.view(s), lambda n: (R(n * 6), (n, 6))),
    "variance": (lambda x: x.var(0) + F.normalize(x, dim=0).sum(), lambda n: (R(n, 6),)),
    "einsum": (lambda x: torch.einsum("ij,kj->ik", x, x), lambda n: (R(n, 6),)),
    "item": (lambda x: x[:1] * x.sum().item(), lambda n: (R(n, 6),)),
    "nonzero": (lambda x: (x > 0).nonzero().sum(0), lambda n: (R(n, 6),)),
    "boolean mask": (lambda x: x[x > 0].sum(), lambda n: (R(n, 6),)),
    "ndarray": (lambda a: np.sqrt(a * a + 1) * a.shape[0] + a.size, lambda n: (np.ones((n, 3)),)),
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_two_compilations_serve_all_sizes(name, backend):
    f, make = PROGRAMS[name]
    counter = Counter(backend)
    compiled = torch.compile(f, backend=counter, fullgraph=True)
    for n in SIZES:
        torch.manual_seed(n)
        a = make(n)
        torch.manual_seed(n)
        b = make(n)
        want, got = f(*a), compiled(*b)
        if isinstance(want, np.ndarray):
            assert np.allclose(want, got)
        else:
            assert same(want, got)
    assert len(counter.graphs) <= 2


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(
    "name", ["gelu layer_norm", "view", "cat of slices", "attention", "cross_entropy", "variance", "square root"]
)
def test_gradients_at_all_sizes(name, backend):
    f, make = PROGRAMS[name]
    counter = Counter(backend)
    compiled = torch.compile(f, backend=counter)
    for n in SIZES:
        torch.manual_seed(n)
        a = make(n)
        b = [t.clone() for t in a]
        for t in (*a, *b):
            if t.is_floating_point():
                t.requires_grad_()
        f(*a).sum().backward()
        compiled(*b).sum().backward()
        for p, q in zip(a, b):
            assert p.grad is None or torch.allclose(p.grad, q.grad, atol=1e-4)
    assert len(counter.graphs) <= 2


def compiles(f, calls, **kwargs):
    counter = Counter()
    compiled = torch.compile(f, backend=counter, **kwargs)
    for args in calls:
        compiled(*args)
    return len(counter.graphs)


def test_dynamic_settings():
    f = lambda x: torch.relu(x * 2).sum(-1)  # noqa: E731
    rows = [(R(n, 8),) for n in (4, 5, 7, 100)]
    assert compiles(f, rows, dynamic=True) == 1
    assert compiles(f, rows, dynamic=False) == 4
    assert compiles(f, rows) == 2
    assert compiles(f, [(R(n, 8),) for n in (4, 5, 1, 0)], dynamic=True) == 3


def test_the_environment_sets_the_default(monkeypatch):
    rows = [(R(n, 8),) for n in (4, 5, 7, 9)]
    monkeypatch.setenv("TORCHDYNAMO_DYNAMIC_SHAPES", "1")
    assert compiles(lambda x: x * 2, rows) == 1
    monkeypatch.setenv("TORCHDYNAMO_DYNAMIC_SHAPES", "0")
    assert compiles(lambda x: x * 3, rows) == 4


def test_a_branch_on_a_size_is_a_guard():
    f = lambda x: x + x.shape[0] if x.shape[0] > 10 else x * 2  # noqa: E731
    assert compiles(f, [(R(n),) for n in (4, 6, 12, 20, 5, 30)], dynamic=True) == 2


def _marked(n, mark, *args, **kwargs):
    x = torch.ones(n, 4)
    mark(x, *args, **kwargs)
    return (x,)


def test_marks():
    mark, weak, static = torch._dynamo.mark_dynamic, torch._dynamo.maybe_mark_dynamic, torch._dynamo.mark_static
    f = lambda x: x * 2  # noqa: E731
    assert compiles(f, [_marked(n, mark, 0) for n in range(2, 12)]) == 1
    assert compiles(f, [_marked(n, weak, 0) for n in range(2, 12)]) == 1
    assert compiles(f, [_marked(n, static, 0) for n in range(2, 6)]) == 4
    assert compiles(f, [_marked(5, mark, 0, min=2, max=8), (torch.ones(8, 4),), (torch.ones(9, 4),)]) == 2
    assert compiles(lambda x: x.view(5, 4), [_marked(5, weak, 0)]) == 1


def test_a_violated_constraint_names_symbol_value_and_line():
    f = torch.compile(lambda x: x.view(5, 4) * 2, backend="eager")
    with pytest.raises(
        ConstraintViolationError, match=r"L\['x'\].size\(\)\[0\] as dynamic but.*\(5\)(.|\n)*test_dynamic.py"
    ):
        f(*_marked(5, torch._dynamo.mark_dynamic, 0))
    g = torch.compile(lambda x: x + 1 if x.shape[0] < 7 else x, backend="eager")
    with pytest.raises(ConstraintViolationError, match="2 <= s0 <= 100"):
        g(*_marked(5, torch._dynamo.mark_dynamic, 0, min=2, max=100))
    with pytest.raises(ConstraintViolationError, match=r"5 not in range \[6, int_oo\] that dimension 0 is marked with"):
        g(*_marked(5, torch._dynamo.mark_dynamic, 0, min=6))


def test_a_graph_break_and_ten_sizes():
    def f(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y + x.shape[0]

    assert compiles(f, [(torch.ones(n, 4),) for n in range(2, 12)]) <= 4


def test_key_value_cache():
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = None

        def forward(self, x):
            self.k = x if self.k is None else torch.cat([self.k, x], 0)
            return self.k.sum(0)

    model = Cache()
    counter = Counter("inductor")
    f = torch.compile(model, backend=counter, fullgraph=True)
    for n in range(1, 60):
        assert f(torch.ones(1, 2))[0] == n
    assert len(counter.graphs) <= 3


def test_adam_with_a_schedule():
    model, plain = nn.Linear(2, 1), nn.Linear(2, 1)
    plain.load_state_dict(model.state_dict())
    counter = Counter()
    steps = []
    for m in (model, plain):
        opt = torch.optim.Adam(m.parameters(), lr=0.1)
        steps.append((m, opt, torch.compile(opt.step, backend=counter) if m is model else opt.step))
    for i in range(12):
        for m, opt, step in steps:
            opt.param_groups[0]["lr"] = 0.1 / (i + 1)
            opt.zero_grad()
            m(torch.ones(2, 2)).sum().backward()
            step()
        assert torch.allclose(model.weight, plain.weight, atol=1e-6)
    assert len(counter.graphs) <= 2


def test_integers_are_symbols_at_once_where_everything_is_dynamic():
    assert compiles(lambda x, k: x * k, [(R(3), k) for k in (3, 4, 50)], dynamic=True) == 1
    assert compiles(lambda x, k: np.where(x < 0.5, k, x), [(np.ones(3) / k, k) for k in (3, 4, 50)], dynamic=True) == 1
    # 0 and 1 are constants of sizes alone.
    assert compiles(lambda x, k: x * k, [(R(3), k) for k in (0, 1, 3, 50)], dynamic=True) == 1
    assert compiles(lambda x, k: x * k if k > 4 else x + 1, [(R(3), k) for k in (3, 4, 50, 60)], dynamic=True) == 2


COUNTED = {
    "place": lambda x, k: x[k] * 2,
    "epoch": lambda x, k: x * (1 - k / 10),
    "product": lambda x, k: x * k + k,
}


@pytest.mark.parametrize("ks", [(0, 1, 2, 3), (1, 0, 3, 2), (3, 1, 0)])
@pytest.mark.parametrize("name", COUNTED)
def test_a_number_that_varies_may_be_zero_and_one(name, ks):
    assert compiles(COUNTED[name], [(R(5, 3), k) for k in ks]) == 2


def test_zero_and_one_in_a_module_are_constants():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 0

        def forward(self, x):
            self.k += 1
            return x * self.k

    # The counter is read as 0, as 1, and then as a number that varies.
    m = Counting()
    assert compiles(m, [(R(3),) for _ in range(5)]) == 3 and m.k >= 5


WITH_NUMPYS_INTEGERS = {
    "product": lambda x, n: x * n,
    "on the left": lambda x, n: n - x,
    "quotient": lambda x, n: x / n,
    "comparison": lambda x, n: n < x,
    "equality": lambda x, n: x == n,
    "in place": lambda x, n: x.clone().add_(1).__iadd__(n),
    "twice": lambda x, n: (x + n) * n,
    "and a type": lambda x, n: (x * n, n + 1, type(n)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.half, torch.int32, torch.int64, torch.bool])
@pytest.mark.parametrize("name", WITH_NUMPYS_INTEGERS)
def test_numpys_integers_that_vary_beside_tensors(name, dtype):
    f, counter = WITH_NUMPYS_INTEGERS[name], Counter()
    x = torch.tensor([0, 1, 3]).to(dtype)
    compiled = torch.compile(f, backend=counter)
    for n in map(np.int64, (2, 3, 0, 1, -7, 2049, 2**24 + 1, -(2**62) - 1)):
        try:
            want = f(x, n)
        except (RuntimeError, TypeError) as e:
            with pytest.raises(type(e)):
                compiled(x, n)
            continue
        assert equal(compiled(x, n), want)
    assert len(counter.graphs) <= 3


def test_a_count_that_goes_on():
    ids = itertools.count()
    assert compiles(lambda x: x * next(ids), [(R(3),)] * 5) == 2
    assert compiles(lambda x, it: x * next(it) + next(it), [(R(3), itertools.count(n, -3)) for n in range(5)]) == 2


OF_SIZES_ZERO_AND_ONE = {
    "broadcast": lambda x, k: torch.zeros(k, 4) + x[0, 0],
    "broadcast to one": lambda x, k: torch.ones(k, 3)[None] * torch.ones(3, 1, 1),
    "expand": lambda x, k: torch.ones(k, 4)[:1].expand(k, 4) * 2,
    "slice": lambda x, k: x[:, :k] + x[:, :1],
    "view": lambda x, k: torch.ones(4 * k).view(k, 4).t().reshape(-1),
    "product": lambda x, k: torch.ones(3, k) @ torch.ones(k, 2),
    "squeeze": lambda x, k: torch.ones(2, k, 3).squeeze() * 2,
    "layout": lambda x, k: (torch.ones(k, 4).t().is_contiguous(), torch.ones(4, k).t().stride(), x),
    "branch": lambda x, k: x * 2 if k == 1 else x + k,
    "truth": lambda x, k: x * 2 if k else x + 1,
    "range": lambda x, k: sum([x * i for i in range(k)], x),
    "powers": lambda x, k: x * (2**k) + k**2,
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", OF_SIZES_ZERO_AND_ONE)
def test_sizes_made_of_a_number_that_is_zero_or_one(name, dynamic):
    f, x = OF_SIZES_ZERO_AND_ONE[name], R(3, 4, 4)
    for ks in ((3, 2, 1, 0), (0, 1, 2, 3), (2, 0, 1)):
        torch._dynamo.reset()
        compiled = torch.compile(f, backend="eager", dynamic=dynamic)
        for k in ks:
            assert same(compiled(x, k), f(x, k))


# What an operator takes as an int in its schema, or as one number for a list of them, may be a number that varies.
NUMBERED = {
    "sum": lambda x, d: x.sum(d),
    "argmin": lambda x, d: x.argmin(d),
    "amax": lambda x, d: torch.amax(x, dim=d, keepdim=True),
    "std": lambda x, d: x.std(d),
    "logsumexp": lambda x, d: torch.logsumexp(x, d),
    "permute": lambda x, d: torch.permute(x, (d, 3 - d, 0)),
    "roll": lambda x, d: x.roll(d, 0),
    "tensordot": lambda x, d: torch.tensordot(x, x, ([d], [d])),
    "softmax": lambda x, d: F.softmax(x, d),
    "avg_pool1d": lambda x, d: F.avg_pool1d(x, d),
    "padding": lambda x, d: F.conv1d(x, torch.ones(2, 4, 1), padding=d),
    "stride": lambda x, d: F.conv1d(x, torch.ones(2, 4, 1), stride=d),
    "flip": lambda x, d: x.flip(d),
    "adaptive_avg_pool1d": lambda x, d: F.adaptive_avg_pool1d(x, d),
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", NUMBERED)
def test_numbers_that_vary_as_arguments_of_operators(name, backend):
    f, x = NUMBERED[name], R(2, 4, 5)
    for dynamic in (None, True):
        compiled = torch.compile(f, backend=backend, fullgraph=True, dynamic=dynamic)
        for d in (2, 1, 2):
            assert same(compiled(x, d), f(x, d))


def test_a_number_in_the_place_of_a_tensor_is_a_symbol():
    rows = [(R(2), R(2)), (R(3), 3), (R(4), R(4)), (R(5), 4), (R(6), R(6)), (R(7), 2.5), (R(7), 3.5)]
    assert compiles(lambda x, y: x * y, rows[:5]) == 3
    assert compiles(lambda x, y: x * y, rows) == 4


def test_limits_of_one_dtype_are_one_constant():
    rows = [(R(3), np.iinfo(d)) for d in ("int32", np.int32, np.dtype("int32"))]
    assert compiles(lambda x, info: (x + info.max, info.min, info.bits, info.dtype), rows) == 1
    assert compiles(lambda x, info: (x + info.max, info.dtype), [*rows, (R(3), np.iinfo("int16"))]) == 2


def test_what_the_size_is_needed_for_is_a_guard():
    counter = Counter()
    f = torch.compile(lambda x: sum(x[i] for i in range(x.shape[0])), backend=counter, dynamic=True)
    for n in (3, 4, 3):
        x = torch.arange(float(n))
        assert f(x) == x.sum()
    assert len(counter.graphs) == 2


def test_a_size_beyond_32_bits_and_an_overflow():
    f = torch.compile(lambda x, k: x.sum() + (k * k) % 7, backend="eager", dynamic=True, fullgraph=True)
    for k in (10, 1 << 31, (1 << 31) + 5, (1 << 62) + 1):
        assert f(torch.ones(2), k) == 2 + (k * k) % 7


def test_the_reason_of_a_recompilation_names_the_symbol():
    f = torch.compile(lambda x: x + 1 if x.shape[0] < 7 else x, backend="eager", dynamic=True)
    f(torch.ones(5))
    with torch.compiler.set_stance("fail_on_recompile"):
        with pytest.raises(RuntimeError, match=r"s0 <= 6 \(s0 is L\['x'\].size\(\)\[0\]\).*test_dynamic.py"):
            f(torch.ones(9))


def test_data_dependent_questions():
    def f(x):
        n = x.sum().int().item()
        torch._check_is_size(n)
        torch._check_value(n <= x.shape[0])
        return x[:n]

    g = torch.compile(f, backend="eager", fullgraph=True)
    assert g(torch.tensor([1.0, 0, 1])).shape == (2,)
    with pytest.raises(ValueError, match="u0 <= 3"):
        g(torch.tensor([1.0, 5, 1]))
    h = torch.compile(lambda x: x + 1 if x.sum().int().item() > 3 else x, backend="eager", fullgraph=True)
    with pytest.raises(exc.Unsupported, match=r"u0 >= 4(.|\n)*torch._check"):
        h(torch.ones(3))


def _scaling(n, scale):
    class Scaling(torch.nn.Module):
        def forward(self, x):
            return x.view(n, -1).view(-1) * scale + n

    return Scaling()


def test_cells_that_vary_are_told_apart():
    """Functions that are inlined have cells of equal names; each has a history of its own, and a symbol of its own."""

    @torch.compile
    def f(x, modules):
        for m in modules:
            x = m(x)
        return x

    x = torch.arange(20.0)
    for pairs in (((4, 3), (5, 7)), ((4, 3), (5, 7)), ((2, 3), (5, 7)), ((2, 4), (5, 7)), ((5, 4), (2, 7))):
        modules = [_scaling(*p) for p in pairs]
        want = x
        for m in modules:
            want = m(want)
        assert torch.equal(f(x, modules), want)


def test_a_number_divided_by_a_size():
    f = torch.compile(lambda x, n: x.view(2, n, 12 // n).transpose(1, 2) * (12 // n), dynamic=True)
    x = torch.arange(24.0)
    for n in (2, 3, 4, 6):
        assert torch.equal(f(x, n), x.view(2, n, 12 // n).transpose(1, 2) * (12 // n))


def test_a_size_that_a_number_divides_stays_itself():
    """``c % groups == 0`` doesn't say what c is."""
    f = torch.compile(torch.nn.functional.channel_shuffle)
    for c, groups in ((12, 2), (12, 3), (24, 6), (30, 5)):
        x = torch.arange(float(c)).reshape(1, c, 1, 1)
        assert torch.equal(f(x, groups), torch.nn.functional.channel_shuffle(x, groups))


@pytest.mark.parametrize("make", [torch.zeros, np.zeros])
def test_a_size_that_becomes_zero(make):
    def f(x):
        return x * 2

    compiled = torch.compile(f, backend="eager")
    for n in (5, 0, 4, 0):
        assert compiled(make((n, 6, 7))).shape == (n, 6, 7)


class Kind(torch.Tensor):
    pass


@pytest.mark.parametrize("numbers", [(3, 4, 5), (0.3, 0.4, 0.5)])
def test_a_tensor_subclass_meets_numbers_that_vary(numbers):
    compiled = torch.compile(lambda x, n: (x * n, x + n, n * x, x**n, x / n), backend="eager")
    x = torch.ones(2).as_subclass(Kind)
    for n in numbers:
        for got, want in zip(compiled(x, n), (x * n, x + n, n * x, x**n, x / n)):
            assert type(got) is Kind
            torch.testing.assert_close(got, want)


def test_a_product_of_sizes_that_overflows():
    for fn in (lambda x, n: x.expand(n, 3), torch.compile(lambda x, n: x.expand(n, 3), dynamic=True)):
        with pytest.raises(RuntimeError, match="overflow"):
            fn(torch.zeros(1), 1 << 62)


@pytest.mark.slow  # 2 GB of memory
def test_sizes_beyond_32_bits():
    compiled = torch.compile(lambda x: (x + 1).sum(), dynamic=True)
    n = (1 << 31) + 8
    assert int(compiled(torch.zeros(n, dtype=torch.uint8))) == n
    assert int(compiled(torch.zeros(5, dtype=torch.uint8))) == 5


def test_symbols_and_guards_are_logged(monkeypatch):
    stream = ARTIFACTS["sym_shapes"]
    assert ARTIFACTS["dynamic"] is stream
    said = []
    monkeypatch.setattr(type(stream), "__call__", lambda self, text, *args: said.append(text % args))
    monkeypatch.setattr(stream, "on", True)

    def f(x):
        return x + 1 if x.shape[0] > 3 else x

    torch.compile(f, backend="eager", dynamic=True)(torch.ones(5, 7))
    torch.compile(lambda x: x.nonzero(), backend="eager", fullgraph=True)(torch.ones(3))
    assert any(t.startswith("create_symbol s0 = 5 for L['x'].size()[0] [2, int_oo]") for t in said)
    assert any("[guard added]" in t and "x.shape[0] > 3" in t for t in said)
    assert any(t.startswith("create_unbacked_symint u0 [0, ") for t in said)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(
    "body",
    [
        "torch.full((2,), n, dtype=d)",
        "torch.full_like(x, n, dtype=d)",
        "x.new_full((2,), n, dtype=d)",
        "torch.zeros(2, dtype=d).index_fill(0, torch.tensor([0]), n)",
        "torch.where(x > 0, torch.zeros(2, dtype=d), n)",
        "torch.nn.functional.pad(torch.ones(2, dtype=d), (1, 0), value=n)",
        "torch.zeros(2, dtype=d).masked_fill(x > 0, n)",
    ],
)
def test_numbers_that_vary_fit_their_dtype(body, backend):
    """Beyond the dtype they wrapped in compiled code."""
    plain, x = eval(f"lambda x, n, d: {body}"), torch.ones(2)
    for dtype in (torch.uint8, torch.int8, torch.int32):
        compiled = torch.compile(plain, backend=backend, dynamic=True)
        for n in (3, 4, 300, 2**31, 5, -(2**40)):
            try:
                want = plain(x, n, dtype)
            except RuntimeError as e:
                with pytest.raises(RuntimeError, match=str(e)):
                    compiled(x, n, dtype)
            else:
                assert torch.equal(want, compiled(x, n, dtype))


def _last_rows(x):
    n, out = len(x), np.zeros_like(x)
    for k in range(n - 1, n - 3, -1):
        out[k] = x[k] * k
    return out


def _around_the_size(x):
    n, s = len(x), x[0] * 0
    for _ in range(n + 1, n):
        s = s + 1
    for k in range(n, n - 3, -2):
        s = s + k * x[k - 1]
    return s, k, [*range(n - 1, n + 2)], sum(range(n, n + 3)), list(zip(range(2), range(n, n + 2)))


def _left_in_the_middle(x):
    n = len(x)
    for k in range(n - 3, n):
        if k % 2:
            break
    else:
        k = -1
    return x * k


@pytest.mark.parametrize("f, graphs", [(_last_rows, 2), (_around_the_size, 2), (_left_in_the_middle, 3)])
def test_ranges_of_a_known_length_between_sizes(f, graphs):
    """Such a loop fixes no size: the first graph is for the first size, the second for all (and one for even sizes where that is asked)."""
    counter = Counter()
    compiled = torch.compile(f, backend=counter)
    for n in (5, 8, 13, 30, 31):
        x = np.random.default_rng(n).random((n, 3))
        assert repr(compiled(x)) == repr(f(x))
    assert len(counter.graphs) == graphs


def test_an_iterator_over_a_symbolic_range_leaves():
    def f(x):
        left = iter(range(len(x), len(x) + 3))
        next(left)
        return left, x + 1

    compiled = torch.compile(f)
    for n in (5, 8, 13):
        left, _ = compiled(torch.ones(n))
        assert type(left) is type(iter(range(0))) and [*left] == [n + 1, n + 2]
