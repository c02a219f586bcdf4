"""Interrupts, depth, exceptions and memory: the engine leaves no state behind and needs no recursion."""

import contextlib
import os
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C
from flambeau.autograd import Function
from flambeau.autograd.graph import saved_tensors_hooks

FIELDS = (
    "grad_enabled",
    "excluded",
    "included",
    "inference",
    "function_disabled",
    "function_modes",
    "dispatch_modes",
    "transforms",
    "saved_hooks",
)


def state():
    return {n: _C.tls(n) for n in FIELDS} | {"backward": _C.backward_id()}


FLOATING_POINT = np.geterr()


def interrupted(job, k) -> bool:
    """Runs job with KeyboardInterrupt arriving as its k-th call of a C function returns, where CPython handles signals."""
    left = [k]

    def profile(frame, event, arg):
        if event == "c_return":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

    try:
        sys.setprofile(profile)
        job()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
        # NumPy's own np.errstate stays on when its __enter__ is interrupted behind the place where it sets it.
        np.seterr(**FLOATING_POINT)
    return left[0] <= 0


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            again = x.detach().requires_grad_()
            (again**3).sum().backward()
        return g * again.grad


W = torch.ones(3, 3, requires_grad=True)


def hooks():
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = (W * W).exp()
    y.register_hook(lambda g: g * 2)
    y.sum().backward()


def writes():
    a = W * 1
    v = a[0]
    a[1].mul_(2)
    v.add_(1)
    a.sum().backward()


JOBS = {
    "backward": lambda: (W @ W).tanh().sum().backward(),
    "grad of grad": lambda: torch.autograd.grad(torch.autograd.grad((W**3).sum(), W, create_graph=True)[0].sum(), W),
    "custom": lambda: Cube.apply(W * 1).sum().backward(),
    "hooks": hooks,
    "writes to views": writes,
}


@pytest.mark.parametrize("job", JOBS.values(), ids=list(JOBS))
def test_an_interrupt_anywhere_leaves_no_state(job):
    for _ in range(3):
        job()
    want, k = state(), 1
    while k < 400 and interrupted(job, k):
        assert state() == want, f"interrupted at call {k}"
        k += 1
    W.grad = None
    (W * 2).sum().backward()
    assert W.grad.tolist() == [[2.0] * 3] * 3


def test_an_interrupt_is_not_swallowed_by_a_view_that_takes_over_its_history():
    w, result = torch.ones(2, requires_grad=True), []

    def job():
        result.clear()
        w.grad = None
        base = torch.zeros(2)
        view = base.view(2)
        base.add_(w)
        ((view * 3).sum() + (w * 0).sum()).backward()
        result.append(w.grad.tolist())

    job()
    assert result == [[3.0, 3.0]]
    k = 1
    while interrupted(job, k):
        assert result in ([], [[3.0, 3.0]])
        k += 1


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_long_graph_runs_and_is_released(n):
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(n):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    del y  # it has run
    y = x
    for _ in range(n):
        y = y * x
    del y  # it has not, and its saved tensors refer to each other


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_long_chain_of_views_is_one_map(device):
    leaf = torch.ones(2, 2, requires_grad=True, device=device)
    base = leaf * 1
    v = base
    for _ in range(100_000 if device == "cpu" else 20_000):
        v = v.t()
    if device == "cpu":
        assert v._base is base
        v.mul_(2)
        assert base.grad_fn.name() == "torch::autograd::CopySlices" and v.grad_fn.name() == "AsStridedBackward0"
        assert repr(base).endswith("grad_fn=<CopySlices>)")
        (base.sum() + v[0, 0]).backward()
        assert leaf.grad.tolist() == [[4.0, 2.0], [2.0, 2.0]]
    del v


def test_an_exception_in_the_middle_of_a_pass():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ZeroDivisionError("mine")

    x = torch.ones(3, requires_grad=True)
    before = state()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="mine"):
            (Fails.apply(x * x) * x).sum().backward()
        assert state() == before
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_a_backward_that_never_ends_is_an_error():
    class Again(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                Again.apply(torch.ones(1, requires_grad=True)).sum().backward()
            return g

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        with pytest.raises(RecursionError):
            Again.apply(torch.ones(1, requires_grad=True)).sum().backward()
    finally:
        sys.setrecursionlimit(limit)
    assert _C.backward_id() == -1


def test_wrong_types_are_refused():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    with pytest.raises(TypeError, match="grad_fn is a Node"):
        y._grad_fn = "no node"
    with pytest.raises(ValueError, match="no such result"):
        _C.set_history(y, y.grad_fn, 7)
    with pytest.raises(AttributeError):
        y._output_nr = 7
    with pytest.raises(TypeError):
        torch.autograd.backward(["no tensor"], [None])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_forked_child_runs_backward():
    pid = os.fork()
    if not pid:
        x = torch.ones(2, requires_grad=True)
        (x * x).sum().backward()
        os._exit(0 if x.grad.tolist() == [2.0, 2.0] else 1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("job", JOBS.values(), ids=list(JOBS))
def test_failed_allocations_are_memory_errors(job, failing_memory):
    for _ in range(3):
        job()
    want = state()
    for k in range(400):
        with contextlib.suppress(MemoryError):
            failing_memory.run(k, job)
        assert state() == want, k
    W.grad = None
    (W * 2).sum().backward()
    assert W.grad.tolist() == [[2.0] * 3] * 3


def _not_differentiable():
    f, scores, classes = torch.nn.functional, torch.randn(4, 3, requires_grad=True), torch.tensor([0, 1, 2, 1])
    weight, chances = torch.rand(3, requires_grad=True), torch.rand(4, 3)
    return {
        "nll_loss_forward": lambda: f.nll_loss(scores.log_softmax(1), classes, weight=weight),
        "nll_loss2d_forward": lambda: f.nll_loss(scores[:, :, None, None], classes[:, None, None], weight=weight),
        "nll_loss": lambda: f.cross_entropy(scores, classes, weight=weight),
        "binary_cross_entropy": lambda: f.binary_cross_entropy(scores.sigmoid(), chances, weight=weight),
    }


@pytest.mark.parametrize("name", _not_differentiable())
def test_arguments_without_a_derivative_are_refused(name):
    call = _not_differentiable()[name]
    words = f"The function '{name}.*' is not differentiable with respect to argument 'weight'"
    with pytest.raises(RuntimeError, match=words):
        call()
    with pytest.raises(RuntimeError, match=words):
        torch.compile(call, backend="aot_eager")()
    with torch.no_grad():
        call()


def test_ctc_loss_has_no_second_derivative():
    x = torch.randn(4, 1, 3, requires_grad=True)
    loss = torch.nn.functional.ctc_loss(x.log_softmax(2), torch.tensor([[1, 2]]), (4,), (2,))
    (g,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match="the derivative for '_ctc_loss_backward: log_probs' is not implemented"):
        torch.autograd.grad(g.square().sum(), x)
