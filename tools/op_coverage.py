"""flambeau beside PyTorch's operator database: every entry, facet by facet, and the table docs/reference/coverage.md.

    python tools/op_coverage.py --facets forward,gradient --state coverage.json      # where PyTorch is installed
    python tools/op_coverage.py --state coverage.json --report docs/reference/coverage.md      # write the table from what is in the state

Each entry runs in a child process with a time limit, so that a crash or an endless loop is one failed cell. The state file keeps what is done;
a second run goes on from there (``--again`` names entries to run once more). Samples are PyTorch's, carried over through NumPy.
"""

# ruff: noqa: B023 - the closures are called before the loop goes on
from __future__ import annotations

import argparse
import collections
import functools
import json
import os
import re
import signal
import sys
import time
import types
import warnings

import numpy as np

FACETS = (
    "forward", "gradient", "second", "method", "inplace", "out", "forward_ad", "forward_over_reverse", "vmap", "errors", "noncontiguous", "zero_size",
    "compiled", "compiled_gradient",
    "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128",
)  # fmt: skip
DTYPES = FACETS[FACETS.index("float64") :]
SAMPLES = 6


class Different(Exception):
    """flambeau's result isn't PyTorch's."""


# ---- from one library to the other ---------------------------------------------------------------------------------------


def convert(x):
    """A sample of PyTorch's as flambeau's: tensors keep values, dtype, strides and whether they need a gradient."""
    if isinstance(x, T.Tensor):
        return tensor(x)
    if isinstance(x, T.dtype):
        return getattr(B, str(x).removeprefix("torch."))
    if isinstance(x, (T.memory_format, T.layout)):
        return getattr(B, str(x).removeprefix("torch."))
    if isinstance(x, T.nn.LinearCrossEntropyOptions):
        return B.nn.LinearCrossEntropyOptions(x.allow_retain_graph, x.batch_chunk_size, x.chunking_method)
    if isinstance(x, T.device):
        return B.device(str(x))
    if isinstance(x, T.Generator):
        return B.Generator().manual_seed(x.initial_seed())
    if isinstance(x, T.Size):
        return B.Size(x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(convert, x))
    if isinstance(x, (list, tuple)):
        return type(x)(map(convert, x))
    if isinstance(x, dict):
        return {k: convert(v) for k, v in x.items()}
    if callable(x) and (getattr(x, "__module__", None) or "").startswith("torch."):
        if isinstance(x, T.nn.Module):
            return getattr(B.nn, type(x).__name__)()
        return (
            getattr(B.nn.functional, getattr(x, "__name__", ""), None)
            or getattr(B, getattr(x, "__name__", ""), None)
            or rebuilt(x)
        )
    if isinstance(x, slice):
        return slice(*map(convert, (x.start, x.stop, x.step)))
    return x


def tensor(t):
    if t.layout is not T.strided:
        return sparse(t)
    if t.ndim > 64:
        raise Different("NumPy has 64 dimensions at most")
    if t.device.type == "meta":
        return B.empty_strided(tuple(t.shape), t.stride(), dtype=convert(t.dtype), device="meta")
    if SHARED is not None and not t.is_conj():
        if id(t) not in SHARED:  # one tensor given twice is one tensor; ``t`` is kept, so that its id stays its own
            made = shared(t.detach()).detach().requires_grad_() if t.requires_grad else shared(t)
            SHARED[id(t)] = t, made
        return SHARED[id(t)][1]
    return dense(t)


def dense(t):
    """A tensor of its own, with the same strides."""
    data = t.detach().resolve_conj().resolve_neg()
    name = str(t.dtype).removeprefix("torch.")
    plain = data.float() if name in ("bfloat16", "float16") else data
    made = B.from_numpy(np.array(plain.numpy(), copy=True))
    made = made.to(getattr(B, name)) if name in ("bfloat16", "float16") else made
    if not data.is_contiguous() and data.numel() and all(s > 0 for n, s in zip(data.shape, data.stride()) if n > 1):
        span = sum((n - 1) * s for n, s in zip(data.shape, data.stride())) + 1
        room = B.zeros(span, dtype=made.dtype).as_strided(tuple(data.shape), tuple(data.stride()))
        made = room.copy_(made)
    return made.requires_grad_() if t.requires_grad else made


# While error inputs, and samples of operators on memory, are carried over: storages by address, so that what overlaps there does here.
SHARED: dict | None = None


def on_memory(x):
    """A sample, or several tensors, in storages like PyTorch's."""
    global SHARED
    SHARED = {}
    try:
        return convert(x)
    finally:
        SHARED = None


def shared(t):
    """A view of the storage's counterpart."""
    key = (t.untyped_storage().data_ptr(), t.dtype)
    if key not in SHARED:
        n = t.untyped_storage().nbytes() // t.element_size()
        whole = T.empty(0, dtype=t.dtype).set_(t.untyped_storage(), 0, (n,), (1,))
        SHARED[key] = dense(whole.clone())
    return SHARED[key].as_strided(tuple(t.shape), t.stride(), t.storage_offset())


def sparse(t):
    """A sparse sample, from its parts."""
    d = t.detach()
    if t.layout is T.sparse_coo:
        made = B.sparse_coo_tensor(
            tensor(d._indices()), tensor(d._values()), tuple(t.shape), is_coalesced=t.is_coalesced() or None
        )
    else:
        names = ("crow_indices", "col_indices") if "r" == str(t.layout)[-1] else ("ccol_indices", "row_indices")
        held = (tensor(getattr(d, n)()) for n in (*names, "values"))
        made = B.sparse_compressed_tensor(
            *held, tuple(t.shape), layout=getattr(B, str(t.layout).removeprefix("torch."))
        )
    return made.requires_grad_() if t.requires_grad else made


def with_seed(op, *args, **kwargs):
    """What the database's random entries are wrapped in."""
    B.manual_seed(42)
    return op(*args, **kwargs)


def rebuilt(fn):
    """A function of the database's own, running on flambeau."""
    if not isinstance(fn, types.FunctionType):
        return fn
    space = {**fn.__globals__, "torch": B, "F": B.nn.functional, "wrapper_set_seed": with_seed}
    return types.FunctionType(fn.__code__, space, fn.__name__, fn.__defaults__, fn.__closure__)


def processed(sample, lib, result):
    """What of a result is determined: the database's samples say it (eigenvectors up to their phases ...)."""
    fn = sample.output_process_fn_grad
    return fn(result) if lib is T else rebuilt(fn)(result)


def ours(entry):
    """flambeau's function for an entry of the database."""
    fn = entry.op
    module = getattr(fn, "__module__", None) or ""
    if isinstance(fn, types.FunctionType) and module.startswith("torch.testing"):
        return rebuilt(fn)
    at = B
    for part in entry.name.removeprefix("torch.").split("."):
        at = getattr(at, part, None)
        if at is None:
            break
    if not callable(at):
        at = getattr(B.Tensor, entry.name, None) or getattr(B, getattr(entry.op, "__name__", ""), None)
    if at is None:
        raise AttributeError(f"no {entry.name}")
    return at


def flat(x):
    if isinstance(x, (list, tuple)):
        return [z for y in x for z in flat(y)]
    if isinstance(x, dict):
        return [z for y in x.values() for z in flat(y)]
    return [x]


def array(t):
    t = t.detach()
    t = t.to_dense() if str(t.layout) != "torch.strided" else t
    if isinstance(t, T.Tensor) and t._is_zerotensor():
        t = T.zeros(t.shape, dtype=t.dtype)
    if "float16" in str(t.dtype):
        t = t.float()
    return t.resolve_conj().resolve_neg().numpy()


_RTOL = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 2e-3, "complex64": 2e-3, "float64": 1e-5, "complex128": 1e-5}


def same(got, want, values=True):
    got, want = flat(got), flat(want)
    if len(got) != len(want):
        raise Different(f"{len(got)} results, PyTorch {len(want)}")
    for g, w in zip(got, want):
        if not isinstance(w, T.Tensor):
            if isinstance(w, (int, float, complex, bool)) and values and not np.allclose(g, w, equal_nan=True):
                raise Different(f"{g!r}, PyTorch {w!r}")
            continue
        if not isinstance(g, B.Tensor):
            raise Different(f"{type(g).__name__}, PyTorch a tensor")
        if str(g.dtype) != str(w.dtype):
            raise Different(f"{g.dtype}, PyTorch {w.dtype}")
        if tuple(g.shape) != tuple(w.shape):
            raise Different(f"shape {tuple(g.shape)}, PyTorch {tuple(w.shape)}")
        if not values or w.layout is not T.strided:
            continue
        a, b = array(g), array(w)
        tol = _RTOL.get(str(w.dtype).removeprefix("torch."))
        if tol is None:
            if not np.array_equal(a, b):
                raise Different("values")
        elif not np.allclose(a, b, rtol=tol, atol=tol, equal_nan=True):
            raise Different(f"values: {np.abs(np.nan_to_num(a) - np.nan_to_num(b)).max()} apart")


def seeded(fn):
    T.manual_seed(0)
    B.manual_seed(0)
    return fn()


def is_random(entry, call):
    try:
        first = [array(o) for o in flat(seeded(call)) if isinstance(o, T.Tensor)]
        T.manual_seed(1)
        second = [array(o) for o in flat(call()) if isinstance(o, T.Tensor)]
    except Exception:
        return False
    return any(
        a.shape == b.shape and not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(first, second)
    )


# ---- facets: each runs the samples and returns how many there were -------------------------------------------------------


# Entries whose results have elements that nothing has written, and those that look at memory.
UNWRITTEN = re.compile(r"(new_)?empty(_like|_strided|_permuted)?$")
ON_MEMORY = re.compile(r"as_strided")
# Which of equal elements comes first isn't specified: entry -> (position of ``dim`` after the input, of the places among the results).
PLACES = {"sort": (0, 1), "argsort": (0, None), "topk": (1, 1), "kthvalue": (1, 1)}


def settled(entry, sample, result):
    """``result`` with the elements at its places instead of the places."""
    if entry.name not in PLACES or not isinstance(sample.input, T.Tensor) or not sample.input.ndim:
        return result
    position, which = PLACES[entry.name]
    dim = sample.kwargs.get("dim", sample.args[position] if len(sample.args) > position else -1)

    def elements(places):
        at = T.from_numpy(np.array(array(places)))
        at = at if at.ndim == sample.input.ndim else at.unsqueeze(dim)
        found = sample.input.detach().resolve_conj().gather(dim, at)
        return found if isinstance(places, T.Tensor) else tensor(found)

    if which is None:
        return elements(result)
    return [elements(r) if i == which else r for i, r in enumerate(result)]


def samples_of(entry, dtype="float32", grad=False, n=SAMPLES):
    out = []
    for s in entry.sample_inputs("cpu", getattr(T, dtype), requires_grad=grad):
        out.append(s)
        if len(out) == n:
            break
    return out


def pairs(entry, dtype="float32", grad=False, n=SAMPLES, fn=None, change=lambda s: s, values=True, whole=False):
    """Runs both sides on each sample; yields what they gave and got."""
    fn = fn or ours(entry)
    carried = on_memory if ON_MEMORY.match(entry.name) else convert
    for sample in samples_of(entry, dtype, grad, n):
        try:
            s = change(sample)
        except Exception:  # noqa: S112 - there is no such sample
            continue
        theirs = (s.input, *s.args)
        mine = carried(theirs)
        kwargs = convert(s.kwargs)
        try:
            want = seeded(lambda: entry.op(*theirs, **s.kwargs))
        except Exception:  # noqa: S112 - a sample that PyTorch itself refuses says nothing
            continue
        got = seeded(lambda: fn(*mine, **kwargs))
        if not whole:
            want, got = settled(entry, s, processed(s, T, want)), settled(entry, s, processed(s, B, got))
        yield mine, kwargs, theirs, s.kwargs, want, got, s


def forward(entry, dtype="float32", **kw):
    n, random = 0, False
    for _, _, theirs, their_kwargs, want, got, _ in pairs(entry, dtype, **kw):
        if not random:
            random = is_random(entry, lambda: entry.op(*theirs, **their_kwargs))
        same(got, want, values=not random and not UNWRITTEN.match(entry.name))
        n += 1
    return n


def leaves(x, kind):
    return [t for t in flat(x) if isinstance(t, kind) and t.requires_grad]


def gradient(entry, second=False, **kw):
    n = 0
    kw = {"n": 4 if second else SAMPLES, **kw}
    for mine, kwargs, theirs, their_kwargs, want, got, _ in pairs(
        entry, "float64" if second else "float32", grad=True, **kw
    ):
        results = []
        for lib, out, args in ((T, want, (theirs, their_kwargs)), (B, got, (mine, kwargs))):
            inputs = leaves(args, lib.Tensor)
            outs = [o for o in flat(out) if isinstance(o, lib.Tensor) and o.requires_grad]
            if not outs or not inputs:
                results.append(None)
                continue
            seeds = [lib.ones_like(o) for o in outs]
            try:
                grads = lib.autograd.grad(outs, inputs, seeds, allow_unused=True, create_graph=second)
                if second:
                    outs = [g for g in grads if g is not None and g.requires_grad]
                    ones = [lib.ones_like(o) for o in outs]
                    # Of a linear function the gradient may or may not hang on the inputs; its derivative is 0 either way.
                    grads = lib.autograd.grad(outs, inputs, ones, allow_unused=True) if outs else [None] * len(inputs)
            except RuntimeError:
                if lib is T:
                    results = None
                    break
                raise
            results.append(grads)
        if results is None or results[0] is None:
            continue
        if results[1] is None:
            if any(g is not None and np.any(array(g)) for g in results[0]):
                raise Different("no gradient")
            continue
        for g, w in zip(results[1], results[0]):
            if w is None or g is None:
                other = g if w is None else w
                if other is not None and np.any(array(other)):
                    raise Different("a gradient on one side only")
            else:
                same(g, w)
        n += 1
    return n


def method(entry):
    variant = entry.method_variant
    if variant is None:
        return None
    name = variant.__name__
    return forward(entry, fn=rebuilt(variant) if name == "<lambda>" else getattr(B.Tensor, name), n=4)


def inplace(entry):
    variant = entry.inplace_variant
    if variant is None:
        return None
    name = getattr(variant, "__name__", "")
    if isinstance(variant, functools.partial):
        mine_fn = functools.partial(getattr(B.nn.functional, variant.func.__name__), *variant.args, **variant.keywords)
    else:
        mine_fn = rebuilt(variant) if name == "<lambda>" else getattr(B.Tensor, name)
    n = 0
    for sample in samples_of(entry, n=4):
        mine, kwargs = convert((sample.input, *sample.args)), convert(sample.kwargs)
        target = mine[0]
        try:
            want = seeded(lambda: variant(sample.input, *sample.args, **sample.kwargs))
        except Exception:  # noqa: S112
            continue
        got = seeded(lambda: mine_fn(*mine, **kwargs))
        if got is not target:
            raise Different("it doesn't return its first argument")
        same(got, want)
        n += 1
    return n


def out(entry):
    if not entry.supports_out:
        return None
    fn, n = ours(entry), 0
    for mine, kwargs, theirs, their_kwargs, want, _, sample in pairs(entry, n=3, whole=True):
        if not all(isinstance(w, T.Tensor) for w in flat(want)):
            continue
        many = isinstance(want, (tuple, list))
        targets = [T.empty(0, dtype=w.dtype) for w in flat(want)]
        try:
            entry.op(*theirs, **their_kwargs, out=tuple(targets) if many else targets[0])
        except Exception:  # noqa: S112 - not with these arguments
            continue
        empty = [B.empty(0, dtype=convert(w.dtype)) for w in flat(want)]
        got = seeded(lambda: fn(*mine, **kwargs, out=tuple(empty) if many else empty[0]))
        for g, e in zip(empty if got is None else flat(got), empty):
            if g is not e:
                raise Different("it doesn't return out")
        got = type(want)(*empty) if hasattr(want, "_fields") else tuple(empty) if many else empty[0]
        want, got = (
            settled(entry, sample, processed(sample, T, want)),
            settled(entry, sample, processed(sample, B, got)),
        )
        same(got, want, values=not UNWRITTEN.match(entry.name))
        n += 1
    return n


def first_tensors(args):
    return [
        i
        for i, a in enumerate(args)
        if hasattr(a, "dtype") and hasattr(a, "is_floating_point") and a.is_floating_point()
    ]


def forward_ad(entry):
    if not entry.supports_forward_ad:
        return None
    fn, n = ours(entry), 0
    for mine, kwargs, theirs, their_kwargs, _, _, sample in pairs(entry, "float64", n=3):
        at = first_tensors(theirs)
        if not at:
            continue

        def at_only(lib, f, args, kw, at=at, sample=sample):
            def g(*xs):
                full = list(args)
                for i, x in zip(at, xs):
                    full[i] = x
                return processed(sample, lib, f(*full, **kw))

            return g

        tangents = [T.ones_like(theirs[i]) for i in at]
        try:
            want = T.func.jvp(
                at_only(T, entry.op, theirs, their_kwargs), tuple(theirs[i] for i in at), tuple(tangents)
            )[1]
        except Exception:  # noqa: S112
            continue
        got = B.func.jvp(at_only(B, fn, mine, kwargs), tuple(mine[i] for i in at), tuple(convert(tangents)))[1]
        same(got, want)
        n += 1
    return n


def slope(t):
    """A direction in which no two elements change alike."""
    ramp = T.linspace(0.5, 1.5, max(t.numel(), 1), dtype=T.float64)[: t.numel()].reshape(t.shape)
    return (T.complex(ramp, 1 - ramp) if t.is_complex() else ramp).to(t.dtype)


def duals(lib, sample, fn, args, kwargs):
    """Tangents of what ``fn`` gives and, where the database says that PyTorch has them, of its gradients, on dual numbers."""
    forward_ad = lib.autograd.forward_ad
    mine = (lambda t: t) if lib is T else convert
    back = (lambda t: t) if lib is T else (lambda t: T.from_numpy(np.array(array(t))))

    def lift(x):
        if isinstance(x, lib.Tensor) and x.requires_grad and str(x.layout) == "torch.strided":
            leaf = x.detach().clone().requires_grad_()
            found.append(forward_ad.make_dual(leaf, mine(slope(back(x)))))
            return found[-1]
        if isinstance(x, (list, tuple)):
            made = [lift(y) for y in x]
            return type(x)(*made) if hasattr(x, "_fields") else type(x)(made)
        return {k: lift(v) for k, v in x.items()} if isinstance(x, dict) else x

    found: list = []
    with forward_ad.dual_level():
        lifted = lift((tuple(args), dict(kwargs)))
        out = processed(sample, lib, seeded(lambda: fn(*lifted[0], **lifted[1])))
        outs = [o for o in flat(out) if isinstance(o, lib.Tensor) and (o.is_floating_point() or o.is_complex())]
        tangents = [forward_ad.unpack_dual(o).tangent for o in outs]
        asking = [o for o in outs if o.requires_grad]
        if not asking or not found:
            return tangents, []
        cts = [mine(slope(back(o))) for o in asking]
        # NOTE: while its gradients aren't recorded PyTorch's formulas read factors that have no tangent (linalg.det, linalg.solve).
        grads = lib.autograd.grad(asking, found, cts, allow_unused=True, create_graph=lib is T)
        return tangents, [None if g is None else forward_ad.unpack_dual(g).tangent for g in grads]


def forward_over_reverse(entry):
    if not entry.supports_fwgrad_bwgrad:
        return None
    fn, n = ours(entry), 0
    for mine, kwargs, theirs, their_kwargs, _, _, sample in pairs(entry, "float64", grad=True, n=4):
        try:
            want = duals(T, sample, entry.op, theirs, their_kwargs)
        except Exception:  # noqa: S112 - not with these arguments
            continue
        got = duals(B, sample, fn, mine, kwargs)
        for g, w in zip(got, want, strict=True):
            for a, b in zip(g, w, strict=True):  # none and zeros are the same derivative
                if a is None or b is None:
                    other = b if a is None else a
                    if other is not None and np.any(array(other)):
                        raise Different("a tangent on one side only")
                else:
                    same(a, b)
        n += 1
    return n


def vmap(entry):
    fn, n = ours(entry), 0
    for _mine, kwargs, theirs, their_kwargs, want, _, sample in pairs(entry, n=3):
        at = first_tensors(theirs)
        if not at:
            continue
        dims = tuple(0 if i in at else None for i in range(len(theirs)))
        try:
            stacked = tuple(T.stack([a, a]) if i in at else a for i, a in enumerate(theirs))
            want = T.func.vmap(lambda *a: processed(sample, T, entry.op(*a, **their_kwargs)), dims)(*stacked)
        except Exception:  # noqa: S112
            continue
        got = B.func.vmap(lambda *a: processed(sample, B, fn(*a, **kwargs)), dims)(*convert(stacked))
        same(got, want, values=not UNWRITTEN.match(entry.name))
        n += 1
    return n


def compiled(entry):
    fn = ours(entry)
    return forward(entry, fn=B.compile(lambda *a, **k: fn(*a, **k)), n=2)


def compiled_gradient(entry):
    fn = ours(entry)
    return gradient(entry, fn=B.compile(lambda *a, **k: fn(*a, **k)), n=2)


def errors(entry):
    if entry.error_inputs_func is None:
        return None
    fn, n = ours(entry), 0
    for e in entry.error_inputs("cpu"):
        s = e.sample_input
        try:
            args, kwargs = on_memory(((s.input, *s.args), s.kwargs))
        except (Different, AttributeError):
            continue
        try:
            entry.op(s.input, *s.args, **s.kwargs)
        except Exception:  # noqa: S110 - as the database says
            pass
        else:
            continue  # the database says more than PyTorch holds
        kinds = e.error_type if isinstance(e.error_type, tuple) else (e.error_type,)
        names = {k.__name__ for k in kinds}
        try:
            fn(*args, **kwargs)
        except Exception as got:
            if not names & {k.__name__ for k in type(got).__mro__}:
                raise Different(f"{type(got).__name__} ({str(got)[:60]}), PyTorch {'/'.join(names)}") from got
        else:
            raise Different(f"no error, PyTorch {'/'.join(names)}: {str(e.error_regex)[:60]}")
        n += 1
    return n


def noncontiguous(entry):
    return forward(entry, change=lambda s: s.noncontiguous(), n=4)


def zero_size(entry):
    """Each tensor of a sample cut to no elements along its first dimension, where PyTorch takes that."""
    cut = lambda x: x[:0] if isinstance(x, T.Tensor) and x.ndim else x  # noqa: E731
    return forward(entry, change=lambda s: s.transform(cut), n=4)


def in_dtype(name):
    def run(entry):
        if getattr(T, name) not in entry.dtypes:
            return None
        return forward(entry, name, n=3)

    return run


RUN = {
    "forward": forward,
    "gradient": lambda e: gradient(e) if e.supports_autograd else None,
    "second": lambda e: gradient(e, True) if e.supports_autograd and e.supports_gradgrad else None,
    "method": method, "inplace": inplace, "out": out, "forward_ad": forward_ad,
    "forward_over_reverse": forward_over_reverse, "vmap": vmap, "errors": errors,
    "noncontiguous": noncontiguous, "zero_size": zero_size, "compiled": compiled,
    "compiled_gradient": lambda e: compiled_gradient(e) if e.supports_autograd else None, **{d: in_dtype(d) for d in DTYPES},
}  # fmt: skip


# ---- running -------------------------------------------------------------------------------------------------------------


def label(entry):
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else entry.name


def cell(entry, facet):
    """ "ok", "-" (nothing to test), or what went wrong."""
    try:
        n = RUN[facet](entry)
    except Exception as e:
        return f"{type(e).__name__}: {e}".splitlines()[0][:160]
    return "ok" if n else "-"


def isolated(entry, facets, limit):
    """{facet: cell} from a child process."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        with os.fdopen(write, "w") as pipe:
            for f in facets:
                signal.alarm(limit)
                pipe.write(json.dumps([f, cell(entry, f)]) + "\n")
                pipe.flush()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        done = dict(json.loads(line) for line in pipe)
    _, status = os.waitpid(pid, 0)
    for f in facets:
        if f not in done:
            done[f] = f"crash or time limit (status {status})"
            rest = facets[facets.index(f) + 1 :]
            return {**done, **isolated(entry, rest, limit)} if rest else done
    return done


# What stays out of the table, and why.
OUT = {
    r"jiterator_": "compiles CUDA kernels",
    r"torch\.ops\.aten\._(flash|efficient)_attention_forward": "CUDA's kernels under their own names",
    r"torch\._scaled_mm(_v2)?": "products of scaled 8-bit floating-point matrices",
    r"chalf$": "complex numbers of half precision: NumPy has none",
}

# Cells that aren't right, and why: (entries, facets, reason).
REASONS = (
    (r"polygamma|special\.polygamma", "int8 int16", "PyTorch gives large numbers at poles, flambeau infinity"),
    (r"matrix_exp", "float16 bfloat16", "PyTorch's overflows in 16 bits, flambeau computes in float32"),
    (
        r"addbmm|.*conv_transpose3d|.*hinge_embedding_loss|.*embedding_bag|uniform",
        "float16 bfloat16",
        "a rounding of 16 bits apart",
    ),
    (r"complex|view_as_complex", "float16", "NumPy has no complex numbers of half precision"),
    (r".*max_unpool|triangular_solve", "forward_ad forward_over_reverse", "docs/reference/differences.md"),
    (
        r"linalg\.(cholesky|eigh|eigvalsh)",
        "forward_over_reverse",
        "tangents that aren't Hermitian of matrices that are",
    ),
    (r"linalg\.norm\.subgradients", "forward_over_reverse", "nan in other places, at infinite slopes"),
    (r"(std|var)_mean\.unbiased", "forward_ad", "docs/reference/differences.md: of nothing"),
    (r"as_strided_scatter|.*ctc_loss", "gradient compiled_gradient", "docs/reference/differences.md"),
    (r".*linear_cross_entropy\.chunked", "second", "PyTorch has no second derivative here"),
    (r"narrow_copy", "errors", "an assertion of PyTorch's own, RuntimeError where narrow has IndexError"),
    (
        r"cholesky|linalg\.(pinv|tensorsolve)|.*native_batch_norm|_native_batch_norm_legit|.*linear_cross_entropy",
        "zero_size",
        "shapes that don't fit together, which PyTorch doesn't look at when there are no elements",
    ),
    (r"resize_(as_)?$", "vmap", "not built"),
    (r"as_strided\.partial_views", "inplace", "the samples are views of memory that the conversion doesn't carry over"),
)


def reason(name, facet):
    return next((why for pattern, facets, why in REASONS if facet in facets.split() and re.match(pattern, name)), "")


def report(state, path):
    totals = collections.Counter()
    rows = []
    ran = collections.Counter(f for cells in state.values() for f in cells)
    state = {n: c for n, c in state.items() if not any(re.match(pattern, n) for pattern in OUT)}
    for name in sorted(state):
        shown = []
        for f in FACETS:
            c = state[name].get(f)
            mark = "" if c in (None, "-") else "x" if c == "ok" else "·"
            shown.append(mark)
            if mark:
                totals[f, "all"] += 1
                totals[f, "ok"] += mark == "x"
        rows.append((name, shown))
    facets = [f for f in FACETS if totals[f, "all"]]
    wrong = []
    for name, shown in rows:
        groups = collections.defaultdict(list)
        for f, mark in zip(FACETS, shown):
            if mark == "·":
                groups[reason(name, f)].append(f)
        wrong += [f"| {name} | {' '.join(group)} | {why or 'not yet'} |" for why, group in groups.items()]
    keep = [FACETS.index(f) for f in facets]
    lines = [
        "# Coverage of PyTorch's operator database",
        "",
        "Written by `tools/op_coverage.py` beside PyTorch 2.13. x: the samples give what PyTorch gives; ·: not yet; empty: nothing to test.",
        "",
        "| facet | right | of |",
        "| --- | --- | --- |",
        *[f"| {f} | {totals[f, 'ok']} | {totals[f, 'all']} |" for f in facets],
        "",
        f"{len(state)} entries were run. Facets that were run on a part of them only: "
        + (", ".join(f"{f} ({ran[f]})" for f in facets if ran[f] < max(ran.values())) or "none")
        + ". Nobody has run the compiled facets on the whole database yet." * (not totals["compiled", "all"]),
        "",
        "Not in the table: " + "; ".join(f"`{pattern}` ({why})" for pattern, why in OUT.items()) + ".",
        "",
        "## What isn't right",
        "",
        "| operator | facets | why |",
        "| --- | --- | --- |",
        *wrong,
        "",
        "## All",
        "",
        "| operator | " + " | ".join(facets) + " |",
        "| --- |" + " --- |" * len(facets),
        *[f"| {name} | " + " | ".join(shown[k] for k in keep) + " |" for name, shown in rows],
    ]
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    for f in facets:
        print(f"{f:14} {totals[f, 'ok']:4} of {totals[f, 'all']}")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--facets", default="forward")
    p.add_argument("--only", default="", help="regular expression of entries")
    p.add_argument("--again", default=None, help="regular expression of entries whose cells are computed anew")
    p.add_argument("--retry", action="store_true", help="compute anew the cells that aren't right")
    p.add_argument("--state", default="op_coverage.json")
    p.add_argument("--limit", type=int, default=60, help="seconds for a cell")
    p.add_argument("--budget", type=float, default=1e9, help="seconds for the whole run")
    p.add_argument("--report", default=None)
    a = p.parse_args()
    state = {}
    if os.path.exists(a.state):
        with open(a.state, encoding="utf-8") as f:
            state = json.load(f)
    if a.report and a.facets == "forward" and state and a.again is None and not a.only and not a.retry:
        report(state, a.report)
        return
    load()
    facets = list(FACETS) if a.facets == "all" else a.facets.split(",")
    begin = time.monotonic()
    for k, entry in enumerate(op_db):
        name = label(entry)
        if a.only and not re.search(a.only, name):
            continue
        have = state.setdefault(name, {})
        todo = [
            f
            for f in facets
            if f not in have
            or (a.again is not None and re.search(a.again, name))
            or (a.retry and have[f] not in ("ok", "-"))
        ]
        if todo:
            have.update(isolated(entry, todo, a.limit))
        if (todo and k % 10 == 0) or a.only:
            with open(a.state, "w", encoding="utf-8") as f:
                json.dump(state, f, indent=0)
        if time.monotonic() - begin > a.budget:
            break
    with open(a.state, "w", encoding="utf-8") as f:
        json.dump(state, f, indent=0)
    if a.report:
        report(state, a.report)
    elif a.only:
        for name in sorted(state):
            if re.search(a.only, name):
                print(name, {f: state[name].get(f) for f in facets})


def load():
    """Both libraries, and the database, when they are needed: writing the report needs neither."""
    global T, B, op_db
    warnings.simplefilter("ignore")
    import torch as T
    from torch.testing._internal.common_methods_invocations import op_db

    import flambeau as B

    T.set_num_threads(1)
    # What the children would each import and declare for themselves.
    import scipy.fft
    import scipy.linalg
    import scipy.spatial.distance
    import scipy.special  # noqa: F401

    import flambeau.func
    import flambeau.nn.functional  # noqa: F401
    from flambeau import ops
    from flambeau.testing import families

    for family in families.lazy():
        ops.load_family(family)


if __name__ == "__main__":
    sys.exit(main())
