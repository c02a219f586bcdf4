"""``warnings.catch_warnings`` while tracing: filters are set for real until the block is left. ``warn`` follows them where the block's
own filters decide. A warning that filters or listeners outside of the block decide about breaks the graph."""

from __future__ import annotations

import warnings

from ...exc import UserRaises, unsupported
from ..base import Variable
from ..containers.lists import ListVariable
from ..exceptions.exception import ExceptionVariable, make_exception
from ..functions.handlers import handles
from ..objects.instance import ObjectVariable
from ..values.constant import ConstantVariable
from ..values.stdlib_values import values_of
from .managers import ContextManagerVariable

__all__ = ["CatchWarningsVariable"]

SILENT = ("always", "error", "ignore")  # no note is left of having warned


class CatchWarningsVariable(ContextManagerVariable):
    def __init__(self, options: dict, setting: tuple | None):
        super().__init__()
        self.record = bool(options.get("record"))
        self.setting = setting  # the filter that the block begins with
        self.filters: list[tuple] = []  # of the block, the latest first
        self.calls: list[tuple] = []  # that set them
        self.log: ListVariable | None = None
        self.real = None

    def python_type(self):
        return warnings.catch_warnings

    def enter(self, tx):
        if self.real is not None:
            tx.raise_user(RuntimeError("Cannot enter <catch_warnings> twice"))
        self.real = warnings.catch_warnings(record=True)
        self.heard = self.real.__enter__()
        tx.output.blocks.regions.append(self)
        if self.setting is not None:
            self.set(tx, warnings.simplefilter, *self.setting)
        if not self.record:
            return ConstantVariable(None)
        self.log = ListVariable([])
        return self.log

    def exit(self, tx):
        if self not in tx.output.blocks.regions:
            unsupported("warnings", "a block of catch_warnings is left that was not entered while tracing")
        tx.output.blocks.regions.remove(self)
        self.__exit__()
        if self.heard:
            unsupported("warnings", f"an operation warns inside catch_warnings: {self.heard[0].message}")

    def __exit__(self, *exc):
        """The trace ends, or the block."""
        self.real.__exit__(None, None, None)

    def set(self, tx, fn, given: list, named: dict) -> None:
        try:
            fn(*given, **named)
        except (AssertionError, TypeError, ValueError) as e:
            tx.raise_user(e)
        self.calls.append((fn, tuple(given), dict(named)))
        self.filters.insert(0, warnings.filters[0])

    def action(self, text: str, category: type) -> str:
        for action, message, cls, module, line in self.filters:
            if (message is None or message.match(text)) and issubclass(category, cls):
                if module is not None or line or action not in SILENT:
                    break
                return action
        unsupported("warnings", f"a warning of {category.__name__}", "Filters outside of the block decide about it.")

    def exit_again(self, cg) -> None:
        """Push the bound ``__exit__`` of a block like this one, entered, with the filters that were set."""

        def push():
            cg.load_const(tuple(self.calls))
            cg(self.log) if self.log is not None else cg.load_const(None)

        cg.call_function(entered, push, 2)

    def reconstruct(self, cg):
        if self.real is not None:
            unsupported("warnings", "a block of catch_warnings that was entered leaves captured code")
        cg.call_function(made_block, lambda: (cg.load_const(self.record), cg.load_const(self.setting)), 2)


def made_block(record: bool, setting) -> warnings.catch_warnings:
    return warnings.catch_warnings(record=record, **({} if setting is None else setting[1]))


def entered(calls, log):
    block = warnings.catch_warnings(record=log is not None)
    block.__enter__()
    if log is not None:
        warnings._showwarnmsg_impl = log.append
    for fn, given, named in calls:
        fn(*given, **named)
    return block.__exit__


def current_block(tx) -> CatchWarningsVariable | None:
    found = [r for r in tx.output.blocks.regions if isinstance(r, CatchWarningsVariable)]
    return found[-1] if found else None


@handles(warnings.catch_warnings)
def _(tx, args, kwargs):
    known = values_of(tx, args, kwargs)
    if args or known is None or known[1].get("module") is not None:
        return None
    options = known[1]
    setting = {k: options[k] for k in ("action", "category", "lineno", "append") if k in options}
    if setting.get("append") or ("action" not in setting and setting):
        return None
    return CatchWarningsVariable(options, ([], setting) if setting.get("action") is not None else None)


def _sets(fn):
    @handles(fn)
    def handler(tx, args, kwargs):
        block, known = current_block(tx), values_of(tx, args, kwargs)
        if block is None or known is None or known[1].get("append") or len(args) > 3:
            return None
        block.set(tx, fn, *known)
        return ConstantVariable(None)


_sets(warnings.simplefilter)
_sets(warnings.filterwarnings)


@handles(warnings.warn)
def _(tx, args, kwargs):
    block = current_block(tx)
    given = dict(zip(("message", "category", "stacklevel", "source"), args)) | kwargs
    if block is None or not given.keys() <= {"message", "category", "stacklevel"} or "message" not in given:
        return None
    message, level = given["message"].unwrap(), given.get("stacklevel", ConstantVariable(1)).as_constant()
    category = given.get("category", ConstantVariable(None)).as_constant() or UserWarning
    if isinstance(message, ExceptionVariable):
        category, text = message.python_type(), message.text(tx, "__str__").as_constant()
    elif message.is_constant() and isinstance(message.as_constant(), str):
        text = message.as_constant()
    else:
        return None
    action = block.action(text, category)
    if action == "ignore":
        return ConstantVariable(None)
    if not isinstance(message, ExceptionVariable):
        message = make_exception(tx, category, [ConstantVariable(text)], {})
    if action == "error":
        message.set_context(tx, tx.handled())
        raise UserRaises(message.exception, message)
    if block.log is None:
        unsupported("warnings", "a warning that is shown", "It is written to sys.stderr.")
    block.log.call_method(tx, "append", [message_of(tx, message, category, level)], {})
    return ConstantVariable(None)


def message_of(tx, message: Variable, category: type, level: int) -> ObjectVariable:
    frame = tx
    for _ in range(level - 1):
        frame = frame.parent
        if frame is None:
            unsupported("warnings", f"a warning with stacklevel={level}", "Its place is in a caller of the function.")
    out = ObjectVariable(None, warnings.WarningMessage)
    found = {
        "message": message,
        "category": tx.wrap_known(category),
        "filename": ConstantVariable(frame.code.co_filename),
        "lineno": ConstantVariable(frame.inst.line),
        "file": ConstantVariable(None),
        "line": ConstantVariable(None),
        "source": ConstantVariable(None),
        "_category_name": ConstantVariable(category.__name__),
    }
    for name, v in found.items():
        out.store(tx, name, v)
    return out
