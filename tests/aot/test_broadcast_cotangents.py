"""Results of compiled graphs that plain code broadcasts, writes with, or writes into: the cotangent is summed to the result's shape."""

import pytest

import flambeau as torch

BACKENDS = ("aot_eager", "inductor")
W = torch.arange(6.0) + 1


def gradient(fn, C):
    a = (torch.arange(6.0) + 1).requires_grad_()
    torch._dynamo.reset()
    return torch.autograd.grad(fn(a, C(lambda a: a.sum()), C(lambda a: a.view(2, 3).mean(1, keepdim=True))).sum(), a)[0]


USES = {
    "product": lambda a, total, means: W * total(a),
    "product_with_a_history": lambda a, total, means: W.clone().requires_grad_() * total(a),
    "in_place": lambda a, total, means: (W.clone().requires_grad_() * 1).mul_(total(a)),
    "in_place_sum": lambda a, total, means: (W.clone().requires_grad_() * 1).add_(total(a)),
    "rows": lambda a, total, means: W.view(2, 3) * means(a),
    "where": lambda a, total, means: torch.where(W > 2, total(a), W),
    "power": lambda a, total, means: total(a) ** (W / 6),
    "matrix": lambda a, total, means: torch.addmm(means(a), W.view(2, 3), W.view(3, 2)),
    "other_dtype": lambda a, total, means: W.double() * total(a),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("use", USES)
def test_cotangents_have_the_shape_of_the_result(use, backend):
    want = gradient(USES[use], lambda f: f)
    got = gradient(USES[use], lambda f: torch.compile(f, backend=backend))
    torch.testing.assert_close(got, want)


VIEWS = (
    "b",
    "b[2:]",
    "b[:3]",
    "b[:2]",
    "b[3:]",
    "b[::2]",
    "b.view(2, 3).t()",
    "b.view(3, 2)[1]",
    "b.view(2, 3)[:, 1:]",
)
WRITES = {
    "one": lambda a, c: (a.sum() * 2, a.mul_(a.sum()))[0],
    "by_a_number": lambda a, c: (c.sum() * 2, a.mul_(3))[0],
    "by_itself": lambda a, c: (c.sum() * 2, a.mul_(a.sum()))[0],
    "by_the_other": lambda a, c: (c.sum() * 2, a.mul_(c.sum()))[0],
    "both": lambda a, c: (c.sum() * 2, a.add_(1), c.mul_(2))[0],
    "reshaped": lambda a, c: (a.mul_(2), a.unsqueeze_(0), c.sum() + a.sum())[2],
}


def written(fn, views, C):
    leaf = (torch.arange(6.0) + 1).requires_grad_()
    b = leaf * 1
    args = [eval(v, {"b": b}) for v in views]
    y = C(fn)(*args)
    (g,) = torch.autograd.grad(y + sum(a.sum() for a in args), leaf)
    return [y.detach(), g, b.detach(), *(a.detach() for a in args)]


@pytest.mark.parametrize("backend", ("eager", *BACKENDS))
@pytest.mark.parametrize("write", WRITES)
def test_inputs_that_share_memory_are_written_with_gradients(write, backend):
    for first in VIEWS[:7]:
        for second in VIEWS[::2] if backend == "eager" else VIEWS[:4]:
            want = written(WRITES[write], (first, second), lambda f: f)
            torch._dynamo.reset()
            got = written(WRITES[write], (first, second), lambda f: torch.compile(f, backend=backend))
            for x, y in zip(got, want):
                torch.testing.assert_close(x, y, msg=lambda m, first=first, second=second: f"{first}, {second}: {m}")
