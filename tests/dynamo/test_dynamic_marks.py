"""What users say about sizes: marks with hints, criteria and shared ids, compile(dynamic_shapes=), and the settings. Each acts or raises."""

import math

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.base.shape_env import ConstraintViolationError
from flambeau.dynamo.config import config
from flambeau.dynamo.exc import UserError
from flambeau.dynamo.guards.dynamic import mark_dynamic, mark_static, mark_unbacked
from flambeau.export import Dim


def compiles(f, calls, fullgraph=True, **kwargs) -> int:
    """How often ``f`` is compiled for these calls; each gives what plain Python gives."""
    count = 0

    def backend(gm, examples):
        nonlocal count
        count += 1
        return torch._dynamo.lookup_backend("inductor")(gm, examples)

    with config.patch(strict_capture=True):
        c = torch.compile(f, backend=backend, fullgraph=fullgraph, **kwargs)
        for args in calls:
            assert torch.allclose(c(*args), f(*args))
    return count


def rows(*sizes, mark=None, **kwargs):
    out = []
    for n in sizes:
        x = torch.randn(n, 4)
        if mark is not None:
            mark(x, 0, **kwargs)
        out.append((x,))
    return out


def double(x):
    return x * 2


def five(x):
    return x.reshape(5, 4) * 2


def test_criteria_are_compiled_on_their_own():
    assert compiles(double, rows(5, 6, 8, 9, 8, 7, mark=mark_dynamic, specialize_on=[lambda n: n == 8])) == 2
    assert compiles(double, rows(5, 6, 8, 16, 8, 7, mark=mark_dynamic, specialize_on=[lambda n: n % 8 == 0])) == 2
    with pytest.raises(TypeError, match="functions of the size"):
        mark_dynamic(torch.ones(3), 0, specialize_on=[8])
    with pytest.raises(NotImplementedError, match="mark_dynamic has it"):
        mark_unbacked(torch.ones(3), 0, specialize_on=[lambda n: n == 8])


def test_hints_are_the_compilers():
    seen = []

    def backend(gm, examples):
        (x,) = (e for e in examples if isinstance(e, torch.Tensor))
        (s,) = x.shape[0].expr.symbols()
        seen.append((x.shape[0].hint, x.shape[0].env.hint_overrides[s]))
        return gm.forward

    (x,) = rows(5, mark=mark_dynamic, hint_override=4096)[0]
    torch.compile(double, backend=backend)(x)
    assert seen == [(5, 4096)]
    assert compiles(double, rows(5, 6, mark=mark_dynamic, hint_override=4096)) == 1
    with pytest.raises(TypeError, match="hint_override"):
        mark_dynamic(x, 0, hint_override="many")


def test_unbacked_sizes():
    def pairs(**kwargs):
        return [
            (a, b)
            for (a,), (b,) in zip(
                rows(5, 6, 1, mark=mark_unbacked, **kwargs), rows(5, 6, 1, mark=mark_unbacked, **kwargs)
            )
        ]

    add = lambda x, y: x + y  # noqa: E731
    assert compiles(add, pairs(shape_id="batch")) == 1
    # Without a name two sizes are taken to be equal, which the graph checks.
    assert compiles(add, pairs()) == 1
    with pytest.raises(RuntimeError, match=r"tensor a \(5\) must match the size of tensor b \(6\)"):
        torch.compile(add, fullgraph=True)(pairs()[0][0], pairs()[1][1])
    (x, _), (_, y) = pairs(shape_id="batch")[:2]
    with pytest.raises(ConstraintViolationError, match="'batch' must be equal.* 5 and 6"):
        compiles(add, [(x, y)])

    def checked(x):
        torch._check(x.shape[0] == 5)
        return x * 2

    assert compiles(checked, rows(5, mark=mark_unbacked)) == 1
    with pytest.raises(ConstraintViolationError, match=r"constant \(5\)"):
        compiles(checked, rows(5, mark=mark_unbacked, strict=True))


SPECS = [
    (double, {"x": {0: Dim("b", max=64)}}, (5, 6, 7), 1),
    (double, ({0: Dim.DYNAMIC},), (5, 6), 1),
    (double, ((Dim.AUTO, None),), (5, 6), 1),
    (five, ({0: Dim.AUTO},), (5,), 1),
    (double, ({0: Dim.STATIC},), (5, 6, 7), 3),
    (double, ({0: 5},), (5,), 1),
]


@pytest.mark.parametrize("row", range(len(SPECS)))
def test_specifications(row):
    f, spec, sizes, count = SPECS[row]
    assert compiles(f, rows(*sizes), dynamic_shapes=spec) == count


@pytest.mark.parametrize(
    ("f", "spec", "calls", "error", "words"),
    [
        (five, ({0: Dim.DYNAMIC},), rows(5), ConstraintViolationError, r"L\['x'\].*constant \(5\).*test_dynamic_marks"),
        (double, ({0: Dim("b", max=64)},), rows(80), ConstraintViolationError, r"80 not in range \[0, 64\]"),
        (double, ({0: 5},), rows(6), ConstraintViolationError, "Static shape constraint of 5.*6"),
        (double, {"z": {0: 5}}, [], UserError, r"\['z'\] are no parameters"),
        (double, "x", [], UserError, "dict, list or tuple"),
        (double, {"x": "b"}, [], UserError, "says nothing about a size"),
        (double, {"x": {0: 2 * Dim("b")}}, [], NotImplementedError, "derived"),
    ],
)
def test_specifications_that_do_not_hold(f, spec, calls, error, words):
    with pytest.raises(error, match="(?s)" + words):
        compiles(f, calls, dynamic_shapes=spec)


def test_specifications_of_several_arguments():
    total = lambda x, y: x.sum() + y.sum()  # noqa: E731
    spec = ({0: Dim("b")}, {0: Dim("b")})
    assert compiles(total, [(torch.ones(n, 4), torch.ones(n, 2)) for n in (5, 6)], dynamic_shapes=spec) == 1
    with pytest.raises(ConstraintViolationError, match="is not equal to.*both are b"):
        compiles(total, [(torch.ones(5, 4), torch.ones(6, 2))], dynamic_shapes=spec)
    nested = lambda d: d["a"][0] * 2  # noqa: E731
    calls = [({"a": [torch.ones(n, 4)]},) for n in (5, 6)]
    assert compiles(nested, calls, dynamic_shapes={"d": {"a": [{0: Dim.DYNAMIC}]}}) == 1
    scaled = lambda x, k: x * k  # noqa: E731
    assert compiles(scaled, [(torch.ones(2), n) for n in (5, 6, 7)], dynamic_shapes=(None, Dim.DYNAMIC)) == 1
    module = nn.Linear(4, 3)
    assert compiles(module, rows(5, 6), dynamic_shapes={"input": {0: Dim.DYNAMIC}}) == 1


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 2
        self.p = nn.Parameter(torch.ones(3))
        self.t = torch.ones(3)

    def forward(self, x):
        return x * self.n + self.p.sum() + self.t.sum()


class Marked(M):
    pass


@pytest.mark.parametrize(
    ("settings", "cls", "attribute", "count"),
    [
        ({}, M, "n", 2),
        ({"allow_unspec_int_on_nn_module": False}, M, "n", 4),
        ({"specialize_int": True}, M, "n", 4),
        ({}, Marked, "n", 4),
        ({}, M, "p", 4),
        ({"force_parameter_static_shapes": False}, M, "p", 2),
        ({}, M, "t", 2),
        ({"force_nn_module_property_static_shapes": True}, M, "t", 4),
        ({"automatic_dynamic_shapes": False}, M, "t", 4),
    ],
)
def test_settings_for_modules(settings, cls, attribute, count):
    mark_static(Marked)
    m = cls()

    def calls():
        for k in (3, 4, 5, 6):
            setattr(m, attribute, {"n": k, "p": nn.Parameter(torch.ones(k)), "t": torch.ones(k)}[attribute])
            yield (torch.ones(2),)

    with config.patch(settings):
        assert compiles(m, calls()) == count


def test_other_settings():
    with pytest.raises(NotImplementedError, match="only 'dynamic' is"):
        config.automatic_dynamic_shapes_mark_as = "unbacked"
    config.automatic_dynamic_shapes_mark_as = "dynamic"
    with config.patch(allow_ignore_mark_dynamic=True):
        assert compiles(five, rows(5, mark=mark_dynamic)) == 1
    with pytest.raises(ConstraintViolationError):
        compiles(five, rows(5, mark=mark_dynamic))
    scaled = lambda x, a, k: x * a * k  # noqa: E731
    calls = [(torch.randn(n, 4), n / 7, n) for n in (5, 6, 7, 8)]
    for settings, count in (
        ({}, 2),
        ({"specialize_float": True}, 4),
        ({"specialize_int": True}, 4),
        ({"automatic_dynamic_shapes": False}, 4),
    ):
        torch._dynamo.reset()
        with config.patch(settings):
            assert compiles(scaled, calls) == count


def test_checks_that_fail_have_their_own_words():
    def f(x, k):
        n = k.item()
        torch._check(n >= 0)
        torch._check(n < x.shape[0])
        return x[n] + torch.zeros(n, 3).sum()

    c = torch.compile(f, fullgraph=True)
    x = torch.arange(6.0)
    assert c(x, torch.tensor(3)) == 3
    for k in (6, -1):
        with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0"):
            c(x, torch.tensor(k))


def test_sizes_of_new_tensors():
    f = torch.compile(lambda k: torch.zeros(k.item(), 3) + 1, fullgraph=True)
    assert f(torch.tensor(4)).shape == (4, 3) and f(torch.tensor(0)).shape == (0, 3)
    with pytest.raises(RuntimeError, match="negative dimension"):
        f(torch.tensor(-1))
    for make in (lambda: torch.empty(1 << 62, 8, device="meta"), lambda: torch.empty(1 << 40, 1 << 40, device="meta")):
        with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
            make()
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.empty(-1, device="meta")


def test_attributes_that_are_tensors():
    assert compiles(lambda x: x.T + x.mT, rows(5, 6)) == 2


def test_pieces_are_asked_for_their_number_only():
    both = lambda x: torch.cat([*x.chunk(2), *x.split(x.shape[0])])  # noqa: E731
    assert compiles(both, rows(5, 6, 7, 8), dynamic=True) == 1


def halved(x):
    return x[: int(x.shape[0] * 0.5)] * 2


def computed(x):
    n = x.shape[0]
    return x * torch.sym_max(n, 3) + torch.sym_int(n / 4) + (n**2) + (n & 6) + (n << 2) + int(math.sqrt(4.0)) + (n >> 1)


def resized(x):
    return torch.nn.functional.interpolate(x[None, None], scale_factor=1.5, mode="bilinear")


@pytest.mark.parametrize("f", [halved, computed, resized])
def test_sizes_computed_with_floats_and_bits(f):
    """One graph computes them at each call."""
    assert compiles(f, rows(5, 6, 9, 33, 4), dynamic=True) == 1
