"""NumPy's floating-point errors (``np.errstate``, ``np.seterr``) in captured code.

Kernels raise the processor's status flags as NumPy's loops do, and the native call of a graph looks at them (``DisabledFunction.watch``). A call that
raised one which NumPy would tell of is made again as plain Python, from the same arrays: so warnings come from NumPy, with its words, at the user's
line, in order, and a flag that only a masked lane or a branch not taken raised tells of nothing. ``np.errstate`` blocks in captured code are noted
with each node while tracing.
"""

from __future__ import annotations

import warnings

import numpy as np

from .config import config
from .variables.constant import ConstantVariable
from .variables.contexts import ContextManagerVariable
from .variables.handlers import handles

__all__ = ["ErrstateVariable", "FloatingPointFlags", "Watch", "is_quiet", "is_quiet_on_underflow", "watched"]

KINDS = {"divide": 1, "over": 2, "under": 4, "invalid": 8}
"""Bits as NumPy's, and csrc/floating.h's."""
ALL = sum(KINDS.values())
QUIET = ("warn", "ignore")
NONE_OF_THEM = frozenset(
    "where equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not isnan isinf "
    "isfinite isneginf isposinf signbit copysign maximum minimum fmax fmin abs absolute fabs negative positive conjugate conj "
    "real imag getitem clone reshape ravel transpose squeeze expand_dims swapaxes moveaxis broadcast_to broadcast_arrays "
    "atleast_1d atleast_2d concatenate stack vstack hstack column_stack split repeat tile roll diag diagonal triu tril eye "
    "identity zeros ones full empty zeros_like ones_like full_like empty_like arange copy array asarray sort argsort argmax "
    "argmin max min amax amin any all nan_to_num clip round rint floor ceil trunc sign arctan2 arctan tanh arcsinh cbrt".split()
)
"""Functions, by their names in graphs, of which NumPy tells nothing (comparisons with nan raise a flag all the same)."""
SOME = {
    "add": "over invalid", "subtract": "over invalid", "multiply": "over under invalid", "sqrt": "invalid", "setitem": "over invalid",
    "log": "divide invalid", "log2": "divide invalid", "log10": "divide invalid", "log1p": "divide invalid", "exp": "over under",
    "exp2": "over under", "expm1": "over under", "sinh": "over", "cosh": "over", "arctanh": "divide invalid", "arccosh": "invalid",
    "sin": "invalid", "cos": "invalid", "tan": "invalid", "square": "over under", "sum": "over invalid", "matmul": "over under invalid",
    "arcsin": "invalid", "arccos": "invalid", "astype": "over under invalid", "hypot": "over under", "remainder": "invalid", "fmod": "invalid",
}  # fmt: skip


class FloatingPointFlags(ArithmeticError):
    """The call of a graph raised flags that NumPy may tell of: the frame runs plainly instead."""

    run_plainly = True


def possible(node) -> int:
    """The kinds of errors of a node, as bits."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if name in NONE_OF_THEM:
        return 0
    return sum(KINDS[kind] for kind in SOME[name].split()) if name in SOME else ALL


class Watch:
    """Called with the flags that a call of a graph raised. ``inherited``: kinds that are told as the caller of the function has it; ``own``:
    those that a block inside of the function turned on."""

    def __init__(self, own: int, inherited: int):
        self.own, self.inherited = own, inherited
        self.filters: tuple | None = None
        self.calls = 0

    def __call__(self, flags: int) -> None:
        how = np.geterr()
        told = self.own | self.inherited & sum(bit for kind, bit in KINDS.items() if how[kind] != "ignore")
        if flags & told and self.due():
            raise FloatingPointFlags

    def due(self) -> bool:
        """Whether a plain call could show a warning. Where Python shows a warning once for each line, calls are looked at
        at distances that double: what they tell is known by then, or was spurious."""
        action = _action()
        if action in ("error", "always") or config.numpy_floating_point_errors == "exact":
            return True
        if action == "ignore":
            return False
        filters = (id(warnings.filters), *warnings.filters)
        if filters != self.filters:
            self.filters, self.calls = filters, 0
        self.calls += 1
        return self.calls & (self.calls - 1) == 0


def _action() -> str:
    """What becomes of a RuntimeWarning of any text from any line: "ignore" only where no filter shows some of them."""
    for action, message, category, module, line in warnings.filters:
        if not issubclass(RuntimeWarning, category):
            continue
        if message is None and module is None and line == 0:
            return action
        if action != "ignore":
            return "always"
    return "default"


def watched(nodes) -> tuple[int, Watch | None]:
    """The flags that are looked at after a graph with these nodes, and who is told."""
    own = inherited = 0
    if config.numpy_floating_point_errors != "off":
        for n in nodes:
            if n.op.startswith("call"):
                kinds = possible(n)
                for settings in reversed(n.meta.get("errstate", ())):  # the innermost block decides
                    for kind, how in settings:
                        own |= kinds & KINDS[kind] if how != "ignore" else 0
                        kinds &= ~KINDS[kind]
                inherited |= kinds
    if is_quiet_on_underflow(None):  # which is guarded; underflows are frequent
        inherited &= ~KINDS["under"]
    return own | inherited, Watch(own, inherited) if own | inherited else None


def is_quiet(variable) -> bool:
    """Whether floating-point errors end no NumPy operation now, and call nothing."""
    return all(how in QUIET for how in np.geterr().values())


def is_quiet_on_underflow(variable) -> bool:
    """The same, and an underflow, which is frequent, isn't told of."""
    how = np.geterr()
    return how["under"] == "ignore" and all(how[kind] in QUIET for kind in KINDS)


class ErrstateVariable(ContextManagerVariable):
    """``np.errstate(...)`` that warns or ignores. Nodes of its block remember it."""

    enters_again = True

    def __init__(self, settings: dict[str, str]):
        super().__init__()
        self.settings = settings
        self.entered = False

    def python_type(self):
        return np.errstate

    def enter(self, tx):
        if self.entered:
            tx.raise_user(TypeError("Cannot enter `np.errstate` twice."))
        self.entered = True
        every = self.settings.get("all")
        kinds = {
            **(dict.fromkeys(KINDS, every) if every else {}),
            **{k: v for k, v in self.settings.items() if k in KINDS},
        }
        tx.output.errstates = (*tx.output.errstates, tuple(kinds.items()))
        return ConstantVariable(None)

    def exit(self, tx):
        tx.output.errstates = tx.output.errstates[:-1]

    def reconstruct(self, cg):
        cg.call_function(_errstate, lambda: cg.load_const(tuple(self.settings.items())), 1)


def _errstate(settings) -> np.errstate:
    return np.errstate(**dict(settings))


@handles(np.errstate)
def _asked(tx, args, kwargs) -> ErrstateVariable | None:
    """None for one that calls, prints or raises."""
    values = {k: v.as_constant() for k, v in kwargs.items() if v.is_constant()}
    if args or len(values) != len(kwargs) or not set(values) <= {"all", *KINDS}:
        return None
    if any(how not in (*QUIET, None) for how in values.values()):
        return None
    return ErrstateVariable({k: how for k, how in values.items() if how is not None})
