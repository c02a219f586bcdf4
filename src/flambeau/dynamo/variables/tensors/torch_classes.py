"""Classes of the library: managers of modes, the Tensor class and its methods, and values that are as good as constants."""

from __future__ import annotations

from flambeau.autograd import grad_mode
from flambeau.base.shapes import Size

from ...exc import unsupported
from ...graph import tensor_queries
from ...modes.autocast import AutocastVariable, is_autocast
from ...rules import trace_rules
from ...rules.library_classes import is_immutable, is_traced
from ...rules.reflect import module_of, qualname_of
from ...tracing import world
from ...tracing.wrapping import CLASS_WRAPPERS
from ..base import HeldVariable, KnownVariable, Variable
from ..containers.dicts import DictVariable
from ..containers.sequences import SequenceVariable, TupleVariable
from ..contexts.managers import ContextManagerVariable, GradModeVariable, InferenceModeVariable, NullContextVariable
from ..functions.python_functions import UserMethodVariable
from ..values.constant import ConstantVariable

__all__ = ["TorchClassVariable", "UnboundTensorMethod"]


class TorchClassVariable(KnownVariable):
    """A class of the library: grad-mode managers, dtype-like values, and the Tensor class."""

    def __repr__(self):
        return f"class {self.value.__name__}"

    def getattr(self, tx, name):
        static = world.class_attr(tx, self.value, name) if issubclass(self.value, tensor_queries.Tensor) else None
        if isinstance(static, staticmethod):
            return tx.wrap_function(static.__func__)
        if isinstance(static, classmethod):
            return UserMethodVariable(tx.wrap_function(static.__func__), self)
        if static is not None and callable(getattr(self.value, name, None)):
            if not tensor_queries.is_user_code(world.class_attr(tx, self.value, name)):
                return UnboundTensorMethod(self.value, name)
        return world.library_attr(tx, self, self.value, self.source, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def call(self, tx, args, kwargs):
        cls, name = self.value, self.value.__name__
        if name in ("no_grad", "enable_grad", "set_grad_enabled"):
            if name == "no_grad" and args:
                return GradModeVariable(cls, False).call(tx, args, {})
            if name == "enable_grad" and args:
                return GradModeVariable(cls, True).call(tx, args, {})
            if name == "set_grad_enabled":
                mode = bool((args[0] if args else kwargs["mode"]).as_constant())
                v = GradModeVariable(cls, mode, (mode,))
                v.enter(tx)  # it takes effect when it is made
                previous = v.initial = v.previous
                v.enter = lambda tx: ConstantVariable(None)
                v.exit = lambda tx: tx.output.set_grad_mode(tx, previous)
                return v
            return GradModeVariable(cls, name == "enable_grad")
        if cls is grad_mode.inference_mode:
            return inference_block(tx, args, kwargs)
        if name in ("error_on_graph_break", "_PatchedConfig"):
            return RuleRegionVariable(
                cls, cls(*[settled(tx, a) for a in args], **{k: settled(tx, v) for k, v in kwargs.items()})
            )
        if name in ("DisableTorchFunctionSubclass", "DisableTorchFunction"):
            return tx.subclasses.DisableFunctionVariable(cls)
        if name in ("record_function", "RecordFunction"):
            return NullContextVariable(cls, args=args)
        dtype = tensor_queries.dtype_of_type(cls)
        one = len(args) == 1 and not kwargs and isinstance(args[0], SequenceVariable)
        if module_of(cls) == "flambeau.return_types" and not kwargs:
            elements = args[0].items(tx) if one else args
            if len(elements) == cls.n_fields:
                return TupleVariable([*elements], cls=cls)
        if cls is Size and one and any(e.is_symbol for e in args[0].items(tx)):
            if all(e.python_type() is int for e in args[0].items(tx)):
                return TupleVariable(args[0].items(tx), cls=Size)
        if one and (dtype is not None or cls is tensor_queries.Tensor):
            return legacy_tensor(tx, args[0], dtype)
        known = all(a.can_constant() and not isinstance(a, DictVariable) for a in [*args, *kwargs.values()])
        if not known or not (is_immutable(cls) or is_autocast(cls)):
            unsupported(
                "construct",
                f"constructing {module_of(cls)}.{qualname_of(cls)}",
                "Objects of this class may have state of their own, so each call makes its own.",
            )
        value = tx.evaluated(cls, *[a.as_constant() for a in args], **{k: v.as_constant() for k, v in kwargs.items()})
        return AutocastVariable(value) if is_autocast(cls) else tx.wrap_known(value)


def legacy_tensor(tx, given: Variable, of_dtype) -> Variable:
    """``torch.Tensor(numbers)``, of the default dtype, or ``torch.Tensor(size)``, without values; ``torch.LongTensor`` and its kin likewise."""
    if of_dtype is not None:
        dtype = ConstantVariable(of_dtype)
    else:
        dtype = tx.wrap_function(trace_rules.library_attr("get_default_dtype")).call(tx, [], {})
    if given.python_type() is Size:
        return tx.wrap_function(trace_rules.library_attr("empty")).call(tx, given.items(tx), {"dtype": dtype})
    return tx.wrap_function(trace_rules.library_attr("tensor")).call(tx, [given], {"dtype": dtype})


def inference_block(tx, args, kwargs) -> Variable:
    mode = args[0] if args else kwargs.get("mode", ConstantVariable(True))
    on = not mode.is_constant() or bool(mode.as_constant())
    block = InferenceModeVariable(grad_mode.inference_mode, not on, (on,))
    return block if mode.is_constant() else block.call(tx, [mode], {})


def settled(tx, v: Variable):
    """The value of a constant, or of a dict of constants."""
    pairs = getattr(v, "pairs", None)
    return v.as_constant() if pairs is None else {k.as_constant(): x.as_constant() for k, x in pairs(tx)}


class RuleRegionVariable(ContextManagerVariable):
    """A region with other rules of tracing: ``error_on_graph_break`` or settings."""

    enters_again = True

    def __init__(self, cls, value):
        super().__init__()
        self.cls, self.value = cls, value

    def python_type(self):
        return self.cls

    def enter(self, tx):
        tx.output.blocks.regions.append(self.value)
        self.value.__enter__()
        return ConstantVariable(None)

    def exit(self, tx):
        tx.output.blocks.regions.remove(self.value)
        self.value.__exit__(None, None, None)

    def reconstruct(self, cg):
        cg.load_const(self.value)


class UnboundTensorMethod(HeldVariable):
    """torch.Tensor.add: the method taken from the class."""

    def __init__(self, cls, name):
        super().__init__(getattr(cls, name))
        self.name = name

    def key_object(self):
        return self.value

    def as_proxy(self):
        return self.value

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def call(self, tx, args, kwargs):
        return args[0].call_method(tx, self.name, args[1:], kwargs)


@CLASS_WRAPPERS.row("of the library")
def _(tx, value, source):
    module = module_of(value)
    if module != "flambeau" and not module.startswith("flambeau.") and tensor_queries.dtype_of_type(value) is None:
        return None
    traced = trace_rules.is_nn_module_class(value) or is_traced(value)
    return None if traced else TorchClassVariable(value, source)
