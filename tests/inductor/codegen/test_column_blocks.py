"""Reductions of columns by blocks: whatever the sizes, no bit is another than of columns that are read in strips."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.codegen import column_blocks
from flambeau.inductor.codegen.kernel import _Writer
from flambeau.inductor.settings import config

PROGRAMS = {
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0),
    "extremes": lambda x: (x.amax(0), x.amin(0)),
    "product, part by part": lambda x: (x * 0.5 + 1).prod(0),
    "weighted": lambda x: (x * torch.arange(x.shape[0], dtype=x.dtype)[:, None]).sum(0),
    "by numbers of the rows": lambda x: (x * x.isfinite().sum(1, keepdim=True)).sum(0),
    "any": lambda x: (x > 2).any(0),
    "all": lambda x: (x > -4).all(0),
    "norm": lambda x: x.square().sum(0).sqrt(),
}


def _made(program, x, by_blocks: bool) -> tuple[list[int], list]:
    """(columns of the blocks of its kernels, the results)."""
    blocks = []
    run = _Writer.run

    def spy(writer):
        blocks.append(writer.block)
        run(writer)

    torch.compiler.reset()
    with config.patch(force_disable_caches=True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Writer, "run", spy)
        if not by_blocks:
            patch.setattr(column_blocks, "LARGE", 1 << 60)
        made = torch.compile(program)(x)
    return blocks, [t.numpy() for t in (made if isinstance(made, tuple) else (made,))]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("m", "n"), [(300, 1024), (257, 1100), (129, 1300), (513, 515), (20, 8200)])
def test_bits(name, m, n):
    data = np.random.default_rng(m + n).normal(size=(m, n)).astype("f4")
    data[m // 2, 3], data[1, n - 1], data[2, n - 1], data[m - 1, 0] = np.nan, np.inf, -np.inf, -0.0
    x = torch.from_numpy(data)
    blocks, ours = _made(PROGRAMS[name], x, True)
    apart, want = _made(PROGRAMS[name], x, False)
    assert max(blocks) > 0 and set(apart) == {0}
    for a, b in zip(ours, want, strict=True):
        np.testing.assert_array_equal(a.view("u1"), b.view("u1"))


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16", "int32", "int64", "int8"])
def test_dtypes(dtype):
    data = np.random.default_rng(0).integers(-50, 50, size=(601, 1100))
    x = torch.from_numpy(data).to(getattr(torch, dtype))
    blocks, (ours,) = _made(lambda x: x.sum(0), x, True)
    _, (want,) = _made(lambda x: x.sum(0), x, False)
    assert max(blocks) > 0
    np.testing.assert_array_equal(ours, want)
    if dtype != "bfloat16":
        np.testing.assert_allclose(ours.astype("f8"), data.sum(0), rtol=1e-3)


@pytest.mark.parametrize("shape", [(0, 1024), (1, 1024), (15, 8192), (4096, 8), (4096, 31)])
def test_few_rows_or_columns(shape):
    x = torch.from_numpy(np.random.default_rng(0).normal(size=shape).astype("f4"))
    got = torch.compile(lambda x: x.sum(0))(x)
    np.testing.assert_allclose(got.numpy(), x.numpy().astype("f8").sum(0), rtol=1e-5, atol=2e-4)


def test_middle_dimension_and_threads():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 333, 1030)).astype("f4"))
    before, made = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            made.append(torch.compile(lambda x: x.sum(1))(x))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*made)
    np.testing.assert_allclose(made[0].numpy(), x.numpy().astype("f8").sum(1), rtol=1e-5, atol=1e-4)
