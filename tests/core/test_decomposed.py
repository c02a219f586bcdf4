"""Composites run as programs (csrc/core/decomposed.c): the third call of a description must do what the first, the body's own, did."""

import gc

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C
from flambeau.testing.samples import every_operator, load, to_tensors

BUILT = {str(op).removeprefix("aten.") for op in every_operator() if op.kind == "composite"}
ROWS = [r for n, r in load().items() if r.values and {n, f"{n}.default"} & BUILT]


def tensors(x):
    if isinstance(x, torch.Tensor):
        return [x]
    return [t for y in x for t in tensors(y)] if isinstance(x, (list, tuple)) else []


def facts(op, sample, grad):
    """All that can be seen of one call on fresh copies: results, their relation to the arguments, gradients, writes."""
    args, kwargs = to_tensors(sample.args), to_tensors(sample.kwargs)
    given = tensors(args) + tensors(list(kwargs.values()))
    for t in given:
        if grad and t.is_floating_point():
            t.requires_grad_()
    try:
        with torch.set_grad_enabled(grad):
            out = op(*args, **kwargs)
    except Exception as e:
        return type(e).__name__, str(e)
    results = tensors(out)
    told = [
        type(out).__name__,
        [None if not isinstance(t, torch.Tensor) else 1 for t in out] if results and out is not results[0] else 0,
    ]
    for r in results:
        strides = [w for n, w in zip(r.shape, r.stride()) if n != 1]
        told.append(
            (
                r.dtype,
                tuple(r.shape),
                strides,
                r.storage_offset(),
                r.requires_grad,
                type(r.grad_fn).__name__,
                r._version,
            )
        )
        told.append(
            [i for i, t in enumerate(given) if t is r] + [i for i, t in enumerate(given) if t._storage is r._storage]
        )
        told.append([i for i, t in enumerate(given) if t is r._base])
        told.append(r.detach().resolve_conj().numpy().tobytes())
    wanted = [r for r in results if r.requires_grad and r.is_floating_point()]
    leaves = [t for t in given if t.requires_grad and t.is_leaf]
    if wanted and leaves:
        seeds = [torch.ones_like(r) for r in wanted]
        try:
            grads = torch.autograd.grad(wanted, leaves, seeds, allow_unused=True)
        except NotImplementedError as e:  # floor_divide has no derivative: that is told the same way too
            return [*told, str(e)]
        told += [None if g is None else g.resolve_conj().numpy().tobytes() for g in grads]
    told += [(t._version, t.detach().numpy().tobytes()) for t in given]
    return told


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in ROWS])
def test_replayed_like_the_body(row):
    for sample in row.calls:
        for grad in (False, True):
            _C.forget_call_plans()
            first = facts(row.op, sample, grad)
            for _ in range(2):
                assert facts(row.op, sample, grad) == first, f"{row.name}{sample} grad={grad}"


def again(fn, n=4):
    _C.forget_call_plans()
    return [fn() for _ in range(n)]


def test_which_tensors_ask_decides():
    x, y = torch.randn(3, 2, 4), torch.randn(4, 5)
    again(lambda: x @ y)
    x.requires_grad_()
    assert all(o.requires_grad for o in again(lambda: x @ y))
    with torch.no_grad():
        assert not any(o.requires_grad for o in again(lambda: x @ y))
    assert all(o.requires_grad for o in [x @ y, x @ y])


def test_one_tensor_twice_and_two_tensors():
    x, y = torch.randn(2, 3, 3, requires_grad=True), torch.randn(2, 3, 3, requires_grad=True)
    for _ in range(4):
        torch.testing.assert_close(torch.matmul(x, x), torch.bmm(x, x))
        torch.testing.assert_close(torch.matmul(x, y), torch.bmm(x, y))


def test_what_elements_decide_is_asked_again():
    x = torch.tensor([1, 2, 3])
    for n in (3, 3, 3, 5, 2):
        x[0] = n
        assert torch.nn.functional.one_hot(x).shape == (3, max(n, 3) + 1)
        assert torch.equal(x, torch.tensor([n, 2, 3]))
        assert not torch.equal(x, torch.tensor([n + 1, 2, 3]))


def test_views_in_place_and_places_in_memory():
    for _ in range(4):
        x = torch.arange(6.0).reshape(2, 3)
        assert x.t_() is x and x.shape == (3, 2)
    base = torch.arange(10.0)
    for k in range(5):
        assert base[k:].as_strided((2,), (1,), 0).tolist() == [0, 1]
        assert base[k:].as_strided((2,), (1,)).tolist() == [k, k + 1]


def test_modes_see_what_they_saw():
    from flambeau.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x, w = torch.randn(2, 2, 3, requires_grad=True), torch.randn(4, 3)
    again(lambda: torch.nn.functional.linear(x, w))
    for _ in range(3):
        seen.clear()
        with Names():
            torch.nn.functional.linear(x, w)
        assert "aten.linear.default" not in seen and seen


def test_dropped_with_the_operator():
    """A program holds constants and operators, no tensors of the calls."""
    import weakref

    x = torch.randn(3, 2, 4, requires_grad=True)
    alive = weakref.ref(x)
    for _ in range(4):
        x.flatten().sum().backward()
    del x
    gc.collect()
    assert alive() is None


def test_random_draws_are_drawn_again():
    x = torch.ones(1000, requires_grad=True)
    torch.manual_seed(3)
    drawn = again(lambda: torch.nn.functional.dropout(x, 0.5, True).detach().numpy())
    assert all(np.any(a != b) for a, b in zip(drawn, drawn[1:]))
    torch.manual_seed(3)
    assert all(np.array_equal(a, torch.nn.functional.dropout(x, 0.5, True).detach().numpy()) for a in drawn)
