"""Sums of small products become one product: same values, fewer products; other sums stay."""

import functools

import pytest

import flambeau as torch
from flambeau.inductor.passes import sums
from flambeau.inductor.settings import config
from flambeau.inductor.utils import run_and_get_code


def _products(fn, *args):
    compiled = torch.compile(fn)
    result, (source,) = run_and_get_code(compiled, *args)
    return result, source.count("extern_kernels.")


def _pairs(count, m=24, n=40, depth=(3, 8, 5, 16, 1, 7)):
    torch.manual_seed(0)
    ks = [depth[i % len(depth)] for i in range(count)]
    return [torch.randn(k, m) for k in ks], [torch.randn(k, n) for k in ks]


@pytest.mark.parametrize("transposed", [True, False])
def test_sum_of_products_is_one_product(transposed):
    a, b = _pairs(6)
    if not transposed:
        a = [x.t().contiguous() for x in a]

    def f(a, b):
        out = None
        for x, y in zip(a, b):
            p = (x.t() if transposed else x) @ y
            out = p if out is None else out + p
        return out

    got, count = _products(f, a, b)
    assert count == 1
    torch.testing.assert_close(got, f(a, b), rtol=1e-5, atol=1e-4)


def test_other_sums_stay():
    a, b = _pairs(4)

    def twice(a, b):  # a partial sum that is returned
        p = a[0].t() @ b[0] + a[1].t() @ b[1]
        return p + a[2].t() @ b[2] + a[3].t() @ b[3], p

    def scaled(a, b):
        return torch.add(a[0].t() @ b[0] + a[1].t() @ b[1], a[2].t() @ b[2] + a[3].t() @ b[3], alpha=2)

    def square(a, b):  # one term used twice
        p = a[0].t() @ b[0]
        return p + p + a[2].t() @ b[2] + a[3].t() @ b[3]

    for f in (twice, scaled, square):
        got, count = _products(f, a, b)
        assert count == (3 if f is square else 4)
        torch.testing.assert_close(got, f(a, b), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_recurrence_trains_as_eager(kind):
    torch.manual_seed(0)
    net = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[kind](36, 40, batch_first=True)
    x = torch.randn(5, 9, 36, requires_grad=True)

    def grads(run):
        for p in (*net.parameters(), x):
            p.grad = None
        run(x)[0].square().sum().backward()
        return [p.grad.clone() for p in (*net.parameters(), x)]

    plain = grads(net)
    for got, want in zip(grads(torch.compile(net)), plain):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_terms_stand_in_the_same_order_each_time(monkeypatch):
    """Another order of the terms is another rounding; where their makers lie in memory says nothing."""
    a, b = _pairs(12)

    def f(a, b):
        return functools.reduce(torch.add, [x.t() @ y for x, y in zip(a, b)])

    seen = set()
    for sign in (1, -1):
        torch._dynamo.reset()
        monkeypatch.setattr(sums, "id", lambda x, sign=sign: sign * id(x), raising=False)
        with config.patch(force_disable_caches=True):
            _, (source,) = run_and_get_code(torch.compile(f), a, b)
        seen.add(source)
    assert len(seen) == 1
