"""Selective checkpoints: which operators run again in the backward, and that gradients don't depend on it. The counts are PyTorch's."""

import functools

import pytest

import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
    noop_context_fn,
)

aten = torch.ops.aten
SAVE_MM = functools.partial(create_selective_checkpoint_contexts, [aten.mm.default])


def policy(ctx, op, *args, **kwargs):
    assert ctx.is_recompute is False and ctx.op_output is not None
    return CheckpointPolicy.MUST_SAVE if op is aten.sigmoid.default else CheckpointPolicy.PREFER_RECOMPUTE


class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls[func] = self.calls.get(func, 0) + 1
        return func(*args, **(kwargs or {}))


def fn(x, y):
    return torch.sigmoid((x @ y) @ y) * y


@pytest.mark.parametrize(
    "contexts, products, sigmoids",
    [
        (None, 4, 0),
        (noop_context_fn, 6, 1),
        (SAVE_MM, 4, 1),
        (functools.partial(create_selective_checkpoint_contexts, policy), 6, 0),
        (functools.partial(create_selective_checkpoint_contexts, lambda ctx, op, *a, **k: op is aten.mm.default), 4, 1),
    ],
)
def test_what_runs_again(contexts, products, sigmoids):
    torch.manual_seed(0)
    x, y = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    want = torch.autograd.grad(fn(x, y).sum(), (x, y))
    out = fn(x, y) if contexts is None else checkpoint(fn, x, y, use_reentrant=False, context_fn=contexts)
    with Count() as count:
        out.sum().backward()
    assert (count.calls.get(aten.mm.default, 0), count.calls.get(aten.sigmoid.default, 0)) == (products, sigmoids)
    assert torch.equal(x.grad, want[0]) and torch.equal(y.grad, want[1])


def test_refused():
    with pytest.raises(ValueError, match="specific OpOverload"):
        create_selective_checkpoint_contexts([aten.mm])
    with pytest.raises(TypeError, match="function or a list"):
        create_selective_checkpoint_contexts(3)


def square(a):
    return (a @ a).sin()


def written(a):
    b = a @ a
    with torch.no_grad():
        b.add_(1)
    return b.sin()


def test_a_second_backward_and_a_written_result():
    x = torch.randn(3, 3, requires_grad=True)
    out = checkpoint(square, x, use_reentrant=False, context_fn=SAVE_MM)
    out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="backward an extra time"):
        out.sum().backward()
    out = checkpoint(written, x, use_reentrant=False, context_fn=SAVE_MM)
    with pytest.raises(RuntimeError, match="has been mutated"):
        out.sum().backward()
    allowed = functools.partial(SAVE_MM, allow_cache_entry_mutation=True)
    checkpoint(written, x, use_reentrant=False, context_fn=allowed).sum().backward()


def test_runs_that_differ():
    calls = []

    def changing(a):
        calls.append(1)
        return (a @ a).sin() if len(calls) == 1 else ((a @ a) @ a).sin()

    x = torch.randn(3, 3, requires_grad=True)
    out = checkpoint(changing, x, use_reentrant=False, context_fn=SAVE_MM)
    with pytest.raises(RuntimeError, match="not found in storage"):
        out.sum().backward()
