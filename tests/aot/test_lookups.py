"""Products of rows looked up in a small table are made of the table (aot/lookups.py): values and gradients beside eager ones, and what is left alone."""

import numpy as np
import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.aot import min_cut_rematerialization_partition
from flambeau.aot.api import aot_function

HEIGHT, WIDTH, OUT = 12, 64, 7


def linear(table, weight, bias, ids):
    return F.linear(F.embedding(ids, table), weight, bias)


def without_bias(table, weight, bias, ids):
    return F.embedding(ids, table) @ weight.t()


def turned(table, weight, bias, ids):
    return F.linear(F.embedding(ids, table).transpose(0, 1), weight, None).flatten(0, 1) + bias


def flat(table, weight, bias, ids):
    return torch.addmm(bias, F.embedding(ids.view(-1), table), weight.t())


def padded(table, weight, bias, ids):
    return F.linear(F.embedding(ids, table, padding_idx=3), weight, bias)


def shared(table, weight, bias, ids):
    """The rows are wanted elsewhere, too, and the table's gradient has two parts."""
    x = F.embedding(ids, table)
    return F.linear(x, weight, bias) + x.sum(-1, keepdim=True)


def twice(table, weight, bias, ids):
    x = F.embedding(ids, table)
    return F.linear(x, weight, bias) * F.linear(x, weight.flip(0), bias)


def scaled(table, weight, bias, ids):
    return F.linear(F.embedding(ids, table, scale_grad_by_freq=True), weight, bias)


def lstm(table, weight, bias, ids):
    x = F.embedding(ids, table)
    hidden = OUT
    w = torch.cat([weight] * 4)
    zeros = torch.zeros(1, ids.shape[0], hidden)
    u = torch.ones(4 * hidden, hidden) / 9
    return torch.lstm(x, (zeros, zeros), [w, u], False, 1, 0.0, False, False, True)[0]


FUNCTIONS = [linear, without_bias, turned, flat, padded, shared, twice, scaled, lstm]


def operands(ids=(5, 9), height=HEIGHT, dtype=np.float64, kind=np.int64, width=WIDTH):
    rng = np.random.default_rng(0)
    table, weight, bias = (
        torch.from_numpy(rng.normal(size=s).astype(dtype)) for s in ((height, width), (OUT, width), (OUT,))
    )
    at = torch.from_numpy(
        rng.integers(0, max(height - 2, 1), size=ids).astype(kind)
    )  # the last two rows are never named
    return [t.requires_grad_() for t in (table, weight, bias)], at


def graphs_of(fn, leaves, ids):
    """(results with gradients, the text of both graphs) by the partition of compiled functions."""
    texts = []

    def keep(gm, inputs):
        texts.append(gm.print_readable(print_output=False))
        return gm

    out = aot_function(fn, keep, keep, min_cut_rematerialization_partition)(*leaves, ids)
    return (out, *gradients(out, leaves)), "\n".join(texts)


def gradients(out, leaves):
    weights = torch.arange(out.numel(), dtype=out.dtype).view(out.shape).cos()
    return torch.autograd.grad((out * weights).sum(), leaves, allow_unused=True)


def both(fn, leaves, ids):
    out = fn(*leaves, ids)
    wanted = (out, *gradients(out, leaves))
    got, text = graphs_of(fn, leaves, ids)
    for x, y in zip(got, wanted):
        assert (x is None) == (y is None)
        if x is not None:
            assert x.shape == y.shape and x.stride() == y.stride()
            np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-9, atol=1e-9)
    return text


@pytest.mark.parametrize("kind", [np.int64, np.int32])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_results_and_gradients(fn, kind):
    leaves, ids = operands(kind=kind)
    if fn is lstm:
        leaves = leaves[:2] + [leaves[2].detach().requires_grad_()]
        torch.set_default_dtype(torch.float64)
    try:
        text = both(fn, leaves, ids)
    finally:
        torch.set_default_dtype(torch.float32)
    assert f'"f64[{HEIGHT}, ' in text and f"f64[{ids.numel()}, {WIDTH}]" not in text or fn in (shared, twice, scaled)


@pytest.mark.parametrize("compiler", ["inductor", "aot_eager"])
@pytest.mark.parametrize("fn", FUNCTIONS[:-1], ids=lambda f: f.__name__)
def test_compiled(fn, compiler):
    leaves, ids = operands(dtype=np.float32)
    wanted = fn(*leaves, ids)
    torch._dynamo.reset()
    run = torch.compile(fn, backend=compiler)
    out = run(*leaves, ids)
    for x, y in zip((out, *gradients(out, leaves)), (wanted, *gradients(wanted, leaves))):
        assert (x is None) == (y is None)
        if x is not None:
            np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=2e-4, atol=2e-3)
    with torch.no_grad():
        np.testing.assert_allclose(run(*leaves, ids).numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("poison", [np.inf, np.nan])
def test_rows_that_no_place_names_are_not_read(poison):
    """Their sums are zero, and zero times an infinity is nan."""
    leaves, ids = operands()
    with torch.no_grad():
        leaves[0][-1] = poison
    both(linear, leaves, ids)


def test_an_infinite_weight_leaves_the_gradients_of_other_rows_alone():
    leaves, ids = operands()
    with torch.no_grad():
        leaves[1][0, 0] = np.inf
    (_, of_table, *_), _ = graphs_of(linear, leaves, ids)
    assert torch.equal(of_table[-2:], torch.zeros(2, WIDTH, dtype=torch.float64))


def test_a_table_that_is_written_before_the_backward_raises():
    leaves, ids = operands(dtype=np.float32)
    out = torch.compile(linear)(*leaves, ids)
    with torch.no_grad():
        leaves[0].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.parametrize("options", [{}, {"dynamic": True}], ids=str)
def test_a_table_that_is_the_last_layer_too(options):
    def tied(table, weight, bias, ids):
        return F.linear(F.linear(F.linear(F.embedding(ids, table), weight), weight.t()), table)

    leaves, ids = operands(dtype=np.float32)
    leaves[2] = torch.zeros(1, requires_grad=True)
    out, got = tied(*leaves, ids), torch.compile(tied, **options)(*leaves, ids)
    for x, y in zip((got, *gradients(got, leaves)[:2]), (out, *gradients(out, leaves)[:2])):
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-4, atol=1e-3 * float(y.abs().max()))


def test_a_place_outside_of_the_table_raises():
    leaves, ids = operands(dtype=np.float32)
    ids[0, 0] = HEIGHT
    with pytest.raises(IndexError):
        torch.compile(linear)(*leaves, ids)


@pytest.mark.parametrize(
    "change",
    [
        dict(ids=(4, 5)),  # fewer than two places to a row
        dict(height=500),
        dict(width=16),
        dict(ids=(0, 9)),
    ],
    ids=str,
)
def test_left_alone(change):
    leaves, ids = operands(**change)
    text = both(linear, leaves, ids)
    assert f"f64[{leaves[0].shape[0]}, {OUT}]" not in text


def test_narrow_numbers_are_left_alone():
    leaves, ids = operands(dtype=np.float32)
    leaves = [t.detach().bfloat16().requires_grad_() for t in leaves]
    _, text = graphs_of(linear, leaves, ids)
    assert f"bf16[{HEIGHT}, {OUT}]" not in text
