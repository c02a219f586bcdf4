"""PyTorch's own database of operators whose arguments are functions, beside PyTorch: results, gradients and errors, called and compiled.

The file is PyTorch's, read from its wheel and run a second time with flambeau for torch; values of its samples are PyTorch's."""

import types

import numpy as np
import pytest

import flambeau

from .pytorch_files import run_again

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]  # PyTorch's, of its own code
torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.testing._internal.hop_db")

ours = run_again("hop_db")
PAIRS = list(zip(theirs.hop_db, ours.hop_db, strict=True))
NAMES = [f"{e.name}-{e.variant_test_name}" for e, _ in PAIRS]


def tensors(tree):
    if isinstance(tree, torch.Tensor | flambeau.Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ()
    return [t for part in parts for t in tensors(part)]


def samples(entry, ours, grad):
    """The arguments of both, with PyTorch's values."""
    torch.manual_seed(0)
    one = next(iter(entry.sample_inputs_func(entry, "cpu", torch.float32, grad)))
    two = next(iter(ours.sample_inputs_func(ours, "cpu", flambeau.float32, grad)))
    args = (one.input, *one.args), (two.input, *two.args)
    kind = [[t for t in tensors(a) if t.dtype.is_floating_point] for a in args]
    with flambeau.no_grad():
        for a, b in zip(*kind, strict=True):
            b.copy_(flambeau.from_numpy(a.detach().numpy().copy()))
    return args, kind


def outcome(lib, entry, args, leaves):
    """Results and gradients, or the exception."""
    try:
        results = tensors(entry.op(*args))
    except Exception as error:
        return error
    total = [r.sum() for r in results if r.requires_grad]
    wanted = [x for x in leaves if x.requires_grad]
    gradients = lib.autograd.grad(sum(total), wanted, allow_unused=True) if total and wanted else ()
    return [None if t is None else t.detach().numpy() for t in (*results, *gradients)]


# Both libraries refuse to capture symbolic_trace, with which this entry makes its function.
EAGER_ONLY = {"local_map_hop"}


@pytest.mark.parametrize("backend", [None, "eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("pair", PAIRS, ids=NAMES)
def test_entry(pair, backend):
    entry, own = pair
    if entry.name in EAGER_ONLY and backend is not None:
        for lib, e in ((torch, entry), (flambeau, own)):
            with pytest.raises(
                Exception, match=r"^(Unexpected type|getattr TorchVariable|Unsupported|reading \w+ of Proxy)"
            ):
                args = samples(entry, own, False)[0][lib is flambeau]
                lib.compile(e.op, backend="eager", fullgraph=True)(*args)
        return
    # PyTorch's flex_attention has no backward on the CPU.
    grad = entry.supports_autograd and entry.name != "flex_attention"
    args, leaves = samples(entry, own, grad)
    want = outcome(torch, entry, args[0], leaves[0])
    if backend is not None:
        flambeau.compiler.reset()
        compiled = flambeau.compile(own.op, backend=backend, fullgraph=not isinstance(want, Exception))
        own = types.SimpleNamespace(op=compiled)
    found = outcome(flambeau, own, args[1], leaves[1])
    if isinstance(want, Exception):
        assert type(found) is type(want) and str(want) in str(found), (want, found)
        return
    assert not isinstance(found, Exception), found
    for a, b in zip(want, found, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(b, a, 1e-4, 1e-5)
