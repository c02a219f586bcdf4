"""In-place and out= forms of flambeau's operators beside PyTorch's: what is refused, in which words, and what a call leaves behind.

    python tools/write_sweep.py [--only REGEX] [--state writes.json]     # where PyTorch is installed

Each entry of PyTorch's operator database that has such a form is called in the situations below. Compared: the exception (type and first line) or
the result's dtype, shape, strides and values, whether the written tensor itself is returned, its version, warnings. What is refused has to leave the
tensor and its version as they were.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import sys
import warnings

import layout_sweep as S
import numpy as np
import op_coverage as C

SAMPLES = 2

# What differs and stays: (entries, form, situations, reason). A case that no row explains is a defect.
REASONS = (
    (r"", "out", "requires grad", "one error for every out= that meets autograd; PyTorch's parts of a composite word their own"),
    (r"cat|.*stack", "out", "int64|bool", "RuntimeError as everywhere; PyTorch's cat has TypeError"),
    (r"", "out", "larger", "whether a factory warns that it resizes; linspace without points keeps PyTorch's larger tensor"),
    (r".*softmax|tril|triu", "out", "shifted", "PyTorch reads what it has overwritten"),
    (r"linalg\.matrix_power|.*avg_pool2d", "out", "itself", "PyTorch reads what it has overwritten"),
    (r".*(avg_pool3d|gelu)|narrow_copy", "out", "transposed", "PyTorch's kernel writes as if out= were row-major"),
    (r"randn|normal", "out", "transposed|itself|complex64", "the order in which draws are laid out"),
    (r"empty", "out", "empty", "nothing is defined about its values, nor that it counts as a write"),
    (r"kron", "out", "empty|float64|complex64|transposed", "PyTorch doesn't count the write"),
    (
        r"bitwise|gcd|lcm|addmv|baddbmm|conj_physical|tril|triu|index_put|masked_fill|resize_|float_power|.*(dropout3d|threshold)",
        "inplace",
        "expanded",
        "overlapping memory is refused, or computed before it is written; PyTorch's oldest kernels write in the order of their loops",
    ),
    (r"logical_|float_power", "inplace", "leaf|view of leaf", "a leaf that asks for a gradient is never overwritten"),
    (r"addr|addmm|addmv|addbmm|baddbmm", "inplace", "plain|one row|int64|bool|float64", "a shape that doesn't fit, in one wording"),
    (r"masked_scatter|scatter|put", "inplace", "one row", "an index out of bounds is IndexError and RuntimeError"),
    (r"resize_", "inplace", "one row", "PyTorch's tensors over NumPy's memory have no room to grow"),
    (r"cumprod|cumsum|nansum", "out", "bool|int64", "computed in the dtype of out=, for which PyTorch has no kernel"),
    (
        r"bernoulli|nan(sum|mean)|std|var|fft\.|.*logsigmoid|inner|linalg\.matrix_power",
        "out",
        "complex64|float64",
        "a wider dtype than the result's loses nothing; PyTorch has no kernel for it",
    ),
    (
        r"linalg\.(householder|lu_solve)|lu_solve|ormqr|nonzero|fft\.",
        "out",
        "empty",
        "strides of a resized out= of one column, or of a result that PyTorch makes in steps",
    ),
    (r"slice_scatter|.*logsigmoid", "out", "shifted", "memory that is read may not be written in part"),
    (
        r"isneginf|isposinf|signbit|heaviside|where|multinomial",
        "out",
        "int64|float64|complex64",
        "the dtype is refused in other words",
    ),
    (r"_chunk_cat", "out", "int64|bool", "the dtype is refused; PyTorch shows a trace of its C++"),
    (r".*feature_alpha_dropout", "inplace", "bool", "the subtraction of truth values is refused first"),
)  # fmt: skip


def reason(name, form, situation):
    """Why a case differs, "" when nothing explains it."""
    return next((why for p, f, s, why in REASONS if form == f and situation in s.split("|") and re.match(p, name)), "")


def outcome(lib, call, target):
    """What a call does, as a dictionary to compare."""
    before, version = C.array(target).copy() if target.numel() else None, target._version
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            got = C.seeded(call)
        except Exception as e:
            kept = target._version == version and (before is None or same_values(C.array(target), before))
            return {"error": type(e).__name__, "text": words(e), "kept": kept}
    shown = {re.sub(r"\d+", "N", str(w.message))[:40] for w in caught if "resized" in str(w.message)}
    return {
        "returns it": got is target,
        "version": target._version - version > 0,
        "dtype": str(target.dtype).removeprefix("torch."),
        "shape": tuple(target.shape),
        "stride": tuple(target.stride()),
        "requires_grad": target.requires_grad,
        "warned": sorted(shown),
        "values": C.array(target).copy(),
    }


def same_values(a, b):
    return a.shape == b.shape and np.allclose(np.nan_to_num(a), np.nan_to_num(b), rtol=2e-3, atol=2e-3)


def words(e):
    text = str(e).split("\n")[0]
    return re.sub(r"\s+", " ", text)[:200]


def difference(got, want):
    """None, or what differs."""
    if "error" in want or "error" in got:
        if "error" not in got:
            return f"no error; PyTorch {want['error']}: {want['text']}"
        if "error" not in want:
            return f"{got['error']}: {got['text']}; PyTorch does it"
        if got["error"] != want["error"] and not {got["error"], want["error"]} <= {
            "RuntimeError",
            "NotImplementedError",
        }:
            return f"{got['error']}: {got['text']}; PyTorch {want['error']}: {want['text']}"
        if not got["kept"] and want["kept"]:
            return f"half written ({got['text']})"
        return None if alike(got["text"], want["text"]) else f"TEXT {got['text']}; PyTorch: {want['text']}"
    for k in ("returns it", "version", "dtype", "shape", "stride", "requires_grad", "warned"):
        if got[k] != want[k]:
            return f"{k}: {got[k]}, PyTorch {want[k]}"
    return None if same_values(got["values"], want["values"]) else "values"


# One refusal in PyTorch's many wordings: the dtype of what is written to doesn't fit.
DTYPE = re.compile(
    r"dtype|can't be cast|scalar.?type|safely castable|(complex|floating point) (output tensor|type)|not implemented for|bool tensors?|"
    r"boolean tensor|expected .* but found|must be same",
    re.IGNORECASE,
)


def alike(a, b):
    """Whether two texts say the same: both refuse a dtype, or most of the longer words of PyTorch's are in ours."""
    if DTYPE.search(a) and DTYPE.search(b):
        return True
    x, y = (set(re.findall(r"[a-z]{4,}", t.lower())) for t in (a, b))
    return not y or len(x & y) >= 0.6 * len(y)


# ---- situations ----------------------------------------------------------------------------------------------------------


def as_dtype(lib, t, name):
    return t.detach().to(getattr(lib, name))


def leaf(lib, t):
    return t.detach().clone().requires_grad_() if t.is_floating_point() else None


def view_of_leaf(lib, t):
    if not t.is_floating_point() or not t.ndim:
        return None
    return t.detach().clone().requires_grad_()[:]


def expanded(lib, t):
    return t.detach()[:1].clone().expand(t.shape) if t.ndim and t.shape[0] > 1 else None


INPLACE = {
    "plain": lambda lib, t: t.detach().clone(),
    "int64": lambda lib, t: as_dtype(lib, t, "int64"),
    "bool": lambda lib, t: as_dtype(lib, t, "bool"),
    "float64": lambda lib, t: as_dtype(lib, t, "float64"),
    "one row": lambda lib, t: t.detach()[:1].clone() if t.ndim and t.shape[0] > 1 else None,
    "expanded": expanded,
    "leaf": leaf,
    "view of leaf": view_of_leaf,
    "transposed": lambda lib, t: t.detach().clone().mT.contiguous().mT if t.ndim > 1 else None,
}


def situations_inplace(entry):
    variant = entry.inplace_variant
    if variant is None:
        return
    name = getattr(variant, "__name__", "")
    mine_fn = C.rebuilt(variant) if name == "<lambda>" else getattr(C.B.Tensor, name, None)
    if mine_fn is None:
        return
    for sample in C.samples_of(entry, n=SAMPLES):
        if not isinstance(sample.input, C.T.Tensor):
            continue
        for situation, change in INPLACE.items():
            theirs = (sample.input, *sample.args)
            mine, kwargs = S.carry(theirs), S.carry(sample.kwargs)
            try:
                t, m = change(C.T, theirs[0]), change(C.B, mine[0])
            except Exception:  # noqa: S112 - no such situation for this tensor
                continue
            if t is None or m is None:
                continue
            yield situation, (
                lambda t=t, a=theirs[1:], k=sample.kwargs: variant(t, *a, **k), t,
                lambda m=m, a=mine[1:], k=kwargs: mine_fn(m, *a, **k), m,
            )  # fmt: skip


REFUSED = {
    "error": "RuntimeError",
    "text": "unsupported operation: more than one element of the written-to tensor refers to a single memory location.",
    "kept": True,
}


def out_of(lib, w, how):
    """The tensor that is written to, like the result ``w`` in a situation."""
    shape, kind = tuple(w.shape), w.dtype
    if how == "empty":
        return lib.empty(0, dtype=kind)
    if how == "larger":
        return lib.zeros((3, *shape), dtype=kind)
    if how == "int64":
        return lib.zeros(shape, dtype=lib.int64)
    if how == "float64":
        return lib.zeros(shape, dtype=lib.float64)
    if how == "complex64":
        return lib.zeros(shape, dtype=lib.complex64)
    if how == "bool":
        return lib.zeros(shape, dtype=lib.bool)
    if how == "expanded":
        return lib.zeros((), dtype=kind).expand(shape) if w.numel() > 1 else None
    if how == "transposed":
        return lib.zeros((*shape[:-2], shape[-1], shape[-2]), dtype=kind).transpose(-1, -2) if len(shape) > 1 else None
    if how == "requires grad":
        return lib.zeros(shape, dtype=kind).requires_grad_() if kind.is_floating_point else None
    if how == "meta":
        return lib.zeros(shape, dtype=kind, device="meta")
    raise KeyError(how)


OUT = (
    "empty",
    "larger",
    "int64",
    "float64",
    "complex64",
    "bool",
    "expanded",
    "transposed",
    "requires grad",
    "itself",
    "shifted",
)


def situations_out(entry):
    if not entry.supports_out:
        return
    try:
        fn = C.ours(entry)
    except AttributeError:
        return
    for sample in C.samples_of(entry, n=SAMPLES):
        theirs = (sample.input, *sample.args)
        try:
            w = C.seeded(lambda: entry.op(*theirs, **sample.kwargs))  # noqa: B023
        except Exception:  # noqa: S112
            continue
        if not isinstance(w, C.T.Tensor) or w.layout is not C.T.strided:
            continue
        for how in OUT:
            mine, kwargs = S.carry(theirs), S.carry(sample.kwargs)
            args, args_mine = theirs, mine
            if how in ("itself", "shifted"):
                x = sample.input
                if (
                    not isinstance(x, C.T.Tensor)
                    or tuple(x.shape) != tuple(w.shape)
                    or x.dtype != w.dtype
                    or not x.ndim
                    or not x.numel()
                ):
                    continue
                pair = []
                for lib, first, rest in ((C.T, x.detach(), theirs[1:]), (C.B, mine[0], mine[1:])):
                    room = lib.zeros((first.shape[0] + 1, *first.shape[1:]), dtype=first.dtype)
                    room[:-1] = first
                    a = room[:-1]
                    pair.append(((a, *rest), a if how == "itself" else room[1:]))
                (args, t), (args_mine, m) = pair
            else:
                v = w
                t = out_of(C.T, v, how)
                mirror = S.carry(v.detach())
                m = out_of(C.B, mirror, how)
            if t is None or m is None:
                continue
            yield how, (
                lambda t=t, a=args, k=sample.kwargs: entry.op(*a, **k, out=t), t,
                lambda m=m, a=args_mine, k=kwargs: fn(*a, **k, out=m), m,
            )  # fmt: skip


def sweep(entry):
    wrong, cases = [], collections.Counter()
    for form, table in (("inplace", situations_inplace), ("out", situations_out)):
        try:
            for situation, (their_call, t, my_call, m) in table(entry):
                # NOTE: kernels of PyTorch's that don't look (avg_pool3d) write beyond an expanded out= and ruin the heap of the process.
                want = REFUSED if situation == "expanded" and form == "out" else outcome(C.T, their_call, t)
                got = outcome(C.B, my_call, m)
                cases[form] += 1
                d = difference(got, want)
                if d is not None:
                    wrong.append([form, situation, d])
        except Exception as e:
            wrong.append([form, "set up", f"{type(e).__name__}: {e}".split("\n")[0][:150]])
    return wrong, cases


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--only", default="", help="regular expression of entries")
    p.add_argument("--state", default="")
    p.add_argument("--show", type=int, default=4)
    a = p.parse_args()
    C.load()
    state = {}
    for entry in C.op_db:
        name = C.label(entry)
        if (a.only and not re.search(a.only, name)) or any(re.match(pattern, name) for pattern in C.OUT):
            continue
        if entry.inplace_variant is None and not entry.supports_out:
            continue
        wrong, cases = sweep(entry)
        state[name] = {"wrong": wrong, "cases": cases}
        unexplained = [row for row in wrong if not reason(name, *row[:2])]
        if unexplained and a.show:
            print(name, flush=True)
            for row in unexplained[: a.show]:
                print("   ", *row, flush=True)
    if a.state:
        with open(a.state, "w", encoding="utf-8") as f:
            json.dump(state, f, indent=0)
    for form in ("inplace", "out"):
        mine = [s for s in state.values() if s["cases"].get(form)]
        right = sum(not any(w[0] == form for w in s["wrong"]) for s in mine)
        cases, bad = sum(s["cases"][form] for s in mine), sum(w[0] == form for s in mine for w in s["wrong"])
        known = sum(bool(reason(n, *w[:2])) for n, s in state.items() for w in s["wrong"] if w[0] == form)
        print(f"{form:8} entries {right} of {len(mine)}, cases {cases - bad} of {cases}, explained {known} of {bad}")


if __name__ == "__main__":
    sys.exit(main())
