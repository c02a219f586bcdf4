"""Recurrent layers as one launch over all steps: beside the steps written out, in all kinds, directions and sizes, and their derivatives."""

import itertools
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch
from flambeau.base import recurrence
from flambeau.ops import load_family
from flambeau.testing import guard_pages

load_family("neural.recurrent")
NETS = {
    "LSTM": torch.nn.LSTM,
    "GRU": torch.nn.GRU,
    "RNN": torch.nn.RNN,
    "RELU": lambda *a, **k: torch.nn.RNN(*a, nonlinearity="relu", **k),
}
OPTIONS = [{}, {"bidirectional": True}, {"bias": False}, {"num_layers": 2, "batch_first": True}]


def results(net, x, states=None, loss_of_state=True):
    out, state = net(x, states) if states is not None else net(x)
    states = state if isinstance(state, tuple) else (state,)
    loss = (out * out.detach().cos()).sum() + (sum((s * s).sum() for s in states) if loss_of_state else 0)
    return [t.detach() for t in (out, *states)] + list(torch.autograd.grad(loss, [x, *net.parameters()]))


# Whether a loss asks for the last state is one question more, put for each kind of net.
LOSSES = [(options, True) for options in OPTIONS] + [(OPTIONS[0], False)]
LOSSES += [pytest.param(options, False, marks=pytest.mark.slow) for options in OPTIONS[1:]]


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("options, loss_of_state", LOSSES, ids=str)
def test_beside_single_steps(name, options, loss_of_state, monkeypatch):
    torch.manual_seed(0)
    for width, batch, dtype in ((7, 3, "float32"), (16, 1, "float32"), (33, 27, "float32"), (12, 5, "float64")):
        net = NETS[name](5, width, **options).to(getattr(torch, dtype))
        x = torch.randn(4, batch, 5, dtype=getattr(torch, dtype), requires_grad=True)
        got = [results(f, x, None, loss_of_state) for f in (net, torch.compile(net))]
        with monkeypatch.context() as m:
            m.setattr(sys.modules["flambeau.ops.neural.recurrent"], "streams", lambda tensors: False)
            want = results(net, x, None, loss_of_state)
        for made in got:
            for g, w in zip(made, want):
                assert g.shape == w.shape and g.stride() == w.stride()
                tolerance = 2e-5 if dtype == "float32" else 1e-12
                assert torch.allclose(g, w, rtol=tolerance, atol=tolerance * max(1.0, float(w.abs().max())))


@pytest.mark.parametrize("name", NETS)
def test_derivatives_of_both_orders(name):
    torch.manual_seed(0)
    net = NETS[name](2, 3).double()
    names = [n for n, _ in net.named_parameters()]
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    f = lambda x, *p: torch.func.functional_call(net, dict(zip(names, p)), (x,))[0]  # noqa: E731
    parameters = [p.detach().clone().requires_grad_() for p in net.parameters()]
    assert torch.autograd.gradcheck(f, (x, *parameters))
    assert torch.autograd.gradgradcheck(f, (x, *parameters))


def test_transforms():
    torch.manual_seed(0)
    net = torch.nn.LSTM(3, 4)
    x = torch.randn(5, 2, 3)
    loss = lambda x: net(x)[0].square().sum()  # noqa: E731
    y = x.clone().requires_grad_()
    loss(y).backward()
    assert torch.allclose(torch.func.grad(loss)(x), y.grad, atol=1e-5)
    many = torch.randn(3, 5, 2, 3)
    with torch.no_grad():
        assert torch.allclose(torch.vmap(lambda x: net(x)[0])(many), torch.stack([net(x)[0] for x in many]), atol=1e-5)
    each = torch.vmap(torch.func.grad(loss))(many)
    assert torch.allclose(each[1], torch.func.grad(loss)(many[1]), atol=1e-5)


def test_any_number_of_steps_and_sequences():
    torch.manual_seed(0)
    net = torch.nn.GRU(3, 8, batch_first=True)
    f = torch.compile(net, dynamic=True)
    for batch, steps in ((2, 5), (4, 9), (3, 30)):
        x, y = (torch.ones(batch, steps, 3).cumsum(1).cos().requires_grad_() for _ in range(2))
        f(x)[0].sum().backward()
        net(y)[0].sum().backward()
        assert torch.allclose(x.grad, y.grad, atol=1e-5)


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("steps, batch, hidden", [(1, 1, 1), (1, 1, 4), (3, 1, 4), (2, 0, 4), (1, 2, 1), (3, 2, 0)])
def test_strides_are_those_of_the_shape_rule(name, steps, batch, hidden):
    kind, aten = list(NETS).index(name), torch.ops.aten
    wide, cell = recurrence.GATES[kind] * hidden, torch.ones(batch, hidden) if name == "LSTM" else None
    inner, weight, bias, h = (torch.ones(s) for s in ((steps, batch, wide), (wide, hidden), (wide,), (batch, hidden)))
    shown = lambda made: [(t.shape, t.stride()) for t in made]  # noqa: E731
    meta = lambda *args: [a.to("meta") if isinstance(a, torch.Tensor) else a for a in args]  # noqa: E731
    given = (inner, weight, bias, bias, h, cell, kind, False, True)
    made = aten._recurrence(*given)
    assert shown(made) == shown(aten._recurrence(*meta(*given)))
    given = (made[0], cell, weight, h, cell, made[0], made[2], made[3], kind, False)
    assert shown(aten._recurrence_backward(*given)) == shown(aten._recurrence_backward(*meta(*given)))


def test_nothing_is_kept_without_gradients_and_nan_reaches_what_follows():
    net = torch.nn.LSTM(3, 4)
    x = torch.randn(6, 2, 3)
    x[2, 1, 0] = float("nan")
    with torch.no_grad():
        out = net(x)[0]
    assert torch.isnan(out[2:, 1]).all() and torch.isfinite(out[:2]).all() and torch.isfinite(out[:, 0]).all()
    assert [o.size for o in call("LSTM", keep=False)[2:]] == [0, 0]


def call(name, steps=4, batch=40, hidden=50, keep=True, make=lambda a: a):
    rng = np.random.default_rng(0)
    kind = list(NETS).index(name)
    array = lambda *shape: make((rng.normal(size=shape) * hidden**-0.5).astype("f"))  # noqa: E731
    wide = recurrence.GATES[kind] * hidden
    biases = (array(wide), array(wide))
    return recurrence.forward(
        kind,
        False,
        keep,
        array(steps, batch, wide),
        array(wide, hidden),
        biases,
        array(batch, hidden),
        array(batch, hidden),
    )


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_threads_do_not_matter(name):
    old, made = torch.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            made.append(call(name))
    finally:
        torch.set_num_threads(old)
    assert all((x == y).all() for other in made[1:] for x, y in zip(made[0], other))


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("batch, hidden, dtype", [(1, 40, "f"), (30, 33, "f"), (200, 20, "f"), (30, 33, "d")])
def test_single_steps_in_turn_are_a_call_of_all(name, batch, hidden, dtype):
    """A single step packs the weight block by block: forward to the same bits."""
    rng, kind = np.random.default_rng(0), list(NETS).index(name)
    array = lambda *shape: (rng.normal(size=shape) * hidden**-0.5).astype(dtype)  # noqa: E731
    lstm, wide = name == "LSTM", recurrence.GATES[kind] * hidden
    inner, weight, biases = array(3, batch, wide), array(wide, hidden), (array(wide), array(wide))
    first, ct = (array(batch, hidden), array(batch, hidden) if lstm else None), array(3, batch, hidden)
    old = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            whole = recurrence.forward(kind, False, True, inner, weight, biases, *first)
            back = recurrence.backward(kind, False, ct, None, weight, *first, whole[0], *whole[2:])
            states, steps = [first], []
            for t in range(3):
                steps.append(recurrence.forward(kind, False, True, inner[t : t + 1], weight, biases, *states[-1]))
                states.append((steps[-1][0][0], steps[-1][1] if lstm else None))
                for made, all_of_them in zip(steps[-1][::2], whole[::2]):
                    np.testing.assert_array_equal(made, all_of_them[t : t + 1] if made.size else all_of_them)
            d_h, d_c = np.zeros_like(first[0]), None
            for t in (2, 1, 0):
                _, _, *kept = steps[t]
                d_inner, _, d_h, d_c = recurrence.backward(
                    kind, False, ct[t : t + 1] + d_h, d_c, weight, *states[t], steps[t][0], *kept
                )
                d_c = d_c if lstm else None
                np.testing.assert_allclose(d_inner[0], back[0][t], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(d_h, back[2], rtol=1e-4, atol=1e-5)
    finally:
        torch.set_num_threads(old)


def stays_inside() -> None:
    """Layers whose inputs lie between pages that nobody may touch; what they make is as long as it should be."""
    for at_end, name, steps, (batch, hidden) in itertools.product(
        (False, True), NETS, (1, 3), [(1, 5), (4, 16), (7, 33), (30, 40), (5, 64)]
    ):
        guarded = guard_pages.GuardPages(at_end)
        make = lambda s, t: guarded(np.zeros(s, t))  # noqa: B023, E731
        recurrence.numpy = types.SimpleNamespace(
            empty=make, zeros=make, ascontiguousarray=np.ascontiguousarray, float64=np.float64
        )
        made = call(name, steps, batch, hidden, True, guarded)
        rng, kind = np.random.default_rng(1), list(NETS).index(name)
        array = lambda *shape: guarded(rng.normal(size=shape).astype("f"))  # noqa: B023, E731
        wide = recurrence.GATES[kind] * hidden
        given = array(steps, batch, hidden), array(batch, hidden) if kind == 0 else None, array(wide, hidden)
        recurrence.backward(kind, True, *given, array(batch, hidden), array(batch, hidden), made[0], *made[2:])


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
@pytest.mark.parametrize("level", ["", "avx2", "default"])
def test_reads_nothing_outside_its_arrays(level):
    guard_pages.run_alone(__file__, "stays_inside()", **({"FLAMBEAU_CPU": level} if level else {}))


@pytest.mark.parametrize("level", ["avx2", "default"])
def test_lesser_processors(level, tmp_path):
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_recurrence as t, numpy; numpy.savez(sys.argv[2], *[a for n in t.NETS for a in t.call(n)])"
    folder, file = str(Path(__file__).parent), str(tmp_path / "less.npz")
    subprocess.run(
        [sys.executable, "-c", code, folder, file], check=True, timeout=120, env={**os.environ, "FLAMBEAU_CPU": level}
    )
    own, less = [a for n in NETS for a in call(n)], np.load(file)
    assert len(own) == len(less.files)
    for a, key in zip(own, less.files):
        np.testing.assert_allclose(a, less[key], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("compiled", [False, True])
def test_sixteen_bits_keep_their_state_in_float32(kind, dtype, compiled):
    """Long sequences of 16-bit numbers are as near to float64 as rounding their inputs' products and their results once."""
    torch.manual_seed(0)
    m = kind(6, 5, num_layers=2, bidirectional=True).to(dtype)
    exact = kind(6, 5, num_layers=2, bidirectional=True).double()
    exact.load_state_dict(m.state_dict())
    x = torch.randn(40, 3, 6).to(dtype)
    run = torch.compile(m) if compiled else m
    out, end = run(x)
    wanted, end_wanted = exact(x.double())
    close = {"atol": 0.02 if dtype is torch.bfloat16 else 0.0025, "rtol": 0}
    torch.testing.assert_close(out.double(), wanted, **close)
    assert out.dtype is dtype and (end[0] if kind is torch.nn.LSTM else end).dtype is dtype
    out.float().square().sum().backward()
    wanted.square().sum().backward()
    for p, q in zip(m.parameters(), exact.parameters()):
        assert p.grad.dtype is dtype
        scale = q.grad.abs().max()
        torch.testing.assert_close(p.grad.double() / scale, q.grad / scale, **close)
