"""CallPlans: what native code does in place of a kernel, worked out from the operator's definition, one rule a kind.

``make_plan(op, values)`` is asked by csrc/core/call_plan.c for a call's description that came up again; the answer holds for all calls of that
description. None: the call stays with the kernel, which also words all errors.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _C
from ..base import blas, dtypes, products
from ..base.device import CPU
from ..base.shapes import normalize_dims
from ..core import keys as K
from ..core import modes
from ..core.body import TABLE, Expr, Input, topological, trace
from ..core.contractions import check, keeps_zeros
from ..core.dispatch import excluding
from ..core.layouts import in_order, made_strides, pointwise_strides, takes_format
from ..core.modes import TorchDispatchMode
from ..core.native_facts import PLANNED_KINDS, known_by_type
from ..core.operator import OpOverload, namespace
from ..core.out_rules import computed_as, wants_exact
from ..core.promotion import check_scalars, compute_dtype, operand_indices, result_dtype
from ..core.reductions import arguments
from ..core.tensor import Tensor
from ..core.viewmap import Strided
from . import backend
from .backend import PRODUCTS, compiled, kernel_of
from .contraction import SMALL, of_one_term
from .pointwise import _WIDE
from .program import LARGE, REFUSED, WRITTEN, NotPlanned, PlanValue, Program, bytes_of, narrow, value_meta
from .reduction import LONG

RULES = {}  # kind -> rule(program, op, values, out or None) -> PlanValue (or a list of them)


def rule(kind: str):
    def wrap(fn):
        RULES[kind] = fn
        PLANNED_KINDS.add(kind)
        return fn

    return wrap


def make_plan(op: OpOverload, values: tuple):
    """A CallPlan for calls of ``op`` like this one, or None."""
    try:
        if op.kind == "view":
            return _views(op, values)
        if "reinterprets" in op.overrides:
            return _reinterpreted(op, values[0])
        found = _whole(op, values)
        if found is not None:
            return found
        base = op.definition.functional if op.kind in ("inplace", "out") else op
        p = Program(WRITTEN if base is not op and base.kind == "pointwise" else LARGE)
        bound = [_bind(p, x) for x in values]
        target = None
        if op.kind == "inplace":
            target = bound[0]
        elif op.kind == "out":
            outs = [v for a, v in zip(op._schema.arguments, bound) if a.is_out]
            if len(outs) != 1 or not isinstance(outs[0], PlanValue):
                return None
            kind = next(v._dtype for a, v in zip(op._schema.arguments, values) if a.is_out)
            target, bound = outs[0], computed_as(base, bound[: len(base._schema.arguments)], kind)
        if target is not None and not _writable(values, target):
            return None
        if target is None:
            out = _made(p, base, bound, "result")
            if isinstance(out, _C.CallPlan):
                return out
            several = isinstance(out, list)
            if several and p.results:
                return None
            for x in out if several else [out]:
                if x is None:
                    p.absent()
                else:
                    _settle(p, x)
            if len(p.results) != (len(out) if several else 1):
                return None
        else:
            if base.kind == "pointwise":
                out = _made(p, base, bound, target)
            else:
                out = _made(p, base, bound, None)
            if not isinstance(out, PlanValue) or out.shape != target.shape:
                return None
            if _category(out.dtype) > _category(target.dtype) or (wants_exact(op) and out.dtype != target.dtype):
                return None
            if out.slot != target.slot:
                p.copy(out, target)
        return p.call_plan(target=target, outside=op.kind == "out" and "outside" in base.out_rules)
    except REFUSED:
        return None


def _made(p: Program, op: OpOverload, values, out):
    """What ``op`` of values is: by the rule of its native kernel, where there is one, else by the rule of its kind."""
    if "lower" in op.overrides:
        from . import native_kernels  # when the first such call is recorded: `import flambeau` stays small

        found = p.attempt(lambda: native_kernels.by_override(p, op, values, _made))
        if found is not None:
            return found
    if "rows" in op.overrides:
        from . import native_kernels

        if op.kind == "pointwise":
            metas = [value_meta(x) for x in values]
            check_scalars(op, metas, compute_dtype(op, metas))
        found = p.attempt(lambda: native_kernels.by_rows(p, op, values))
        if found is not None:
            return found
    return RULES[op.kind](p, op, values, out)


def _whole(op: OpOverload, values):
    """A Kernel: what is large goes to a compiled graph, or to BLAS, as a whole."""
    if op.kind == "contraction" and op.definition.letters in PRODUCTS:
        a, b = (t._array for t in values)
        if a.dtype != b.dtype:
            return None
        check(op, values)
        if of_one_term(a, b):  # loops over elements
            large = _multiplications(a, b) >= LARGE and backend.accelerate is not None
            found = backend.accelerate(op, values, True) if large else None
            return None if found is None else _C.Kernel(found[0], ())
        if max(a.size, b.size) < SMALL or _multiplications(a, b) <= _SMALL_PRODUCT:
            return None
        if a.dtype == _BF16:
            return None if blas.matmul(a, b) is None else _C.Kernel(blas.matmul_bf16, (), arrays=True)
        return (
            None
            if a.dtype.char not in "fd" or blas.matmul(a, b) is None
            else _C.Kernel(blas.native_matmul(), (), arrays=True)
        )
    if "shapes_first" in op.tags and op.kind == "extern":
        return _after_shapes(op, values)
    if "counted" in op.overrides:  # a native function of the arrays, or None: how large the result is, they say
        fn = op.overrides["counted"](*values)
        return None if fn is None else _C.Kernel(fn, (), arrays=True)
    if "arrays" in op.overrides and op.overrides["keep_fused"](*values):
        return _of_arrays(op, values)
    if "streamed" in op.overrides:
        return None  # the general way is short beside such calls, and has the operator's own errors
    # NOTE: a description knows the numbers among a pointwise operator's operands by type; such a call may be the first with these.
    numbers = tuple(values[i] for i in known_by_type(op) if _by_type(op, i, values[i]))
    found = compiled(op, values, None if numbers else True)
    return None if found is None else _C.Kernel(found[0], numbers, many=found[1])


def _of_arrays(op: OpOverload, values):
    """The override "arrays" with the numbers of this description; None for operands that are small enough for a call_plan."""
    arrays = [x._array for x in values if isinstance(x, _C.TensorBase)]
    numbers = [x for x in values if not isinstance(x, _C.TensorBase)]
    kernel = op.overrides["arrays"]
    if all(a.size < LARGE for a in arrays) or kernel(*arrays, *numbers) is None:
        return None
    return _C.Kernel(lambda *operands: kernel(*operands, *numbers), (), arrays=True)


def _after_shapes(op: OpOverload, values):
    """The kernel alone, for a description that the shape rule has been asked about."""
    metas, kernel = op.facet("meta")(*values), op.definition.eager
    kernel = getattr(kernel, "__wrapped__", kernel)  # by_columns' needn't look at the strides first
    many = isinstance(metas, (tuple, list))
    metas = metas if many else (metas,)
    places = [i for i, x in enumerate(values) if isinstance(x, _C.TensorBase)]
    if any(isinstance(y, _C.TensorBase) for x in values if isinstance(x, (list, tuple)) for y in x):
        return None
    layouts = [(m.strides, bytes_of(m.strides, m.dtype.np)) for m in metas]
    rest = [None if i in places else x for i, x in enumerate(values)]

    def run(*tensors):
        args = rest.copy()
        for i, t in zip(places, tensors):
            args[i] = t._array
        made = kernel(*args)
        return [
            _C.from_array(a if type(a) is np.ndarray and a.strides == exact else in_order(a, strides))
            for a, (strides, exact) in zip(made if many else (made,), layouts, strict=True)
        ]

    return _C.Kernel(run, (), many=many, quiet=True)


def _by_type(op: OpOverload, i: int, x) -> bool:
    return x.__class__ in (float, int, bool) and (op._schema.arguments[i].is_tensor or x.__class__ is bool or x != 1)


def _multiplications(a: np.ndarray, b: np.ndarray) -> int:
    return a.size * b.shape[-1]


def _bind(p: Program, x):
    if isinstance(x, _C.TensorBase):
        return p.tensor(x._array)
    if isinstance(x, (list, tuple)):
        return [_bind(p, y) for y in x]
    return x


def _settle(p: Program, out: PlanValue) -> None:
    """The result must be new memory of its own."""
    if not isinstance(out, PlanValue) or out.slot[0] == "tensor":
        raise NotPlanned  # the argument itself, or a view of it
    slot = p.promoted.get(out.slot, out.slot)
    if slot == ("result", 0) and not out.offset and out.shape == p.results[0][1]:
        return
    strides = _elements(out)
    step = 1
    for s, n in sorted((s, n) for s, n in zip(strides, out.shape) if n > 1):
        if s != step:
            raise NotPlanned  # not dense: a view of something larger
        step *= n
    if slot[0] == "temporary" and step * out.dtype.itemsize == p.temporaries[slot[1]]:
        p.promote(out)
    else:
        p.copy(out, p.empty(out.shape, out.dtype, strides, result=True))


def _category(dtype: np.dtype) -> int:
    return dtypes.from_numpy(dtype).category


def _writable(values, target: PlanValue) -> bool:
    tensors = []
    for x in values:
        tensors += (
            [x]
            if isinstance(x, _C.TensorBase)
            else [y for y in x if isinstance(y, _C.TensorBase)]
            if isinstance(x, (list, tuple))
            else []
        )
    array = tensors[target.slot[1]]._array
    if not array.flags.writeable:
        return False
    step = array.itemsize
    for s, n in sorted((abs(s), n) for s, n in zip(array.strides, array.shape) if n > 1):
        if s < step:
            return False  # elements overlap
        step = s * n
    return True


def _views(op: OpOverload, values):
    x, rest = values[0], values[1:]
    item = x._array.itemsize
    v = op.definition.map(Strided(x._shape, x._strides, 0), *rest)
    many = not isinstance(v, Strided)
    results = tuple((None, w.shape, bytes_of(w.strides, x._array.dtype), w.offset * item) for w in (v if many else [v]))
    return _C.CallPlan(1, results, view=True, many=many, tracked=op.tracks_views)


def _reinterpreted(op: OpOverload, x):
    """The same memory from its first element on, as elements of another dtype."""
    if x._array is None or not x._array.size:
        return None
    meta = op.facet("meta")(x)
    return _C.CallPlan(
        1, ((meta.dtype.np, meta.shape, bytes_of(meta.strides, meta.dtype.np), 0),), view=True, tracked=True
    )


# ---- expressions on elements ---------------------------------------------------------------------------------------------


def _expression(p: Program, root, inputs: dict, shape, out, dtype: np.dtype, strides=None) -> PlanValue:
    """The traced body ``root`` over all of ``shape``, cast to ``dtype``. ``inputs``: value of each input by name."""
    dims = None if strides is None else tuple(strides)
    while isinstance(root, Expr) and root.op == "where" and root.args[0].__class__ is bool:  # as fill's body has it
        root = root.args[1 if root.args[0] else 2]
    if not isinstance(root, Expr):
        return p.copy(
            p.constant(root, dtype if type(root) is not float or dtype.kind == "f" else None),
            p.memory(out, shape, dtype, dims),
        )
    nodes = topological(root)
    values: dict[int, PlanValue] = {}
    # The result may be written by the last step alone: an argument may lie in the same memory.
    final = None
    for node in nodes:
        if node.op == "input":
            values[id(node)] = inputs[node.args[0]]
            continue
        args = [values[id(a)] if isinstance(a, Expr) else a for a in node.args]
        to = None
        if node is root:
            to = final = p.memory(out, shape, dtype, dims) if _dtype_of(node, args) == dtype else None
        values[id(node)] = _operation(p, node.op, args, to, shape, dims)
    made = values[id(root)]
    if final is not None and made is not final:
        raise NotPlanned
    if made is final:
        return made
    return p.copy(made, p.memory(out, shape, dtype, dims))


def _native(op: str, args):
    """The ufunc of a scalar operation on these operands."""
    fn = TABLE[op].numpy
    if isinstance(fn, np.ufunc):
        return fn
    found = getattr(fn, "ufunc", None)  # the same for floating operands
    if found is None or any(isinstance(a, PlanValue) and a.dtype.kind != "f" for a in args):
        raise NotPlanned
    return found()


def _parts(op: str, args):
    """The body of a scalar operation that is made of others, or None. ``of_reals`` is one for floating operands of one dtype."""
    fn = TABLE[op].numpy
    composed = getattr(fn, "body", None)
    if composed is None and hasattr(fn, "of_reals"):
        kinds = {v.dtype for v in args if isinstance(v, PlanValue)}
        if len(kinds) == 1 and next(iter(kinds)).kind == "f":
            return fn.of_reals
    return composed


def _dtype_of(node, args) -> np.dtype:
    kinds = tuple(
        v.dtype if isinstance(v, PlanValue) else type(v) if type(v) is not bool else np.dtype(bool) for v in args
    )
    if node.op == "where":
        return np.result_type(*[v.dtype if isinstance(v, PlanValue) else v for v in args[1:]])
    if node.op == "cast":
        return args[1].np
    if hasattr(TABLE[node.op].numpy, "in_float64"):
        if any(not isinstance(v, PlanValue) or v.dtype.kind != "f" for v in args):
            raise NotPlanned
        return args[0].dtype
    if _parts(node.op, args) is not None:
        return next(v.dtype for v in args if isinstance(v, PlanValue))
    return _native(node.op, args).resolve_dtypes((*kinds, None))[-1]


def _operation(p: Program, op: str, args, out, shape, strides) -> PlanValue:
    composed = _parts(op, args)
    if composed is not None:
        names = {str(k): v for k, v in enumerate(args) if isinstance(v, PlanValue)}
        root, _ = trace(composed, [Input(str(k)) if isinstance(v, PlanValue) else v for k, v in enumerate(args)])
        kind = next(v.dtype for v in names.values())
        return _expression(p, root, names, shape, out, kind, strides)
    wide = getattr(TABLE[op].numpy, "in_float64", None)
    if wide is not None:
        made = p.ufunc(wide, [p.cast(v, np.dtype(np.float64)) for v in args], None, shape, strides)
        kind = args[0].dtype
        return (
            made
            if kind == made.dtype and out is None
            else p.copy(made, p.empty(shape, kind, strides) if out is None else out)
        )
    if op == "where":
        condition, a, b = args
        return p.select(condition, a, b, out, shape, strides)
    if op == "cast":
        v, to = args
        if not isinstance(v, PlanValue):
            raise NotPlanned
        return p.copy(v, out if out is not None else p.empty(shape, to.np, strides))
    return p.ufunc(_native(op, args), args, out, shape, strides)


@rule("pointwise")
def _pointwise(p: Program, op: OpOverload, values, out):
    d = op.definition
    metas = [value_meta(x) for x in values]
    compute = compute_dtype(op, metas)
    out_dtype = result_dtype(op, metas, compute)
    wide = _WIDE.get(compute, compute.np)
    check_scalars(op, metas, compute)
    factor = next((a.name for a, x in zip(op._schema.arguments, values) if a.name == d.factor and x != 1), None)
    if compute.category < 2 and any(
        a.type == "Scalar" and a.name != factor and not _fits(x, compute.np)
        for a, x in zip(op._schema.arguments, values)
    ):
        raise NotPlanned
    operands = set(operand_indices(op))
    args, inputs, tensors = list(values), {}, []
    for i, a in enumerate(op._schema.arguments):
        x = values[i]
        if a.name == factor and factor is not None:
            if x.__class__ not in (float, int) or (x.__class__ is float and compute.category < 2):
                raise NotPlanned
            inputs[a.name], args[i] = _number(p, x, wide), Input(a.name)
            continue
        if not a.is_tensor or x is None:
            continue
        if isinstance(x, PlanValue):
            tensors.append(x)
        elif i in operands and not isinstance(x, (list, complex)):
            x = _number(p, x, wide)
        else:
            raise NotPlanned
        inputs[a.name] = p.cast(x, wide) if i in operands else x
        args[i] = Input(a.name)
    if not tensors:
        raise NotPlanned
    shape = np.broadcast_shapes(*[t.shape for t in tensors])
    strides = pointwise_strides(op)(shape, metas)
    check_scalars(op, metas, compute)
    root, _ = trace(d.body, args)
    return _expression(p, root, inputs, shape, out, out_dtype.np, strides)


def _number(p: Program, x, dtype: np.dtype) -> PlanValue:
    """A number among the operands: the call's, which the description knows by its type, or one that a composite's body has."""
    return p.constant(x, dtype) if p.inside else p.number(dtype)


def _fits(x, dtype: np.dtype) -> bool:
    """Whether a number that isn't an operand is an integer (or left out) that NumPy takes for one of ``dtype``."""
    if dtype.kind == "b":
        return x.__class__ is int and 0 <= x <= 127
    return x is None or (x.__class__ is int and np.iinfo(dtype).min <= x <= np.iinfo(dtype).max)


def _elements(v: PlanValue):
    return tuple(s // v.dtype.itemsize for s in v.strides)


# ---- reductions ----------------------------------------------------------------------------------------------------------

_START = {
    np.add: lambda d: 0,
    np.multiply: lambda d: 1,
    np.logical_and: lambda d: True,
    np.logical_or: lambda d: False,
    np.maximum: lambda d: -np.inf if d.kind == "f" else np.iinfo(d).min,
    np.minimum: lambda d: np.inf if d.kind == "f" else np.iinfo(d).max,
}


@rule("reduction")
def _reduction(p: Program, op: OpOverload, values, out):
    d = op.definition
    r = arguments(op)([value_meta(values[0]), *values[1:]])
    if d.combine in ("argmax", "argmin"):
        from . import native_kernels

        return native_kernels.extreme(p, values[0], r.dims, r.keepdim, d.combine == "argmin")
    x, acc = values[0], r.acc.np
    if narrow(acc):  # an extreme, say: in float32 it is the same
        if d.map is not None or d.finalize is not None or d.combine not in ("maximum", "minimum"):
            raise NotPlanned
        acc = np.dtype(np.float32)
    axes = normalize_dims(r.dims, len(x.shape))
    ufunc = TABLE[d.combine].numpy
    if ufunc not in _START or (acc.kind == "b" and ufunc not in (np.logical_and, np.logical_or)):
        raise NotPlanned
    if d.map is not None:
        root, _ = trace(lambda s, *a: d.map(s, *a), [Input("x"), *r.params])
        x = _expression(p, root, {"x": p.cast(x, acc)}, x.shape, None, acc)
    else:
        x = p.cast(x, acc)
    if ufunc is np.add and any(x.shape[a] > LONG and abs(x.strides[a]) > acc.itemsize for a in axes):
        raise NotPlanned  # the kernel adds in blocks
    if ufunc is np.add and acc.kind == "f" and len(axes) < len(x.shape) + (x.strides != bytes_of(_dense(x.shape), acc)):
        if any(x.shape[a] > LONG and abs(x.strides[a]) > acc.itemsize for a in axes):
            raise NotPlanned  # long sums are taken in blocks, which only the kernel does
    n = math.prod(x.shape[a] for a in axes)
    kept = tuple(1 if k in axes else m for k, m in enumerate(x.shape))
    shape = kept if r.keepdim else tuple(m for k, m in enumerate(x.shape) if k not in axes)
    last = d.finalize is None and acc == r.out.np
    found = products.lines(x.shape, x.strides, acc, axes) if ufunc is np.multiply else None
    if found is not None:
        from . import native_kernels

        made = native_kernels.line_products(p, PlanValue(x.slot, found, bytes_of(_dense(found), acc), acc, x.offset))
        made = PlanValue(made.slot, shape, bytes_of(_dense(shape), acc), acc)
        return made if last else p.copy(made, p.memory(out, shape, r.out.np))
    total = p.memory(out if last else None, shape, acc)
    over = PlanValue(total.slot, kept, tuple(bytes_of(_dense(kept), acc)), acc, total.offset)
    if bytes_of(_dense(shape), acc) != total.strides:
        raise NotPlanned
    p.copy(p.constant(_START[ufunc](acc), acc), total)
    strides = [over.broadcast(x.shape), x.strides, over.broadcast(x.shape)]
    num = acc.num
    # Sums of several dimensions are sums of sums, as NumPy's: what is added to what is a matter of the inner loop.
    transposed = sum(x.shape[a] > 1 for a in axes) < 2
    p.loops(
        ("ufunc", ufunc, (num, num, num)), x.shape, [over, x, over], strides, order=x.strides, transposed=transposed
    )
    if last:
        return total
    if d.finalize is None:
        return p.copy(total, p.memory(out, shape, r.out.np))
    root, _ = trace(lambda s, a: d.finalize(s, a, n, *r.params), [Input("acc")])
    return _expression(p, root, {"acc": total}, shape, out, r.out.np)


def _dense(shape):
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= n
    return tuple(reversed(out))


# ---- contractions --------------------------------------------------------------------------------------------------------


_BF16 = dtypes.bfloat16.np
_SMALL_PRODUCT = 1 << 18  # multiplications up to which a product isn't worth splitting over threads


@rule("contraction")
def _contraction(p: Program, op: OpOverload, values, out):
    a, b = values
    check(op, [value_meta(a), value_meta(b)])
    dtype = a.dtype
    if op.definition.letters in PRODUCTS and of_one_term(a, b) and a.dtype == b.dtype:
        return _single_products(p, a, b, out)
    if narrow(dtype) and b.dtype == dtype:
        a, b = p.cast(a, np.dtype(np.float32)), p.cast(b, np.dtype(np.float32))
    if a.dtype != b.dtype or a.dtype.char not in "fd":
        raise NotPlanned
    terms, _, result = op.definition.letters.partition("->")
    ta, tb = terms.split(",")
    if any(len(set(t)) != len(t) for t in (ta, tb, result)):
        raise NotPlanned
    at = [dict(zip(ta, a.strides)), dict(zip(tb, b.strides))]
    size = {**dict(zip(ta, a.shape)), **dict(zip(tb, b.shape))}
    batch = [c for c in result if c in ta and c in tb]
    rows = [c for c in result if c in ta and c not in tb]
    columns = [c for c in result if c in tb and c not in ta]
    summed = [c for c in ta if c in tb and c not in result]
    if len(rows) > 1 or len(columns) > 1 or len(summed) != 1 or set(ta + tb) != {*batch, *rows, *columns, *summed}:
        raise NotPlanned
    m, n, k = (x[0] if x else None for x in (rows, columns, summed))
    work = math.prod(size.values())
    if work > _SMALL_PRODUCT:
        raise NotPlanned
    shape = [size[c] for c in result]
    to = p.memory(out if dtype == a.dtype else None, shape, a.dtype)
    to_at, item = dict(zip(result, to.strides)), a.dtype.itemsize
    # A missing dimension counts as one of size 1; its stride is what BLAS expects of a dense matrix.
    core = (
        at[0][m] if m else size[k] * item, at[0][k],
        at[1][k], at[1][n] if n else item,
        to_at[m] if m else size.get(n, 1) * item, to_at[n] if n else item,
    )  # fmt: skip
    p.matmul(
        [size[c] for c in batch],
        [a, b, to],
        [[at[0][c] for c in batch], [at[1][c] for c in batch], [to_at[c] for c in batch]],
        (size.get(m, 1), size[k], size.get(n, 1)),
        core,
    )
    return to if dtype == a.dtype else p.copy(to, p.memory(out, shape, dtype))


def _single_products(p: Program, a: PlanValue, b: PlanValue, out):
    """The product whose sums have one term each: element by element."""
    aten = namespace("aten")
    keeps = a.dtype.kind in "iu" or keeps_zeros(a.dtype, (*a.shape[:-1], b.shape[-1]))
    made = RULES["pointwise"](p, aten.mul.Tensor, [a, b], out if keeps else None)
    return made if keeps else RULES["pointwise"](p, aten.add.Tensor, [made, p.constant(0, a.dtype), 1], out)


# ---- reads and writes by index -------------------------------------------------------------------------------------------


@rule("index")
def _index(p: Program, op: OpOverload, values, out):
    from . import call_plan_index

    return (call_plan_index.read if op.definition.mode == "read" else call_plan_index.write)(p, op, values, out)


# ---- factories -----------------------------------------------------------------------------------------------------------

_KERNEL = 1 << 12  # elements of an array that is kept to be copied


@rule("factory")
def _factory(p: Program, op: OpOverload, values, out):
    d = op.definition
    metas = [value_meta(x) for x in values]
    shape = tuple(d.shape(*metas))
    if math.prod(shape) == 0 or math.prod(shape) >= LARGE:
        raise NotPlanned
    dtype = d.dtype(*metas).np
    to = p.memory(out, shape, dtype, made_strides(shape, metas) if takes_format(op) else None)
    if d.body is None:
        return to
    from .pointwise import NUMPY

    index = tuple(np.arange(n).reshape((-1,) + (1,) * (len(shape) - 1 - k)) for k, n in enumerate(shape))
    value = d.body(NUMPY, index, *metas)
    if value.__class__ is int or value.__class__ is float:
        dtypes.check_number(value, d.dtype(*metas))
    value = np.asarray(value)
    if value.size > _KERNEL:
        raise NotPlanned
    with np.errstate(over="ignore"):
        value = value.astype(dtype)
    return p.copy(p.constant(value), to)


# ---- composites, and operators that give their coordinates ---------------------------------------------------------------


@rule("extern")
def _extern(p: Program, op: OpOverload, values, out):
    coords, pieces = op.overrides.get("coords"), op.overrides.get("pieces")
    if pieces is not None:
        meta = op.definition.meta(*[value_meta(x) for x in values])
        to = p.memory(out, meta.shape, meta.dtype.np, meta.strides)
        for x, d, start in pieces(*values):
            p.copy(x, PlanValue(to.slot, x.shape, to.strides, to.dtype, to.offset + start * to.strides[d]))
        return to
    if coords is None:
        raise NotPlanned
    found = coords(*values)
    if found is None:
        raise NotPlanned
    shape, fn, tensor = found
    from . import call_plan_index

    return call_plan_index.gather(p, values[0], tuple(shape), fn, tensor, True, out)


class _Record(TorchDispatchMode):
    """Puts the operators it sees into a program. Tensors have no data here; ``_value`` says where they lie."""

    sees_parts = True

    def __init__(self, program: Program):
        self.program = program

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        values = [_values_of(x) for x in func.full(*args, **(kwargs or {}))]
        if func.kind == "view":
            v = values[0]
            made = func.definition.map(Strided(v.shape, _elements(v), 0), *values[1:])
            pieces = [made] if isinstance(made, Strided) else made
            out = [
                _stand_in(
                    PlanValue(
                        v.slot, w.shape, bytes_of(w.strides, v.dtype), v.dtype, v.offset + w.offset * v.dtype.itemsize
                    )
                )
                for w in pieces
            ]
            return out[0] if isinstance(made, Strided) else out
        if func.kind not in RULES or "eager" in func.overrides:
            raise NotPlanned
        known = _known(self.program, func, values)
        if known is not None:
            return _stand_in(known)
        made = _made(self.program, func, values, None)
        return tuple(None if v is None else _stand_in(v) for v in made) if isinstance(made, list) else _stand_in(made)


def _known(p: Program, op: OpOverload, values):
    """The result as a constant, where nothing that it is made of depends on the call; else None."""
    if op.kind not in ("pointwise", "index", "factory") or getattr(op.definition, "body", True) is None:
        return None
    args = []
    for x in values:
        if isinstance(x, PlanValue):
            if x.slot[0] != "constant":
                return None
            x = _C.from_array(p.known(x))
        args.append(x)
    made = kernel_of(op)[1](*args)._array
    if made.size > _KERNEL or not made.flags.c_contiguous:
        return None
    return p.constant(made)


def _values_of(x):
    if isinstance(x, _C.TensorBase):
        return x._value
    return [_values_of(y) for y in x] if isinstance(x, (list, tuple)) else x


def _stand_in(v: PlanValue):
    if not isinstance(v, PlanValue):
        raise NotPlanned
    t = _C.without_data(_StandIn, v.shape, _elements(v), dtypes.from_numpy(v.dtype), CPU, 0, None)
    t._value = v
    return t


class _StandIn(Tensor):
    """A value of a program for the body of a composite. Looking at the data ends the attempt: other data may want another way."""

    __torch_function__ = _C._disabled_torch_function_impl
    # As the tensors of the calls have: a check of elements asks this before it looks at them.
    _has_data = True

    @property
    def _array(self):
        raise NotPlanned


@rule("composite")
def _composite(p: Program, op: OpOverload, values, out):
    d = op.definition
    if d.eager is not None or op.namespace != "aten" or op._schema.is_mutable:
        raise NotPlanned
    p.inside = True
    args = [
        _stand_in(x)
        if isinstance(x, PlanValue)
        else [_stand_in(y) for y in x]
        if isinstance(x, list) and x and isinstance(x[0], PlanValue)
        else x
        for x in values
    ]
    with (
        modes.disabled("function"),
        modes.disabled("dispatch"),
        excluding(K.AUTOGRAD | K.TRANSFORM | K.FUNCTIONALIZE),
        _Record(p),
    ):
        made = d.fn(*args)
    many = isinstance(made, (list, tuple))
    pieces = list(made) if many else [made]
    if any(x is y for x in pieces for y in args) or not all(isinstance(x, _StandIn) for x in pieces):
        raise NotPlanned  # the argument itself
    found = [x._value for x in pieces]
    if not op._schema.is_view:
        return found if many else found[0]
    # All of them views of the first argument, or what was computed.
    if not p.steps and all(v.slot == ("tensor", 0) for v in found) and p.counts["tensor"] == 1 and out == "result":
        results = tuple((None, v.shape, v.strides, v.offset) for v in found)
        return _C.CallPlan(1, results, view=True, many=many, tracked=True)
    if many or found[0].slot[0] == "tensor":
        raise NotPlanned
    return found[0]


PLANNED_KINDS.update(("view", "inplace", "out"))
_C.set_handlers(make_plan=make_plan)
