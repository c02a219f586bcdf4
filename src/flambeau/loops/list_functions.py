"""What builtin functions and methods do of lists, dicts and sets in a loop: functions whose bytecode joins that of the loop.

Where Python raises, or an order depends on how NaNs compare, the loop ends and the frame runs plainly.
"""

from __future__ import annotations

from collections.abc import Callable

from .emitter import constant
from .generators import COMPENSATED
from .values import ArrayView, Call, Container, Expression, Known, Scalar, Slice, Tuple

__all__ = ["CHANGING", "CODES", "FREE_OF_ORDER", "contains", "function", "joined", "method", "part"]

# ---- sorting


def _sort(a):
    n, width = len(a), 8
    for x in a:
        if x != x:
            raise ValueError
    for low in range(0, n, width):
        for k in range(low + 1, min(low + width, n)):
            x, at = a[k], k
            while at > low and x < a[at - 1]:
                a[at] = a[at - 1]
                at -= 1
            a[at] = x
    if n <= width:
        return
    other = []
    for x in a:
        other.append(x)
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if i < middle and (j >= high or not a[j] < a[i]):
                    other[k] = a[i]
                    i += 1
                else:
                    other[k] = a[j]
                    j += 1
        for k in range(n):
            a[k] = other[k]
        width *= 2


def _sort_down(a):
    # Equal items keep their order, as in Python.
    a.reverse()
    a.sort()
    a.reverse()


def _sort_by(a, key):
    pairs, other = [], []
    for k in range(len(a)):
        pairs.append((key(a[k]), k))
        other.append(a[k])
    pairs.sort()
    for k in range(len(a)):
        a[k] = other[pairs[k][1]]


def _sort_down_by(a, key):
    a.reverse()
    a.sort(key=key)
    a.reverse()


def _sorted(a):
    out = []
    for x in a:
        out.append(x)
    out.sort()
    return out


def _sorted_down(a):
    out = []
    for x in a:
        out.append(x)
    out.sort(reverse=True)
    return out


def _sorted_by(a, key):
    out = []
    for x in a:
        out.append(x)
    out.sort(key=key)
    return out


def _sorted_down_by(a, key):
    out = []
    for x in a:
        out.append(x)
    out.sort(key=key, reverse=True)
    return out


# ---- what is made of all items


def _list(a):
    out = []
    for x in a:
        out.append(x)
    return out


def _set(a):
    out = set()
    for x in a:
        out.add(x)
    return out


def _list_of_range(start, stop, step):
    out = []
    for k in range(start, stop, step):
        out.append(k)
    return out


def _sum_from(a, start):
    made = start
    for x in a:
        made = made + x
    return made


def _sum_of_items(a):
    return sum(list(a))


def _min_of_items(a):
    return min(list(a))


def _max_of_items(a):
    return max(list(a))


def _min_by(a, key):
    made = a[0]
    least = key(made)
    for k in range(1, len(a)):
        x = a[k]
        y = key(x)
        if y < least:
            made, least = x, y
    return made


def _max_by(a, key):
    made = a[0]
    most = key(made)
    for k in range(1, len(a)):
        x = a[k]
        y = key(x)
        if y > most:
            made, most = x, y
    return made


def _min_of_items_by(a, key):
    return min(list(a), key=key)


def _max_of_items_by(a, key):
    return max(list(a), key=key)


def _min_or(a, default):
    return min(a) if len(a) else default


def _max_or(a, default):
    return max(a) if len(a) else default


# ---- methods of lists


def _reverse(a):
    i, j = 0, len(a) - 1
    while i < j:
        a[i], a[j] = a[j], a[i]
        i += 1
        j -= 1


def _extend(a, more):
    n = len(more)
    for k in range(n):
        a.append(more[k])


def _extend_left(a, more):
    n = len(more)
    for k in range(n):
        a.appendleft(more[k])


def _insert(a, at, x):
    a.append(x)
    n = len(a) - 1
    at = max(at + n, 0) if at < 0 else min(at, n)
    while n > at:
        a[n] = a[n - 1]
        n -= 1
    a[at] = x


def _pop(a, at):
    n = len(a)
    if at < 0:
        at += n
    if at < 0 or at >= n:
        raise IndexError
    x = a[at]
    for k in range(at, n - 1):
        a[k] = a[k + 1]
    a.pop()
    return x


def _contains(a, x):
    for y in a:
        # A NaN is in a list that holds this very object.
        if x != x or y != y:
            raise ValueError
        if y == x:
            return True
    return False


def _lacks(a, x):
    return not x in a  # noqa: E713


def _index(a, x):
    for k in range(len(a)):
        if x != x or a[k] != a[k]:
            raise ValueError
        if a[k] == x:
            return k
    raise ValueError


def _count(a, x):
    n = 0
    for y in a:
        if x != x or y != y:
            raise ValueError
        if y == x:
            n += 1
    return n


def _remove(a, x):
    a.pop(a.index(x))


# ---- parts of lists


def _part(a, start, stop):
    n = len(a)
    if start < 0:
        start = max(start + n, 0)
    stop = stop + n if stop < 0 else min(stop, n)
    out = []
    for k in range(start, stop):
        out.append(a[k])
    return out


def _from(a, start):
    n = len(a)
    if start < 0:
        start = max(start + n, 0)
    out = []
    for k in range(start, n):
        out.append(a[k])
    return out


def _reversed(a):
    out = []
    for k in range(len(a) - 1, -1, -1):
        out.append(a[k])
    return out


def _joined(a, b):
    out = []
    for x in a:
        out.append(x)
    for x in b:
        out.append(x)
    return out


_OPTIONS = {(), ("reverse",), ("key",), ("key", "reverse")}
_SORTED = {(): _sorted, ("reverse",): _sorted_down, ("key",): _sorted_by, ("key", "reverse"): _sorted_down_by}
_SORT = {(): _sort, ("reverse",): _sort_down, ("key",): _sort_by, ("key", "reverse"): _sort_down_by}
# A builtin and the names of its keyword arguments -> what it does of a list or row, and of a dict, a set or part of a dict.
_LEAST = {
    (min, ("key",)): (_min_by, _min_of_items_by),
    (max, ("key",)): (_max_by, _max_of_items_by),
    (min, ("default",)): (_min_or, _min_or),
    (max, ("default",)): (_max_or, _max_or),
    (min, ()): (None, _min_of_items),
    (max, ()): (None, _max_of_items),
    (sum, ()): (None, _sum_of_items),
}
_METHODS: dict[tuple[str, int], Callable] = {
    ("reverse", 0): _reverse, ("extend", 1): _extend, ("insert", 2): _insert, ("pop", 1): _pop, ("index", 1): _index, ("count", 1): _count,
    ("remove", 1): _remove, ("copy", 0): _list,
}  # fmt: skip
CHANGING = frozenset("append pop clear sort reverse extend insert remove".split())
"""Methods that change a list."""
CODES = frozenset(
    f.__code__ for f in vars().copy().values() if getattr(f, "__module__", None) == __name__ and callable(f)
)  # fmt: skip
FREE_OF_ORDER = frozenset(f.__code__ for f in (_sorted, _sorted_down, _set))
"""What may run over a set, whose order is Python's own."""


def _is_list(a) -> bool:
    return isinstance(a, Container) and a.kind == "list"


def _is_row(a) -> bool:
    return isinstance(a, ArrayView | Expression) and a.ndim == 1


def _options(kwargs: dict) -> tuple[tuple[str, ...], list] | None:
    """(names, values) of a sort's keyword arguments, without those that say what is so anyway."""
    given = {name: v for name, v in kwargs.items() if v != Known(None)}
    down = given.pop("reverse", None)
    if down is not None and type(getattr(down, "const", None)) is not bool:
        return None
    names = (*sorted(given), *(("reverse",) if down is not None and down.const else ()))
    return (names, list(given.values())) if names in _OPTIONS else None


def function(f, args: list, kwargs: dict) -> Call | None:
    """What a builtin does of a list, dict or set, and of what; None for others."""
    if not args or not (isinstance(args[0], Container) or _is_row(args[0])):
        if f is list and _is_reversed(args) and not kwargs:
            return Call(_reversed, args[0].arguments)
        ends = _ends(f, args)
        return None if ends is None or kwargs else Call(_list_of_range, ends)
    (a, *more) = args
    if f is sum and COMPENSATED and isinstance(a, Container):
        return None
    if f is sorted and not more:
        options = _options(kwargs)
        return options and Call(_SORTED[options[0]], (a, *options[1]))
    if f is list and not more and not kwargs:
        return Call(_list, (a,))
    if f is set and not more and not kwargs:
        return Call(_set, (a,))
    if f is sum and (len(more) == 1 or (kwargs.keys() == {"start"} and not more)):
        return Call(_sum_from, (a, *more, *kwargs.values()))
    made = None if more else _LEAST.get((f, tuple(kwargs))) if f in (min, max, sum) else None
    made = made and made[not (_is_list(a) or _is_row(a))]
    return Call(made, (a, *kwargs.values())) if made else None


def _is_reversed(args: list) -> bool:
    return len(args) == 1 and isinstance(args[0], Call) and args[0].function is reversed


def _ends(f, args: list) -> tuple | None:
    """The ends and the step of a range of which a list is made."""
    if f is not list or len(args) != 1 or not isinstance(args[0], Call) or args[0].function is not range:
        return None
    ends = args[0].arguments
    return (constant(0), *ends, constant(1)) if len(ends) == 1 else (*ends, constant(1))[:3] if ends else None


def method(a: Container, name: str, args: list, kwargs: dict) -> Call | None:
    """What a method of a list does, and of what; None for those that are written otherwise."""
    if a.kind == "deque" and name in ("extend", "extendleft") and len(args) == 1 and not kwargs:
        ordered = _is_row(args[0]) or (isinstance(args[0], Container) and not args[0].is_table)
        return Call(_extend if name == "extend" else _extend_left, (a, *args)) if ordered else None
    if a.kind != "list":
        return None
    if name == "sort" and not args:
        options = _options(kwargs)
        return options and Call(_SORT[options[0]], (a, *options[1]))
    if kwargs or (name == "pop" and getattr(args[0] if args else None, "const", None) in (0, -1)):
        return None
    made = _METHODS.get((name, len(args)))
    if made is _extend and not (_is_list(args[0]) or _is_row(args[0])):
        return None
    return made and Call(made, (a, *args))


def contains(c, key, lacks: bool) -> Call | None:
    """``key in c``, or ``key not in c``, of a list or deque."""
    listed = isinstance(c, Container) and not c.is_table
    return Call(_lacks if lacks else _contains, (c, key)) if listed and isinstance(key, Scalar | Tuple) else None


def part(a, key) -> Call | None:
    """What a slice of a list is; None for other subscripts."""
    if not (_is_list(a) and isinstance(key, Slice)):
        return None
    start, stop, step = (None if k == Known(None) else k for k in (key.start, key.stop, key.step))
    if step is not None and getattr(step, "const", None) == -1 and start is None and stop is None:
        return Call(_reversed, (a,))
    if step is not None and getattr(step, "const", None) != 1:
        return None
    if start is None and stop is None:
        return Call(_list, (a,))
    return Call(_from, (a, start)) if stop is None else Call(_part, (a, constant(0) if start is None else start, stop))


def joined(a, b) -> Call | None:
    return Call(_joined, (a, b)) if _is_list(a) and _is_list(b) else None
