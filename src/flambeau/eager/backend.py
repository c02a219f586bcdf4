"""The backend key: find the kernel of an operator, or compute only shapes when an argument has no data."""

from __future__ import annotations

import importlib
import itertools
import math

import numpy as np

from .. import _C
from ..base import accelerator
from ..base.device import Device
from ..base.errors import DataDependentOutputException, MissingFacet
from ..base.shapes import same_shape
from ..core import keys as K
from ..core import quantized
from ..core.definition import TensorMeta
from ..core.dispatch import excluding, install
from ..core.layouts import in_order
from ..core.operator import FACETS, OpOverload, namespace
from ..core.out_rules import check_dtype, check_inplace, computed_as
from ..core.promotion import DIFFERENT_DEVICES, OTHER_DEVICE
from ..core.tensor import meta_tensor, strided
from . import lazy, sparse, through_host

RULES: dict[str, object] = {}  # kind -> build(op) -> kernel on tensors

_ABOVE = K.PYTHON | K.FUNCTIONALIZE | K.AUTOGRAD | K.TRANSFORM


PRODUCTS = {"mk,kn->mn", "bmk,bkn->bmn"}  # contractions that are made by BLAS whatever their size
LARGE = 1 << 16  # elements from which an operator may run a compiled kernel
STREAMED = (
    1 << 25
)  # bytes of operands from which one does that NumPy copies for as fast: its stores go past the cache then
# (op, all arguments, now[, exact]) -> (graph, whether it has several results), or None to run NumPy; installed from above (the compiler is a higher
# level). A description that is met for the first time is only noted, unless ``now`` is True; None: it isn't even noted.
accelerate = None
loaded = False  # whether the compiler is there; else asking imports it


def set_accelerator(fn, there: bool = True) -> None:
    """``fn(op, args, now)`` is asked before NumPy runs a pointwise operator, a reduction, a contraction or an explicit composite on many elements."""
    global accelerate, loaded
    accelerate, loaded = fn, there
    _C.forget_call_plans()  # some are kernels that the accelerator gave


def may_accelerate(op: OpOverload) -> bool:
    """Whether the accelerator is asked for kernels of ``op``."""
    d = op.definition
    if "streamed" in op.overrides:
        return True
    if "eager" in op.overrides or "copies" in op.tags:  # NumPy copies as fast, and its descriptions are many
        return False
    if op.kind == "contraction":
        return d.letters not in PRODUCTS
    return op.kind in ("pointwise", "reduction", "index") or (
        op.kind == "composite" and not d.implicit and d.eager is None
    )


def compiled(op: OpOverload, args, now):
    """What the accelerator has for this call: (graph, several results), or None. Asked when the first tensor, or what it spreads to, is large."""
    if accelerate is None or not may_accelerate(op):
        return None
    if "streamed" in op.overrides:
        return accelerate(op, args, now) if op.overrides["streamed"](*args) >= STREAMED else None
    at = next((i for i, a in enumerate(op._schema.arguments) if a.is_tensor and not a.is_list), None)
    first = None if at is None else args[at]
    if not isinstance(first, _C.TensorBase) or first._array is None:
        return None
    if first._array.size < LARGE and (op.kind != "pointwise" or _spread(args) < LARGE):
        return None
    return accelerate(op, args, now)


def _spread(args) -> int:
    """Elements of what the shapes of the tensors broadcast to, 0 where one has none."""
    shapes = [x._shape for x in tensors_of(args)]
    if any(0 in shape for shape in shapes):
        return 0
    return math.prod(map(max, itertools.zip_longest(*(reversed(s) for s in shapes), fillvalue=1)))


def tensors_of(args):
    for x in args:
        if isinstance(x, _C.TensorBase):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from (y for y in x if isinstance(y, _C.TensorBase))


def accelerated(impl, op: OpOverload):
    """``impl``, asking the accelerator first when the first tensor is large."""

    def run(*args):
        found = compiled(op, args, False)
        if found is None:
            return impl(*args)
        graph, many = found
        try:
            results = graph(*tensors_of(args))
        except IndexError:
            return impl(*args)  # raises it in the operator's own words
        return tuple(results) if many else results[0]

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
    if may_accelerate(op):
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
    """An operator of the CPU's asked for a result on another device."""
    if device.type == "meta":
        return wrap_meta(op.facet("meta")(*values))
    if device.type == "cuda" and accelerator.driver() is not None:
        return through_host.made_on(op, device, values)
    raise AssertionError(
        f"Torch not compiled with {device.type.upper()} enabled: device '{device}' has no kernels here; use 'cpu' or 'meta'"
    )


def backend(op: OpOverload, keys: int, args: tuple, kwargs: dict):
    """Run the kernel; on arguments without data only shapes."""
    if keys & K.NO_DATA:
        if lazy.among(args, kwargs):
            return lazy.run(op, args, kwargs)
        found = sparse.among(args, kwargs)
        if found:
            through_host.refuse("sparse", (*args, *kwargs.values()))
            return sparse.run(op, args, kwargs, found)
        if quantized.among(args, kwargs):
            through_host.refuse("quantized", (*args, *kwargs.values()))
            return importlib.import_module("flambeau.eager.quantized").run(op, args, kwargs)
        if through_host.among((*args, *kwargs.values())) and not _wants_meta(args, kwargs):
            return through_host.run(op, args, kwargs)
        return _on_meta(op, args, kwargs)
    if op.kernel is None:
        op.set_kernel(*kernel_of(op))
    return op.run(*args, **kwargs)


def _check_writes_on_meta(op: OpOverload, args, kwargs, written) -> None:
    """What an in-place or out= form on the meta device asks of shapes, dtypes and devices."""
    functional = op.definition.functional
    if op.kind == "out":
        given = [x for v in (*args, *kwargs.values()) for x in (v if isinstance(v, (list, tuple)) else (v,))]
        tensors = [x for x in given if isinstance(x, _C.TensorBase)]
        if any(t._has_data and (t._ndim or len(tensors) == 1) for t in tensors):
            raise RuntimeError(OTHER_DEVICE.format("cpu", "meta"))
        if any(isinstance(x, Device) and x.type != "meta" for x in given):
            raise RuntimeError("device type cpu does not match device type of out parameter (meta)")
    if op.kind == "out" and functional._schema.arguments:
        args, kwargs = computed_as(functional, functional.full(*args, **kwargs), written[0]._dtype), {}
        metas = functional.facet("meta")(*args)
    else:
        metas = functional.meta(*args, **kwargs)
    for t, made in zip(written, metas if isinstance(metas, (list, tuple)) else [metas]):
        if not isinstance(t, _C.TensorBase) or made is None:
            continue
        if op.kind == "inplace":
            check_inplace(op, t._dtype, made.dtype)
            continue
        check_dtype(functional, t._dtype, made.dtype, len(written) > 1)
        if not same_shape(made.shape, t._shape):
            t.resize_(tuple(made.shape))


def _on_meta(op: OpOverload, args, kwargs):
    device = next((x for x in (*args, *kwargs.values()) if isinstance(x, Device)), None)
    if device is not None and device.type != "meta" and any(map(_is_meta, args)):
        # No formulas at all: the operator reads no element.
        if op.kind not in ("factory", "random") and op.vjp_formulas != {}:
            raise NotImplementedError(_NO_DATA)
        # What is made like another tensor looks at its shape, strides and dtype only: memory of the same kind stands for it.
        return op(*(_memory_like(x) if _is_meta(x) else x for x in args), **kwargs)
    if op.kind in ("inplace", "out"):
        outs = {a.name for a in op._schema.arguments if a.is_out}
        written = [v for k, v in kwargs.items() if k in outs] or args[:1]
        if any(isinstance(t, _C.TensorBase) and t._has_data for t in written):
            if op.kind == "out":
                raise RuntimeError(DIFFERENT_DEVICES.format("cpu", "meta"))
            raise NotImplementedError(_NO_DATA)
        _check_writes_on_meta(op, args, {k: v for k, v in kwargs.items() if k not in outs}, written)
        return args[0] if op.kind == "inplace" else written[0] if len(written) == 1 else tuple(written)
    try:
        return wrap_meta(op.meta(*args, **kwargs))
    except MissingFacet:
        raise NotImplementedError(
            f"{op}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered"
        ) from None


def _wants_meta(args, kwargs) -> bool:
    """Whether a result on the meta device is asked for."""
    return any(isinstance(x, Device) and x.type == "meta" for x in (*args, *kwargs.values()))


_NO_DATA = "Cannot copy out of meta tensor; no data!"


def _is_meta(x) -> bool:
    return isinstance(x, _C.TensorBase) and x._device.type == "meta"


def _memory_like(t):
    return namespace("aten").empty_strided.default(t._shape, t._strides, dtype=t._dtype)


def wrap_meta(metas):
    if isinstance(metas, TensorMeta):
        return meta_tensor(metas)
    if isinstance(metas, (tuple, list)):
        return type(metas)(wrap_meta(m) for m in metas)
    return metas


@rule("composite")
def composite(op: OpOverload):
    """The given kernel on arrays, else the Python body with everything above the backend off. An override "arrays" makes, of arrays, what the
    override "keep_fused" keeps fused; None: the body does."""
    d = op.definition
    if d.eager is not None:
        return extern_kernel(op, d.eager)
    fn = d.fn
    if d.implicit:
        return fn
    keep_fused, kernel = op.overrides.get("keep_fused"), op.overrides.get("arrays")
    if "rows" in op.overrides:
        return _by_rows(op)

    def run(*args):
        if kernel is not None and keep_fused(*args):
            made = kernel(*(x._array if isinstance(x, _C.TensorBase) else x for x in args))
            if made is not None:
                return _C.computed(made)
        with excluding(_ABOVE):
            return _own(fn(*args))

    return run


def _by_rows(op: OpOverload):
    """The kernel that the override "rows" names, the body where it names none, which also words the errors."""
    # When the first such operator is called: `import flambeau` stays small.
    from . import rows

    fn = op.definition.fn

    def run(*args):
        try:
            made = rows.rows_of_arrays(op, [x._array if isinstance(x, _C.TensorBase) else x for x in args])
        except rows.REFUSED:
            with excluding(_ABOVE):
                return _own(fn(*args))
        return tuple(map(_C.computed, made)) if isinstance(made, tuple) else _C.computed(made)

    return run


def _own(result):
    """NOTE: the view operators of a body leave their relation on what they return; above, the operator's result is a tensor of its own, and a
    write to it must not look for the history of a tensor that nobody has."""
    for t in result if isinstance(result, (tuple, list)) else (result,):
        _C.forget_view(t)
    return result


@rule("extern")
def extern(op: OpOverload):
    return extern_kernel(op, op.definition.eager)


IN_ORDER = "results_in_order"  # tag of an operator with several results, all of which its eager kernel makes in C order


def extern_kernel(op: OpOverload, fn):
    """A kernel on tensors from one on ndarrays."""
    rule = op.definition.meta
    ordered = IN_ORDER in op.tags
    from_array, computed = _C.from_array, _C.computed

    def unwrap(x):
        if isinstance(x, _C.TensorBase):
            return x._array
        if isinstance(x, (list, tuple)) and any(isinstance(y, _C.TensorBase) for y in x):
            return [unwrap(y) for y in x]
        return x

    def wrap(x, meta):
        if isinstance(x, (tuple, list)):
            return type(x)(wrap(y, None if meta is None else meta[k]) for k, y in enumerate(x))
        if not _is_array(x):
            return x
        return computed(x) if meta is None else from_array(in_order(x, meta.strides))

    def run(*args):
        found = fn(*map(unwrap, args))
        if ordered or (
            found.__class__ is tuple and not any([x.__class__ is not np.ndarray or _by_chance(x) for x in found])
        ):
            return tuple([computed(x) for x in found])
        # NOTE: strides of dimensions of size 1, and of empty arrays, are NumPy's by chance: the shape rule has PyTorch's.
        if not (_by_chance(found) if not isinstance(found, (tuple, list)) else any(map(_by_chance, found))):
            return wrap(found, None)
        try:
            meta = None if rule is None else rule(*args)
        except (DataDependentOutputException, MissingFacet):
            meta = None
        return wrap(found, meta)

    return run


def _is_array(x) -> bool:
    return hasattr(x, "dtype") and hasattr(x, "shape")


def _by_chance(x) -> bool:
    if x.__class__ is np.ndarray and x.ndim == 1:
        return x.size < 2 and x.strides[0] != x.itemsize  # else it is as PyTorch's
    return _is_array(x) and (1 in x.shape or 0 in x.shape)


install(K.BACKEND, backend)
