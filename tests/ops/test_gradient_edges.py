"""Every differentiable operator's gradient where its argument holds one number of the edges, or nothing else: beside PyTorch's. A gradient that PyTorch
lacks (nan) may be there; one that it has may not be lost, nor be another number."""

import numpy as np
import pytest

import flambeau
from flambeau.testing.checks import flat
from flambeau.testing.peers import arguments_for
from flambeau.testing.samples import load, operator, to_tensors

try:
    import torch
except ImportError:
    torch = None

EDGES = [0.0, -0.0, 5e-324, 1e-40, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 100.0, -100.0, 1e4, -1e4, 1e30, -1e30, np.inf, -np.inf, np.nan]  # fmt: skip

# Where the gradient is another one, and why (docs/reference/differences.md).
DIFFERENT = {
    "digamma": "a pole is infinite",
    "special_digamma": "a pole is infinite",
    "special_psi": "a pole is infinite",
    "polygamma": "a pole is infinite",
    "special_polygamma": "a pole is infinite",
    "as_strided_scatter": "the gradient of what is written over is zero",
    "_native_batch_norm_legit.no_stats": "two passes",
    "special_i1": "a nan stays one",
    "special_i1e": "a nan stays one",
    "pdist": "a row with an infinite element is at a distance of nan from itself, as in cdist",
    "mode": "nan is one value",
    "topk": "equal elements: the first one",
    "kthvalue": "equal elements: the first one",
    "sort": "equal elements: the first one",
    "embedding_dense_backward": "PyTorch forgets the scale",
    "nanmedian.dim": "equal elements: the first one",
    "nanquantile": "a nan stays one",
    "multi_margin_loss": "at the margin itself",
    "multilabel_margin_loss": "at the margin itself",
    "ctc_loss.IntList": "PyTorch's takes the rows for log_softmax",
    "ctc_loss.Tensor": "PyTorch's takes the rows for log_softmax",
    "acosh": "nan left of the domain, as the function",
    "arccosh": "nan left of the domain, as the function",
    "logcumsumexp": "a nan is not lost",
    "renorm": "a nan is not lost",
    "elu_backward": "second derivative at a kink",
    "softplus_backward": "second derivative at a kink",
    "binary_cross_entropy_backward": "of the denominator that is limited to 1e-12",
    "native_group_norm": "two passes",
    "group_norm": "two passes",
    "matrix_power": "powers that are multiplied in another order where an entry is infinite",
    "linalg_matrix_power": "powers that are multiplied in another order where an entry is infinite",
    "instance_norm": "two passes",
    "scaled_dot_product_attention": "a query that is infinite has no gradient in PyTorch, and nan here",
    "prod": "other factors that underflow or overflow",
    "prod.dim_int": "other factors that underflow or overflow",
    "linalg_norm.ord_str": "singular values of what isn't finite are refused",
}
NANS = ("max_pool", "adaptive_max_pool")  # of a window of nans the first one, PyTorch's the last
TAPS = ("conv",)  # an infinite weight meets the zeros around the cotangent
SECOND = {"gelu_backward", "sigmoid_backward"}  # an infinite cotangent times a sum of infinities
CRASHES = {"grid_sampler_2d", "grid_sampler_3d"}  # PyTorch, on coordinates that aren't finite


def rows():
    out = []
    for name, row in load().items():
        try:
            operator(name)
        except AttributeError:
            continue
        if (
            torch is None
            or row.torch is None
            or row.grad == ()
            or not row.values
            or not row.arbitrary
            or not row.calls
            or name in CRASHES | SECOND
        ):
            continue
        base, _, overload = (row.torch or name).partition(".")
        theirs = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if theirs is not None:
            out.append(pytest.param(row, theirs, id=name))
    return out


def floating(a):
    return isinstance(a, np.ndarray) and a.dtype == np.float64 and a.size


def edged(a, k, everywhere):
    edge = EDGES[k]
    if isinstance(a, (list, tuple)):
        return type(a)(edged(x, k, everywhere) if floating(x) else x for x in a)
    out = np.full(a.shape, edge) if everywhere else np.array(a)
    out.flat[k % a.size] = edge
    return out


def as_torch(x):
    """Arguments for PyTorch: arrays become tensors, flambeau's dtypes become PyTorch's."""
    return arguments_for(torch, lambda a: torch.as_tensor(a.copy()), x)


def gradients(module, op, args, kwargs):
    """Of half the sum of all results; None where nothing is differentiable."""
    leaves = [
        a.requires_grad_()
        for a in (b for x in args for b in (x if isinstance(x, (list, tuple)) else [x]))
        if isinstance(a, module.Tensor) and a.is_floating_point() and a.numel()
    ]
    outs = [o for o in flat(op(*args, **kwargs)) if isinstance(o, module.Tensor) and o.requires_grad]
    if not outs:
        return None
    found = module.autograd.grad(outs, leaves, [module.full_like(o, 0.5) for o in outs], allow_unused=True)
    return [np.zeros(tuple(x.shape)) if g is None else g.detach().numpy() for g, x in zip(found, leaves)]


def agrees(got, want, edge):
    """Up to the rounding of numbers as large as ``edge``."""
    noise = 1e-9 + (1e-12 * abs(edge) if np.isfinite(edge) else 0)
    with np.errstate(all="ignore"):
        scale = np.abs(np.where(np.isfinite(want), want, 0)).max(initial=1e-4)
        ok = np.isnan(want) | (got == want) | (np.abs(got - want) <= 1e-6 * np.abs(want) + noise * max(scale, 1.0))
        ok |= (np.abs(want) > 1e300) & (np.abs(got) > 1e300)
    return ok


@pytest.mark.parity
@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row,theirs", rows())
def test_gradients_at_the_edges(row, theirs):
    if row.name in DIFFERENT:
        pytest.skip(DIFFERENT[row.name])
    sample = row.calls[0]
    for i, argument in enumerate(sample.args):
        if not (floating(argument) or (isinstance(argument, (list, tuple)) and any(map(floating, argument)))):
            continue
        for k in range(len(EDGES)):
            for everywhere in (False, True):
                if i and not np.isfinite(EDGES[k]) and row.name.startswith(TAPS):
                    continue
                if everywhere and np.isnan(EDGES[k]) and row.name.startswith(NANS):
                    continue
                args = [edged(a, k, everywhere) if j == i else a for j, a in enumerate(sample.args)]
                try:
                    want = gradients(torch, theirs, as_torch(args), as_torch(sample.kwargs))
                except (RuntimeError, NotImplementedError, TypeError, IndexError):
                    continue
                what = f"{row.name}{sample}, argument {i} {'all' if everywhere else 'one'} {EDGES[k]}"
                got = gradients(flambeau, row.op, to_tensors(args), to_tensors(sample.kwargs))
                if want is None or got is None:
                    assert want is got, f"{what}: differentiable on one side only"
                    continue
                for n, (g, w) in enumerate(zip(got, want, strict=True)):
                    ok = agrees(g, w, EDGES[k])
                    assert ok.all(), f"{what}: gradient {n} is {g[~ok][:3]}, PyTorch's {w[~ok][:3]}"


def unary():
    """Pointwise operators of one tensor, at their first sample."""
    for name, row in load().items():
        try:
            op = operator(name)
        except AttributeError:
            continue
        if not row.calls:
            continue
        sample = row.calls[0]
        if op.kind == "pointwise" and row.grad != () and row.values and sum(map(floating, sample.args)) == 1:
            yield pytest.param(row, id=name)


@pytest.mark.parametrize("row", list(unary()))
def test_tangents_are_the_gradients(row):
    """Forward mode gives the same number at every edge, for the operator compiled too."""
    sample = row.calls[0]
    at = next(i for i, a in enumerate(sample.args) if floating(a))
    x = flambeau.tensor(EDGES, dtype=flambeau.float64)
    kwargs = to_tensors(sample.kwargs)
    f = lambda t: row.op(*to_tensors(sample.args[:at]), t, *to_tensors(sample.args[at + 1 :]), **kwargs)  # noqa: E731
    out = f(x)
    if not isinstance(out, flambeau.Tensor) or not out.is_floating_point():
        pytest.skip("the result is not floating point")
    leaf = x.clone().requires_grad_()
    (reverse,) = flambeau.autograd.grad(f(leaf).sum(), leaf, allow_unused=True)
    _, tangent = flambeau.func.jvp(f, (x,), (flambeau.ones_like(x),))
    want = np.zeros(len(EDGES)) if reverse is None else reverse.numpy()
    np.testing.assert_allclose(tangent.numpy(), want, rtol=1e-12)
    (compiled,) = flambeau.autograd.grad(flambeau.compile(lambda t: f(t))(leaf).sum(), leaf, allow_unused=True)
    np.testing.assert_allclose(want if compiled is None else compiled.numpy(), want, rtol=1e-6, atol=1e-300)


_HOLOMORPHIC = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid sqrt rsqrt reciprocal square sinc"
).split()


@pytest.mark.parametrize("name", _HOLOMORPHIC)
def test_complex_derivatives_in_all_quadrants(name):
    """Roots and logarithms have cuts: a formula that holds to the right of the origin may have the other sign to the left."""
    fn, step = getattr(flambeau, name), 1e-6
    z = flambeau.tensor(
        [a + b * 1j for a in (-2.3, -0.6, 0.4, 1.7) for b in (-1.9, -0.35, 0.25, 2.1)], dtype=flambeau.complex128
    )
    slope = (fn(z + step) - fn(z - step)) / (2 * step)
    x = z.clone().requires_grad_()
    (gradient,) = flambeau.autograd.grad(fn(x), x, flambeau.ones_like(z))
    flambeau.testing.assert_close(gradient, slope.conj().resolve_conj(), rtol=1e-6, atol=1e-6)
    flambeau.testing.assert_close(flambeau.func.jvp(fn, (z,), (flambeau.ones_like(z),))[1], slope, rtol=1e-6, atol=1e-6)
