"""Calls of NumPy's functions, methods and ufuncs on arrays of all kinds, from a seed: empty, without dimensions, strided, backwards, read-only,
byte-swapped, overlapping, with nan and the ends of integers."""

import operator

import numpy as np

DTYPES = "?bBhHiIlLefdFD"
SHAPES = [(), (0,), (1,), (5,), (0, 3), (3, 4), (4, 3), (2, 1, 3), (1, 1), (2, 3, 4)]
UFUNCS = [
    getattr(np, n) for n in sorted(dir(np)) if isinstance(getattr(np, n), np.ufunc) and getattr(np, n).signature is None
]
UNARY = [f for f in UFUNCS if f.nin == 1 and f is not np.isnat]
BINARY = [f for f in UFUNCS if f.nin == 2]
OPERATORS = [
    getattr(operator, n)
    for n in "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor lt le eq ne gt ge matmul".split()
]
IN_PLACE = [
    getattr(operator, n) for n in "iadd isub imul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor".split()
]
REDUCTIONS = "sum prod mean std var max min any all argmax argmin cumsum cumprod ptp median nansum nanmax nanmean nanmin nanprod count_nonzero".split()
MOVES = [
    ("ravel", ()), ("transpose", ()), ("squeeze", ()), ("flip", ()), ("sort", ()), ("argsort", ()), ("diff", ()), ("roll", (2,)), ("repeat", (2,)),
    ("tile", (2,)), ("atleast_2d", ()), ("expand_dims", (0,)), ("triu", ()), ("tril", ()), ("trace", ()), ("diagonal", ()), ("diag", ()),
    ("nan_to_num", ()), ("round", (1,)), ("clip", (-1, 1)), ("copy", ()), ("real", ()), ("imag", ()), ("angle", ()), ("unique", ()), ("nonzero", ()),
    ("pad", (1,)), ("gradient", ()), ("zeros_like", ()), ("full_like", (3,)), ("asarray", ()), ("ascontiguousarray", ()), ("isreal", ()),
    ("iscomplexobj", ()), ("flatnonzero", ()), ("trim_zeros", ()), ("ediff1d", ()), ("unwrap", ()), ("bincount", ()), ("broadcast_to", ((2, 3, 4),)),
]  # fmt: skip
METHODS = "sum mean copy ravel flatten T real imag tolist item nonzero argsort conj byteswap tobytes astype view fill sort".split()
KEYS = [
    0, -1, slice(None, None, -1), slice(1, None), slice(None, None, 2), ..., None, (..., 0), (0, ...), [0, -1], [True], np.array([0, 0]), np.array(True),
    (slice(None), 0), (None, ..., None), (), slice(5, 1, -2), np.array([], int), 7, (0, [0, 1]), ([0], slice(None)),
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 7, 300, 2.5, -0.0, float("nan"), True, 1j, np.int8(3), np.float32(0.5), np.uint64(2**63), 2**40]


def array(rng, dtype=None, shape=None):
    """An array of some kind."""
    d = np.dtype(rng.choice(list(DTYPES)) if dtype is None else dtype)
    shape = SHAPES[rng.integers(len(SHAPES))] if shape is None else shape
    kind = rng.integers(8)
    wide = tuple(2 * n for n in shape) if kind == 1 else shape
    if d.kind == "b":
        a = rng.integers(0, 2, wide).astype(d)
    elif d.kind in "iu":
        info = np.iinfo(d)
        a = rng.choice(np.array([0, 1, 2, 3, 5, info.max, info.min, info.max - 1], d), wide)
    else:
        pool = np.array([0, -0.0, 1, -1, 0.5, 2, 3.25, np.nan, np.inf, -np.inf, 1e4, -7])
        a = rng.choice(pool[: 12 if kind == 2 else 7], wide).astype(d)
        if d.kind == "c":
            a = a + d.type(1j) * rng.choice(pool[:7], wide).astype(d)
    a = np.asarray(a, d).reshape(wide)
    if kind == 1:
        a = a[tuple(slice(None, None, 2) for _ in shape)]
    elif kind == 3 and shape:
        a = a[::-1]
    elif kind == 4 and len(shape) > 1:
        a = np.ascontiguousarray(a.T).T
    elif kind == 5:
        a.flags.writeable = False
    elif kind == 6 and d.itemsize > 1:
        a = a.astype(d.newbyteorder())
    return a


def programs(seed: int, count: int):
    """(what it is, function, arguments), ``count`` of them."""
    rng = np.random.default_rng(seed)

    def some(items):
        return items[rng.integers(len(items))]

    for _ in range(count):
        kind = rng.integers(10)
        a = array(rng)
        if kind == 0:
            f = some(UNARY)
            yield f"np.{f.__name__}(a)", (lambda x, f=f: f(x)), (a,)
        elif kind in (1, 2):
            f = some(BINARY) if kind == 1 else some(OPERATORS)
            b = some(NUMBERS) if rng.integers(3) == 0 else array(rng, shape=some([a.shape, a.shape[-1:], ()]))
            yield f"{f.__name__}(a, {b if not isinstance(b, np.ndarray) else 'b'})", (lambda x, y, f=f: f(x, y)), (a, b)
        elif kind == 3:
            f = some(IN_PLACE)
            b = some(NUMBERS) if rng.integers(3) == 0 else array(rng, shape=a.shape)

            def in_place(x, y, f=f):
                z = f(x, y)
                return z is x, z

            yield f"{f.__name__}(a, {b if not isinstance(b, np.ndarray) else 'b'})", in_place, (a, b)
        elif kind == 4:
            name, axis, keep = some(REDUCTIONS), some([None, 0, -1, 1, 3]), bool(rng.integers(2))
            f = getattr(np, name)
            if name in ("cumsum", "cumprod", "median", "nanmean") or axis is None:
                yield f"np.{name}(a, axis={axis})", (lambda x, f=f, axis=axis: f(x, axis=axis)), (a,)
            else:
                yield (
                    f"np.{name}(a, axis={axis}, keepdims={keep})",
                    (lambda x, f=f, axis=axis, keep=keep: f(x, axis=axis, keepdims=keep)),
                    (a,),
                )
        elif kind == 5:
            name, more = some(MOVES)
            f = getattr(np, name)
            yield f"np.{name}(a, {more})", (lambda x, f=f, more=more: f(x, *more)), (a,)
        elif kind == 6:
            key = some(KEYS)
            yield f"a[{key}]", (lambda x, key=key: x[key]), (a,)
        elif kind == 7:
            key, value = some(KEYS), some(NUMBERS) if rng.integers(2) else array(rng, shape=())

            def put(x, y, key=key):
                x[key] = y

            yield f"a[{key}] = {value!r}", put, (a, value)
        elif kind == 8:
            f, method = some(BINARY), some(["reduce", "accumulate", "outer"])
            if f.nout > 1:
                continue
            if method == "outer":
                yield f"np.{f.__name__}.outer(a, a)", (lambda x, f=f: f.outer(x, x)), (a,)
            else:
                yield f"np.{f.__name__}.{method}(a)", (lambda x, f=f, m=method: getattr(f, m)(x)), (a,)
        else:
            name = some(METHODS)
            given = {"astype": (some(list(DTYPES)),), "fill": (some(NUMBERS),), "view": ()}.get(name, ())

            def method(x, name=name, given=given):
                found = getattr(x, name)
                return (found(*given) if callable(found) else found), x

            yield f"a.{name}{given}", method, (a,)
