"""How operators are declared: one function a kind, used as decorators in ``ops/``.

    @pointwise("sigmoid(Tensor self) -> Tensor", promote="float")
    def sigmoid(s, self):
        return s.reciprocal(s.add(s.exp(s.neg(self)), 1.0))

is all that eager, meta, autograd, vmap and the compiler need. The decorated name becomes the OpOverload. ``variants`` says where the
operator is exposed ("function", "method", "nn" for torch.nn.functional, "special", or "" for none); ``backward`` names an operator that is
derived from the body: the vector-Jacobian product as an operator of its own, visible to modes under ATen's name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from .. import _C
from ..base import dtypes
from . import body as bodies
from .definition import Composite, Contraction, Extern, Factory, Index, Inplace, Pointwise, Random, Reduction, View
from .images import as_images
from .layouts import by_columns
from .operator import OpOverload, namespace
from .out_rules import rules_of
from .promotion import _scalar_name, refused
from .schema import parse

__all__ = [
    "COMPLEX",
    "EXPOSED",
    "composite",
    "contraction",
    "declare",
    "explicit",
    "extern",
    "factory",
    "index",
    "is_public",
    "pointwise",
    "random",
    "reduction",
    "view",
    "written",
]

# Names users call, by place. bindings.py turns them into functions and methods.
EXPOSED: dict[str, dict[str, str]] = {"function": {}, "method": {}, "nn": {}, "special": {}, "linalg": {}, "fft": {}}

# Names that would follow from the declarations, and that PyTorch has in the other of the two places alone, or by operator only.
_ABSENT = {
    "function": frozenset(
        """
absolute_ add_ addbmm_ addcdiv_ addcmul_ addmm_ addr_ arctan2_ atan2_ baddbmm_ bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_
bitwise_right_shift_ bitwise_xor_ copysign_ cumprod_ cumsum_ digamma_ div_ divide_ eq_ erfinv_ float_power_ floor_divide_ fmod_ ge_ greater_
greater_equal_ gt_ heaviside_ hypot_ igamma_ igammac_ index_add_ index_copy_ index_fill_ index_reduce_ le_ lerp_ less_ less_equal_ lgamma_
logical_and_ logical_not_ logical_or_ logical_xor_ lt_ masked_fill_ masked_scatter_ mul_ multiply_ mvlgamma_ ne_ nextafter_ not_equal_ pow_
put_ remainder_ renorm_ scatter_ scatter_add_ scatter_reduce_ sgn_ sign_ sub_ subtract_ tril_ triu_ true_divide_
_batch_norm_no_update _batch_norm_with_update _cdist_backward _cdist_forward _foreach_copy _native_batch_norm_legit_functional
lift_fresh_copy native_dropout_backward
""".split()
    ),
    "method": frozenset("copy fill rsub zero".split()),
}


def is_public(place: str, name: str) -> bool:
    """Whether users find an operator by ``name`` in ``place``: not where PyTorch has none of that name."""
    return name not in _ABSENT.get(place, ())


COMPLEX = ("complex64", "complex128")  # for ``refuse``
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")


def _refusing(fn, schema: str, names):
    """``fn``, with an error where its first tensor has one of the dtypes ``names``: of operators that have no body to be asked."""
    opname = schema.partition("(")[0].partition(".")[0].strip().rpartition("::")[2]

    @functools.wraps(fn)
    def run(*args, **kwargs):
        for x in args:
            x = x[0] if isinstance(x, (list, tuple)) and x else x
            dtype = x._dtype if isinstance(x, _C.TensorBase) else getattr(x, "dtype", None)
            if dtype is not None:
                if dtype.name in names:
                    refused(opname, dtype if isinstance(dtype, dtypes.DType) else dtypes.from_numpy(dtype))
                break
        return fn(*args, **kwargs)

    return run


def declare(
    schema: str,
    definition,
    *,
    ns: str = "aten",
    variants: str = "function method",
    inplace: bool = False,
    out: bool = False,
    tags=(),
    name: str | None = None,
    refuse=(),
    out_rules: str = "",
) -> OpOverload:
    """Register an operator. ValueError when the same overload is declared twice in aten."""
    head = schema.partition("(")[0].strip()
    if "::" in head:
        ns, head = head.split("::")
        schema = schema.strip()[len(ns) + 2 :]
    opname, _, overload = head.partition(".")
    packet = namespace(ns)._packets.get(opname)
    if ns == "aten" and packet is not None and (overload or "default") in packet._overloads:
        raise ValueError(f"operator aten::{head} is declared twice")
    op = OpOverload(ns, opname, overload, definition, schema)
    op.has_inplace, op.has_out = inplace, out
    op.tags = frozenset(tags)
    op.out_rules = rules_of(op, out_rules)
    op.refuses = frozenset(refuse) or None
    namespace(ns)._register(op)
    public = name or opname
    for place in variants.split():
        if is_public(place, public):
            EXPOSED[place].setdefault(public, opname)
        if inplace and place in ("function", "method") and is_public(place, public + "_"):
            EXPOSED[place].setdefault(public + "_", opname + "_")
    return op


def pointwise(
    schema,
    *,
    promote="default",
    operands=None,
    out="same",
    wraps=(),
    layout=None,
    factor=None,
    variants="function method",
    inplace=True,
    has_out=True,
    backward=None,
    numbers=True,
    tags=("pointwise",),
    **kw,
):
    """Declare a pointwise operator from its scalar body. See definition.Pointwise. ``numbers``: users may give Python
    numbers for tensors ("after": but not for the first)."""

    def wrap(body: Callable) -> OpOverload:
        op = declare(
            schema,
            Pointwise(body, promote, operands, out, wraps, layout, factor),
            variants=variants,
            inplace=inplace,
            out=has_out,
            tags=tags,
            **kw,
        )
        op.takes_numbers = numbers
        if backward is not None:
            _declare_backward(op, backward)
        return op

    return wrap


def _declare_backward(op: OpOverload, schema: str) -> None:
    """Declare the operator ``schema`` as the vector-Jacobian product of ``op`` with respect to its first argument.

    Its arguments are the cotangent, then ``op``'s first argument or ``output`` (then the derivative is written in the result), then
    the parameters of ``op`` by name.
    """
    names = [
        a.split("=")[0].split()[-1]
        for a in schema[schema.index("(") + 1 : schema.rindex(") ->")].replace("*,", "").split(",")
    ]
    names = [n for n in names if n]
    forward = op.definition.body
    of_result = names[1] in ("output", "result")

    def body(s, ct, x, *params):
        by_name = dict(zip(names[2:], params))
        args = [by_name.get(a.name, a.default_value) for a in op._schema.arguments[1:]]
        root, inputs = bodies.trace(forward, [bodies.Input("x"), *args])
        g = bodies.Expr("input", ("ct",))
        (part,) = bodies.vjp(root, [inputs["x"]], g)
        if part is None:
            return s.mul(ct, 0.0)
        if of_result:
            part = bodies.substitute(part, root, bodies.Expr("input", ("x",)))
        return bodies.evaluate(part, {"x": x, "ct": ct}, s)

    back = declare(
        schema, Pointwise(body, op.definition.promote, None, "same"), variants="", out=True, tags=("pointwise",)
    )
    first = op._schema_text[op._schema_text.index("(") + 1 :].split()[1].rstrip(",)")
    saved = "result" if of_result else first
    params = names[2:]
    scope = {"back": back}
    passed = [f"{p}={p}" if _kwonly(schema, p) else p for p in params]
    exec(f"def formula(ct, {', '.join([saved, *params])}): return back(ct, {', '.join([saved, *passed])})", scope)
    op.derivative(**{first: scope["formula"]})


def _kwonly(schema: str, name: str) -> bool:
    head, star, tail = schema.partition("*,")
    return bool(star) and any(
        part.split("=")[0].split()[-1] == name for part in tail.split(")")[0].split(",") if part.strip()
    )


def reduction(
    schema,
    combine,
    init,
    *,
    map=None,
    finalize=None,
    acc="same",
    dims="dim",
    keepdim="keepdim",
    dtype=None,
    variants="function method",
    has_out=True,
    **kw,
) -> OpOverload:
    """Declare a reduction. See definition.Reduction."""
    definition = Reduction(combine, init, map, finalize, acc, dims, keepdim, dtype)
    return declare(schema, definition, variants=variants, out=has_out, tags=("reduction",), **kw)


def view(schema, *, variants="function method", **kw):
    """Declare a view from its map on a view handler. See definition.View and core/viewmap.py."""
    return lambda map: declare(schema, View(map), variants=variants, tags=("view",), **kw)


def index(
    schema,
    *,
    mode,
    source,
    combine="assign",
    base=None,
    shape_of=None,
    wrap=False,
    keeps_order=False,
    variants="function method",
    inplace=False,
    has_out=False,
    **kw,
):
    """Declare a gather or scatter from its coordinate map. See definition.Index."""

    def make(coords):
        definition = Index(mode, source, coords, combine, base, shape_of, wrap, keeps_order)
        return declare(schema, definition, variants=variants, inplace=inplace, out=has_out, **kw)

    return make


def contraction(
    schema, letters, *, mismatch=None, ranks=None, variants="function method", has_out=True, **kw
) -> OpOverload:
    """Declare an einsum-like operator by its letters."""
    return declare(
        schema, Contraction(letters, mismatch, ranks), variants=variants, out=has_out, tags=("contraction",), **kw
    )


def factory(schema, *, shape, dtype, variants="function", **kw):
    """Declare an operator that makes a tensor from an index."""
    return lambda body: declare(
        schema, Factory(body, shape, dtype), variants=variants, out=True, tags=("factory",), **kw
    )


def random(schema, *, shape, dtype, variants="function", tags=(), **kw):
    """Declare a draw from the generator."""
    return lambda draw: declare(
        schema, Random(draw, shape, dtype), variants=variants, tags=("nondeterministic_seeded", *tags), **kw
    )


def written(schema: str, functional: OpOverload, *, variants="method") -> OpOverload:
    """Declare an in-place operator whose functional form has another name: ``bernoulli_.float`` of ``bernoulli.p``."""
    return declare(schema, Inplace(functional), variants=variants)


def _imaged(fn, images):
    if images is None:
        return fn
    at, line, count = (*images, None, None)[:3] if isinstance(images, tuple) else (images, False, None)
    return as_images(fn, at, bool(line), count)


def composite(schema, *, variants="function method", inplace=False, has_out=None, each=None, images=None, **kw):
    """Declare an implicit composite: it vanishes above autograd. It has an out= form, unless told otherwise, when it returns new tensors.
    ``images``: position of the argument whose memory format (channels last or not) the results take over, or the arguments of
    :func:`~flambeau.core.images.as_images`."""
    if has_out is None:
        returns = schema.rpartition("->")[2]
        has_out = "Tensor" in returns and "(a" not in returns and "[" not in returns
    refuse = kw.get("refuse")
    return lambda fn: declare(
        schema,
        Composite(_imaged(_refusing(fn, schema, refuse) if refuse else fn, images), True, each=each),
        variants=variants,
        inplace=inplace,
        out=has_out,
        **kw,
    )


def explicit(schema, *, meta=None, eager=None, variants="", inplace=False, has_out=True, images=None, **kw):
    """Declare an explicit composite: visible to autograd and modes, decomposed at lowering. ``images`` as of :func:`composite`."""
    refuse = kw.get("refuse")
    return lambda fn: declare(
        schema,
        Composite(_imaged(_refusing(fn, schema, refuse) if refuse else fn, images), False, meta, eager),
        variants=variants,
        inplace=inplace,
        out=has_out,
        **kw,
    )


def _alike(fn, first: int, second: int, words: str):
    """``fn``, with RuntimeError where two of its arguments have different dtypes. ``words`` has places for PyTorch's names of both."""

    @functools.wraps(fn)
    def run(*args):
        a, b = args[first].dtype, args[second].dtype
        if a != b:
            shown = (d if isinstance(d, dtypes.DType) else dtypes.from_numpy(d) for d in (a, b))
            raise RuntimeError(words.format(*(_scalar_name(d) for d in shown)))
        return fn(*args)

    return run


def _with_copies(kernel, schema: str, names):
    """``kernel``, with copies of the arrays of its arguments ``names``."""
    at = [i for i, a in enumerate(parse(schema).arguments) if a.name in names]
    assert len(at) == len(names), (schema, names)

    def copied(x):
        if isinstance(x, (list, tuple)):
            return [copied(y) for y in x]
        # The layout of the result may follow the index's.
        return x.copy("K") if hasattr(x, "strides") else x

    @functools.wraps(kernel)
    def run(*args):
        args = list(args)
        for i in at:
            args[i] = copied(args[i])
        return kernel(*args)

    return run


def extern(
    schema,
    *,
    meta,
    variants="function method",
    inplace=False,
    has_out=False,
    columns=(),
    same_dtype=None,
    places=(),
    **kw,
):
    """Declare an operator by a NumPy/SciPy kernel on ndarrays and a shape rule. ``columns``: positions of the results that are batches of
    column-major matrices, as LAPACK leaves them, or a function of the arguments that tells them. ``same_dtype``: positions of two
    arguments that must have one dtype, and the words of the error. ``places``: names of arguments by which the kernel lets NumPy find memory:
    indices, masks, lengths. It gets copies, for another thread may change them after NumPy has checked them."""

    def wrap(eager):
        if places:
            eager = _with_copies(eager, schema, places)
        rule, kernel = (meta, eager) if not columns else by_columns(meta, eager, columns)
        if same_dtype:
            rule, kernel = (_alike(f, *same_dtype) for f in (rule, kernel))
        if kw.get("refuse"):
            rule, kernel = (_refusing(f, schema, kw["refuse"]) for f in (rule, kernel))
        return declare(schema, Extern(rule, kernel), variants=variants, inplace=inplace, out=has_out, **kw)

    return wrap
