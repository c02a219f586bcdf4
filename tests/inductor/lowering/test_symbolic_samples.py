"""Every sample of every operator compiled with symbolic sizes: shapes, strides, dtypes and values of the results, and values of the gradients, beside
those of eager calls. Sizes among the arguments are symbols too."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing.checks import flat
from flambeau.testing.samples import load, operator, to_tensors

pytestmark = pytest.mark.slow

# A view whose strides are symbols among the arguments has gaps or not by their values: compiled, it is dense. What lift_fresh is of is a
# constant in a program, whose copy is row-major.
OTHER_STRIDES = {"empty_strided", "new_empty_strided", "lift_fresh"}


def built():
    for name, row in load().items():
        try:
            operator(name)
        except AttributeError:
            continue  # samples may be ahead of the operator
        yield pytest.param(row, id=name)


def leaves(x):
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (list, tuple)):
        return [t for y in x for t in leaves(y)]
    return [x] if isinstance(x, torch.Tensor) else []


def called(fn, sample, differentiated):
    args, kwargs = to_tensors(sample.args), to_tensors(sample.kwargs)
    inputs = [t for t in leaves([args, kwargs]) if differentiated and t.is_floating_point()]
    for t in inputs:
        t.requires_grad_()
    torch.manual_seed(0)
    results = [t for t in flat(fn(args, kwargs)) if isinstance(t, torch.Tensor)]
    smooth = [t for t in results if t.requires_grad and t.is_floating_point()]
    gradients = torch.autograd.grad([t.sum() for t in smooth], inputs, allow_unused=True) if smooth and inputs else ()
    return [t.detach() for t in results], gradients


@pytest.mark.parametrize("row", list(built()))
def test_symbolic_sizes(row):
    def f(args, kwargs):
        return row.op(*args, **kwargs)

    for sample in row.calls:
        differentiated = row.grad != () and sample.grad
        try:
            results, gradients = called(f, sample, differentiated)
        except (NotImplementedError, RuntimeError):
            # It has no derivative, by one argument at least.
            differentiated = False
            results, gradients = called(f, sample, differentiated)
        torch._dynamo.reset()
        got, got_gradients = called(torch.compile(f, dynamic=True), sample, differentiated)
        what = f"{row.name}{sample}"
        assert [g is None for g in got_gradients] == [g is None for g in gradients], what
        for g, want in zip(got, results, strict=True):
            assert (g.shape, g.dtype, g.layout) == (want.shape, want.dtype, want.layout), what
            if want.layout is torch.strided and row.name not in OTHER_STRIDES:
                assert g.stride() == want.stride(), what
        if row.values:
            for g, want in zip([*got, *got_gradients], [*results, *gradients]):
                if want is not None and want.layout is torch.strided:
                    g, want = (np.asarray(t.detach().resolve_conj().resolve_neg()) for t in (g, want))
                    np.testing.assert_allclose(g, want, rtol=1e-5, atol=1e-7, err_msg=what)
