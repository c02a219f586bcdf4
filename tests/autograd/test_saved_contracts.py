"""What is saved for backward is part of an operator's contract: after the call each argument and each result is written in turn. A gradient that comes
is the one from before the write; and where PyTorch gives one, so do we."""

import numpy as np
import pytest

import flambeau
from flambeau.testing.checks import flat
from flambeau.testing.peers import arguments_for
from flambeau.testing.samples import load, operator, to_tensors

try:
    import torch
except ImportError:
    torch = None

# PyTorch saves less here, or something that isn't written, at the price that the reason names.
SAVES_MORE = {
    "scaled_dot_product_attention": "query and key themselves, PyTorch a scaled copy of each",
    "kron": "both arguments, PyTorch copies of them",
}


def rows():
    for name, row in load().items():
        try:
            op = operator(name)
        except AttributeError:
            continue
        if row.grad != () and row.values and row.calls and not op._schema.is_mutable:
            yield pytest.param(row, id=name)


def as_torch(x):
    """Arguments for PyTorch: arrays become tensors, flambeau's dtypes become PyTorch's."""
    return arguments_for(torch, lambda a: torch.as_tensor(a.copy()), x)


def tensors(module, args):
    return [a for x in args for a in (x if isinstance(x, (list, tuple)) else [x]) if isinstance(a, module.Tensor)]


class Call:
    """One call, and what can be written after it. ``asking``: positions of the arguments that ask for a gradient, None for all."""

    def __init__(self, module, op, convert, sample, asking):
        self.module = module
        args = convert(list(sample.args))
        given = tensors(module, args)
        asked = args if asking is None else [args[i] for i in asking]
        self.leaves = [a for a in tensors(module, asked) if a.is_floating_point() and a.numel()]
        for a in self.leaves:
            a.requires_grad_()
        results = [o for o in flat(op(*args, **convert(dict(sample.kwargs)))) if isinstance(o, module.Tensor)]
        self.outs = [o for o in results if o.requires_grad]
        own = [t for t in results if not any(t is a for a in given)]
        self.targets = [*given, *own]

    def write(self, k) -> bool:
        t = self.targets[k]
        with self.module.no_grad():
            if not t.numel() or not (t.is_floating_point() or t.dtype is self.module.int64):
                return False
            t.zero_()
        return True

    def gradients(self):
        m = self.module
        cts = [m.full_like(o, 0.5).detach() for o in self.outs]
        found = m.autograd.grad(self.outs, self.leaves, cts, allow_unused=True)
        return [None if g is None else g.detach().numpy().copy() for g in found]


def outcome(module, op, convert, sample, asking, k):
    """("error" or None, gradients), or None when there is nothing to write or to differentiate."""
    call = Call(module, op, convert, sample, asking)
    if not call.outs or not call.write(k):
        return None
    try:
        return None, call.gradients()
    except RuntimeError as e:
        return ("error" if "modified by an inplace" in str(e) else "other"), None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", list(rows()))
def test_writes_after_the_call(row):
    theirs = None
    if torch is not None and row.torch is not None:
        base, _, overload = (row.torch or row.name).partition(".")
        theirs = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
    sample = row.calls[0]
    first = Call(flambeau, row.op, to_tensors, sample, row.grad)
    try:
        want = first.gradients() if first.outs else None
    except NotImplementedError:  # there is no derivative by one of them
        want = None
    if want is None:
        return
    for k in range(len(first.targets)):
        got = outcome(flambeau, row.op, to_tensors, sample, row.grad, k)
        if got is None:
            continue
        what = f"{row.name}{sample}: after a write to tensor {k}"
        assert got[0] != "other", what
        if got[0] is None:
            for g, w in zip(got[1], want, strict=True):
                assert (g is None) == (w is None), what
                if g is not None:
                    np.testing.assert_allclose(
                        g, w, rtol=1e-9, atol=1e-12, err_msg=f"{what} the gradient is another one"
                    )
        elif theirs is not None and row.name not in SAVES_MORE:
            try:
                them = outcome(torch, theirs, as_torch, sample, row.grad, k)
            except (RuntimeError, NotImplementedError, TypeError, IndexError):
                continue
            assert them is None or them[0] is not None, f"{what} there is an error, which PyTorch hasn't"
