"""Strides of flambeau's results beside PyTorch's, exactly, over PyTorch's operator database and many layouts of the arguments.

    python tools/layout_sweep.py --state layouts.json [--only REGEX] [--facets eager,fake,compiled]     # where PyTorch is installed

Each sample is run as it is and with its tensors rearranged (``LAYOUTS``): the same shapes and values in another memory order, with gaps, expanded,
without elements, with dimensions of size one. Compared: strides of the results of an eager call, of the third one (it may take a native way), of the
same call on fake tensors, of compiled code. Results that are views also by their offset.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import signal
import sys
import time

import numpy as np
import op_coverage as C

SAMPLES = 4
FACETS = ("eager", "again", "fake", "compiled")


# ---- layouts: what becomes of each tensor of a sample --------------------------------------------------------------------


def _reversed(t):
    d = tuple(range(t.ndim))[::-1]
    return t.permute(d).contiguous().permute(d)


def _last(t):
    """The second dimension innermost: channels last, whatever the rank."""
    return t.movedim(1, -1).contiguous().movedim(-1, 1) if t.ndim > 2 else t


def _gaps(t):
    if not t.ndim or not t.shape[-1]:
        return t
    wide = t.new_zeros((*t.shape[:-1], 2 * t.shape[-1]))
    wide[..., ::2] = t
    return wide[..., ::2]


def _expanded(t):
    return t[:1].expand(t.shape) if t.ndim and t.shape[0] > 1 else t


def _one(t):
    """A single row of something in another order: a dimension of size 1 with a stride of its own."""
    return _reversed(t)[:1] if t.ndim and t.shape[0] else t


LAYOUTS = {
    "plain": lambda t: t,
    "reversed": _reversed,
    "last": _last,
    "gaps": _gaps,
    "expanded": _expanded,
    "one": _one,
    "one_last": lambda t: _last(t)[:1] if t.ndim and t.shape[0] else t,
    "empty": lambda t: t[:0] if t.ndim else t,
    "empty_reversed": lambda t: _reversed(t)[:0] if t.ndim else t,
    "empty_last": lambda t: _last(t)[:0] if t.ndim else t,
}


def rearranged(sample):
    """(name, sample) for each layout that changes something, of all tensors and of the first alone."""
    seen = set()
    for name, change in LAYOUTS.items():
        for alone in (False, True):
            if alone and (name == "plain" or not isinstance(sample.input, C.T.Tensor)):
                continue

            def apply(x, change=change):
                usable = isinstance(x, C.T.Tensor) and x.layout is C.T.strided and x.device.type == "cpu"
                return change(x.detach()) if usable else x

            if alone:
                s = type(sample)(apply(sample.input), args=sample.args, kwargs=sample.kwargs)
            else:
                s = sample.transform(apply)
            key = repr(geometry((s.input, s.args, s.kwargs)))
            if key not in seen:
                seen.add(key)
                yield name + (" first" if alone else ""), s


def geometry(x):
    if isinstance(x, C.T.Tensor):
        return (tuple(x.shape), x.stride()) if x.layout is C.T.strided else None
    if isinstance(x, (list, tuple)):
        return tuple(map(geometry, x))
    return tuple(map(geometry, x.values())) if isinstance(x, dict) else None


def carry(x):
    old, C.tensor = C.tensor, exact_or(C.tensor)
    try:
        return C.convert(x)
    finally:
        C.tensor = old


def exact_or(plain):
    def tensor(t):
        if t.layout is not C.T.strided or t.device.type == "meta" or t.is_conj() or t.is_neg():
            return plain(t)
        span = 0 if 0 in t.shape else sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1
        flat = C.T.as_strided(t.detach(), (span,), (1,)) if span else t.detach().new_empty(0)
        return C.B.from_numpy(np.array(flat.numpy(), copy=True)).as_strided(tuple(t.shape), t.stride(), 0)

    return tensor


# ---- the comparison ------------------------------------------------------------------------------------------------------


def tensors(x):
    return [t for t in C.flat(x) if isinstance(t, (C.T.Tensor, C.B.Tensor))]


def compare(got, want):
    """None, or what differs."""
    got, want = tensors(got), tensors(want)
    if len(got) != len(want):
        return f"{len(got)} results for {len(want)}"
    for k, (g, w) in enumerate(zip(got, want)):
        if w.layout is not C.T.strided:
            continue
        if tuple(g.shape) != tuple(w.shape):
            return f"[{k}] shape {tuple(g.shape)}, PyTorch {tuple(w.shape)}"
        if tuple(g.stride()) != tuple(w.stride()):
            return f"[{k}] {tuple(w.shape)}: {tuple(g.stride())}, PyTorch {tuple(w.stride())}"
    return None


def sweep(entry, facets, n=SAMPLES):
    """[(facet, sample, layout, what differs)], and {facet: number of cases}."""
    wrong, cases = [], collections.Counter()
    try:
        fn = C.ours(entry)
    except Exception as e:
        return [["eager", 0, "plain", f"missing: {e}"]], cases
    if not entry.dtypes:
        # An entry for another device.
        return wrong, cases
    dtype = "float32" if C.T.float32 in entry.dtypes else str(next(iter(entry.dtypes))).removeprefix("torch.")
    for k, sample in enumerate(C.samples_of(entry, dtype, n=n)):
        for layout, s in rearranged(sample):
            theirs = (s.input, *s.args)
            try:
                carry((theirs, s.kwargs))
                shown = repr(geometry(theirs))
                want = C.seeded(lambda: entry.op(*theirs, **s.kwargs))  # noqa: B023
            except Exception:  # noqa: S112 - a sample that PyTorch itself refuses says nothing
                continue
            for facet in facets:
                try:
                    with C.warnings.catch_warnings():
                        C.warnings.simplefilter("ignore")
                        got = RUN[facet](fn, carry(theirs), carry(s.kwargs))
                    if got is None:
                        continue
                    difference = compare(got, want)
                except Exception as e:
                    difference = f"error {type(e).__name__}: {e}".splitlines()[0][:200]
                cases[facet] += 1
                if difference is not None:
                    wrong.append([facet, k, layout, f"{difference}   of {shown}"])
    return wrong, cases


def eager(fn, args, kwargs):
    return C.seeded(lambda: fn(*args, **kwargs))


def again(fn, args, kwargs):
    for _ in range(2):
        C.seeded(lambda: fn(*args, **kwargs))
    return C.seeded(lambda: fn(*args, **kwargs))


def fake(fn, args, kwargs):
    from flambeau.base.errors import DataDependentOutputException, MissingFacet
    from flambeau.fake.fake_tensor import FakeTensorMode

    mode = FakeTensorMode()

    def lower(x):
        if isinstance(x, C.B.Tensor):
            return mode.from_tensor(x)
        if isinstance(x, (list, tuple)):
            return type(x)(map(lower, x))
        return {k: lower(v) for k, v in x.items()} if isinstance(x, dict) else x

    try:
        with mode:
            return fn(*lower(args), **lower(kwargs))
    except (DataDependentOutputException, MissingFacet, NotImplementedError, AssertionError):
        return None


def compiled(fn, args, kwargs):
    C.B._dynamo.reset()
    return C.seeded(lambda: C.B.compile(lambda *a, **k: fn(*a, **k))(*args, **kwargs))


RUN = {"eager": eager, "again": again, "fake": fake, "compiled": compiled}


def isolated(entry, facets, limit, n):
    """The sweep of an entry in a child process."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        signal.alarm(limit)
        with os.fdopen(write, "w") as pipe:
            pipe.write(json.dumps(sweep(entry, facets, n)))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    return json.loads(text) if text else ([["eager", 0, "plain", f"crash or time limit (status {status})"]], {})


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--only", default="", help="regular expression of entries")
    p.add_argument("--facets", default="eager,again,fake")
    p.add_argument("--state", default="")
    p.add_argument("--limit", type=int, default=60, help="seconds for an entry")
    p.add_argument("--budget", type=float, default=1e9)
    p.add_argument("--samples", type=int, default=SAMPLES)
    p.add_argument("--show", type=int, default=3, help="differences shown of each entry")
    a = p.parse_args()
    C.load()
    facets, state, begin = a.facets.split(","), {}, time.monotonic()
    for entry in C.op_db:
        name = C.label(entry)
        if (a.only and not re.search(a.only, name)) or any(re.match(pattern, name) for pattern in C.OUT):
            continue
        wrong, cases = isolated(entry, facets, a.limit, a.samples)
        state[name] = {"wrong": wrong, "cases": cases}
        if wrong and a.show:
            print(name, flush=True)
            for row in wrong[: a.show]:
                print("   ", *row)
        if time.monotonic() - begin > a.budget:
            break
    if a.state:
        with open(a.state, "w", encoding="utf-8") as f:
            json.dump(state, f, indent=0)
    for facet in facets:
        right = sum(1 for s in state.values() if s["cases"].get(facet) and not any(w[0] == facet for w in s["wrong"]))
        cases = sum(s["cases"].get(facet, 0) for s in state.values())
        bad = sum(w[0] == facet for s in state.values() for w in s["wrong"])
        print(
            f"{facet:10} entries {right} of {sum(1 for s in state.values() if s['cases'].get(facet))}, cases {cases - bad} of {cases}"
        )


if __name__ == "__main__":
    sys.exit(main())
