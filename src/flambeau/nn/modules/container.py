"""Containers: modules and parameters in sequence or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, KeysView, Mapping, ValuesView
from typing import Any, Self

from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.modules.parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _position(index, length: int) -> int:
    i = operator.index(index)
    if not -length <= i < length:
        raise IndexError(f"index {i} is out of range")
    return i % length


class _Numbered(Module):
    """Submodules named "0", "1", ...: what Sequential and ModuleList share."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, index):
        values = list(self._modules.values())
        if isinstance(index, slice):
            return self._from_slice(index)
        return values[_position(index, len(values))]

    def __setitem__(self, index, module: Module) -> None:
        names = list(self._modules)
        setattr(self, names[_position(index, len(names))], module)

    def __delitem__(self, index) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [names[_position(index, len(names))]]:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list) -> None:
        # NOTE: the dict is filled again, not replaced: others (a tracer, an optimizer's closure) may hold it.
        self._modules.clear()
        self._modules.update((str(i), m) for i, m in enumerate(modules))

    def append(self, module: Module) -> Self:
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Put a module in front of a place. Nothing comes back, as of a list's; Sequential gives itself."""
        modules = list(self._modules.values())
        if not isinstance(module, Module):
            raise TypeError(f"{type(module)} is not a Module subclass")
        if not -len(modules) <= index <= len(modules):
            raise IndexError(f"Index out of range: {index}")
        modules.insert(index, module)
        self._renumber(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        for module in modules:
            self.append(module)
        return self

    def pop(self, index: int = -1) -> Module:
        module = self[index]
        del self[index]
        return module

    def __iadd__(self, other):
        return self.extend(other)


class Sequential(_Numbered):
    """Calls its modules one after the other. ``Sequential(a, b)`` or ``Sequential(OrderedDict(name=a, ...))``.

    >>> torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(self, *args) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _from_slice(self, index: slice):
        return type(self)(OrderedDict(list(self._modules.items())[index]))

    def __mul__(self, times: int):
        """The modules (the same ones) several times over."""
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return Sequential(*(list(self) * times))

    __rmul__ = __mul__

    def __imul__(self, times: int):
        """More of the modules (the same ones) behind these: the container stays."""
        more = self * times
        return self.extend(list(more)[len(self) :])

    def insert(self, index: int, module: Module) -> Self:
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        super().insert(index, module)
        return self

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules; it has no forward.

    >>> layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)])
    >>> len(layers), len(list(layers.parameters()))
    (2, 4)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _get_abs_string_index(self, idx) -> str:
        """The name of the submodule at this index, which may count from the end. IndexError outside."""
        return str(_position(idx, len(self)))

    def _from_slice(self, index: slice):
        return type(self)(list(self._modules.values())[index])

    def __add__(self, other: Iterable[Module]):
        return ModuleList([*self, *other])

    def extend(self, modules: Iterable[Module]) -> Self:
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    def __repr__(self) -> str:
        """Runs of equal modules are printed once: ``(0-3): 4 x Linear(...)``."""
        texts = [repr(m) for m in self]
        if not texts:
            return self._get_name() + "()"
        runs: list[list] = []
        for i, text in enumerate(texts):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            head = f"({first}): " if first == last else f"({first}-{last}): {last - first + 1} x "
            lines.append(head + text.replace("\n", "\n  "))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules; it has no forward.

    >>> layers = torch.nn.ModuleDict({'narrow': torch.nn.Linear(3, 1), 'wide': torch.nn.Linear(3, 9)})
    >>> layers['wide'](torch.ones(3)).shape
    torch.Size([9])
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        self._modules.clear()

    def pop(self, key: str) -> Module:
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        pairs = modules.items() if isinstance(modules, Mapping | ModuleDict) else modules
        for key, module in pairs:
            self[key] = module


def _line(name, value, element) -> str:
    if isinstance(value, Tensor):
        kind = "Parameter" if isinstance(value, Parameter) else type(value).__name__
        size = "x".join(map(str, value.shape))
        return f"  ({name}): {kind} containing: [{element(value)} of size {size}]"
    return f"  ({name}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """A list of parameters (tensors are turned into parameters; other values are kept as they are).

    >>> len(torch.nn.ParameterList([torch.ones(2), torch.zeros(3)]))
    2
    """

    def __init__(self, values: Iterable | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self):
        return iter([getattr(self, str(i)) for i in range(self._size)])

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)([getattr(self, str(i)) for i in range(*index.indices(self._size))])
        return getattr(self, str(_position(index, self._size)))

    def __setitem__(self, index, value) -> None:
        self._put(_position(index, self._size), value)

    def _put(self, index: int, value) -> None:
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, str(index), value)

    def append(self, value: Any) -> Self:
        self._put(self._size, value)
        self._size += 1
        return self

    def extend(self, values: Iterable) -> Self:
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable):
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join(_line(i, v, lambda t: t.dtype) for i, v in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters (tensors are turned into parameters; other values are kept as they are), in insertion order.

    The items of a plain mapping are inserted in the order of their keys, those of an OrderedDict, of another ParameterDict and of pairs as
    they come. ``a | b`` is a new one with the items of both.

    >>> list(torch.nn.ParameterDict({'scale': torch.ones(2)}))
    ['scale']
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str):
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value) -> None:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is {type(key).__name__})."
            )
        self._keys[key] = None
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, key, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def keys(self) -> KeysView[str]:
        return self._keys.keys()

    def values(self) -> list[Any]:
        return [getattr(self, k) for k in self._keys]

    def items(self) -> list[tuple[str, Any]]:
        return [(k, getattr(self, k)) for k in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, which is ``default`` from now on when there is none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Take ``key`` out: its value. KeyError when it is absent."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple:
        """Take out the pair that was inserted last. KeyError when there is none."""
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        last = next(reversed(self._keys))
        return last, self.pop(last)

    def clear(self) -> None:
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Another ParameterDict of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new ParameterDict of these keys, each with the value ``default``."""
        return ParameterDict((key, default) for key in keys)

    def __reversed__(self):
        return reversed(self._keys)

    def __or__(self, other) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other):
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self, other) -> ParameterDict:
        self.update(other)
        return self

    def update(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Insert the items of a mapping, of a ParameterDict, or of an iterable of pairs. TypeError, ValueError for others."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                f"ParametersDict.update should be called with an iterable of key/value pairs, but got {type(parameters).__name__}"
            )
        if isinstance(parameters, OrderedDict | ParameterDict):
            pairs = parameters.items()
        elif isinstance(parameters, Mapping):
            pairs = sorted(parameters.items(), key=lambda pair: pair[0])
        else:
            pairs = [tuple(pair) for pair in parameters]
        for k, pair in enumerate(pairs):
            if len(pair) != 2:
                raise ValueError(f"ParameterDict update sequence element #{k} has length {len(pair)}; 2 is required")
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_line(k, v, lambda t: t.type()) for k, v in self.items())

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterDict should not be called.")
