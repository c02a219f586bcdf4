"""What a class with ``__torch_function__`` may ask about the function that it is handed."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable

from .. import _C
from .bindings import Binder
from .definition import Pointwise, View
from .operator import Packet
from .overrides import DisableTorchFunctionSubclass
from .python_operators import function_of

__all__ = ["FunctionRules", "body_of", "is_elementwise", "is_view", "name_of"]

# Functions of each element that aren't declared as such: composites, casts and copies, activations in Python, numbers drawn.
_ALSO = frozenset(
    """
    to float double half bfloat16 int long short char byte bool cpu cuda clone detach detach_ zeros_like ones_like empty_like full_like
    rand_like randn_like randint_like dropout native_dropout dropout_ alpha_dropout alias requires_grad_ masked_fill masked_fill_ fill_ zero_
    copy_ share_memory_ pin_memory normal_ uniform_ bernoulli_ type_as _to_copy positive conj real square square_ negative negative_ absolute
    absolute_ arccos arcsin arctan arccosh arcsinh arctanh fix fix_ clip clip_ i0 i0_ isreal nan_to_num nan_to_num_ selu selu_ celu celu_ mish
    softsign hardswish hardsigmoid tanhshrink threshold threshold_ rrelu hardtanh gelu silu relu elu leaky_relu softplus true_divide multiply
    subtract divide true_divide_ multiply_ subtract_ divide_ ldexp float_power __invert__ __rpow__ __rtruediv__ __rfloordiv__ __rmod__
    __rlshift__ __rrshift__
    """.split()
)


def name_of(func) -> str | None:
    """The name of a public function, a method or an operator; of Python's method for an operator, that of the function which computes it."""
    func = function_of(func)
    packet = getattr(func, "overloadpacket", None)
    return getattr(packet, "__name__", None) or getattr(func, "__name__", None)


def _definitions(func):
    """Definitions of the operators that it comes down to; of in-place forms, those of what they write."""
    func = function_of(func)
    made_by = getattr(func, "impl", None)
    if isinstance(made_by, Binder):
        overloads = made_by.packet._overloads.values()
    else:
        overloads = [func] if getattr(func, "overloadpacket", None) is not None else []
    for op in overloads:
        functional = getattr(op.definition, "functional", op.definition)
        yield getattr(functional, "definition", functional)


def is_elementwise(func) -> bool:
    """Whether each element of the result is made of one of each argument."""
    return name_of(func) in _ALSO or any(isinstance(d, Pointwise) for d in _definitions(func))


def is_view(func) -> bool:
    """Whether it rearranges its first argument."""
    return any(isinstance(d, View) for d in _definitions(func))


def body_of(func) -> Callable | None:
    """A function in Python that first asks whether it is overridden, without the question: what it calls is asked itself. None for others."""
    if isinstance(func, _C.Function):
        # nn.functional's functions in Python are native functions that ask, around them.
        func = getattr(func, "__wrapped__", func)
    if not isinstance(func, types.FunctionType) or inspect.unwrap(func) is not func or func.__closure__ is not None:
        return None
    never = {**func.__globals__, "has_torch_function": lambda *_: False}
    body = types.FunctionType(func.__code__, never, func.__name__, func.__defaults__)
    body.__kwdefaults__ = func.__kwdefaults__
    return body


def _overload_of_packet(packet, *args, **kwargs):
    """A packet chooses its overload, which the class is asked about as a dispatcher."""
    with DisableTorchFunctionSubclass():
        return packet(*args, **kwargs)


class FunctionRules:
    """What a class with ``__torch_function__`` does instead of functions: ``rule(func, *args, **kwargs)`` by name, then by kind.

    A function in Python without a rule runs its own body, whose calls are asked themselves.
    """

    def __init__(self):
        self.by_name: dict[str, Callable] = {}
        self.by_kind: list[tuple[Callable[[Callable], bool], Callable]] = []
        self._found: dict[Callable, Callable | None] = {}

    def rule(self, *names: str) -> Callable[[Callable], Callable]:
        """Decorator: the rule of the functions of these names."""

        def wrap(fn: Callable) -> Callable:
            self.by_name.update(dict.fromkeys(names, fn))
            return fn

        return wrap

    def rule_of_kind(self, asked: Callable[[Callable], bool]) -> Callable[[Callable], Callable]:
        """Decorator: the rule of the functions for which ``asked(func)`` is true."""

        def wrap(fn: Callable) -> Callable:
            self.by_kind.append((asked, fn))
            return fn

        return wrap

    def of(self, func: Callable) -> Callable | None:
        """The rule of a public function, a method or an operator; None without one."""
        if func not in self._found:
            self._found[func] = self._look_up(func)
        return self._found[func]

    def _look_up(self, func: Callable) -> Callable | None:
        if isinstance(func, Packet):
            return _overload_of_packet
        if (found := self.by_name.get(name_of(func) or "")) is not None:
            return found
        for asked, rule in self.by_kind:
            if asked(func):
                return rule
        body = body_of(func)
        return None if body is None else lambda _, *args, **kwargs: body(*args, **kwargs)
