"""Short rows by groups: whatever the number of rows, no bit is another than of rows done one by one."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.codegen import row_groups
from flambeau.inductor.codegen.kernel import _Writer
from flambeau.inductor.settings import config

F = torch.nn.functional


def _cross_entropy(x):
    target = (torch.arange(x.shape[0]) * 7) % x.shape[1]
    return F.cross_entropy(x, target, reduction="none")


def _places(x):
    best = x.argmax(-1, keepdim=True)
    return x.gather(1, best) + (x - x.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True)


def _in_place(x):
    y = x.clone()
    return y.sub_(y.mean(-1, keepdim=True)).div_(y.abs().amax(-1, keepdim=True) + 1)


PROGRAMS = {
    "log softmax": lambda x: x.log_softmax(-1),
    "softmax, a row kept": lambda x: x.softmax(-1),
    "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "cross-entropy": _cross_entropy,
    "places": _places,
    "in place": _in_place,
    "truth of rows": lambda x: torch.where((x > 0).all(-1, keepdim=True), x, -x),
}


def _bits(program, x) -> tuple[list[int], np.ndarray]:
    """(the rows of the groups of its kernels, the result's bits)."""
    rows = []
    run = _Writer.run

    def spy(writer):
        rows.append(writer.rows)
        run(writer)

    torch.compiler.reset()
    with config.patch(force_disable_caches=True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Writer, "run", spy)
        made = torch.compile(program)(x)
    return rows, made.numpy().view({8: "i8", 4: "i4", 2: "i2"}[made.element_size()])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("m", "n"), [(1, 40), (3, 40), (8, 40), (33, 70), (70, 1), (257, 128)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_bits(monkeypatch, name, m, n, dtype):
    data = np.random.default_rng(m * n).normal(size=(m, n)).astype(dtype)
    if m > 2 and name != "places":
        data[m // 2, 0], data[m - 1, n - 1], data[0, n // 2] = np.nan, np.inf, -np.inf
        data[1] = -np.inf
    x = torch.from_numpy(data)
    rows, grouped = _bits(PROGRAMS[name], x)
    monkeypatch.setattr(row_groups, "MOST", 1)
    each, apart = _bits(PROGRAMS[name], x)
    assert set(each) <= {1}
    if m > 30 and n > 1:
        assert max(rows) > 1
    np.testing.assert_array_equal(grouped, apart)


@pytest.mark.parametrize("threads", [1, 2])
def test_beside_float64(threads):
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(1029, 100)).astype("f4"))
    target = torch.from_numpy(np.random.default_rng(1).integers(0, 100, 1029))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x.requires_grad_()
        loss = torch.compile(F.cross_entropy)(x, target)
        (grad,) = torch.autograd.grad(loss, x)
    finally:
        torch.set_num_threads(before)
    y = x.detach().double().requires_grad_()
    want = F.cross_entropy(y, target)
    (want_grad,) = torch.autograd.grad(want, y)
    np.testing.assert_allclose(loss.item(), want.item(), rtol=1e-6)
    np.testing.assert_allclose(grad.numpy(), want_grad.numpy(), rtol=2e-5, atol=1e-9)


def test_symbolic_number_of_rows():
    f = torch.compile(lambda x: x.log_softmax(-1), dynamic=True)
    for m in (64, 3, 65, 1000):
        x = torch.from_numpy(np.random.default_rng(m).normal(size=(m, 24)).astype("f4"))
        np.testing.assert_allclose(f(x).numpy(), x.double().log_softmax(-1).numpy(), rtol=2e-6, atol=2e-6)


def test_bad_index_of_a_row():
    x, target = torch.randn(40, 30), torch.zeros(40, dtype=torch.int64)
    f = torch.compile(lambda x, t: x.log_softmax(-1).gather(1, t[:, None]))
    f(x, target)
    target[37] = 30
    with pytest.raises(IndexError):
        f(x, target)


def test_long_rows_from_memory_stay_apart():
    rows, _ = _bits(PROGRAMS["layer norm"], torch.randn(4096, 512))
    assert set(rows) == {1}
