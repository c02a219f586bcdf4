"""The gradient of each in-place form is that of the operator: of a tensor, of a view of one, and compiled."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import func
from flambeau.testing.samples import load

# Random numbers, or another shape than before.
LEFT_OUT = """set_ resize_ resize_as_ t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_ detach_ bernoulli_ normal_ uniform_ geometric_
log_normal_ cauchy_ exponential_ random_""".split()


def _forms():
    for name, row in load().items():
        form = name.split(".")[0] + "_"
        if form.startswith("__") or form in LEFT_OUT or not hasattr(torch.Tensor, form):
            continue
        yield name, form, row


FORMS = {name: (form, row) for name, form, row in _forms()}


def _tensors(x):
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x.copy())
    return type(x)(map(_tensors, x)) if isinstance(x, (list, tuple)) else x


def _functional(form):
    """Not all are methods: a tensor has ``fill_``, and no ``fill``."""
    return getattr(torch.Tensor, form[:-1], None) or getattr(torch.ops.aten, form[:-1])


def _gradients(call, x, rest, view):
    leaf = torch.stack([x, x]).requires_grad_()
    rest = [a.clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in rest]
    base = leaf * 1
    try:
        out = call(base[0] if view else base[0].clone(), *rest)
        kind = torch.float64 if out.dtype == torch.bool else out.dtype
        loss = (out * torch.linspace(0.5, 1.5, out.numel(), dtype=kind).reshape(out.shape)).sum()
        if not loss.requires_grad:
            return None
        leaves = [leaf, *(a for a in rest if isinstance(a, torch.Tensor) and a.requires_grad)]
        return torch.autograd.grad(loss, leaves, allow_unused=True)
    except NotImplementedError as e:
        return str(e).partition(":")[0]  # not differentiable, in place or not


@pytest.mark.parametrize("name", FORMS)
def test_gradients(name):
    form, row = FORMS[name]
    ran = 0
    for sample in row.calls[:2]:
        x, *rest = map(_tensors, sample.args)
        kwargs = {k: _tensors(v) for k, v in sample.kwargs.items()}
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            continue
        plain = lambda t, *a, kw=kwargs: _functional(form)(t, *a, **kw)  # noqa: E731
        written = lambda t, *a, kw=kwargs: getattr(t, form)(*a, **kw)  # noqa: E731
        try:
            if written(x.clone(), *rest).shape != plain(x, *rest).shape:
                continue
        except RuntimeError:
            continue  # a result that the tensor can't hold
        want = _gradients(plain, x, rest, False)
        for view in (False, True):
            got = _gradients(written, x, rest, view)
            if want is None:  # a predicate: what it is written to no longer depends on anything
                assert got is None or not any(g.any() for g in got if g is not None)
                continue
            if isinstance(want, str):
                assert got == want
                continue
            for a, b in zip(got, want, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    torch.testing.assert_close(a, b, equal_nan=True)
        ran += 1
    if not ran:
        pytest.skip("no sample of floating-point numbers that the tensor can hold")


TRANSFORMS = {
    "jvp": lambda f, x, t: func.jvp(f, (x,), (t,)),
    "vmap": lambda f, x, t: torch.vmap(f)(torch.stack([x, x * 0.9, x])),
    "functionalize": lambda f, x, t: func.functionalize(f)(x),
    "vmap of grad": lambda f, x, t: torch.vmap(func.grad(lambda x: (f(x) * t).sum()))(torch.stack([x, x])),
    "jvp of grad": lambda f, x, t: func.jvp(func.grad(lambda x: (f(x) * t).sum()), (x,), (t,)),
}


def _outcome(transform, f, x, t):
    try:
        out = transform(f, x, t)
    except (NotImplementedError, RuntimeError):
        return None  # the operator is at fault, in place or not
    return out if isinstance(out, tuple) else (out,)


@pytest.mark.filterwarnings("ignore")  # of roots of negative numbers
@pytest.mark.parametrize("name", FORMS)
def test_transforms(name):
    form, row = FORMS[name]
    x, *rest = map(_tensors, row.calls[0].args)
    kwargs = {k: _tensors(v) for k, v in row.calls[0].kwargs.items()}
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return

    def plain(t):
        return _functional(form)(t * 1, *rest, **kwargs)

    def written(t):
        v = t * 1
        return getattr(v, form)(*rest, **kwargs)

    def viewed(t):
        both = torch.stack([t, t])
        getattr(both[0], form)(*rest, **kwargs)
        return both[0]

    try:
        if written(x).shape != plain(x).shape or written(x).dtype != plain(x).dtype:
            return
    except RuntimeError:
        return  # a result that the tensor can't hold
    t = torch.linspace(0.3, 1, x.numel(), dtype=x.dtype).reshape(x.shape)
    for transform in TRANSFORMS.values():
        want = _outcome(transform, plain, x, t)
        for f in (written, viewed):
            got = _outcome(transform, f, x, t)
            assert (got is None) == (want is None)
            if want is not None:
                torch.testing.assert_close(got, want, equal_nan=True)


def test_what_a_composite_reads_of_itself_is_kept():
    x = torch.tensor([1.5, -2.0, 3.0], requires_grad=True)
    y = x * 1
    assert y.multiply_(y) is y
    y.sum().backward()
    assert x.grad.tolist() == [3.0, -4.0, 6.0]


def test_errors_come_before_anything_is_written():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        y.multiply_(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.square_()
    with pytest.raises(RuntimeError, match="can't be cast"):
        y.multiply_(torch.ones(3, dtype=torch.complex64))
    assert y.tolist() == [2.0] * 3 and y._version == 0 and x.tolist() == [1.0] * 3


ORDERS = {
    "a dimension of size 1 amid others": (lambda: torch.arange(32.0).reshape(4, 4, 2).permute(2, 0, 1).unsqueeze(1)),
    "of size 1 in front": (lambda: torch.arange(32.0).reshape(4, 4, 2).permute(2, 0, 1).unsqueeze(0)),
    "two of size 1": (lambda: torch.arange(16.0).reshape(8, 2).t()[:, None, None]),
    "channels last, one row": (lambda: torch.arange(24.0).reshape(2, 3, 1, 4).to(memory_format=torch.channels_last)),
    "permuted": (lambda: torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)),
}


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gradient_behind_a_write_into_a_part(name, dim):
    """The root's own order of memory, whatever dimensions of size 1 it has."""
    x = ORDERS[name]().requires_grad_()
    base = x * x
    n = base.shape[dim]
    part = base.narrow(dim, n // 2, n - n // 2)
    part.mul_(2)
    ct = torch.arange(1.0, x.numel() + 1).reshape(x.shape)
    base.backward(ct)
    expected = 2 * x.detach() * ct
    expected.narrow(dim, n // 2, n - n // 2).mul_(2)
    assert torch.equal(x.grad, expected)
