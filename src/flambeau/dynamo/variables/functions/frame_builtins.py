"""What looks at the frame of its caller, which captured code doesn't have: ``locals``, ``eval``, ``sys._getframe``, ``sys.exc_info`` and the like."""

from __future__ import annotations

import sys
import types

from ...exc import SkipFrame, UserRaises, unsupported
from ..base import Variable
from ..containers.dicts import DictVariable
from ..containers.sequences import TupleVariable
from ..values.constant import ConstantVariable
from .handlers import HANDLERS, handles


def evaluated(tx, args, kwargs) -> Variable | None:
    """``eval`` of a text that is known: traced as a function of the names that it finds among the locals, or in a dict of globals that was made
    while tracing. None where the frame itself is needed."""
    if kwargs or not 1 <= len(args) <= 2 or not args[0].is_constant() or not isinstance(args[0].as_constant(), str):
        return None
    text = args[0].as_constant().lstrip(" \t")
    try:
        code = compile(text, "<string>", "eval")
    except SyntaxError as e:
        tx.raise_user(e)
    if any(isinstance(c, types.CodeType) for c in code.co_consts):
        return None
    if len(args) == 1:
        given = {n: tx.locals[n] for n in code.co_names if n in tx.locals}
        if any(n in tx.cells for n in code.co_names):
            return None
    else:
        if type(args[1]) is not DictVariable or args[1].source is not None:
            return None
        given = {k.as_constant(): v for k, v in args[1].pairs(tx) if k.as_constant() in code.co_names}
        if any(n not in given and n in tx.globals for n in code.co_names) or args[1].get_key(tx, "__builtins__"):
            return None
    made = compile(f"lambda {', '.join(given)}: ({text}\n)", "<string>", "eval").co_consts[0]
    made = made.replace(co_name="<module>", co_qualname="<module>")
    return tx.wrap_function(types.FunctionType(made, tx.globals)).call(tx, list(given.values()), {})


def above(tx, depth):
    """The traced frame ``depth`` calls further out; None beyond the captured one."""
    while tx is not None and isinstance(depth, int) and depth > 0:
        tx, depth = tx.parent, depth - 1
    return tx


def of_frame(fn, name: str):
    """Functions that look at their caller's frame, which captured code doesn't have."""

    def handler(tx, args, kwargs):
        if name in ("vars", "dir") and args:
            if name == "dir":
                return None
            try:
                return args[0].getattr(tx, "__dict__")
            except UserRaises as e:
                if not isinstance(e.exception, AttributeError):
                    raise
            tx.raise_user(TypeError("vars() argument must have __dict__ attribute"))
        if fn is locals and not args and (found := tx.locals_dict()) is not None:
            return found
        if fn is eval and (found := evaluated(tx, args, kwargs)) is not None:
            return found
        if fn is sys._getframe:  # of a caller, perhaps
            tx = above(tx, args[0].as_constant() if args and args[0].is_constant() else 0)
        if tx is None or tx.parent is None or (fn is sys._getframe and "f_back" in tx.code.co_names):
            raise SkipFrame(f"{name}() looks at the frame itself")
        unsupported(
            "frame", f"call to {name}()", "It looks at the frame itself, so the function runs as ordinary Python."
        )

    HANDLERS[fn] = handler


for _fn in (locals, vars, dir, eval, exec, sys._getframe):
    of_frame(_fn, _fn.__name__)


@handles(sys.exc_info)
def _(tx, args, kwargs):
    v = tx.handled()
    if v is None:
        tx.handles_nothing_outside()
        return TupleVariable([ConstantVariable(None)] * 3)
    return TupleVariable([tx.wrap_known(v.python_type()), v, v.getattr(tx, "__traceback__")])


@handles(sys.exception) if hasattr(sys, "exception") else lambda f: f
def _(tx, args, kwargs):
    v = tx.handled()
    if v is None:
        tx.handles_nothing_outside()
        return ConstantVariable(None)
    return v
