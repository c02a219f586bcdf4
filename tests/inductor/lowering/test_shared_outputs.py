"""Results of a compiled step that share memory in eager share it: a dense part of a small tensor was computed apart, and a write to it was lost."""

import pytest

import flambeau as torch

CASES = {
    "a narrow part": lambda z: (z, z[:, 2:5]),
    "the first row": lambda z: (z, z[:1], z[0]),
    "rows that lie one after the other": lambda z: (z[:1], z[1:2], z[-1]),
    "all of it again": lambda z: (z, z.view(-1, 8), z[:]),
    "a view of a view": lambda z: (z, z.view(-1, 4, 2), z.view(-1, 4, 2)[:1, :2]),
}


@pytest.mark.parametrize("dynamic", [False, None, True], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_results_share_memory(name, dynamic):
    layer, parts = torch.nn.Linear(8, 8), CASES[name]

    def step(x):
        made = parts(layer(x))
        sum((t * t).mean() for t in made).backward()
        return made

    torch.compiler.reset()
    run = torch.compile(step, dynamic=dynamic)
    for n in (1, 3, 2, 1):
        x = torch.randn(n, 8)
        if n == 1 and "after" in name:
            continue
        got, want = run(x), step(x)
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b)
            assert a.storage_offset() == b.storage_offset()
            assert a.untyped_storage().data_ptr() == got[0].untyped_storage().data_ptr()
        with torch.no_grad():
            got[-1].fill_(7.0), want[-1].fill_(7.0)
        torch.testing.assert_close(got[0], want[0])
