"""The backend key: find the kernel of an operator, or compute only shapes when an argument has no data."""

from __future__ import annotations

from .. import _C
from ..base.errors import MissingFacet
from ..core import keys as K
from ..core.definition import TensorMeta
from ..core.dispatch import excluding, install
from ..core.operator import FACETS, OpOverload
from ..core.tensor import meta_tensor, strided
from . import sparse

RULES: dict[str, object] = {}  # kind -> build(op) -> kernel on tensors

_ABOVE = K.PYTHON | K.FUNCTIONALIZE | K.AUTOGRAD | K.TRANSFORM


LARGE = 1 << 16  # elements from which an operator may run a compiled kernel
accelerate = (
    None  # (op, all arguments) -> result, or None to run NumPy; installed from above (the compiler is a higher level)
)


def set_accelerator(fn) -> None:
    """``fn(op, args)`` is asked before NumPy runs a pointwise operator, a reduction, a contraction or an explicit composite on many elements."""
    global accelerate
    accelerate = fn


def accelerated(impl, op: OpOverload):
    """``impl``, asking the accelerator first when the first tensor is large."""
    at = next((i for i, a in enumerate(op._schema.arguments) if a.is_tensor and not a.is_list), None)
    if at is None:
        return impl

    def run(*args):
        first = args[at]
        if (
            accelerate is not None
            and isinstance(first, _C.TensorBase)
            and first._array is not None
            and first._array.size >= LARGE
        ):
            _C.use_allocator()  # a new thread or context starts with NumPy's own
            out = accelerate(op, args)
            if out is not None:
                return out
        return impl(*args)

    return run


def rule(kind: str):
    """Install the eager rule of a kind."""

    def wrap(build):
        RULES[kind] = build
        return build

    return wrap


def _build(op: OpOverload):
    build = RULES.get(op.kind)
    return None if build is None else build(op)


FACETS["eager"] = _build


def kernel_of(op: OpOverload):
    """The eager facet behind the operator's own signature, and as a function of all arguments in schema order."""
    impl = op.facet("eager")
    if "eager" not in op.overrides and (
        op.kind in ("pointwise", "reduction", "index")
        or (op.kind == "composite" and not op.definition.implicit and op.definition.eager is None)
    ):
        impl = accelerated(impl, op)
    at = next((i for i, a in enumerate(op._schema.arguments) if a.type == "Device"), None)
    if at is not None:
        # NOTE: native code calls a kernel without looking at its arguments, so a device asked for must be looked at here.
        here = impl

        def impl(*values):
            device = values[at]
            return here(*values) if device is None or device.type == "cpu" else _elsewhere(op, device, values)

    asked = next((i for i, a in enumerate(op._schema.arguments) if a.type == "Layout"), None)
    if asked is not None:
        dense = impl

        def impl(*values):
            layout = values[asked]
            return dense(*values) if layout is None or layout is strided else sparse.in_layout(op, values)

    return op.behind_signature(impl), impl


def _elsewhere(op: OpOverload, device, values):
    """An operator asked for a result on another device: only meta is one."""
    if device.type == "meta":
        return wrap_meta(op.facet("meta")(*values))
    raise AssertionError(
        f"Torch not compiled with {device.type.upper()} enabled: device '{device}' has no kernels here; use 'cpu' or 'meta'"
    )


def backend(op: OpOverload, keys: int, args: tuple, kwargs: dict):
    """Run the kernel; on arguments without data only shapes."""
    if keys & K.NO_DATA:
        found = sparse.among(args, kwargs)
        return sparse.run(op, args, kwargs, found) if found else _on_meta(op, args, kwargs)
    if op.kernel is None:
        op.set_kernel(*kernel_of(op))
    return op.run(*args, **kwargs)


def _on_meta(op: OpOverload, args, kwargs):
    if op.kind in ("inplace", "out"):
        outs = {a.name for a in op._schema.arguments if a.is_out}
        op.definition.functional.meta(
            *args, **{k: v for k, v in kwargs.items() if k not in outs}
        )  # raises what a shape mismatch raises
        return kwargs["out"] if "out" in kwargs else args[0]
    try:
        return wrap_meta(op.meta(*args, **kwargs))
    except MissingFacet:
        raise NotImplementedError(
            f"{op}: attempted to run this operator with Meta tensors, but there was no meta rule for this operator"
        ) from None


def wrap_meta(metas):
    if isinstance(metas, TensorMeta):
        return meta_tensor(metas)
    if isinstance(metas, (tuple, list)):
        return type(metas)(wrap_meta(m) for m in metas)
    return metas


@rule("composite")
def composite(op: OpOverload):
    """The given kernel on arrays, else the Python body with everything above the backend off."""
    d = op.definition
    if d.eager is not None:
        return extern_kernel(op, d.eager)
    fn = d.fn
    if d.implicit:
        return fn

    def run(*args):
        with excluding(_ABOVE):
            return _own(fn(*args))

    return run


def _own(result):
    """NOTE: the view operators of a body leave their relation on what they return; above, the operator's result is a tensor of its own, and a
    write to it must not look for the history of a tensor that nobody has."""
    for t in result if isinstance(result, (tuple, list)) else (result,):
        _C.forget_view(t)
    return result


@rule("extern")
def extern(op: OpOverload):
    kernel = extern_kernel(op, op.definition.eager)
    if "shapes_first" not in op.tags:
        return kernel
    check = op.facet("meta")  # words the errors about shapes and dtypes

    def checked(*args):
        check(*args)
        return kernel(*args)

    return checked


def extern_kernel(op: OpOverload, fn):
    """A kernel on tensors from one on ndarrays."""
    from_array = _C.from_array

    def unwrap(x):
        if isinstance(x, _C.TensorBase):
            return x._array
        if isinstance(x, (list, tuple)) and any(isinstance(y, _C.TensorBase) for y in x):
            return [unwrap(y) for y in x]
        return x

    def wrap(x):
        if isinstance(x, (tuple, list)):
            return type(x)(wrap(y) for y in x)
        return from_array(x) if hasattr(x, "dtype") and hasattr(x, "shape") else x

    return lambda *args: wrap(fn(*map(unwrap, args)))


install(K.BACKEND, backend)
