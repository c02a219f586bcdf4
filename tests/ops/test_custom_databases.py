"""PyTorch's own databases of custom operators and of autograd functions, whole, beside PyTorch: results and gradients, called and compiled, of
examples side by side (vmap), tangents, second derivatives, inplace forms."""

import sys

import numpy as np
import pytest

import flambeau

from .pytorch_files import run_again

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]  # PyTorch's, of its own code
torch = pytest.importorskip("torch")
FILES = ("autograd_function_db", "custom_op_db")
PAIRS = []
for _name in FILES:
    _theirs = pytest.importorskip(f"torch.testing._internal.{_name}")
    _ours = run_again(_name, {"autograd_function_db": "autograd_function_db_of_flambeau"})
    sys.modules[_ours.__name__] = _ours
    PAIRS += zip(getattr(_theirs, _name), getattr(_ours, _name), strict=True)


def tensors(tree):
    if isinstance(tree, torch.Tensor | flambeau.Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ()
    return [t for part in parts for t in tensors(part)]


def converted(x):
    if isinstance(x, torch.Tensor):
        return flambeau.from_numpy(x.detach().numpy().copy()).requires_grad_(x.requires_grad)
    if type(x) in (list, tuple):
        return type(x)(map(converted, x))
    return getattr(flambeau, str(x).removeprefix("torch.")) if isinstance(x, torch.dtype) else x


def samples(entry, grad):
    """Each sample's arguments, for PyTorch and for flambeau."""
    torch.manual_seed(0)
    for sample in entry.sample_inputs_func(entry, "cpu", torch.float64, grad):
        args, kwargs = (sample.input, *sample.args), sample.kwargs
        yield (args, kwargs), (converted(args), {k: converted(v) for k, v in kwargs.items()})


def floating(ts):
    return [t for t in ts if t.is_floating_point()]


def values(lib, op, args, kwargs, entry):
    return tensors(op(*args, **kwargs))


def gradients(lib, op, args, kwargs, entry):
    """First and second derivatives."""
    leaves = [t for t in tensors(args) if t.requires_grad]
    results = [r for r in tensors(op(*args, **kwargs)) if r.requires_grad]
    if not results:
        return []
    first = lib.autograd.grad(sum((r * r).sum() for r in results), leaves, create_graph=True, allow_unused=True)
    once = [g for g in first if g is not None and g.requires_grad]
    second = lib.autograd.grad(sum((g * g).sum() for g in once), leaves, allow_unused=True) if once else ()
    return [*first, *second]


def examples(lib, op, args, kwargs, entry):
    """Two examples, one behind the other and in the last dimension."""
    moved = lambda t, d: lib.stack([t.detach(), t.detach().flip(0) if t.ndim else t.detach() * 2], d)  # noqa: E731
    out = []
    for d in (0, -1):
        stacked = [moved(t, d) if isinstance(t, lib.Tensor) and t.is_floating_point() else t for t in args]
        dims = tuple(d if t is not s else None for t, s in zip(args, stacked))
        out += tensors(lib.func.vmap(lambda *a: op(*a, **kwargs), dims, randomness="same")(*stacked))
    return out


def tangents(lib, op, args, kwargs, entry):
    at = [n for n, t in enumerate(args) if isinstance(t, lib.Tensor) and t.is_floating_point()]
    primals = tuple(args[n].detach() for n in at)

    def f(*given):
        whole = list(args)
        for n, t in zip(at, given):
            whole[n] = t
        return tuple(tensors(op(*whole, **kwargs)))

    made, moved = lib.func.jvp(f, primals, tuple(t * 0.5 + 1 for t in primals))
    return [*made, *moved]


def outcome(facet, lib, op, args, kwargs, entry):
    try:
        return facet(lib, op, args, kwargs, entry)
    except Exception as error:
        return error


def assert_same(want, found):
    if "once_differentiable" in str(found):
        # PyTorch's second derivative is None: the error is lost on the way.
        assert want[-1] is None
        return
    if isinstance(want, Exception):
        assert isinstance(found, Exception), (want, found)
        return
    assert not isinstance(found, Exception), found
    assert len(want) == len(found)
    for a, b in zip(want, found):
        assert (a is None) == (b is None)
        if a is not None:
            assert str(a.dtype).split(".")[-1] == str(b.dtype).split(".")[-1]
            np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), 1e-7, 1e-9)


FACETS = [values, gradients, examples, tangents]


@pytest.mark.parametrize("facet", FACETS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p[0].name)
def test_entry(pair, facet):
    entry, own = pair
    if facet is tangents and not entry.supports_forward_ad:
        return  # PyTorch's are zero, whatever the derivative is
    for (args, kwargs), (ours, named) in samples(entry, facet is gradients):
        assert_same(
            outcome(facet, torch, entry.op, args, kwargs, entry), outcome(facet, flambeau, own.op, ours, named, own)
        )


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p[0].name)
def test_compiled(pair, backend):
    entry, own = pair
    flambeau.compiler.reset()
    op = flambeau.compile(lambda *args, **kwargs: own.op(*args, **kwargs), backend=backend)
    for (args, kwargs), (ours, named) in samples(entry, True):
        for facet in (values, gradients) if backend == "eager" else (values,):
            assert_same(
                outcome(facet, torch, entry.op, args, kwargs, entry), outcome(facet, flambeau, op, ours, named, own)
            )
        assert_same(
            *(
                outcome(_first, lib, f, *a, entry)
                for lib, f, a in ((torch, entry.op, (args, kwargs)), (flambeau, op, (ours, named)))
            )
        )


def _first(lib, op, args, kwargs, entry):
    """What a compiled backward gives: first derivatives."""
    leaves = [t for t in tensors(args) if t.requires_grad]
    results = [r for r in tensors(op(*args, **kwargs)) if r.requires_grad]
    return lib.autograd.grad(sum((r * r).sum() for r in results), leaves, allow_unused=True) if results else []


@pytest.mark.parametrize("pair", [p for p in PAIRS if getattr(p[1], "inplace_variant", None)], ids=lambda p: p[0].name)
def test_in_place(pair):
    entry, own = pair
    for (args, kwargs), (ours, named) in samples(entry, True):
        written = lambda f: lambda x, *rest, **kw: f(x.clone(), *rest, **kw)  # noqa: E731
        for facet in (values, gradients):
            want = outcome(facet, torch, written(entry.inplace_variant), args, kwargs, entry)
            assert_same(want, outcome(facet, flambeau, written(own.inplace_variant), ours, named, own))
