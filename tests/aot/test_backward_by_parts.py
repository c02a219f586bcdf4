"""Outputs of one compiled graph go backward one after the other, and what the graph handed out is overwritten in between: as plainly."""

import pytest

import flambeau as torch
from flambeau.compiler import graph_break


def drawn(x, w):
    return torch.rand(2).sum() * x.exp(), w.sin()


def drawn_together(x, w):
    h = torch.rand(2) * x.exp()
    return h * w, h.sum()


def written(x, w):
    w.detach().mul_(2)
    return x.exp() * 3, (w * 3).sin()


PROGRAMS = {"drawn": drawn, "drawn together": drawn_together, "written": written}


def by_parts(f, times):
    """Gradients after each output by itself, or the error's class."""
    torch.manual_seed(0)
    x, w = (torch.tensor(v, requires_grad=True) for v in ([1.0, 0.5], [0.25, 2.0]))
    found = []
    outputs = f(x, w)
    for out in (*outputs, *outputs[:times]):
        try:
            out.sum().backward()
            found.append([None if t.grad is None else t.grad.tolist() for t in (x, w)])
        except RuntimeError as e:
            found.append("second time" in str(e))
    return found


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("times", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_output_at_a_time(name, times, backend):
    f = PROGRAMS[name]
    want = by_parts(f, times)
    for got, plain in zip(by_parts(torch.compile(f, backend=backend), times), want, strict=True):
        assert got == plain if isinstance(plain, bool) else got == [v if v is None else pytest.approx(v) for v in plain]


def gradient_copied(x, p):
    p.grad = None
    (p * x.detach()).sum().backward()
    y = p.grad.clone() * x
    graph_break()
    (p * x.detach()).sum().backward()
    return y


def input_copied(x, p):
    return x.detach().clone() * p


def output_copied(x, p):
    y = x.detach() * 2
    return y.clone() * p, y


def overwritten(f):
    x, p = torch.tensor([3.0, 0.5], requires_grad=True), torch.nn.Parameter(torch.ones(2))
    out = f(x, p)
    out, other = out if isinstance(out, tuple) else (out, x)
    with torch.no_grad():
        other.zero_()
    out.sum().backward()
    return [None if t.grad is None else t.grad.tolist() for t in (x, p)]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("f", [input_copied, output_copied])
def test_copies_stand_apart_from_what_is_overwritten(f, backend):
    assert overwritten(torch.compile(f, backend=backend)) == overwritten(f)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_copied_gradient_stands_apart_from_what_is_added(backend):
    def told(f):
        x, p = torch.tensor([3.0, 0.5], requires_grad=True), torch.nn.Parameter(torch.ones(2))
        f(x, p).sum().backward()
        return x.grad.tolist(), p.grad.tolist()

    assert told(torch.compile(gradient_copied, backend=backend)) == told(gradient_copied)
