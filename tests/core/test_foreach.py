"""Operators on lists (csrc/core/foreach.c): what the single operators give, row by row, in one native call."""

import sys

import pytest

import flambeau as torch
from flambeau.core.operator import namespace

aten = torch.ops.aten


def xs():
    return [torch.tensor([0.5, 2.0, -1.5]), torch.tensor([[1.0, 4.0]]), torch.tensor(3.0, dtype=torch.float64)]


def ys():
    return [torch.tensor([1.5, -2.0, 3.0]), torch.tensor([[2.0, 0.5]]), torch.tensor(2.0, dtype=torch.float64)]


CASES = {
    "neg": ((), lambda x, y: -x),
    "sqrt": ((), lambda x, y: x.sqrt()),
    "sigmoid": ((), lambda x, y: x.sigmoid()),
    "add": ((ys,), lambda x, y: x + y),
    "add with a factor": ((ys, {"alpha": -0.25}), lambda x, y: x.add(y, alpha=-0.25)),
    "add a tensor": ((torch.tensor(2.0),), lambda x, y: x + 2),
    "sub": ((1.5,), lambda x, y: x - 1.5),
    "mul": ((ys,), lambda x, y: x * y),
    "div": (([2.0, 2.0, 2.0],), lambda x, y: x / 2),
    "maximum": ((ys,), lambda x, y: torch.maximum(x, y)),
    "clamp_max": ((1.0,), lambda x, y: x.clamp(max=1)),
    "pow": ((2,), lambda x, y: x**2),
    "addcmul": ((ys, ys, {"value": 2.5}), lambda x, y: x.addcmul(y, y, value=2.5)),
    "addcdiv": ((ys, ys, [2.5, 2.5, 2.5]), lambda x, y: x.addcdiv(y, y, value=2.5)),
    "addcdiv by a tensor": ((ys, ys, torch.tensor([2.5, 2.5, 2.5])), lambda x, y: x.addcdiv(y, y, value=2.5)),
    "lerp": ((ys, 0.25), lambda x, y: x.lerp(y, 0.25)),
}


def call(name, first, arguments):
    rest = [a() if callable(a) and a.__class__ is not torch.Tensor else a for a in arguments]
    named = rest.pop() if rest and isinstance(rest[-1], dict) else {}
    return getattr(torch, f"_foreach_{name}")(first, *rest, **named)


@pytest.mark.parametrize("case", CASES)
def test_row_by_row(case):
    arguments, single = CASES[case]
    want = [single(x, y) for x, y in zip(xs(), ys())]
    for _ in range(3):
        got = call(case.split()[0], xs(), arguments)
        assert isinstance(got, tuple)
        for g, w in zip(got, want, strict=True):
            torch.testing.assert_close(g, w, rtol=0, atol=0, equal_nan=True)
        written = xs()
        versions = [t._version for t in written]
        assert call(case.split()[0] + "_", written, arguments) is None
        for g, w in zip(written, want, strict=True):
            torch.testing.assert_close(g, w, rtol=0, atol=0, equal_nan=True)
        assert all(t._version > v for t, v in zip(written, versions))


def test_gradients_are_those_of_the_rows():
    for _ in range(3):
        leaves = [x.requires_grad_() for x in xs()]
        out = torch._foreach_mul(torch._foreach_exp(leaves), ys())
        sum(t.sum().float() for t in out).backward()
        for x, y in zip(leaves, ys()):
            torch.testing.assert_close(x.grad, x.detach().exp() * y)
    with pytest.raises(RuntimeError, match="leaf"):
        torch._foreach_add_(leaves, 1.0)


def test_lists_that_do_not_fit():
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_add([], 1)
    with pytest.raises(RuntimeError, match="same number of tensors"):
        torch._foreach_add(xs(), ys()[:2])
    whole = [torch.tensor([1, 2])]
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch._foreach_mul_(whole, 1.5)
    assert whole[0].tolist() == [1, 2]


def test_norms_zeros_copies():
    assert [round(n.item(), 4) for n in torch._foreach_norm(xs()[:2])] == [2.5495, 4.1231]
    x = xs()
    torch._foreach_copy_(x, ys())
    assert all(torch.equal(a, b) for a, b in zip(x, ys()))
    torch._foreach_zero_(x)
    assert not any(t.any().item() for t in x)


def python_calls(fn):
    count = 0

    def seen(frame, event, arg):
        nonlocal count
        count += event == "call"

    for _ in range(6):
        fn()
    sys.setprofile(seen)
    try:
        fn()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("make", [torch.optim.AdamW, torch.optim.Adam, lambda p: torch.optim.SGD(p, momentum=0.9)])
def test_a_step_runs_no_python_for_each_operator(make):
    def calls(n):
        params = [torch.nn.Parameter(torch.ones(4)) for _ in range(n)]
        for p in params:
            p.grad = torch.ones(4)
        return python_calls(make(params).step)

    few, many = calls(10), calls(40)
    assert (many - few) / 30 <= 6  # a few for each parameter's bookkeeping, none for its operators


def test_no_python_between_the_operators_of_a_backward():
    x, w, b = torch.randn(2, 5, 4), torch.randn(3, 4, requires_grad=True), torch.randn(3, requires_grad=True)

    def run():
        w.grad = b.grad = None
        torch.nn.functional.linear(x, w, b).reshape(-1).softmax(0).sum().backward()

    assert python_calls(run) <= 10  # Tensor.backward's own


def test_elements_are_read_natively():
    x = torch.tensor([2.5])
    assert x.item() == 2.5 and python_calls(x.item) == 1
    for value in (True, 3, 2.5, 1 + 2j):
        got = torch.tensor(value).item()
        assert got == value and type(got) is type(value)
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        torch.ones(2).item()


_ = torch.ops.aten._foreach_abs  # declares its family
OUT_FORMS = [
    (packet, name)
    for packet, made in sorted(namespace("aten")._packets.items())
    if packet.startswith("_foreach_") and not packet.endswith("_")
    for name in made._overloads
    if name == "out" or name.endswith("_out")
]


@pytest.mark.parametrize("packet, name", OUT_FORMS, ids=lambda x: x)
def test_out_forms_write_what_is_returned(packet, name):
    op = getattr(getattr(torch.ops.aten, packet), name)
    functional = getattr(getattr(torch.ops.aten, packet), name.removesuffix("_out") if name != "out" else "default")
    lists = [[torch.rand(2) / k, torch.rand(3) / k] for k in (1, 2, 3)]  # between 0 and 1: no nan
    args = []
    for a in op._schema.arguments:
        if a.is_out or a.kwarg_only or a.name == "dtype":
            break
        if a.type == "Tensor":
            args.append(
                lists[len(args)]
                if a.is_list
                else torch.tensor([2.0, 0.5])
                if a.name == "scalars"
                else torch.tensor(2.0)
            )
        else:
            args.append([2.0, 0.5] if a.is_list else 2)
    want = functional(*args)
    out = [torch.empty(0), torch.empty_like(want[1])]
    assert op(*args, out=out) is None
    torch.testing.assert_close(out, list(want), rtol=0, atol=0, equal_nan=True)
    with pytest.raises(RuntimeError, match="same number of tensors"):
        op(*args, out=out[:1])
    kept = out[0].clone()
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        op(*args, out=[out[0], out[1].double()])
    assert torch.equal(out[0], kept)
