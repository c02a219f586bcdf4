"""Scalar bodies: how one element of an operator's result is computed, written once and given many meanings.

A body is a Python function ``body(s, *args)`` whose first parameter is a *handler*. ``s.exp(x)`` means whatever the handler says:
evaluate with NumPy, record an expression, emit LLVM text, call the ATen operator of that name. The scalar operations a handler
must know are the rows of :data:`TABLE` (filled by ``flambeau.ops.scalars``). Values are the handler's own objects or Python numbers.

:func:`trace` runs a body into an :class:`Expr` graph; :func:`vjp` is reverse-mode differentiation of such a graph and gives
graphs again, so that a derivative can be evaluated, printed, differentiated and compiled like any body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.quiet import errstate
from ..base.records import slotted

__all__ = [
    "REAL_ONLY",
    "TABLE",
    "Expr",
    "Scalar",
    "Trace",
    "evaluate",
    "inputs_used",
    "real_only",
    "scalar",
    "substitute",
    "takes_complex",
    "topological",
    "trace",
    "vjp",
]


@slotted
class Scalar:
    """A row of the scalar table.

    ``kind``: ``arith`` keeps its operands' dtype; ``float`` needs and gives a floating dtype; ``compare`` and ``logic`` give bool;
    ``bit`` is for integers and bool; ``select`` is ``where``; ``cast`` changes dtype.
    ``vjp(s, ct, *args, r)`` gives one cotangent expression an argument (None where there is no derivative); ``r`` is the result.
    ``aten`` names the ATen operator computing the same on tensors. ``llvm`` maps a type letter ("f" float, "i" signed integer,
    "u" unsigned, "b" bool) to an operation of LLVM, see ops/scalars.py.
    """

    name: str
    arity: int
    kind: str
    numpy: Callable
    llvm: dict[str, str]
    vjp: Callable | None
    aten: str
    doc: str = ""


TABLE: dict[str, Scalar] = {}
REAL_ONLY: set[str] = set()  # rows that need an order, or that nobody continues to complex numbers


def scalar(name, arity, kind, numpy, llvm, vjp=None, aten=None, doc=""):
    """Add a row to the scalar table."""
    if name in TABLE:
        raise ValueError(f"scalar operation {name} is declared twice")
    TABLE[name] = Scalar(name, arity, kind, numpy, llvm, vjp, aten or name, doc)


def real_only(names: str) -> None:
    """Say of rows that they take no complex operand."""
    REAL_ONLY.update(names.split())


class _Complexity:
    """The handler that tells complex values (True) from real ones, and notices a row that takes none."""

    def __init__(self):
        self.refused = False

    def __getattr__(self, name: str):
        row = TABLE[name]

        def run(*args):
            if name == "cast":
                return args[1].kind == "c" if isinstance(args[1], np.dtype) else getattr(args[1], "is_complex", False)
            if name == "where":
                return any(a is True or isinstance(a, complex) for a in args[1:])
            found = any(a is True or isinstance(a, complex) for a in args)
            self.refused |= found and name in REAL_ONLY
            return name == "complex" or (
                found and row.kind not in ("compare", "logic") and name not in ("abs", "angle")
            )

        return run


def takes_complex(body: Callable, args) -> bool:
    """Whether ``body`` means something for these arguments, in which True stands for a complex tensor and False for another one."""
    check = _Complexity()
    body(check, *args)
    return not check.refused


class Expr:
    """A node of a traced body: ``op`` is a scalar operation or ``"input"`` (``args[0]`` is then the input's name). Immutable."""

    __slots__ = ("op", "args")

    def __init__(self, op: str, args: tuple):
        self.op = op
        self.args = args

    def __repr__(self):
        return f"{self.op}({', '.join(map(repr, self.args))})" if self.op != "input" else str(self.args[0])


class Trace:
    """The handler that records. Folds the identities that differentiation produces (x*1, x+0, x*0 of a missing cotangent)."""

    def __getattr__(self, name: str):
        if name not in TABLE:
            raise AttributeError(f"no scalar operation {name!r}; the rows are in flambeau/ops/scalars.py")

        def record(*args):
            if name == "mul":
                for i in (0, 1):
                    if type(args[i]) in (int, float) and args[i] == 1:
                        return args[1 - i]
            elif name == "add":
                for i in (0, 1):
                    if type(args[i]) in (int, float) and args[i] == 0 and isinstance(args[1 - i], Expr):
                        return args[1 - i]
            if not any(isinstance(a, Expr) for a in args) and name != "cast":
                with errstate(all="ignore"):
                    return TABLE[name].numpy(*args).item()
            return Expr(name, args)

        setattr(self, name, record)
        return record


def trace(body: Callable, args: list) -> tuple[Any, dict[str, Expr]]:
    """Record ``body`` over ``args``, in which a ``str`` stands for a tensor input of that name (use Param for literal strings).

    Returns the root (Expr, or a Python number when nothing depends on an input) and the input nodes by name.
    """
    inputs: dict[str, Expr] = {}
    actual = []
    for a in args:
        if isinstance(a, Input):
            a = inputs.setdefault(a.name, Expr("input", (a.name,)))
        actual.append(a)
    return body(Trace(), *actual), inputs


@slotted
class Input:
    """Stands for a tensor argument in the argument list given to :func:`trace`."""

    name: str


def topological(*roots) -> list[Expr]:
    """All nodes below ``roots``, operands first, each once."""
    seen: set[int] = set()
    out: list[Expr] = []
    stack = [(r, False) for r in reversed(roots) if isinstance(r, Expr)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            out.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        if node.op != "input":
            stack.extend((a, False) for a in reversed(node.args) if isinstance(a, Expr))
    return out


def inputs_used(*roots) -> list[str]:
    return [n.args[0] for n in topological(*roots) if n.op == "input"]


def substitute(root, old: Expr, new: Expr):
    """``root`` with every occurrence of ``old`` replaced by ``new``; shared parts stay shared."""
    made: dict[int, Any] = {id(old): new}
    for node in topological(root):
        if id(node) not in made:
            made[id(node)] = (
                node
                if node.op == "input"
                else Expr(node.op, tuple(made[id(a)] if isinstance(a, Expr) else a for a in node.args))
            )
    return made[id(root)] if isinstance(root, Expr) else root


def vjp(root, wrt: list[Expr], ct: Expr) -> list:
    """Reverse-mode derivative of ``root`` with respect to each node of ``wrt``, given the cotangent ``ct`` of the root.

    Returns an expression (or None where nothing flows) each. NotImplementedError for an
    operation without a derivative. Reference: Griewank & Walther, Evaluating Derivatives, ch. 3.

    A cotangent that a selection excludes doesn't become 0 and go on, because further down it would meet an infinite slope of the branch not
    taken (0 * inf). It keeps the conditions it was selected under (:class:`_Flow`); they are applied last.
    """
    s = Trace()
    flows: dict[int, list[_Flow]] = {id(root): [_Flow(ct, ())]}
    for node in reversed(topological(root)):
        if node.op == "input" or id(node) not in flows:
            continue
        row = TABLE[node.op]
        if row.vjp is None:
            raise NotImplementedError(f"the derivative of the scalar operation '{node.op}' is not implemented")
        flow = _joined(s, flows[id(node)])
        for arg, part in zip(node.args, row.vjp(s, flow.ct, *node.args, node), strict=True):
            if isinstance(arg, Expr) and part is not None:
                part, when = _peeled(part)
                flows.setdefault(id(arg), []).append(_Flow(part, flow.when + when))
    return [_selected(s, _joined(s, flows[id(w)])) if w is not None and id(w) in flows else None for w in wrt]


@slotted
class _Flow:
    """A cotangent that counts only where all of ``when`` hold: pairs of a condition and the truth value it must have."""

    ct: Any
    when: tuple[tuple[Expr, bool], ...]


def _is_zero(x) -> bool:
    return type(x) in (int, float) and x == 0


def _peeled(part):
    """``where(c, x, 0)`` as (x, conditions)."""
    when = ()
    while isinstance(part, Expr) and part.op == "where" and isinstance(part.args[0], Expr):
        c, a, b = part.args
        if _is_zero(b) and not _is_zero(a):
            part, when = a, (*when, (c, True))
        elif _is_zero(a) and not _is_zero(b):
            part, when = b, (*when, (c, False))
        else:
            break
    return part, when


def _selected(s, flow: _Flow, above: int = 0):
    """The cotangent with its conditions from position ``above`` on applied."""
    out = flow.ct
    for c, truth in reversed(flow.when[above:]):
        out = s.where(c, out, 0.0) if truth else s.where(c, 0.0, out)
    return out


def _joined(s, flows: list[_Flow]) -> _Flow:
    """The sum of cotangents. Two under opposite conditions are one selection."""
    flows = list(flows)
    i = 0
    while i < len(flows):
        for j in range(i + 1, len(flows)):
            a, b = flows[i], flows[j]
            if a.when == b.when:
                merged = _Flow(s.add(a.ct, b.ct), a.when)
            elif (
                len(a.when) == len(b.when)
                and a.when[:-1] == b.when[:-1]
                and a.when[-1][0] is b.when[-1][0]
                and a.when[-1][1] is not b.when[-1][1]
            ):
                yes, no = (a, b) if a.when[-1][1] else (b, a)
                merged = _Flow(s.where(a.when[-1][0], yes.ct, no.ct), a.when[:-1])
            else:
                continue
            flows[i] = merged
            del flows[j]
            i = -1  # look at all pairs again
            break
        i += 1
    if len(flows) == 1:
        return flows[0]
    shared = 0
    while all(len(f.when) > shared and f.when[shared] == flows[0].when[shared] for f in flows):
        shared += 1
    total = _selected(s, flows[0], shared)
    for f in flows[1:]:
        total = s.add(total, _selected(s, f, shared))
    when = flows[0].when[:shared]
    if all(len(f.when) > shared for f in flows):
        either = _all_of(s, flows[0].when[shared:])
        for f in flows[1:]:
            either = s.logical_or(either, _all_of(s, f.when[shared:]))
        when = (*when, (either, True))
    return _Flow(total, when)


def _all_of(s, when):
    out = None
    for c, truth in when:
        c = c if truth else s.logical_not(c)
        out = c if out is None else s.logical_and(out, c)
    return out


def evaluate(root, env: dict[str, Any], handler) -> Any:
    """Give ``root`` the meaning of ``handler``, with the inputs bound by name in ``env``. A node bound in ``env`` by id wins."""
    values: dict[int, Any] = {}
    for node in topological(root):
        if node.op == "input":
            values[id(node)] = env[node.args[0]]
        else:
            args = [values[id(a)] if isinstance(a, Expr) else a for a in node.args]
            values[id(node)] = getattr(handler, node.op)(*args)
    return values[id(root)] if isinstance(root, Expr) else root
