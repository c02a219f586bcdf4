"""Vector-Jacobian products from definitions: the formulas written next to an operator, or the rule of its kind.

A rule is ``plan(op, full_args, needs)`` -> :class:`Plan`: which arguments and results to save, and a function from cotangents and saved
values to one cotangent for each needed argument. ``needs`` are the positions of arguments that ask for a gradient.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable

from .. import _C
from ..base.records import slotted
from ..core import body as bodies
from ..core.operator import OpOverload, namespace
from ..core.viewmap import ViewRecorder, record

aten = namespace("aten")


@slotted
class Like:
    """What a formula's parameter ``<argument>_like`` receives: shape, dtype and device, so that the tensor itself needn't be kept."""

    shape: tuple
    dtype: object
    device: object

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    @staticmethod
    def of(x):
        if isinstance(x, (list, tuple)):
            return [Like.of(t) for t in x]
        return None if x is None else Like(x._shape, x._dtype, x._device)


@slotted
class Plan:
    """``run(cts, values)``: ``values`` maps each name in ``saves`` to its value (arguments by name, ``result``, ``result1`` ...)."""

    saves: tuple[str, ...]
    run: Callable


@functools.cache
def _formulas(op: OpOverload):
    """[(argument names, parameter names, function)] of the formulas given next to the definition."""
    out = []
    for key, fn in op.vjp_formulas.items():
        out.append((tuple(key.split("__")), tuple(inspect.signature(fn).parameters), fn))
    return out


def plan(op: OpOverload, args: tuple, needs: tuple[int, ...]) -> Plan:
    """The plan for these arguments; without a derivative one that refuses when it is asked for."""
    if op.vjp_formulas is not None:
        made = _given(op, needs)
    else:
        rule = _RULES.get(op.kind)
        if rule is None:
            return _refusing(op, f"kind {op.kind}: give formulas with .derivative()")
        made = rule(op, args, needs)
    return made if "own_complex_derivative" in op.tags else Plan(made.saves, _conjugating(made.run))


def _conjugating(run):
    """Rules are written as for real numbers, transposes of the derivative; PyTorch's gradient is the conjugate transpose. Of a complex result
    the cotangent is conjugated on the way in and the parts on the way out. (A holomorphic operator has no other complex derivative.)"""

    def conjugated(cts, values):
        if not any(ct is not None and ct._dtype.is_complex for ct in cts):
            return run(cts, values)
        return [_conj(g) for g in run([_conj(ct) for ct in cts], values)]

    return conjugated


def _conj(x):
    if isinstance(x, (list, tuple)):
        return [_conj(y) for y in x]
    return aten._conj_physical.default(x) if x is not None and x._dtype.is_complex else x


@functools.cache
def _given(op: OpOverload, needs) -> Plan:
    names = [a.name for a in op._schema.arguments]
    wanted = [names[i] for i in needs]
    parts, saves = [], []
    for outs, params, fn in _formulas(op):
        if any(o in wanted for o in outs):
            parts.append((outs, params, fn))
            saves.extend(p for p in params if p not in saves and not p.startswith("ct") and (p != "mask" or p in names))
    covered = {o for outs, _, _ in _formulas(op) for o in outs}
    missing = [n for n in wanted if n not in covered]

    def run(cts, values):
        out = {}
        for outs, params, fn in parts:
            kwargs = []
            for p in params:
                if p in ("ct", "ct0"):
                    kwargs.append(cts[0])
                elif p == "cts":
                    kwargs.append(cts)
                elif p.startswith("ct") and p[2:].isdigit():
                    kwargs.append(cts[int(p[2:])])
                elif p == "mask" and p not in names:
                    kwargs.append([o in wanted for o in outs])
                else:
                    kwargs.append(values[p])
            got = fn(*kwargs)
            out.update(zip(outs, got if len(outs) > 1 else (got,)))
        return [out.get(n) for n in wanted]

    # No formulas at all say that the operator is no function of its arguments' elements; integers and masks never ask for a gradient.
    if missing and op.vjp_formulas:
        raise RuntimeError(
            f"The function '{op._opname}' is not differentiable with respect to argument '{missing[0]}'. This input cannot have "
            "requires_grad True."
        )
    return Plan(tuple(saves), run)


# ---- pointwise: reverse-mode differentiation of the body, evaluated with ATen operators ---------------------------------------


def _is_number(a, b) -> bool:
    return isinstance(a, _C.TensorBase) and not isinstance(b, _C.TensorBase)


class AtenHandler:
    """Gives each scalar operation the ATen operator on tensors; Python numbers take the overload for numbers."""

    def __getattr__(self, name):
        row = bodies.TABLE[name]
        packet = getattr(aten, row.aten)

        def call(*args):
            if not any(isinstance(a, _C.TensorBase) for a in args):
                return row.numpy(*args).item()
            return packet(*args)

        setattr(self, name, call)
        return call

    def sub(self, a, b):
        return aten.sub.Tensor(a, b) if isinstance(a, _C.TensorBase) else aten.rsub.Scalar(b, a)

    def div(self, a, b):
        if isinstance(a, _C.TensorBase):
            return aten.div.Tensor(a, b)
        inverse = aten.reciprocal.default(b)
        return inverse if a == 1 else aten.mul.Tensor(inverse, a)

    def _commuting(name):
        def call(self, a, b):
            if not isinstance(a, _C.TensorBase):
                a, b = b, a
            return getattr(aten, name).Tensor(a, b)

        return call

    add, mul = _commuting("add"), _commuting("mul")

    def ge(self, a, b):
        """Of complex numbers the real parts: where a power of 0 has a derivative is asked so."""
        return (
            aten.ge.Scalar(aten.real.default(a) if a._dtype.is_complex else a, b) if _is_number(a, b) else aten.ge(a, b)
        )

    def maximum(self, a, b):
        return self._clamp(a, b, aten.maximum, aten.clamp_min)

    def minimum(self, a, b):
        return self._clamp(a, b, aten.minimum, aten.clamp_max)

    @staticmethod
    def _clamp(a, b, both, clamp):
        if isinstance(a, _C.TensorBase) and isinstance(b, _C.TensorBase):
            return both(a, b)
        return clamp(a, b) if isinstance(a, _C.TensorBase) else clamp(b, a)

    def zeros(self, x):
        return aten.zeros_like.default(x)

    def whole(self, x, like):
        """``x`` as a tensor: a condition on numbers (``x ** 0``) may have left one."""
        return x if isinstance(x, _C.TensorBase) else aten.full_like.default(like, x)

    def where(self, c, a, b):
        if not isinstance(c, _C.TensorBase):
            return a if c else b
        return _where(c, a, b)

    def floordiv(self, a, b):
        return self._rounded_quotient(a, b, "floor")

    def truncdiv(self, a, b):
        return self._rounded_quotient(a, b, "trunc")

    @staticmethod
    def _rounded_quotient(a, b, mode):
        """Not floor_divide, which can't be differentiated again."""
        if not isinstance(a, _C.TensorBase):
            a = aten.full_like.default(b, a)
        return aten.div.Tensor_mode(a, b, rounding_mode=mode)

    def cast(self, x, dtype):
        return aten._to_copy.default(x, dtype=dtype)


def _where(c, a, b):
    ta, tb = isinstance(a, _C.TensorBase), isinstance(b, _C.TensorBase)
    if ta and tb:
        return aten.where.self(c, a, b)
    return (
        aten.where.ScalarOther(c, a, b) if ta else aten.where.ScalarSelf(c, a, b) if tb else aten.where.Scalar(c, a, b)
    )


ATEN = AtenHandler()


@functools.cache
def _pointwise_exprs(op: OpOverload, signature: tuple, needs: tuple[int, ...]):
    """The plan for the needed arguments. ``signature``: per argument True for a tensor, else (value,)."""
    args = []
    for a, s in zip(op._schema.arguments, signature):
        args.append(bodies.Input(a.name) if s is True else s[0])
    root, inputs = bodies.trace(op.definition.body, args)
    names = [op._schema.arguments[i].name for i in needs]
    ct = bodies.Expr("input", ("ct",))
    parts = (
        bodies.vjp(root, [inputs.get(n) for n in names], ct) if isinstance(root, bodies.Expr) else [None] * len(names)
    )
    if isinstance(root, bodies.Expr) and root.op != "input":
        result = bodies.Expr("input", ("result",))
        parts = [bodies.substitute(p, root, result) for p in parts]
    saves = tuple(n for n in bodies.inputs_used(*parts) if n != "ct")
    return Plan(saves, _as_function(parts, saves))


def _as_function(parts, saves) -> Callable:
    """``run(cts, values)`` as straight-line Python over the ATen handler: it runs at every backward, the graphs are walked once."""
    names, lines, env = {}, [], {"aten": ATEN}
    for node in bodies.topological(*parts):
        if node.op == "input":
            names[id(node)] = "cts[0]" if node.args[0] == "ct" else f"values[{node.args[0]!r}]"
            continue
        shown = []
        for a in node.args:
            if isinstance(a, bodies.Expr):
                shown.append(names[id(a)])
            else:
                env[f"c{len(env)}"] = a
                shown.append(f"c{len(env) - 1}")
        names[id(node)] = f"v{len(lines)}"
        lines.append(f"    v{len(lines)} = aten.{node.op}({', '.join(shown)})\n")
    for p in parts:
        if p is not None and not isinstance(p, bodies.Expr):
            raise AssertionError("the derivative of a body is a constant; it must depend on the cotangent")
    # NOTE: a step has a derivative, which is zero: floor(x).sum().backward() leaves zeros, not nothing.
    results = ", ".join("aten.zeros(cts[0])" if p is None else f"aten.whole({names[id(p)]}, cts[0])" for p in parts)
    exec(f"def run(cts, values):\n{''.join(lines)}    return [{results}]\n", env)
    return env["run"]


def _pointwise(op, args, needs) -> Plan:
    signature = tuple(
        [True if isinstance(x, _C.TensorBase) else (tuple(x) if isinstance(x, list) else x,) for x in args]
    )
    try:
        return _pointwise_exprs(op, signature, needs)
    except TypeError:  # an unhashable argument
        return _pointwise_exprs.__wrapped__(op, signature, needs)
    except NotImplementedError as e:
        return _refusing(op, str(e))


def _refusing(op: OpOverload, why: str) -> Plan:
    """Running forward is no error; asking for the gradient is."""

    def run(cts, values):
        raise NotImplementedError(f"derivative for {op.name()} is not implemented: {why}")

    return Plan((), run)


# ---- views: the steps transposed, in reverse -----------------------------------------------------------------------------


def _sum_expanded(step, ct):
    pad = len(step.out_shape) - len(step.in_shape)
    dims = list(range(pad)) + [
        i + pad for i, (n, m) in enumerate(zip(step.in_shape, step.out_shape[pad:])) if n == 1 and m != 1
    ]
    if not dims:
        return ct
    out = aten.sum.dim_IntList(ct, dims, True)
    return aten.view.default(out, list(step.in_shape)) if pad else out


def _diagonal_back(step, ct):
    d1, d2, offset = step.params
    return aten.diagonal_backward.default(ct, list(step.in_shape), offset, d1, d2)


def _inverse(perm):
    out = [0] * len(perm)
    for i, p in enumerate(perm):
        out[p] = i
    return out


def _unsqueeze_all(step, ct):
    for d in sorted(step.params[0]):
        ct = aten.unsqueeze.default(ct, d)
    return ct


TRANSPOSED = {
    "permute": lambda step, ct: aten.permute.default(ct, _inverse(step.params[0])),
    "reshape": lambda step, ct: aten.reshape.default(ct, list(step.in_shape)),
    "expand": _sum_expanded,
    "slice": lambda step, ct: aten.slice_backward.default(
        ct,
        list(step.in_shape),
        step.params[0],
        step.params[1],
        step.params[1] + step.params[2] * step.params[3],
        step.params[3],
    ),
    "squeeze": _unsqueeze_all,
    "unsqueeze": lambda step, ct: aten.squeeze.dim(ct, step.params[0]),
    "diagonal": _diagonal_back,
    "unfold": lambda step, ct: aten.unfold_backward.default(ct, list(step.in_shape), *step.params),
}


@functools.cache
def _view(op) -> Plan:
    names = [a.name for a in op._schema.arguments[1:]]
    shape_of = f"{op._schema.arguments[0].name}_like"

    def back(steps, ct):
        for step in reversed(steps):
            ct = TRANSPOSED[step.name](step, ct)
        return ct

    def run(cts, values):
        chain = record(op.definition.map, tuple(values[shape_of].shape), *[values[n] for n in names])
        if isinstance(chain, ViewRecorder):
            return [back(chain.steps, cts[0])]
        total = None
        for c, ct in zip(chain, cts):
            if ct is not None:
                part = back(c.steps, ct)
                total = part if total is None else aten.add.Tensor(total, part)
        return [total]

    return Plan((shape_of, *names), run)


def _none(op, args, needs) -> Plan:
    return Plan((), lambda cts, values: [None] * len(needs))


NOT_DIFFERENTIABLE = ("factory", "random")  # they read the shape of a tensor argument at most; a formula says otherwise
_RULES = {"pointwise": _pointwise, "view": lambda op, args, needs: _view(op), "factory": _none, "random": _none}
