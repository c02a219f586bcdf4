"""Formulas recorded as programs: the same gradients as the formula itself, which runs when a mode is on."""

import gc

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C
from flambeau.core.modes import BaseTorchDispatchMode
from flambeau.testing import checks
from flambeau.testing.samples import load, operator

ROWS = {}
for _name, _row in load().items():
    try:
        operator(_name)
    except AttributeError:
        continue  # samples may be ahead of the operator
    if _row.grad != () and _row.values:
        ROWS[_name] = _row


class Parts(BaseTorchDispatchMode):
    """Calls go through Python as they are recorded."""

    sees_parts = True


def gradients(fn, inputs):
    """Of the sum of squares of the floating results; None without any."""
    out = fn(*inputs)
    total = None
    for o in out if isinstance(out, (list, tuple)) else [out]:
        if isinstance(o, torch.Tensor) and o.requires_grad:
            part = (o * o).sum() if not o.is_complex() else (o * o.conj()).real.sum()
            total = part if total is None else total + part
    return None if total is None else torch.autograd.grad(total, inputs, allow_unused=True)


@pytest.mark.parametrize("row", [pytest.param(r, id=n) for n, r in ROWS.items()])
def test_replayed_gradients_are_the_formulas(row):
    for sample in row.calls[:3]:
        found = checks.differentiable(row, sample)
        if found is None:
            continue
        fn, inputs = found[0], list(found[1])
        for k in range(4):  # the formula, the formula, recorded, replayed
            if k:
                with torch.no_grad():
                    for x in inputs:
                        x.mul_(1.0 + 0.01 * k)
            with Parts():
                try:
                    want = gradients(fn, inputs)
                except RuntimeError:
                    break  # what this sample asks for has no derivative
            got = gradients(fn, inputs)
            assert (got is None) == (want is None)
            for g, w in zip(got or (), want or ()):
                assert (g is None) == (w is None), (row.name, sample, k)
                if g is not None:
                    assert g.shape == w.shape and g.dtype is w.dtype
                    np.testing.assert_array_equal(g.numpy(), w.numpy(), err_msg=f"{row.name}{sample} pass {k}")


def grad_of(f, x):
    return torch.autograd.grad(f(x).sum(), x)[0].numpy()


def test_a_program_is_made_for_each_description():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for value in (2.0, 3.0, 2.0, 3.0, 2.0, 3.0, -0.0, 0.0, -0.0, 0.0, -0.0, 0.0):
        np.testing.assert_array_equal(grad_of(lambda t: 1 / t * value, x), -value / np.array([1.0, 4.0], np.float32))  # noqa: B023
    for shape in ((2,), (3, 2), (4, 3, 2)) * 4:
        b = torch.ones(2, requires_grad=True)
        got = torch.autograd.grad((torch.ones(*shape) * 2 * b).sum(), b)[0]
        assert got.tolist() == [2.0 * np.prod(shape) / 2] * 2


def test_the_same_tensor_twice_and_two_tensors():
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([5.0], requires_grad=True)
    for _ in range(4):
        assert [g.item() for g in torch.autograd.grad(a * a, [a])] == [4.0]
    for _ in range(4):
        assert [g.item() for g in torch.autograd.grad(a * b, [a, b])] == [5.0, 2.0]


def test_a_write_after_the_save_is_noticed_by_a_program():
    x = torch.ones(3, requires_grad=True)
    for k in range(5):
        y = x * 1
        z = y * y
        if k == 4:
            y.add_(1)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                z.sum().backward()
        else:
            z.sum().backward()


def test_an_error_or_interrupt_inside_a_program_leaves_nothing():
    calls = []

    @torch.library.custom_op("autograd_tests::fails", mutates_args=())
    def fails(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return x.clone()

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return fails(g) * 2

    x = torch.ones(2, requires_grad=True)
    before = [_C.tls(n) for n in ("grad_enabled", "excluded", "included")]
    for _ in range(3):
        F.apply(x * x).sum().backward()
    with pytest.raises(KeyboardInterrupt):
        F.apply(x * x).sum().backward()
    assert [_C.tls(n) for n in ("grad_enabled", "excluded", "included")] == before
    assert (x * 2).requires_grad


@pytest.mark.parametrize("parts", [30, 40, 64, 100])
def test_more_cotangents_than_a_program_describes(parts):
    """A description that ends in the middle of the cotangents releases none of them."""
    x = torch.ones(3, parts, 8, requires_grad=True)
    for _ in range(3):
        x.grad = None
        torch.stack([2 * t for t in x.unbind(1)]).sum().backward()
        gc.collect()
        assert torch.equal(x.grad, torch.full_like(x, 2.0))


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("asks", [True, False])
def test_mark_dirty_counts_as_a_write(write, asks):
    class Dirty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2) if write else x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    for run in (Dirty.apply, torch.compile(Dirty.apply, backend="eager")):
        x = torch.ones(2, requires_grad=asks).clone()
        assert run(x) is x and x._version == 1 + write


def test_what_is_seen_of_an_inference_tensor_is_no_view():
    x = torch.ones(3)
    with torch.inference_mode():
        y = torch.ones(3)
        assert not y[1:]._is_view() and y[1:]._base is None
        assert x[1:]._base is x
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(y, y * 2)
            assert not dual._is_view()
            dual += 1
            assert y.tolist() == [2, 2, 2]
