"""Builtins and itertools that make iterators."""

from __future__ import annotations

import functools
import inspect
import itertools

from ..exc import UserRaises, unsupported
from ..reflect import name_of
from . import polyfills
from .base import Variable
from .constant import ConstantVariable
from .derived import DerivedVariable, contents_of
from .dicts import DictVariable, DictView
from .functions import UserFunctionVariable
from .handlers import HANDLERS, handles
from .iterators import Count, GeneratorVariable, IteratorVariable
from .lists import ListVariable, TupleVariable
from .modules import ModuleVariable
from .objects import ObjectVariable
from .operators import iterate, watching


@handles(enumerate)
def _(tx, args, kwargs):
    start = (args[1] if len(args) > 1 else kwargs["start"]).as_constant() if len(args) > 1 or kwargs else 0
    it, numbers = iterate(tx, args[0]), Count(start)

    def pull(tx):
        v = it.next(tx)
        return None if v is None else TupleVariable([ConstantVariable(next(numbers)), v])

    def parts():
        return enumerate, [it, ConstantVariable(numbers.at)]

    return IteratorVariable(pull=pull, cls=enumerate, parts=parts)


@handles(zip)
def _(tx, args, kwargs):
    strict = kwargs["strict"].as_constant() if "strict" in kwargs else False
    its = [iterate(tx, a) for a in args]

    def pull(tx):
        row = []
        for k, it in enumerate(its):
            v = it.next(tx)
            if v is None:
                if strict:
                    check_lengths(tx, its, k)
                return None
            row.append(v)
        return TupleVariable(row) if row else None

    return IteratorVariable(pull=pull, cls=zip, parts=lambda: (strict_zip if strict else zip, its))


def check_lengths(tx, its, k: int) -> None:
    """The ``k``-th of some iterators is exhausted, those before it weren't."""
    longer = next((i for i, it in enumerate(its) if i and it.next(tx) is not None), None) if k == 0 else None
    if k or longer:
        at, than = (k, "shorter") if k else (longer, "longer")
        others = f" {at}" if at == 1 else f"s 1-{at}"
        tx.raise_user(ValueError(f"zip() argument {at + 1} is {than} than argument{others}"))


@handles(map)
def _(tx, args, kwargs):
    if len(args) < 2:
        tx.raise_user(TypeError("map() must have at least two arguments."))
    fn, its = args[0], [iterate(tx, a) for a in args[1:]]

    def pull(tx):
        row = [it.next(tx) for it in its]
        return None if any(v is None for v in row) else fn.call(tx, row, {})

    return IteratorVariable(pull=pull, cls=map, parts=lambda: (map, [fn, *its]))


@handles(filter)
def _(tx, args, kwargs):
    fn, it = args[0], iterate(tx, args[1])
    plain = fn.is_constant() and fn.as_constant() is None

    def pull(tx):
        while (v := it.next(tx)) is not None:
            if tx.truth(v if plain else fn.call(tx, [v], {})):
                return v
        return None

    return IteratorVariable(pull=pull, cls=filter, parts=lambda: (filter, [fn, it]))


@handles(reversed)
def _(tx, args, kwargs):
    if isinstance(args[0], DerivedVariable):
        own = args[0].special(tx, "__reversed__")
        if own is not None:
            return own.call(tx, [], {})
        if not (args[0].inherits(tx, "__len__") and args[0].inherits(tx, "__getitem__")):
            unsupported("reversed", f"reversed of {args[0]!r}", "It is read by its own __len__ and __getitem__.")
        args = [contents_of(args[0])]
    elif isinstance(args[0], ObjectVariable) and not isinstance(args[0], ModuleVariable):
        return _reversed_object(tx, args[0])
    kind = getattr(args[0], "kind", None) or type(args[0])
    if kind is ListVariable:
        args[0].realized(tx)
        # Live: what is written to the list before it is read is seen.
        return _Backwards(args[0], len(args[0].elements), lambda tx, at: args[0].elements[at], type(reversed([])))
    _refuse_irreversible(tx, args[0])
    elements = args[0].items(tx)[::-1]
    keyed = args[0].owner if isinstance(args[0], DictView) else args[0]
    if isinstance(keyed, DictVariable):
        return watching(IteratorVariable(elements), keyed)
    if kind is not TupleVariable:
        return IteratorVariable(elements)
    it = IteratorVariable(elements, cls=reversed)
    it.parts = lambda: (reversed, [kind(elements[it.position :][::-1])])
    return it


def _refuse_irreversible(tx, v: Variable) -> None:
    cls = v.python_type()
    if not (hasattr(cls, "__reversed__") or (hasattr(cls, "__len__") and hasattr(cls, "__getitem__"))):
        tx.raise_user(TypeError(f"{name_of(cls)!r} object is not reversible"))


class _Backwards(IteratorVariable):
    """``reversed`` of what is read by index, from the last of ``n`` elements on."""

    def __init__(self, sequence, n: int, element, cls):
        super().__init__(cls=cls, parts=lambda: (polyfills.reversed_at, [sequence, ConstantVariable(self.at)]))
        self.at, self.element = n - 1, element

    def next(self, tx):
        tx.side_effects.touch(self)
        at, self.at = self.at, self.at - 1
        try:
            return tx.realize(self.element(tx, at)) if at >= 0 else self._end()
        except IndexError:
            return self._end()
        except UserRaises as e:
            if isinstance(e.exception, IndexError | StopIteration):
                return self._end()
            raise

    def _end(self) -> None:
        self.at = -1


def _reversed_object(tx, v: ObjectVariable) -> Variable:
    own = v.special(tx, "__reversed__")
    if own is not None:
        return own.call(tx, [], {})
    refused = v.class_attr(tx, "__reversed__") is None
    if refused or v.special(tx, "__len__") is None or v.special(tx, "__getitem__") is None:
        tx.raise_user(TypeError(f"{name_of(v.python_type())!r} object is not reversible"))
    return _Backwards(v, v.length(tx), lambda tx, at: v.getitem(tx, ConstantVariable(at)), reversed)


def strict_zip(*iterables):
    return zip(*iterables, strict=True)


def chain(tx, iterables: IteratorVariable) -> IteratorVariable:
    inner: list[IteratorVariable] = []

    def pull(tx):
        while True:
            v = inner[0].next(tx) if inner else None
            if v is not None:
                return v
            nxt = iterables.next(tx)
            if nxt is None:
                return None
            inner[:] = [iterate(tx, nxt)]

    return IteratorVariable(pull=pull, cls=itertools.chain, parts=lambda: (resumed_chain, [iterables, *inner]))


def resumed_chain(iterables, *inner):
    return itertools.chain(*inner, itertools.chain.from_iterable(iterables))


@handles(itertools.chain)
def _(tx, args, kwargs):
    return chain(tx, IteratorVariable(args))


@handles(itertools.chain.from_iterable)
def _(tx, args, kwargs):
    return chain(tx, iterate(tx, args[0]))


@handles(itertools.product)
def _(tx, args, kwargs):
    repeat = kwargs["repeat"].as_constant() if kwargs else 1
    columns = [iterate(tx, a).items(tx) for a in args]
    return IteratorVariable([TupleVariable(row) for row in own_error(tx, itertools.product, *columns, repeat=repeat)])


@handles(itertools.count)
def _(tx, args, kwargs):
    a = bound(args, kwargs, ("start", "step"), (0, 1))
    step = a[1].as_constant()
    own_error(tx, itertools.count, a[0].as_constant(), step)
    state = Count(a[0].as_constant(), step)

    def parts():
        return itertools.count, [ConstantVariable(state.at), ConstantVariable(step)]

    return IteratorVariable(pull=lambda tx: ConstantVariable(next(state)), cls=itertools.count, parts=parts)


def bound(args, kwargs, names, defaults):
    """Positional and keyword arguments by position, constants for those that are missing."""
    out = list(args)
    for name, default in list(zip(names, defaults))[len(args) :]:
        out.append(kwargs.get(name) or ConstantVariable(default))
    return out


@handles(itertools.islice)
def _(tx, args, kwargs):
    bounds = [a.as_constant() for a in args[1:]]
    own_error(tx, itertools.islice, (), *bounds)
    start, stop, step = slice_bounds(bounds)
    it = iterate(tx, args[0])
    wanted, position = itertools.islice(itertools.count(), start, stop, step), Count()
    taken = Count()

    def pull(tx):
        target = next(wanted, None)
        if target is None:
            while stop is not None and next(position) < stop:  # what comes before the end is taken
                if it.next(tx) is None:
                    break
            return None
        next(taken)
        for at in position:
            v = it.next(tx)
            if v is None or at == target:
                return v

    def parts():
        at, n = position.at, taken.at
        bounds = [start + n * step - at, None if stop is None else max(stop - at, 0), step]
        return itertools.islice, [it, *map(ConstantVariable, bounds)]

    return IteratorVariable(pull=pull, cls=itertools.islice, parts=parts)


def own_error(tx, fn, *args, **kwargs):
    """``fn`` of numbers that are known. What it says of wrong ones is the error of the program."""
    try:
        return fn(*args, **kwargs)
    except (TypeError, ValueError, OverflowError) as e:
        tx.raise_user(e.with_traceback(None))


def slice_bounds(bounds):
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    return start or 0, stop, step or 1


@handles(itertools.repeat)
def _(tx, args, kwargs):
    if not args and "object" not in kwargs:
        tx.raise_user(TypeError("repeat() missing required argument 'object' (pos 1)"))
    times = args[1] if len(args) == 2 else kwargs.get("times")
    value = args[0] if args else kwargs["object"]
    if times is not None:
        return IteratorVariable([value] * times.as_constant())
    return IteratorVariable(pull=lambda tx: value, cls=itertools.repeat, parts=lambda: (itertools.repeat, [value]))


def _known_elements(fn):
    """Iterators that take all of their inputs when they are made."""

    def handler(tx, args, kwargs):
        options = {k: v.as_constant() for k, v in kwargs.items()}
        columns = [
            a.as_constant() if a.is_constant() and isinstance(a.as_constant(), int | None) else iterate(tx, a).items(tx)
            for a in args
        ]
        return IteratorVariable([TupleVariable(row) for row in own_error(tx, fn, *columns, **options)])

    HANDLERS[fn] = handler


for _fn in (
    itertools.product,
    itertools.combinations,
    itertools.permutations,
    itertools.combinations_with_replacement,
):
    _known_elements(_fn)


def _traced(fn, written):
    """``fn`` is traced as the generator function ``written``."""

    names = written.__code__.co_varnames[: written.__code__.co_argcount]
    some = written.__code__.co_flags & inspect.CO_VARARGS
    over = {"iterable", "data", "selectors"}

    def handler(tx, args, kwargs):
        # The original asks its arguments for their iterators when it is made, not when its first element is taken.
        args = [iterate(tx, a) if some or n in over else a for n, a in itertools.zip_longest(names, args)][: len(args)]
        kwargs = {n: iterate(tx, a) if n in over else a for n, a in kwargs.items()}
        out = tx.inline(UserFunctionVariable(written), args, kwargs)
        if isinstance(out, GeneratorVariable):
            out.cls = fn
        return out

    HANDLERS[fn] = handler


for _name in polyfills.__all__:
    _traced(getattr(itertools, _name, None) or getattr(functools, _name), getattr(polyfills, _name))
