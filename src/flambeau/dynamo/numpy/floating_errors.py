"""NumPy's floating-point errors (``np.errstate``, ``np.seterr``) in captured code.

Kernels raise the processor's status flags as NumPy's loops do, and the native call of a graph looks at them (``DisabledFunction.watch``). A call that
raised one which NumPy would tell of is made again as plain Python, from the same arrays: so warnings and errors come from NumPy, with its words, at
the user's line, in order, and a flag that only a masked lane or a branch not taken raised tells of nothing. What a call has written by then is put
back (``DisabledFunction.written``), and generators that it drew from are (loops/random_numbers/streams.py). ``np.errstate`` blocks in captured code
are noted with each node while tracing; what nothing uses but NumPy would tell of is computed all the same (:func:`unused`)."""

from __future__ import annotations

import functools
import math
import operator
import sys
import warnings

import numpy as np

from ...base.dtypes import bool_
from ...core.higher_order import tensors_in
from ..config import config
from ..graph import tensor_queries
from ..variables.contexts.managers import ContextManagerVariable
from ..variables.functions.handlers import handles
from ..variables.values.constant import ConstantVariable

__all__ = [
    "ErrstateVariable",
    "FloatingPointFlags",
    "Watch",
    "is_loud",
    "is_quiet",
    "is_quiet_on_underflow",
    "unused",
    "watched",
]

KINDS = {"divide": 1, "over": 2, "under": 4, "invalid": 8}
"""Bits as NumPy's, and csrc/runtime/floating.h's."""
ALL = sum(KINDS.values())
QUIET = ("warn", "ignore")
LOUD = ("raise", "call", "print", "log")
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
    "arcsin": "invalid", "arccos": "invalid", "astype": "over under invalid", "hypot": "over under",
    "remainder": "divide invalid", "fmod": "divide invalid", "overflow_of_integers": "over",
}  # fmt: skip

ALWAYS_KEPT = 1 << 14
"""Bytes of written arguments whose contents are kept at each call: a copy of as many costs a fraction of the call itself."""
WORK = 8
"""How often a graph goes over what it writes, from where on keeping it is cheap beside it."""


class FloatingPointFlags(ArithmeticError):
    """The call of a graph raised flags that NumPy may tell of: the frame runs plainly instead."""

    run_plainly = True


def name_of(node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def possible(node) -> int:
    """The kinds of errors of a node, as bits."""
    name = name_of(node)
    if name in NONE_OF_THEM:
        return 0
    if name not in SOME:
        return ALL
    values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    dtypes = {v.dtype for v in values if tensor_queries.is_tensor(v)}
    if name == "setitem" and len(dtypes) < 2 and all(tensor_queries.is_tensor(v) for v in values[1:]):
        return 0  # nothing is cast
    kinds = sum(KINDS[kind] for kind in SOME[name].split())
    return kinds if any(d.is_floating_point or d.is_complex for d in dtypes) else kinds & KINDS["divide"]


class Watch:
    """Called with the flags that a call of a graph raised. ``inherited``: kinds reported as the caller of the function has them set; ``own``:
    those that a block inside of the function turned on. ``loud``: of both, what ends or calls something where it stands, so that each flagged call
    counts."""

    def __init__(self, own: int, inherited: int, loud: int):
        self.own, self.inherited, self.loud = own, inherited, loud
        self.filters: tuple | None = None
        self.calls = self.kept = self.misses = 0

    def __call__(self, flags: int) -> None:
        how = np.geterr()
        reported = flags & (
            self.own | self.inherited & sum(bit for kind, bit in KINDS.items() if how[kind] != "ignore")
        )
        if reported & self.loud or reported and self.due():
            raise FloatingPointFlags

    def due(self) -> bool:
        """Whether a plain call could show a warning. Where Python shows a warning once for each line, calls are looked at
        at distances that double: what they tell is known by then, or was spurious."""
        action = self._action()
        if action != "default":
            return action == "always"
        self.calls += 1
        return self.calls & (self.calls - 1) == 0

    def keeps(self) -> bool:
        """Whether what the next call writes is kept, though that is much beside the call's own work: calls at distances that double."""
        action = "always" if self.loud else self._action()
        if action != "default":
            return action == "always"
        self.kept += 1
        return self.kept & (self.kept - 1) == 0

    def missed(self) -> None:
        """A call that wasn't kept raised flags: the next one is, at distances that double again."""
        self.misses += 1
        if self.misses & (self.misses - 1) == 0:
            self.kept = 0

    def _action(self) -> str:
        """ "always" where each call counts, "ignore" where none does, else "default"."""
        action = _action()
        if action in ("error", "always") or config.numpy_floating_point_errors == "exact":
            return "always"
        filters = (id(warnings.filters), *warnings.filters)
        if filters != self.filters:
            self.filters, self.calls, self.kept, self.misses = filters, 0, 0, 0
        return action if action == "ignore" else "default"


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


def reported_kinds(nodes) -> dict:
    """node -> three sets of kinds of errors: those that a block of the function reports, those reported as the caller has them set, and those
    of both that end or call something."""
    found = {}
    around = {kind: how not in QUIET for kind, how in np.geterr().items()}
    below = is_quiet_on_underflow(None)  # which is guarded; underflows are frequent
    for n in nodes if config.numpy_floating_point_errors != "off" else ():
        if not n.op.startswith("call"):
            continue
        kinds, own, loud = possible(n), 0, 0
        for settings in reversed(n.meta.get("errstate", ())):  # the innermost block decides
            for kind, how in settings:
                own |= kinds & KINDS[kind] if how != "ignore" else 0
                loud |= kinds & KINDS[kind] if how not in QUIET else 0
                kinds &= ~KINDS[kind]
        if below:
            kinds &= ~KINDS["under"]
        loud |= kinds & sum(KINDS[kind] for kind, is_loud in around.items() if is_loud)
        if own | kinds:
            found[n] = own, kinds, loud
    return found


def watched(nodes) -> tuple[int, Watch | None]:
    """The flags that are checked after a graph with these nodes, by the function that reports them."""
    own, inherited, loud = (
        functools.reduce(operator.or_, kinds, 0) for kinds in zip(*reported_kinds(nodes).values(), (0, 0, 0))
    )
    return own | inherited, Watch(own, inherited, loud) if own | inherited else None


def _may_raise(n) -> bool:
    """Whether a call may end with an error that its arguments' shapes don't tell: of what loops and solvers find, or an index outside."""
    name = name_of(n)
    if name == "getitem":
        index = n.all_input_nodes[1:]
        return any(tensor_queries.is_tensor(v) and v.dtype is not bool_ for v in (i.meta.get("val") for i in index))
    return name not in NONE_OF_THEM and name not in SOME


def unused(nodes, outputs: list) -> list:
    """Nodes whose values have to be outputs as well, so that they are computed: they may raise an error, or NumPy may tell of them, and nothing uses
    them."""
    told = reported_kinds(nodes)
    reported = {n for n in nodes if n in told or (n.op.startswith("call") and _may_raise(n))}
    live = set(outputs)
    memory = {
        id(n.meta["val"]._storage) for n in nodes if n.op == "placeholder" and tensor_queries.is_tensor(n.meta["val"])
    }
    found = []

    def needed(n) -> None:
        live.add(n)
        memory.update(id(v._storage) for v in tensors_in(n.meta.get("val")))

    for n in outputs:
        needed(n)
    for n in reversed(list(nodes)):
        if not n.op.startswith("call"):
            continue
        effects = n.meta.get("effects") or ()
        written = [
            a
            for a in n.all_input_nodes
            if "writes" in effects and tensor_queries.is_tensor(a.meta["val"]) and a.meta["val"]._writes
        ]
        if n not in live and not any(id(a.meta["val"]._storage) in memory for a in written):
            if not (set(effects) - {"writes"}) and n not in reported:
                continue
            made = [n] if tensor_queries.is_tensor(n.meta.get("val")) else list(n.users)[:1]  # one of several results
            values = written or made
            found += values if n in reported else []
            for value in values:
                needed(value)
        for a in (n, *n.all_input_nodes):
            needed(a)
    return found


def kept_at_each_call(nodes, written: list) -> int:
    """Up to how many bytes of what a graph writes are kept at each of its calls."""
    if config.numpy_floating_point_errors == "exact" or any(name_of(n) in ("loop", "drawing_loop") for n in nodes):
        return sys.maxsize
    traffic = sum(_bytes(v) for n in nodes if n.op.startswith("call") for v in tensors_in(n.meta.get("val")))
    return sys.maxsize if traffic >= WORK * sum(map(_bytes, written)) else ALWAYS_KEPT


def _bytes(value) -> int:
    if not tensor_queries.is_tensor(value):
        return 0
    return math.prod(n if type(n) is int else n.hint or 1 for n in value._shape) * value.dtype.itemsize


def is_quiet(variable) -> bool:
    """Whether floating-point errors end no NumPy operation now, and call nothing."""
    return all(how in QUIET for how in np.geterr().values())


def is_loud(variable) -> bool:
    """Whether some do."""
    return not is_quiet(variable)


def is_quiet_on_underflow(variable) -> bool:
    """The same, and an underflow, which is frequent, isn't reported."""
    how = np.geterr()
    return how["under"] == "ignore" and all(how[kind] in QUIET for kind in KINDS)


class ErrstateVariable(ContextManagerVariable):
    """``np.errstate(...)``. Nodes of its block remember it. ``call``: the variable of that argument, None for none."""

    enters_again = True

    def __init__(self, settings: dict[str, str], call=None):
        super().__init__()
        self.settings, self.call_argument = settings, call
        self.entered = self.left = False

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
        tx.output.blocks.errstates = (*tx.output.blocks.errstates, tuple(kinds.items()))
        return ConstantVariable(None)

    def exit(self, tx):
        tx.output.blocks.errstates = tx.output.blocks.errstates[:-1]
        self.left = True

    def reconstruct(self, cg):
        def push():
            cg.load_const(tuple(self.settings.items()))
            cg.load_const(self.left)
            if self.call_argument is not None:
                cg(self.call_argument)

        cg.call_function(_errstate, push, 2 + (self.call_argument is not None))


def _errstate(settings, left: bool, *call) -> np.errstate:
    """``left``: its block has been left, and it can't be entered again."""
    made = np.errstate(**dict(settings), **({"call": call[0]} if call else {}))
    if left:
        with made:
            pass
    return made


@handles(np.errstate)
def _asked(tx, args, kwargs) -> ErrstateVariable | None:
    """None for one that NumPy refuses."""
    call = kwargs.get("call")
    values = {k: v.as_constant() for k, v in kwargs.items() if k != "call" and v.is_constant()}
    if args or len(values) != len(kwargs) - (call is not None) or not set(values) <= {"all", *KINDS}:
        return None
    if any(how not in (*QUIET, *LOUD, None) for how in values.values()):
        return None
    return ErrstateVariable({k: how for k, how in values.items() if how is not None}, call)
