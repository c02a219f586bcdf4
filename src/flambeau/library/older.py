"""The way to custom operators that came before :func:`custom_op`: ``torch._custom_ops`` and ``torch._custom_op.impl``.

An operator is made functional and in parts: :func:`make` gives it a schema, :func:`impl` a kernel, :func:`impl_abstract` shapes,
:func:`impl_save_for_backward` and :func:`impl_backward` a derivative. Operators live until :func:`destroy`.
"""

from __future__ import annotations

import inspect

from .. import _C
from ..core import keys as K
from ..core.definition import Extern
from ..core.dispatch import excluding
from ..core.operator import OpOverload
from ..core.schema import parse
from .custom_op import register_fake
from .derivative import derivative_of
from .infer import infer_schema
from .registry import Library, call, find

__all__ = [
    "RESERVED_NS",
    "SUPPORTED_DEVICE_TYPE_TO_KEY",
    "CustomOp",
    "custom_op",
    "destroy",
    "get_op",
    "global_registry",
    "impl",
    "impl_abstract",
    "impl_backward",
    "impl_save_for_backward",
    "make",
]

SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED_NS = frozenset(["prim", "prims", "aten", "at", "torch", "pytorch"])  # namespaces that are PyTorch's own
global_registry: dict[str, CustomOp] = {}
_token = object()


class CustomOp:
    """An operator made by :func:`custom_op`. It is called like a function; its methods are decorators that add to it."""

    def __init__(self, lib, name, schema, func, token=None, *_):
        if token is not _token:
            raise RuntimeError(
                "The CustomOp constructor is private and we do not guarantee BC for it. "
                "Please use custom_op(...) to create a CustomOp object"
            )
        self._lib, self._name, self._schema, self._func = lib, name, schema, func
        self._opoverload: OpOverload = find(name)
        self._saved = self._backward = None
        self._placed = None  # the facet "autograd" that these functions gave
        self._differentiability: list[bool] | None = None
        self.__name__ = name.partition("::")[2]

    def __repr__(self) -> str:
        return f"<CustomOp(op={self._name})>"

    def __call__(self, *args, **kwargs):
        return self._opoverload.overloadpacket(*args, **kwargs)

    def _destroy(self) -> None:
        self._lib._destroy()
        global_registry.pop(self._name, None)

    def impl(self, device_types=("cpu", "cuda"), _stacklevel: int = 2):
        """Decorator: the kernel for devices. ValueError for a device that is neither the CPU nor CUDA."""
        types = [device_types] if isinstance(device_types, str) else list(device_types)
        for t in types:
            if t not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(
                    f"CustomOp.impl(device_types=[{t}, ...]): we only support device_type "
                    f"in {set(SUPPORTED_DEVICE_TYPE_TO_KEY)}."
                )

        def give(f):
            op = self._opoverload
            there = op.overrides.keys()
            if op.kind == "composite" or ("cpu" in types and "eager" in there) or ("cuda" in types and "CUDA" in there):
                raise RuntimeError(
                    f"Cannot register a kernel for {self._name} and {types}: it already has an implementation for this device type "
                    "via a pre-existing torch.library or TORCH_LIBRARY registration."
                )
            for t in types:
                self._lib.impl(self._opoverload, f, SUPPORTED_DEVICE_TYPE_TO_KEY[t])
            return f

        return give

    def impl_factory(self):
        """Decorator: the kernel of an operator without tensor arguments."""

        def give(f):
            self._lib.impl(self._opoverload, f, "CompositeExplicitAutograd")
            return f

        return give

    def impl_abstract(self, _stacklevel: int = 2):
        """Decorator: the shapes, from fake tensors. RuntimeError when there are some already."""

        def give(f):
            if "meta" in self._opoverload.overrides:
                raise RuntimeError(
                    f"Attempting to register an abstract impl for operator {self._name} that already has one"
                )
            return register_fake(self._opoverload, f)

        return give

    def impl_save_for_backward(self, _stacklevel: int = 2):
        """Decorator: ``f(inputs, output)`` says what the backward is given; ``inputs`` is a named tuple of the arguments."""

        def give(f):
            self._check_differentiable()
            self._saved = f
            self._derive()
            return f

        return give

    def impl_backward(self, output_differentiability=None, _stacklevel: int = 2):
        """Decorator: ``f(ctx, saved, *grads)`` returns a dict, a gradient (or None) for each tensor argument by name.

        ``output_differentiability``: a bool for each result. RuntimeError when it is no list of as many bools.
        """
        if output_differentiability is not None:
            if not isinstance(output_differentiability, list) or not all(
                isinstance(x, bool) for x in output_differentiability
            ):
                raise RuntimeError(
                    "impl_backward(output_differentiability): expected output_differentiability to be a list of bools with "
                    f"length equal to the number of outputs of this CustomOp got: {output_differentiability}"
                )
            if len(output_differentiability) != len(self._opoverload._schema.returns):
                raise RuntimeError(
                    "impl_backward(output_differentiability): expected output_differentiability to be a list of bools with "
                    f"length equal to the number of outputs of this CustomOp {len(self._opoverload._schema.returns)}, "
                    f"got: {output_differentiability}"
                )

        def give(f):
            self._check_differentiable()
            self._backward, self._differentiability = f, output_differentiability
            self._derive()
            return f

        return give

    def _check_differentiable(self) -> None:
        schema = self._opoverload._schema
        why = (
            "an operator that mutates its arguments"
            if schema.is_mutable
            else "an operator that returns views"
            if schema.is_view
            else "an operator with no returns"
            if not schema.returns
            else None
        )
        if why is not None:
            raise RuntimeError(
                f"Cannot register a backward for {why} with the torch._custom_ops APIs: non-functional operator {self._name}, schema {schema}"
            )
        found = self._opoverload.overrides.get("autograd")
        if found is not None and found is not self._placed:
            raise RuntimeError(
                f"Cannot register a backward for {self._name}: it already has an implementation for Autograd or AutogradCPU"
            )
        if "AutogradCUDA" in self._opoverload.overrides:
            raise RuntimeError(
                f"Cannot register a backward for {self._name}: it already has an implementation for AutogradCUDA"
            )
        if self._opoverload.kind == "composite" and self._opoverload.definition.implicit:
            raise RuntimeError(
                f"Cannot register a backward for {self._name}: it already has an implementation for CompositeImplicitAutograd"
            )

    def _derive(self) -> None:
        self._placed = derivative_of(self)
        self._opoverload.override("autograd", self._placed)
        self._opoverload.redefine()


def _without_kernel(op: CustomOp):
    """The operator until it has a kernel."""
    tensors = any(a.is_tensor for a in op._opoverload._schema.arguments)
    why = (
        "when running with device='cpu' tensors: there is no cpu impl registered for this CustomOp. Please register one via "
        "CustomOp.impl(device_type='cpu')"
        if tensors
        else "There were no Tensor inputs to this operator. If it is a factory function (that is, it takes no Tensors and constructs a "
        "new one), then please use CustomOp.impl_factory to register an implementation for it"
    )

    def run(*args):
        raise NotImplementedError(f"{op}: {why}")

    return run


def _without_backward(op: CustomOp):
    """The operator until it has a backward: an error where a gradient is asked for."""

    def run(*values):
        flat = [x for v in values for x in (v if isinstance(v, (list, tuple)) else [v])]
        if _C.tls("grad_enabled") and any(isinstance(x, _C.TensorBase) and x.requires_grad for x in flat):
            raise RuntimeError("Autograd has not been implemented for operator")
        with excluding(K.AUTOGRAD):
            return call(op._opoverload, op._opoverload, values)

    return run


def _check_name(qualname: str) -> tuple[str, str]:
    if "::" not in qualname:
        raise ValueError(
            f"Expected the qualname {qualname} to be of the form 'namespace::name' and not to have an overload name"
        )
    ns, name = qualname.split("::", 1)
    if "." in name:
        raise ValueError(
            f"The torch.custom_ops APIs do not handle overloads, i.e. operator names with '.' in them. Got: {qualname}"
        )
    if ns in RESERVED_NS:
        raise ValueError(f"custom_op(..., ns={ns!r}): '{ns}' is a reserved namespace, please choose something else.")
    return ns, name


def _check_schema(text: str, ns: str, name: str):
    """The schema, parsed. ValueError for one that isn't functional."""
    try:
        parsed = parse(name + text, ns)
    except ValueError as error:
        raise AssertionError(f"Invalid function schema: {name}{text}") from error
    first = parsed.arguments[0].name if parsed.arguments else ""
    if first == "self":
        raise ValueError(
            f"custom_op does not support arguments named 'self'. Please rename your argument. Got: {name}{text}"
        )
    if parsed.is_mutable or parsed.is_view or not parsed.returns:
        raise ValueError(
            "custom_op only supports functional operators (ops that do not mutate any inputs, do not return views of the inputs, "
            f"and has at least one return). Got the following non-functional schema: {name}{text}"
        )
    return parsed


def _check_signature(parsed, func) -> None:
    """ValueError when the function's parameters aren't those of the schema."""
    signature = inspect.signature(func)
    kinds = inspect.Parameter
    parameters = list(signature.parameters.values())
    if any(p.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD, kinds.POSITIONAL_ONLY) for p in parameters):
        raise ValueError(
            "custom_op(..., manual_schema)(func): positional-only args, varargs, and kwargs are not supported. "
            f"Got the following signature {signature}"
        )
    if any(p.default is not kinds.empty for p in parameters):
        raise ValueError(
            "custom_op(..., manual_schema)(func): function should not have default arguments. "
            f"Got the following signature {signature}"
        )
    for only in (False, True):
        ours = [p.name for p in parameters if (p.kind is kinds.KEYWORD_ONLY) == only]
        theirs = [a.name for a in parsed.arguments if bool(a.kwarg_only) == only]
        if ours != theirs:
            raise ValueError(
                "custom_op(..., manual_schema)(func): When passing in a manual schema, we expect `func`'s signature to match "
                f"`manual_schema` (aside from type annotations). func's signature: {signature}, manual_schema: {parsed}"
            )


def custom_op(qualname: str, manual_schema: str | None = None):
    """Decorator: an operator of the name, with the schema that is given or that the annotations say. Returns the :class:`CustomOp`."""

    def inner(func):
        if not inspect.isfunction(func):
            raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(func)}")
        ns, name = _check_name(qualname)
        if func.__name__ != name:
            raise ValueError(
                f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got '{func.__name__}'. "
                "Please either change the name of `func` or the qualname that is passed to `custom_op`"
            )
        schema = infer_schema(func, mutates_args=()) if manual_schema is None else manual_schema
        parsed = _check_schema(schema, ns, name)
        if manual_schema is not None:
            _check_signature(parsed, func)
        return _made(qualname, ns, name, schema, func)

    return inner


def _made(qualname, ns, name, schema, func) -> CustomOp:
    lib = Library(ns, "FRAGMENT")
    lib.define(name + schema)
    op = CustomOp(lib, qualname, schema, func, _token)
    op._opoverload.definition = Extern(None, _without_kernel(op))
    op._placed = _without_backward(op)
    op._opoverload.override("autograd", op._placed)
    global_registry[qualname] = op
    return op


def make(qualname: str, func_or_schema=None):
    """``torch._custom_ops.custom_op``: with a schema the operator is made, without one a decorator takes it from the annotations."""
    ns, name = _check_name(qualname)
    if isinstance(func_or_schema, str):
        _check_schema(func_or_schema, ns, name)
        _made(qualname, ns, name, func_or_schema, None)
        return lambda func: func

    def inner(func):
        if func.__name__ != name:
            raise ValueError(
                f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got '{func.__name__}'. "
                "Please either change the name of `func` or the qualname that is passed to `custom_op`"
            )
        schema = infer_schema(func, mutates_args=())
        _check_schema(schema, ns, name)
        _made(qualname, ns, name, schema, func)
        return func

    return inner if func_or_schema is None else inner(func_or_schema)


def get_op(qualname: str) -> OpOverload:
    """The operator of that name. RuntimeError when there is none."""
    ns, name = qualname.split("::")
    try:
        return find(f"{ns}::{name}")
    except (AttributeError, RuntimeError):
        raise RuntimeError(
            f"The operator `{qualname}` is not registered yet. Please create an operator before adding to it"
        ) from None


def _of(qualname: str) -> CustomOp:
    if qualname not in global_registry:
        op = get_op(qualname)
        made = CustomOp.__new__(CustomOp)
        made._lib, made._name, made._schema, made._func = Library(op.namespace, "FRAGMENT"), qualname, None, None
        made._opoverload, made._saved, made._backward, made._differentiability = op, None, None, None
        made._placed = None
        global_registry[qualname] = made
    return global_registry[qualname]


def _part(method: str):
    def part(qualname: str, *args, func=None, **kwargs):
        give = getattr(_of(qualname), method)(*args, **kwargs)
        return give if func is None else give(func)

    part.__name__ = part.__qualname__ = method
    part.__doc__ = f"``{method}(qualname, ...)``: :meth:`CustomOp.{method}` of the operator of that name."
    return part


impl, impl_abstract = _part("impl"), _part("impl_abstract")
impl_save_for_backward, impl_backward = _part("impl_save_for_backward"), _part("impl_backward")


def destroy(qualname: str) -> None:
    """Undo an operator and all that was added to it."""
    global_registry[qualname]._destroy()
