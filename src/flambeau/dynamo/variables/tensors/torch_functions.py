"""Functions of the library: one node each, except those that ask about the program or change its mode."""

from __future__ import annotations

import types
from collections.abc import Callable

from flambeau import autograd
from flambeau.autograd import grad_mode
from flambeau.base import shape_env
from flambeau.base.compiling import is_exporting
from flambeau.base.device import current_device
from flambeau.base.shapes import Size
from flambeau.ops.affine.tracing import operator_rule

from ...config import config
from ...exc import unsupported
from ...graph import tensor_queries
from ...guards.dynamic import mark_static
from ...guards.source import ConstSource, GetAttrSource
from ...higher_order import opaque, subgraphs
from ...modes.autocast import AutocastVariable, asked, is_autocast
from ...rules import trace_rules
from ...rules.library_classes import is_immutable, is_operand, is_traced
from ...rules.reflect import module_of, qualname_of
from ...tracing import world
from ...tracing.wrapping import CLASS_WRAPPERS, FUNCTION_WRAPPERS, WRAPPERS, pin
from ..base import HeldVariable, KnownVariable, Variable
from ..containers.dicts import DictVariable
from ..containers.lists import SequenceVariable, TupleVariable
from ..contexts.managers import ContextManagerVariable, GradModeVariable, InferenceModeVariable, NullContextVariable
from ..functions.python_functions import UserMethodVariable
from ..values.constant import ConstantVariable
from ..values.symbolic import CheckVariable, SymbolicVariable, message_of, require_element, specialized, wrap_number
from .backward import check_ends, derivative, free_way
from .tensor import NOT_TRACED_METHODS, NumpyNdarrayVariable, TensorMethodVariable, TensorVariable, wrap_result

__all__ = ["TorchClassVariable", "TorchFunctionVariable", "special"]

SPECIAL: dict[str, Callable] = {}


def special(*names: str):
    """Register a handler ``(tx, variable, args, kwargs)`` for library functions of these names."""

    def add(f):
        for n in names:
            SPECIAL[n] = f
        return f

    return add


class TorchFunctionVariable(HeldVariable):
    def __repr__(self):
        return f"torch.{getattr(self.value, '__name__', self.value)}"

    def as_proxy(self):
        return self.value

    def real_value(self, tx):
        return self.value

    def is_key(self):
        return True

    def distinct_from(self, other):
        return other.is_constant() or getattr(other, "value", None) is not self.value

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def call(self, tx, args, kwargs):
        fn = self.value
        name = getattr(fn, "__name__", "")
        if trace_rules.is_disallowed(fn):
            unsupported(
                "disallowed",
                f"call to disallowed operator {name or fn}",
                "disallow_in_graph was called for it.",
                "allow_in_graph undoes it.",
            )
        if trace_rules.is_allowed(fn) and config.check_allow_in_graph:
            opaque.watch(tx, fn)
        if (
            name in NOT_TRACED_METHODS
            and args
            and isinstance(args[0], TensorVariable)
            and getattr(tensor_queries.Tensor, name, None) is fn
        ):
            return TensorMethodVariable(args[0], name).call(tx, args[1:], kwargs)
        rule = None if trace_rules.is_allowed(fn) else operator_rule(fn)
        if rule is not None:
            return tx.wrap_function(rule).call(tx, args, kwargs)
        handler = SPECIAL.get(name) if not trace_rules.is_allowed(fn) else None
        if handler is not None:
            r = handler(tx, self, args, kwargs)
            if r is not None:
                return r
        operands = [*args, *kwargs.values()]
        if (
            not subgraphs.NO_CALLABLES.issuperset(map(type, operands))
            and any(map(subgraphs.is_callable_of_user, operands))
            and not trace_rules.is_allowed(fn)
        ):
            return subgraphs.call_library(tx, fn, args, kwargs)
        return tx.output.call_in_graph(tx, "call_function", fn, args, kwargs)


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
        if one and (dtype is not None or cls is tensor_queries.Tensor):
            return legacy_tensor(tx, args[0], dtype)
        known = all(a.can_constant() and not isinstance(a, DictVariable) for a in [*args, *kwargs.values()])
        if not known or not (is_immutable(cls) or is_autocast(cls)):
            unsupported(
                "construct",
                f"constructing {module_of(cls)}.{qualname_of(cls)}",
                "Objects of this class may have state of their own, so each call makes its own.",
            )
        value = cls(*[a.as_constant() for a in args], **{k: v.as_constant() for k, v in kwargs.items()})
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


@special("is_compiling", "is_dynamo_compiling", "_is_compiling")
def _(tx, var, args, kwargs):
    return ConstantVariable(True)


@special("is_exporting")
def _(tx, var, args, kwargs):
    return ConstantVariable(is_exporting())  # what is captured for an export is not kept


@special(
    "is_autocast_enabled",
    "is_any_autocast_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_cache_enabled",
    "get_autocast_dtype",
    "get_autocast_cpu_dtype",
)
def _(tx, var, args, kwargs):
    return asked(tx, var.value, [*args, *kwargs.values()])


@special("is_scripting", "is_tracing")
def _(tx, var, args, kwargs):
    return ConstantVariable(False)


@special("is_grad_enabled", "is_inference_mode_enabled", "get_default_device")
def _(tx, var, args, kwargs):
    """State that blocks of the traced code change: as it is here. As it was before the call it is guarded."""
    return None if args or kwargs else ConstantVariable(var.value())


@special("_set_grad_enabled")
def _(tx, var, args, kwargs):
    tx.output.set_grad_mode(tx, bool(args[0].as_constant()))
    return ConstantVariable(None)


@special("saved_tensors", "needs_input_grad")
def of_context(tx, var, args, kwargs):
    """Of the context of a backward that is captured itself: read from it by captured code as well."""
    owner = args[0]
    if module_of(var.value) != "flambeau.autograd.function" or getattr(owner, "value", None) is None:
        return None
    name = var.value.__name__
    return tx.wrap(getattr(owner.value, name), GetAttrSource(owner.source, name))


@special("_assert", "_assert_async", "_check_tensor_all")
def _(tx, var, args, kwargs):
    condition = tx.realize(args[0] if args else next(iter(kwargs.values())))
    rest = [*args[1:], *(v for k, v in kwargs.items() if k not in ("cond", "condition", "input"))]
    said = message_of(tx, rest[0]) if rest else None
    if type(condition) is TensorVariable:
        if not tx.output.shapes.data_symbols():
            return None
        if var.value.__name__ == "_check_tensor_all":
            condition = condition.call_method(tx, "all", [], {})
        require_element(tx, condition, said)
    elif isinstance(condition, SymbolicVariable):
        CheckVariable(shape_env.check).require(tx, condition, said)
    elif not tx.truth(condition):
        tx.raise_user(AssertionError(said) if var.value.__name__ == "_assert" else RuntimeError(said))
    return ConstantVariable(None)


@special("demand_all")
def _(tx, var, args, kwargs):
    condition = tx.realize(args[0])
    if type(condition) is not TensorVariable:
        return None
    with tx.output.shapes.data_numbers():
        require_element(tx, condition.call_method(tx, "all", [], {}), "a value violates a constraint")
    return ConstantVariable(None)


@special("promote_types", "can_cast", "broadcast_shapes")
def _(tx, var, args, kwargs):
    """What follows from dtypes and sizes alone."""
    if not all(v.can_constant() for v in (*args, *kwargs.values())):
        return None
    try:
        found = var.value(*[v.as_constant() for v in args], **{k: v.as_constant() for k, v in kwargs.items()})
    except (RuntimeError, TypeError, ValueError) as e:
        tx.raise_user(e)
    return tx.wrap_known(found)


def truth_tensor(tx, v: SymbolicVariable) -> Variable:
    """A truth value about sizes as a tensor of the graph: it isn't decided while tracing."""
    fn = trace_rules.library_attr("scalar_tensor")
    node = tx.output.shapes.number_node(v.number, decide=False)
    made = tx.output.recorder.create_node(tx, "call_function", fn, (node,), {})
    made.meta["val"] = made.meta["example_value"] = value = tx.output.eval_fake(fn, [v.number])
    return wrap_result(tx, made, value)


@special("scalar_tensor")
def _(tx, var, args, kwargs):
    v = tx.realize(args[0]) if args else None
    if not isinstance(v, SymbolicVariable) or v.number.__sym__ != "bool" or len(args) > 1 or kwargs:
        return None
    return truth_tensor(tx, v)


@special("mark_static")
def _(tx, var, args, kwargs):
    """Said of a tensor while it is traced: its sizes are constants of what is captured."""
    given = dict(zip(("t", "index"), args)) | kwargs
    t = tx.realize(given["t"])
    if var.value is not mark_static or type(t) is not TensorVariable:
        return None
    index = given["index"].as_constant() if "index" in given else None
    for d in range(t.val.ndim) if index is None else index if isinstance(index, list | tuple) else [index]:
        specialized(tx, wrap_number(t.val.shape[d]))
    return ConstantVariable(None)


@special("holds_arrays")
def _(tx, var, args, kwargs):
    """Asked by transforms, which have another form for NumPy's arrays: they are tensors in a graph."""
    if module_of(var.value) != "flambeau.func.ndarrays":
        return None
    leaves = list(args)
    for v in leaves:
        v = tx.realize(v)
        if isinstance(v, NumpyNdarrayVariable):
            return ConstantVariable(True)
        if isinstance(v, SequenceVariable):
            leaves.extend(v.items(tx))
        elif isinstance(v, DictVariable):
            leaves.extend(x for _, x in v.pairs(tx))
    return ConstantVariable(False)


@special("is_tensor")
def _(tx, var, args, kwargs):
    return ConstantVariable(isinstance(args[0], TensorVariable) and not isinstance(args[0], NumpyNdarrayVariable))


@special("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
def _(tx, var, args, kwargs):
    # The library's own functions are captured as those of plain tensors are: what they call asks again.
    if kwargs or tx.globals.get("__name__", "").split(".")[0] == "flambeau":
        return ConstantVariable(False)
    asked = args[0].items(tx) if var.value.__name__ == "has_torch_function" else args
    kinds = {v.unwrap().python_type() for v in asked} - {tensor_queries.Tensor}
    overridden = any(map(tensor_queries.overrides_function, kinds))
    return ConstantVariable(
        (overridden or bool(tx.output.blocks.function_modes)) and not tx.output.blocks.function_disabled
    )


@special("graph_break")
def _(tx, var, args, kwargs):
    text = (args[0] if args else kwargs["msg"]).as_constant() if args or kwargs else ""
    unsupported(
        "graph-break-call",
        f"graph_break() {text}".rstrip(),
        "torch._dynamo.graph_break() was called.",
        "Remove the call.",
    )


@special("array_of_tensor")
def _(tx, var, args, kwargs):
    out = NumpyNdarrayVariable(args[0].node, args[0].val)
    out.scalar = False
    return out


@special("tensor_of_array")
def _(tx, var, args, kwargs):
    if not isinstance(args[0], TensorVariable):
        return None
    out = TensorVariable(args[0].node, args[0].val, tx.output.recorder.source_of_node(args[0].node))
    device = args[1].as_constant() if len(args) > 1 else None
    device = device or current_device()
    if device.type != "cuda" or out.val.device == device:
        return out
    # An array that the frame was given after a graph break lies on the host.
    return tx.output.call_in_graph(tx, "call_method", "to", [out, ConstantVariable(device)], {})


@special("from_numpy", "as_tensor", "asarray")
def _(tx, var, args, kwargs):
    a = args[0] if args else None
    if isinstance(a, NumpyNdarrayVariable):
        # A new tensor of the same memory: where the array is a tensor's own (x.numpy()), that tensor is another object, maybe of another class.
        out = tx.output.call_in_graph(tx, "call_method", "detach", [TensorVariable(a.node, a.val)], {})
        if kwargs or len(args) > 1:
            return tx.output.call_in_graph(tx, "call_function", var.value, [out, *args[1:]], kwargs)
        return out
    return None


@special(
    "manual_seed",
    "seed",
    "get_rng_state",
    "set_rng_state",
    "initial_seed",
    "set_num_threads",
    "set_default_dtype",
    "save",
    "load",
    "compile",
    "set_printoptions",
    "backward",
    "grad_and_value_",
)
def _(tx, var, args, kwargs):
    unsupported(
        "library-call",
        f"call to {module_of(var.value)}.{var.value.__name__}",
        "It changes the state of the program, not a tensor.",
    )


@special("grad")
def _(tx, var, args, kwargs):

    if var.value is not autograd.grad:
        return None
    given = {**dict(zip(("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"), args)), **kwargs}
    check_ends(tx, given.get("outputs"), given.get("inputs"))
    result = derivative(tx, args, kwargs)
    flags = [given[name].as_constant() for name in ("retain_graph", "create_graph") if name in given]
    if not next((keep for keep in flags if keep is not None), False):
        free_way(tx, given["outputs"], given["inputs"])
    return result


@special("reset", "disable", "allow_in_graph", "disallow_in_graph", "explain")
def _(tx, var, args, kwargs):
    if var.value is trace_rules.allow_in_graph and isinstance(args[0], TorchFunctionVariable):
        return args[0]  # a library function, or one made by a transform: it is one node already
    if ".dynamo" in module_of(var.value) or ".compiler" in (module_of(var.value) or ""):
        unsupported(
            "library-call", f"call to torch._dynamo.{var.value.__name__} while tracing", "It configures capture itself."
        )
    return None


class TorchObjectVariable(HeldVariable):
    """An object of the library that is no tensor (an operator namespace, a Generator class, a device module): read for real."""

    def __repr__(self):
        return repr(self.value)

    def as_proxy(self):
        if not is_operand(type(self.value)):
            unsupported("library-object", f"{self!r} in an operation of the graph", "It may have state of its own.")
        return self.value

    def truth(self, tx):
        return bool(self.value)

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def call(self, tx, args, kwargs):
        call = world.class_attr(tx, type(self.value), "__call__")
        if isinstance(call, types.FunctionType) and not trace_rules.is_torch_callable(call):
            return tx.wrap(call, ConstSource(call, "__call__")).call(tx, [self, *args], kwargs)
        return TorchFunctionVariable(self.value).call(tx, args, kwargs)


@FUNCTION_WRAPPERS.row("allowed in graphs")
def _(tx, value, source):
    if not trace_rules.is_allowed(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    return TorchFunctionVariable(value, source)


@FUNCTION_WRAPPERS.row("of the library")
def _(tx, value, source):
    if not trace_rules.is_torch_callable(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    return TorchFunctionVariable(value, source)


@WRAPPERS.row("library function")
def _(tx, value, source):
    if not trace_rules.is_torch_callable(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    return TorchFunctionVariable(value, source)


@WRAPPERS.row("object of the library")
def _(tx, value, source):
    cls = type(value)
    if not str(module_of(cls)).startswith("flambeau.") or trace_rules.is_nn_module_class(cls) or is_traced(cls):
        return None
    pin(tx, source, "ID_MATCH", value)
    return TorchObjectVariable(value, source)


@CLASS_WRAPPERS.row("of the library")
def _(tx, value, source):
    module = module_of(value)
    if module != "flambeau" and not module.startswith("flambeau.") and tensor_queries.dtype_of_type(value) is None:
        return None
    traced = trace_rules.is_nn_module_class(value) or is_traced(value)
    return None if traced else TorchClassVariable(value, source)
