"""Calls with wrong arguments beside PyTorch: ``python tools/wrong_arguments.py FIRST COUNT [OPERATOR ...]``, run where PyTorch is installed.

Each seed takes a sample of one operator from PyTorch's own table, changes one or two arguments (dtype, device, size, number, flag, class, ``out=``)
and calls both libraries, as a function, a method or in place. A line tells where one refuses what the other takes, or with a class that isn't the
other's or derived from it, and where both take it and give other dtypes, shapes, strides or values (``wrong_results.py``). A call that ends the
process is told and left. The last line counts the calls, what differs, and what differs by a rule of docs/reference/differences.md (those lines begin
with "known").
"""

from __future__ import annotations

import itertools
import operator
import os
import random
import signal
import sys
import warnings

import torch
import wrong_results
from torch.testing._internal.common_methods_invocations import op_db

import flambeau

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
VALUES = [
    -1,
    -3,
    0,
    1,
    7,
    100,
    2**63,
    -(2**63),
    1.5,
    float("nan"),
    float("inf"),
    -0.5,
    2j,
    None,
    "a",
    True,
    [1],
    (0, 0),
    [],
]
SHAPES = [(), (0,), (1,), (2, 3), (1,) * 5]


class Unmovable(Exception):
    """A sample that isn't made of plain numbers."""


def moved(v, library):
    """A copy of an argument for one of the libraries."""
    if isinstance(v, torch.Tensor):
        if v.layout is not torch.strided or "float8" in str(v.dtype):
            raise Unmovable
        if library is torch:
            return v.detach().clone()
        dtype = getattr(flambeau, str(v.dtype)[6:])
        if v.device.type == "meta":
            return flambeau.empty_strided(tuple(v.shape), v.stride(), dtype=dtype, device="meta")
        v = v.detach().resolve_conj().resolve_neg()
        plain = flambeau.tensor((v.float() if v.dtype is torch.bfloat16 else v).contiguous().numpy()).to(dtype)
        # A clone keeps the order of the memory where elements don't overlap; so does this copy.
        return flambeau.empty_strided(tuple(v.shape), v.clone().stride(), dtype=dtype).copy_(plain)
    if isinstance(v, (list, tuple)) and not isinstance(v, torch.Size):
        return type(v)(moved(x, library) for x in v)
    if type(v).__module__.startswith("torch.nn"):
        raise Unmovable
    if isinstance(v, (torch.dtype, torch.layout, torch.memory_format)):
        return v if library is torch else getattr(flambeau, str(v)[6:])
    return v


def other_tensor(t, r):
    changes = [
        lambda: t.to(getattr(torch, r.choice(DTYPES))),
        lambda: t.unsqueeze(r.choice([0, -1])),
        lambda: t[0],
        lambda: t.to("meta"),
        lambda: torch.cat([t, t], r.randrange(t.ndim)),
        lambda: t.narrow(r.randrange(t.ndim), 0, 0),
        lambda: t.reshape(-1),
        lambda: torch.ones(r.choice(SHAPES), dtype=t.dtype),
        lambda: r.choice(VALUES),
    ]
    try:
        return r.choice(changes)()
    except (IndexError, RuntimeError, ValueError):
        return t


def other(v, r):
    """The argument changed."""
    if isinstance(v, torch.Tensor):
        return other_tensor(v, r)
    if isinstance(v, (list, tuple)) and v and r.random() < 0.7:
        elements, at = list(v), r.randrange(len(v))
        elements[at : at + 1] = r.choice([[], [v[at]] * 2, [other(v[at], r)]])
        return elements
    return getattr(torch, r.choice(DTYPES)) if isinstance(v, torch.dtype) else r.choice(VALUES)


def called(library, name, method, args, kwargs):
    """("ok", result) or (class of the error, error)."""
    args, kwargs = moved(args, library), {k: moved(v, library) for k, v in kwargs.items()}
    library.manual_seed(0)
    try:
        function = getattr(args[0], name) if method else operator.attrgetter(name)(library)
        return "ok", function(*args[1 if method else 0 :], **kwargs)
    except Exception as e:
        return type(e).__name__, e


def shown(v):
    if isinstance(v, torch.Tensor):
        return f"{str(v.dtype)[6:]}{list(v.shape)}{'' if v.device.type == 'cpu' else v.device}"
    return f"[{', '.join(map(shown, v))}]" if isinstance(v, (list, tuple)) else repr(v)


def changed(sample, r):
    """Arguments of a sample, one or two of them changed, and how many."""
    args, kwargs = [sample.input, *sample.args], dict(sample.kwargs)
    changes = r.choice([1, 1, 2])
    for _ in range(changes):
        if r.random() < 0.1:
            changes += 1
            kwargs["out"] = torch.empty(0, dtype=getattr(torch, r.choice(DTYPES)), device=r.choice(["cpu", "meta"]))
        place, at = r.choice([(args, i) for i in range(len(args))] + [(kwargs, k) for k in kwargs if k != "out"])
        place[at] = other(place[at], r)
    return args, kwargs, changes


def called_as(name, args, r) -> tuple[str, bool]:
    """The name and whether it is a method's. Names that only methods have aren't looked for among functions."""
    if "." in name or not isinstance(args[0], torch.Tensor) or not hasattr(torch.Tensor, name):
        return name, False
    if hasattr(torch.Tensor, name + "_") and r.random() < 0.3:
        return name + "_", True
    return name, not hasattr(torch, name) or r.random() < 0.4


def compare(seed, rows) -> str | None:
    """What differs at the call of a seed; None where nothing does."""
    r = random.Random(seed)
    row = r.choice(rows)
    dtype = r.choice([d for d in (torch.float32, torch.int64, torch.complex64) if d in row.dtypes] or [torch.float32])
    torch.manual_seed(0)
    samples = list(itertools.islice(row.sample_inputs("cpu", dtype, requires_grad=False), 25))
    args, kwargs, changes = changed(r.choice(samples), r)
    name, method = called_as(row.name, args, r)
    if not method:
        operator.attrgetter(name)(torch)
    there, here = (called(library, name, method, args, kwargs) for library in (torch, flambeau))
    given = [*args, *kwargs.values()]
    if there[0] == here[0] == "ok":
        again = None if wrong_results.same(there[1], here[1]) else called(torch, name, method, args, kwargs)[1]
        told = again is not None and wrong_results.difference(name, there[1], here[1], again, given)
        if not told:
            return None
        rule = wrong_results.known_result(name, told, given)
    else:
        family = {c.__name__ for c in type(here[1]).__mro__} if here[0] != "ok" else {"ok"}
        if there[0].lstrip("_") in family:
            return None
        rule = wrong_results.known_refusal(name, there, here, given, changes)
        words = [x[1] if x[0] != "ok" else "a result" for x in (there, here)]
        told = f"{there[0]} there, {here[0]} here: {words[0]!s:.90} / {words[1]!s:.90}"
    call = ", ".join([*map(shown, args), *(f"{k}={shown(v)}" for k, v in kwargs.items())])
    start = f"{'known ' if rule else ''}{seed}: {'.' if method else ''}{name}({call}): {told}".replace("\n", " ")
    return f"{start} ({rule})" if rule else start


def some(seeds, rows, pipe, seconds) -> None:
    """Writes a line for each seed: what ``compare`` says, "left" where there is no such call. A call may take so many seconds."""
    for seed in seeds:
        signal.alarm(seconds)
        os.write(pipe, f"{seed} ".encode())
        try:
            told = compare(seed, rows) or ""
        except (AttributeError, IndexError, Unmovable):
            told = "left"  # an operator without samples of the dtype, or of another place
        os.write(pipe, f"{told}\n".encode())


def outcomes(seeds, names=(), seconds=60):
    """(seed, line of ``some``) for each seed, in a child of this process, and in another one behind a call that ends it or takes too long."""
    rows = [row for row in op_db if (row.name in names if names else not row.name.startswith(("_", "torch.ops")))]
    todo = list(seeds)
    while todo:
        here, there = os.pipe()
        child = os.fork()
        if not child:
            torch.set_num_threads(1)
            some(todo, rows, there, seconds)
            os._exit(0)
        os.close(there)
        with open(here, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                seed, _, told = line.rstrip("\n").partition(" ")
                yield int(seed), told if line.endswith("\n") else f"{seed}: the process ended"
                todo.remove(int(seed))
        if os.waitpid(child, 0)[1] == 0:
            return


def main(first: int, count: int, names: list[str]) -> None:
    """The sweep; operators that begin with an underscore or of ``torch.ops`` only where they are named."""
    warnings.simplefilter("ignore")
    calls = differ = explained = 0
    for _seed, told in outcomes(range(first, first + count), names):
        calls += told != "left"
        if told and told != "left":
            differ += not told.startswith("known")
            explained += told.startswith("known")
            print(told, flush=True)
    print(f"{calls} calls, {differ} differ, {explained} more by known rules")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
