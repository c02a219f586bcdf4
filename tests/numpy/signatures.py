"""Programs of one or two calls over NumPy's signatures, from a seed: each function, ufunc, ufunc method and ndarray method with arguments chosen
for the names of its parameters. A program is a function's text and its arrays."""

import inspect

import numpy as np
from sweep import array

UFUNCS = {n: getattr(np, n) for n in sorted(dir(np)) if isinstance(getattr(np, n), np.ufunc) and n != "isnat"}
DTYPES = "?bBhHiIqQefdFD"

FUNCTIONS = {
    "np": """all allclose amax amin angle any append apply_along_axis apply_over_axes arange argmax argmin argpartition argsort argwhere around array
    array_equal array_equiv array_split asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray astype atleast_1d atleast_2d
    atleast_3d average bartlett bincount blackman block broadcast_arrays broadcast_shapes broadcast_to can_cast choose clip column_stack common_type
    compress concatenate convolve copy copyto corrcoef correlate count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum delete diag
    diag_indices diagflat diagonal diff digitize dot dsplit dstack ediff1d einsum expand_dims extract eye fill_diagonal fix flatnonzero flip fliplr
    flipud full full_like geomspace gradient hamming hanning heaviside histogram histogram_bin_edges hsplit hstack i0 identity imag indices inner
    insert interp intersect1d isclose iscomplex iscomplexobj isfortran isin isneginf isposinf isreal isrealobj isscalar issubdtype iterable ix_ kaiser
    kron lexsort linspace logspace mask_indices matrix_transpose max may_share_memory mean median meshgrid min min_scalar_type moveaxis nan_to_num
    nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndim nonzero
    ones ones_like outer packbits pad partition percentile piecewise place poly polyadd polyder polyfit polyint polymul polysub polyval prod
    promote_types ptp put put_along_axis putmask quantile ravel ravel_multi_index real real_if_close repeat require reshape resize result_type roll
    rollaxis rot90 round searchsorted select setdiff1d setxor1d shape shares_memory sinc size sort sort_complex split squeeze stack std sum swapaxes
    take take_along_axis tensordot tile trace transpose trapezoid tri tril tril_indices tril_indices_from trim_zeros triu triu_indices
    triu_indices_from union1d unique unique_all unique_counts unique_inverse unique_values unpackbits unravel_index unstack unwrap vander var vdot vsplit
    vstack where zeros zeros_like""",
    "np.linalg": """cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm matrix_power matrix_rank
    matrix_transpose multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot tensorinv tensorsolve trace vecdot vector_norm""",
    "np.fft": """fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn""",
}
METHODS = """all any argmax argmin argpartition argsort astype byteswap choose clip compress conj conjugate copy cumprod cumsum diagonal dot fill
flatten item max mean min nonzero partition prod put ravel repeat reshape round searchsorted sort squeeze std sum swapaxes take tobytes
tolist trace transpose var view""".split()
POSITIONAL = {  # of methods and functions whose signature Python doesn't know
    "arange": ("start", "stop", "step", "dtype"), "array": ("a", "dtype", "copy", "order", "subok", "ndmin"), "can_cast": ("from_", "to", "casting"),
    "concatenate": ("arrays", "axis"), "copyto": ("dst", "src", "casting", "where"), "bincount": ("x", "weights", "minlength"),
    "inner": ("a", "b"), "vdot": ("a", "b"), "dot": ("a", "b", "out"), "where": ("condition", "x", "y"), "lexsort": ("keys", "axis"),
    "interp": ("x", "xp", "fp", "left", "right"), "putmask": ("a", "mask", "values"), "zeros": ("shape", "dtype", "order"),
    "min_scalar_type": ("a",), "result_type": ("dtype1", "dtype2"), "promote_types": ("dtype1", "dtype2"), "ravel_multi_index": ("multi_index", "dims", "mode"),
    "unravel_index": ("indices", "shape", "order"), "packbits": ("a", "axis", "bitorder"), "unpackbits": ("a", "axis", "count", "bitorder"),
    "may_share_memory": ("a", "b"), "shares_memory": ("a", "b"), "einsum": ("subscripts", "a", "b", "optimize"), "asarray": ("a", "dtype", "order"),
    "asanyarray": ("a", "dtype", "order"), "ascontiguousarray": ("a", "dtype"), "asfortranarray": ("a", "dtype"),
    "choose": ("choices", "out", "mode"), "put": ("indices", "values", "mode"), "atleast_1d": ("a",), "atleast_2d": ("a",), "atleast_3d": ("a",),
    "broadcast_arrays": ("a", "b"), "broadcast_shapes": ("shape", "shape"), "common_type": ("a", "b"), "block": ("arrays",), "ix_": ("int1", "int1"),
    "meshgrid": ("v", "v"), "gradient": ("a", "axis"), "select": ("condlist", "choicelist", "default"), "matmul": ("a", "b"), "vecdot": ("a", "b"),
    "multi_dot": ("arrays",), "issubdtype": ("dtype1", "dtype2"), "mask_indices": ("n", "maskfunc"), "apply_over_axes": ("reducing", "a", "axes"),
    "apply_along_axis": ("reducing", "axis", "a"), "piecewise": ("a", "condlist1", "choices1"),
}  # fmt: skip


class Program:
    """Text and arrays of one call, as they are chosen."""

    def __init__(self, rng):
        self.rng, self.arrays = rng, []
        self.shape = (3, 4)

    def some(self, *items):
        return items[self.rng.integers(len(items))]

    def array(self, dtype=None, shape=None):
        """The name of a new argument (now and then of an earlier one, or a part of it)."""
        if shape is None and dtype is None and self.arrays and self.rng.integers(6) == 0:
            return self.some("a", "a", "a[::-1]", "a.T", "a[1:]")
        a = array(self.rng, dtype, shape)
        if dtype is None and self.rng.integers(12) == 0:
            with np.errstate(all="ignore"):
                a = a.real.astype(np.float16)
        self.arrays.append(a)
        return "abcdefgh"[len(self.arrays) - 1]

    def first(self):
        name = self.array(self.some(None, None, None, "d", "f"))
        self.shape = self.arrays[0].shape
        return name

    def operand(self):
        shape = self.some(self.shape, self.shape, self.shape[-1:], (), (4,), (3, 4))
        return self.array(None, shape) if self.rng.integers(4) else self.number()

    def number(self):
        return self.some(
            "0",
            "1",
            "-1",
            "2",
            "2.5",
            "-0.0",
            "float('nan')",
            "True",
            "1j",
            "np.int8(3)",
            "np.float32(0.5)",
            "np.uint64(7)",
            "300",
        )

    def dtype(self):
        return self.some("None", "float", "int", "bool", "'f'", "complex", *(f"np.dtype('{c}')" for c in DTYPES))

    def axis(self):
        n = len(self.shape)
        if n and self.rng.integers(6):
            return self.some(
                "None",
                "0",
                "-1",
                str(n - 1),
                str(self.rng.integers(-n, n)),
                f"({self.rng.integers(-n, n)},)",
                str(tuple(range(n))),
            )
        return self.some("None", "0", "-1", "1", "-2", "3", "(0, 1)", "(0,)", "()")

    def out(self):
        shape = self.shape
        kind = self.rng.integers(6)
        if kind == 0:
            return "a"
        if kind < 3 and shape:
            shape = shape[1:] if kind == 1 else shape[:-1]
        elif kind == 3:
            shape = ()
        return self.array(self.some("d", "d", "f", "i", "q", "D", "?", "e", "B"), shape)

    def mask(self):
        return self.some("True", "False", self.array("?", self.some(self.shape, self.shape[-1:], ())))

    def small(self):
        return self.some("0", "1", "2", "-1", "3")

    def vector(self, dtype=None):
        return self.array(dtype, self.some((4,), (4,), (1,), (0,), (3, 4)))

    def increasing(self):
        n = self.some(0, 1, 4, 5)
        self.arrays.append(np.sort(self.rng.integers(-5, 9, n)).astype(self.some("d", "f", "i", "q", "B")))
        return "abcdefgh"[len(self.arrays) - 1]

    def indices(self):
        kind = self.rng.integers(4)
        if kind == 0:
            return self.some("0", "-1", "[0, 1]", "7", "[[0], [0]]", "[]")
        shape = self.some((2,), (2, 2), (0,), (), self.shape)
        self.arrays.append(self.rng.integers(-1, 3, shape).astype(self.some("q", "i", "b", "Q", "B")))
        return "abcdefgh"[len(self.arrays) - 1]

    def pieces(self):
        shape = self.some(self.shape, (3,), (2, 3), ())
        names = [self.array(None, self.some(shape, shape, shape, (2, 3))) for _ in range(self.some(1, 2, 3))]
        return f"({', '.join(names)},)" if self.rng.integers(2) else f"[{', '.join(names)}]"

    def spd(self):
        n, d = self.some(1, 3, 4), self.some("d", "f", "D", "q")
        a = self.rng.integers(-3, 4, (*self.some((), (2,)), n, n)).astype(d)
        self.arrays.append(np.asarray(a @ np.swapaxes(a, -1, -2).conj() + 3 * np.eye(n), d))
        self.shape = self.arrays[-1].shape
        return "abcdefgh"[len(self.arrays) - 1]

    def value(self, name):
        """The text of an argument for a parameter of this name."""
        make = PARAMETERS.get(name)
        return None if make is None else make(self)

    def subscripts(self):
        return self.some(
            "'ij,ij->i'", "'i,i'", "'...,...->...'", "'ij,jk'", "'ij,kj->ki'", "'ii,i'", "'...i,...i->...'", "'ij,ij'"
        )


P = Program
PARAMETERS = {
    **dict.fromkeys("a x arr m ary array val z filt p object input element_or_array", P.first),
    **dict.fromkeys("b x1 x2 B y v1 v2 a1 a2 ar1 ar2 values test_elements src fill_value v obj_values val1 prototype", P.operand),
    **dict.fromkeys("arrays tup arys xi", P.pieces),
    **dict.fromkeys("dtype type from_ to dtype1 dtype2 arg1 arg2", P.dtype),
    "axis": P.axis, "out": P.out, "where": P.mask, "keepdims": lambda p: p.some("True", "False"),
    **dict.fromkeys("axis1 axis2 source destination", lambda p: p.some("0", "1", "-1", "2")),
    **dict.fromkeys("axes", lambda p: p.some("None", "0", "1", "(0, 1)", "(1, 0)", "(-1,)", "(0, 2)")),
    "initial": P.number, "ddof": P.small, "correction": P.small, "decimals": lambda p: p.some("0", "1", "-1", "2"),
    **dict.fromkeys("N M n k num kth shift offset minlength count ndmin deg rcond_", P.small),
    "repeats": lambda p: p.some("0", "2", "[1, 2, 0]", "[1, 0, 2, 1]", "-1", "np.array([2])"), "reps": lambda p: p.some("2", "(2, 1)", "0", "()", "(1, 2, 1)"),
    **dict.fromkeys("shape newshape new_shape dimensions dims", lambda p: p.some("(3, 4)", "-1", "(4, -1)", "12", "()", "(2, 3, 4)", "(0,)", "[4, 3]", "(5, 1)")),
    "order": lambda p: p.some("'C'", "'F'", "'A'", "'K'"), "casting": lambda p: p.some("'no'", "'safe'", "'same_kind'", "'unsafe'", "'equiv'", "'wrong'"),
    "copy": lambda p: p.some("True", "False", "None"), "mode": lambda p: p.some("'raise'", "'wrap'", "'clip'", "'full'", "'same'", "'valid'", "'edge'", "'reflect'"),
    "method": lambda p: p.some("'linear'", "'lower'", "'nearest'", "'hazen'"), "kind": lambda p: p.some("'stable'", "None", "'quicksort'", "'heapsort'"),
    "stable": lambda p: p.some("True", "None"), "side": lambda p: p.some("'left'", "'right'"), "sorter": lambda p: "None",
    "q": lambda p: p.some("0.5", "[0.1, 0.9]", "1.0", "50", "()"), "weights": lambda p: p.some("None", p.array("d", p.some(p.shape, p.shape[-1:]))),
    **dict.fromkeys("indices ind obj indices_ multi_index", P.indices), "condition": lambda p: p.array("?", p.some(p.shape, p.shape[-1:], ())),
    "mask": lambda p: p.array("?", p.shape), "vals": P.operand, "choices": P.pieces, "choicelist": P.pieces, "condlist": lambda p: f"[{p.array('?', p.shape)}]",
    "default": P.number, "bins": lambda p: p.some("3", "[0, 1, 2]", "10", p.increasing()), "range": lambda p: p.some("None", "(0, 2)", "(1, 1)"),
    "density": lambda p: p.some("True", "False"), "right": lambda p: p.some("True", "False"), "left": lambda p: p.some("None", "-1"),
    "xp": P.increasing, "fp": P.vector, "c": P.vector, "seq_of_zeros": P.vector, "start": P.number, "stop": P.number, "step": P.number,
    "endpoint": lambda p: p.some("True", "False"), "retstep": lambda p: p.some("True", "False"), "base": lambda p: p.some("10.0", "2"),
    "indices_or_sections": lambda p: p.some("2", "[1]", "3", "[1, 2, 9]", "0"), "pad_width": lambda p: p.some("1", "(1, 2)", "((1, 0), (0, 2))", "0"),
    "rtol": lambda p: p.some("1e-5", "0.5"), "atol": lambda p: p.some("1e-8", "0.0"), "equal_nan": lambda p: p.some("True", "False"),
    "to_end": P.operand, "to_begin": P.number, "prepend": P.number, "append": P.operand, "discont": lambda p: p.some("None", "4"), "period": lambda p: p.some("None", "6.25", "4"),
    "dx": P.number, "nan": lambda p: "0.5", "posinf": lambda p: "9", "neginf": lambda p: "None", "bias": lambda p: p.some("True", "False"),
    "rowvar": lambda p: p.some("True", "False"), "optimize": lambda p: p.some("True", "False"), "subscripts": P.subscripts,
    "invert": lambda p: p.some("True", "False"), "assume_unique": lambda p: "False", "return_index": lambda p: p.some("True", "False"),
    "return_inverse": lambda p: p.some("True", "False"), "return_counts": lambda p: p.some("True", "False"), "axisa": lambda p: p.some("0", "-1"),
    "axisb": lambda p: p.some("0", "-1"), "axisc": lambda p: p.some("0", "-1"), "wrap": lambda p: p.some("True", "False"), "bitorder": lambda p: p.some("'big'", "'little'"),
    "keys": P.pieces, "sparse": lambda p: p.some("True", "False"), "indexing": lambda p: p.some("'ij'", "'xy'"), "beta": P.number, "trim": lambda p: p.some("'f'", "'fb'"),
    "include_initial": lambda p: p.some("True", "False"), "dst": P.first, "d": lambda p: p.some("1.0", "0.5"), "s": lambda p: p.some("None", "(2, 2)", "(4,)"),
    "norm": lambda p: p.some("None", "'ortho'", "'forward'"), "ord": lambda p: p.some("None", "1", "2", "np.inf", "-1", "0", "'fro'", "'nuc'"),
    "full_matrices": lambda p: p.some("True", "False"), "compute_uv": lambda p: p.some("True", "False"), "hermitian": lambda p: "False", "UPLO": lambda p: p.some("'L'", "'U'"),
    "upper": lambda p: p.some("True", "False"), "rcond": lambda p: "None", "tol": lambda p: "None", "like_": lambda p: "None", "increasing": lambda p: p.some("True", "False"),
    "return_scaled": lambda p: "False", "int1": P.indices, "reducing": lambda p: p.some("np.sum", "np.max"), "maskfunc": lambda p: "np.triu",
    "condlist1": lambda p: f"[{p.array('?', p.shape)}]", "choices1": lambda p: "[1.5, 2]", "requirements": lambda p: p.some("'C'", "'F'", "['W', 'O']"),
    "scalar": P.number, "ndim": lambda p: "2", "newbyteorder_": lambda p: "'<'", "edge_order": lambda p: p.some("1", "2"), "x0": P.vector, "aweights": lambda p: "None",
    "return_sign": lambda p: "True", "subok": lambda p: p.some("True", "False"), "args": lambda p: None,
}  # fmt: skip
EMPTY = inspect.Parameter.empty


def parameters(owner, name):
    """(name, whether it must be given) of what a function or method takes."""
    if name in POSITIONAL:
        return [
            (n, k < 2 and n not in ("dtype", "axis", "order", "out", "weights")) for k, n in enumerate(POSITIONAL[name])
        ]
    try:
        found = inspect.signature(getattr(owner, name)).parameters.values()
    except ValueError:
        found = ()
    return [(p.name, p.default is EMPTY) for p in found if p.name != "self" and p.kind is not p.VAR_KEYWORD]


def arguments(p, owner, name, skip=()):
    """Texts of arguments for a call, or None where there is a parameter that nothing is known for."""
    said, positional = [], True
    for param, needed in parameters(owner, name):
        if param in skip:
            continue
        if not needed and p.rng.integers(3):
            positional = False
            continue
        text = p.value(param)
        if text is None:
            if needed:
                return None
            positional = False
            continue
        said.append(text if needed or positional else f"{param}={text}")
    return said


def ufunc_call(p):
    name = p.some(*UFUNCS)
    f = UFUNCS[name]
    method = p.some("", "", "", "reduce", "accumulate", "outer", "reduceat", "at") if f.signature is None else ""
    said = [p.first(), *(p.operand() for _ in range(f.nin - 1))]
    options = {}
    for key, make in (
        ("out", lambda: p.out() if f.nout == 1 else f"({p.out()}, {p.some('None', p.out())})"), ("where", p.mask), ("dtype", p.dtype),
        ("casting", lambda: p.value("casting")), ("order", lambda: p.value("order")), ("subok", lambda: "True"),
    ):  # fmt: skip
        if not p.rng.integers(3):
            options[key] = make()
    if "where" in options and "None" in options.get("out", "None") and method != "reduce":
        del options["where"]  # what isn't computed is whatever the memory held
    if method == "at":
        said, options = [said[0], p.indices(), *said[1:]], {}
    elif method in ("reduce", "accumulate", "reduceat"):
        said = [said[0]] + ([p.some("[0, 1]", "[1, 0]", "[0]", p.indices())] if method == "reduceat" else [])
        options = {
            k: v for k, v in options.items() if k in ("out", "dtype") + (("where",) if method == "reduce" else ())
        }
        if p.rng.integers(2):
            options["axis"] = p.axis()
        if method == "reduce" and p.rng.integers(3) == 0:
            options["keepdims"] = p.value("keepdims")
        if method == "reduce" and p.rng.integers(3) == 0:
            options["initial"] = p.number()
    elif f.signature is not None:
        options.pop("where", None)
        if p.rng.integers(4) == 0:
            options["axes"] = p.some(
                "[(0, 1), (0, 1), (0, 1)]", "[(-1, -2), (-2, -1), (-1, -2)]", "[0, 0]", "[-1, -1, ()]"
            )
        elif p.rng.integers(4) == 0:
            options[p.some("axis", "keepdims")] = p.some("0", "-1", "True")
    return f"np.{name}{'.' * bool(method)}{method}({', '.join(said + [f'{k}={v}' for k, v in options.items()])})"


def program(seed: int):
    """(text, arrays)"""
    while True:
        p = Program(np.random.default_rng(seed))
        seed += 1 << 32
        kind = p.rng.integers(5)
        if kind < 2:
            text = ufunc_call(p)
        elif kind == 2:
            name, a = p.some(*METHODS), p.first()
            said = (
                []
                if name.startswith("conj")
                else arguments(p, np.ndarray, name)
                if name in POSITIONAL
                else arguments(p, np, name, ("a",))
                if hasattr(np, name)
                else []
            )
            if name == "partition":
                said = [p.small()]
            if name in ("astype", "view", "fill", "item"):
                said = [p.number() if name == "fill" else p.dtype() if name != "item" else p.some("0", "")]
            if said is None:
                continue
            text = f"{a}.{name}({', '.join(said)})"
        else:
            module = p.some("np", "np", "np", "np", "np.linalg", "np.fft")
            name = p.some(*FUNCTIONS[module].split())
            owner = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}[module]
            if not hasattr(owner, name):
                continue
            if name in "cholesky det eigh eigvalsh inv matrix_power slogdet solve".split():
                said = [p.spd(), *{"solve": [p.operand], "matrix_power": [p.small]}.get(name, [])]
                said = [s if isinstance(s, str) else s() for s in said]
            else:
                said = arguments(p, owner, name)
            if said is None:
                continue
            text = f"{module}.{name}({', '.join(said)})"
        ends = ("cumsum", "cumprod", "accumulate", "cumulative_sum", "cumulative_prod")
        crashes = (
            len(p.arrays) > 0 and any(x.ndim == 0 for x in p.arrays) and any(n in text for n in ends)
        )  # NumPy 2.4 does, without us
        if len(p.arrays) <= 8 and not crashes:
            break
    names = ", ".join("abcdefgh"[: len(p.arrays)])
    body = (
        "    return {}"
        if not p.arrays
        else p.some(
            "    return {}",
            "    return {}",
            "    y = {}\n    return y, a + 1 if a.dtype.kind == 'd' else a",
            "    y = {}\n    if isinstance(y, np.ndarray) and y.size and y.flags.writeable:\n        y[...] = 1\n    return y, a",
        )
    )
    return f"def f({names}):\n{body.format(text)}\n", tuple(p.arrays)


def function(text):
    """What the text of a program defines."""
    scope = {"np": np}
    exec(compile(text, "<program>", "exec"), scope)
    return scope["f"]
