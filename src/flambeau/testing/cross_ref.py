"""CrossRefFakeMode: every call is also run on fake tensors, and what it really returned must look like that."""

from __future__ import annotations

from .. import _C
from ..base.errors import DataDependentOutputException
from ..base.pytree import tree_flatten, tree_map
from ..core.modes import TorchDispatchMode
from ..fake import FakeTensorMode

__all__ = ["CrossRefFakeMode", "MetadataMismatchError", "compare_metadata"]


class MetadataMismatchError(AssertionError):
    """The fake result differs from the real one."""


def compare_metadata(real, fake, context: str, *, check_strides: bool = True) -> None:
    """MetadataMismatchError naming what differs in shape, dtype, device, strides, offset."""
    if (fake is None) != (real is None) or isinstance(fake, _C.TensorBase) != isinstance(real, _C.TensorBase):
        raise MetadataMismatchError(f"{context}: real is {type(real).__name__}, fake is {type(fake).__name__}")
    if not isinstance(real, _C.TensorBase):
        return
    checks = [
        ("shape", tuple(real._shape), tuple(fake._shape)),
        ("dtype", real._dtype, fake._dtype),
        ("device", real._device, fake._device),
    ]
    if check_strides and real._shape.numel():
        # Strides of dimensions of size 1 mean nothing.
        want, got = ([s for s, n in zip(t._strides, t._shape) if n != 1] for t in (real, fake))
        checks += [("strides", want, got), ("storage offset", real._offset, fake._offset)]
    for what, a, b in checks:
        if a != b:
            raise MetadataMismatchError(f"{context}: {what} of the real result is {a}, of the fake one {b}")


class CrossRefFakeMode(TorchDispatchMode):
    """While on, compares. ``ignore_op_fn(op)`` true: not compared. ``check_strides``, ``check_aliasing``: whether those take part.

    ``ops`` lists what was compared. Operators whose result depends on values are passed over.
    """

    def __init__(self, ignore_op_fn=None, *, check_strides=True, check_aliasing=True, only_check_ops_with_meta=True):
        super().__init__()
        self.ignore_op_fn = ignore_op_fn or (lambda op: False)
        self.check_strides, self.check_aliasing = check_strides, check_aliasing
        self.only_check_ops_with_meta = only_check_ops_with_meta
        self.ops: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        fakes = self._fake(func, args, kwargs)
        real = func(*args, **kwargs)
        if fakes is None:
            return real
        flat_real, flat_fake = tree_flatten(real)[0], tree_flatten(fakes[0])[0]
        if len(flat_real) != len(flat_fake):
            raise MetadataMismatchError(f"{func}: {len(flat_real)} real results, {len(flat_fake)} fake ones")
        for k, (r, f) in enumerate(zip(flat_real, flat_fake)):
            compare_metadata(r, f, f"{func}, output {k}", check_strides=self.check_strides)
        if self.check_aliasing:
            # Fakes are made as the schema says: what it keeps silent about is SchemaCheckMode's to find.
            declared = _declared(func)
            want = _aliases(func, args, kwargs, real) & declared
            got = _aliases(func, *fakes[1], fakes[0]) & declared
            if want != got:
                raise MetadataMismatchError(
                    f"{func}: (output, argument) pairs that share memory are {sorted(want)} really, {sorted(got)} on fakes"
                )
        self.ops.append(func.name())
        return real

    def _fake(self, func, args, kwargs):
        if (
            self.ignore_op_fn(func)
            or "nondeterministic_bitwise" in func.tags
            or (self.only_check_ops_with_meta and not _has_meta(func))
        ):
            return None
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        convert = lambda x: mode.from_tensor(x) if isinstance(x, _C.TensorBase) else x  # noqa: E731
        inputs = tree_map(convert, list(args)), tree_map(convert, kwargs)
        try:
            with mode:
                return func(*inputs[0], **inputs[1]), inputs
        except DataDependentOutputException:
            return None


def _has_meta(func) -> bool:
    return func.kind in ("inplace", "out") or func.has_facet("meta")


def _declared(func) -> set:
    """(result, argument) pairs that share memory by the schema."""
    return {
        (k, j)
        for k, r in enumerate(func._schema.returns)
        for j, a in enumerate(func._schema.arguments)
        if r.alias_info is not None and a.alias_info is not None and r.alias_info.before_set & a.alias_info.before_set
    }


def _aliases(func, args, kwargs, result) -> set:
    """(result, argument) pairs that share memory."""
    results = [result] if len(func._schema.returns) == 1 else result or ()
    return {
        (k, j)
        for k, r in enumerate(results)
        for j, a in enumerate(func.full(*args, **kwargs))
        if any(o._storage is i._storage for o in _tensors(r) for i in _tensors(a))
    }


def _tensors(x) -> list:
    return [t for t in tree_flatten(x)[0] if isinstance(t, _C.TensorBase)]
