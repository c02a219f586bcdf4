"""Every operator over its samples on the simulated device: values, dtypes, strides and gradients are the CPU's, and results lie on the device.

Values agree to the accuracy that compiled kernels have on the CPU: a device's kernels are these, while small tensors of the CPU are NumPy's work."""

import os
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch
from flambeau.base.device import as_device
from flambeau.core.device_memory import on_device, upload
from flambeau.core.operator import inplace_overload
from flambeau.eager import through_host
from flambeau.testing import checks
from flambeau.testing.samples import load, operator, to_tensors

ROWS = {}
for _name, _row in load().items():
    try:
        operator(_name)
    except AttributeError:
        continue  # samples may be ahead of the operator
    ROWS[_name] = _row


def rows(keep=lambda row: True, always=0):
    """The rows, of which every ``always``-th is tested by default."""
    marks = [() if always and k % always == 0 else pytest.mark.slow for k in range(len(ROWS))]
    kept = [pytest.param(r, id=n, marks=m) for (n, r), m in zip(ROWS.items(), marks) if keep(r)]
    return pytest.mark.parametrize("row", kept)


def tensors(x):
    if isinstance(x, torch.Tensor):
        return [x]
    return [t for y in x for t in tensors(y)] if isinstance(x, (list, tuple)) else []


def placed(array, device):
    """A tensor laid out as the array, gaps included."""
    t = torch.from_numpy(array)
    return upload(t, as_device(device)) if device == "cuda" else t


def run(op, call, device, change=lambda args, kwargs: None):
    """Results of a sample, and its arguments, on a device."""
    args, kwargs = (to_tensors(x, lambda a: placed(a, device)) for x in (call.args, call.kwargs))
    places = [a.name for a in op._schema.arguments if a.type == "Device" and a.name not in kwargs]
    if places:
        kwargs[places[0]] = as_device(device)
    change(args, kwargs)
    torch.manual_seed(7)
    return op(*args, **kwargs), args, kwargs


def same(found, expected, values=True, device="cuda:0", rtol=0.0):
    """Whether two results are equal, or close where kernels compute them; the first of them lies on the device."""
    if isinstance(expected, (list, tuple)):
        assert isinstance(found, (list, tuple)) and len(found) == len(expected)
        for a, b in zip(found, expected):
            same(a, b, values, device, rtol)
    elif isinstance(expected, torch.Tensor):
        assert str(found.device) == device and found.dtype is expected.dtype
        assert found.shape == expected.shape and found.stride() == expected.stride()
        if values:
            a, b = found.cpu().resolve_conj().resolve_neg().numpy(), expected.resolve_conj().resolve_neg().numpy()
            accurate = {np.float32: 1e-5, np.complex64: 1e-5}.get(a.dtype.type, 1e-10)
            checks.assert_close("", a, b, max(rtol, accurate))
    else:
        np.testing.assert_equal(found, expected)


def arguments(given):
    args, kwargs = given
    return tensors([*args, *kwargs.values()])


@rows(always=8)
def test_results(row):
    for call in row.calls:
        expected, *given = run(row.op, call, "cpu")
        found, *moved = run(row.op, call, "cuda")
        same(found, expected, row.values and row.through is None, rtol=row.rtol)
        same(arguments(moved), arguments(given), rtol=row.rtol)
        if row.through is not None and row.values:  # vectors have signs that nothing determines
            of = [row.through(row.op, *args, **kwargs) for args, kwargs in (moved, given)]
            same(*of, rtol=row.rtol)


def gradients(op, call, device, wanted):
    leaves = []

    def ask(args, kwargs):
        given = [*enumerate(args), *kwargs.items()]
        for t in tensors([x for at, x in given if wanted is None or at in wanted]):
            if t.dtype.is_floating_point or t.dtype.is_complex:
                leaves.append(t.requires_grad_())

    out, *_ = run(op, call, device, ask)
    total = [t.abs().sum() for t in tensors(out) if t.requires_grad]
    if not total:
        return None
    return torch.autograd.grad(sum(total), leaves, allow_unused=True)


@rows(lambda r: r.grad != () and r.values, always=40)
def test_gradients(row):
    for call in row.calls:
        if not call.grad or row.through is not None:
            continue
        expected = gradients(row.op, call, "cpu", row.grad)
        found = gradients(row.op, call, "cuda", row.grad)
        if expected is None:
            assert found is None
            continue
        for a, b in zip(found, expected):
            assert (a is None) == (b is None)
            if b is not None:
                same(a, b, rtol=row.rtol)


def writable(form, call, device):
    try:
        return run(form, call, device)
    except (RuntimeError, NotImplementedError) as error:
        return type(error)


@rows(lambda r: r.op.has_inplace and r.values, always=40)
def test_in_place(row):
    form = getattr(getattr(torch.ops.aten, row.op._opname + "_"), inplace_overload(row.op) or "default")
    for call in row.calls:
        expected, found = writable(form, call, "cpu"), writable(form, call, "cuda")
        if isinstance(expected, type):
            assert found is expected
            continue
        same(found[0], expected[0], rtol=row.rtol)
        assert found[0] is found[1][0]
        same(arguments(found[1:]), arguments(expected[1:]), rtol=row.rtol)


@rows(lambda r: r.op.has_out and r.values, always=40)
def test_out(row):
    packet = row.op.overloadpacket
    first = next(o for o in packet._overloads.values() if getattr(o, "has_out", False))
    form = packet._derive("out" if first is row.op else f"{row.op._overloadname}_out")
    names = [a.name for a in form._schema.arguments if a.is_out]
    for call in row.calls:
        made, *_ = run(row.op, call, "cpu")
        if isinstance(made, tuple) and None in made:
            continue

        def ask(device, made=made):
            outs = [torch.empty(0, dtype=t.dtype, device=device) for t in tensors(made)]
            return lambda args, kwargs: kwargs.update(zip(names, outs))

        expected, *_ = run(form, call, "cpu", ask("cpu"))
        found, *_ = run(form, call, "cuda", ask("cuda"))
        same(found, expected, rtol=row.rtol)
        assert all(map(on_device, tensors(found)))


LIST = Path(__file__).with_name("through_host.txt")


@pytest.mark.slow
def test_the_list_of_operators_that_go_through_the_host(monkeypatch):
    """``through_host.txt`` may only shrink. Written anew by ``FLAMBEAU_WRITE=1 pytest -m slow -k through_the_host``."""
    gone: set[str] = set()
    monkeypatch.setattr(through_host, "observers", [lambda op: gone.add(str(op))])
    for row in ROWS.values():
        for call in row.calls:
            run(row.op, call, "cuda")
    if os.environ.get("FLAMBEAU_WRITE"):
        LIST.write_text("".join(f"{name}\n" for name in sorted(gone)))
    assert sorted(gone) == LIST.read_text().split()
