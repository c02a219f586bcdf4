"""Functions of lists, dicts and sets written in Python, whose bytecode joins that of the loop that calls a builtin or method.

Each raises where Python does, and also where an order or an equality depends on how NaNs compare: the loop ends there, and the frame runs plainly.
Sorting is stable: insertion within runs of 8, then merges from the bottom up (Knuth, The Art of Computer Programming 3, 5.2.4).
"""

from __future__ import annotations

__all__ = ["CODES", "FREE_OF_ORDER"]

# ---- sorting


def sort(a):
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


def sort_down(a):
    # Equal items keep their order, as in Python.
    a.reverse()
    a.sort()
    a.reverse()


def sort_by(a, key):
    pairs, other = [], []
    for k in range(len(a)):
        pairs.append((key(a[k]), k))
        other.append(a[k])
    pairs.sort()
    for k in range(len(a)):
        a[k] = other[pairs[k][1]]


def sort_down_by(a, key):
    a.reverse()
    a.sort(key=key)
    a.reverse()


def sorted_(a):
    out = []
    for x in a:
        out.append(x)
    out.sort()
    return out


def sorted_down(a):
    out = []
    for x in a:
        out.append(x)
    out.sort(reverse=True)
    return out


def sorted_by(a, key):
    out = []
    for x in a:
        out.append(x)
    out.sort(key=key)
    return out


def sorted_down_by(a, key):
    out = []
    for x in a:
        out.append(x)
    out.sort(key=key, reverse=True)
    return out


# ---- what is made of all items


def list_(a):
    out = []
    for x in a:
        out.append(x)
    return out


def set_(a):
    out = set()
    for x in a:
        out.add(x)
    return out


def list_of_range(start, stop, step):
    out = []
    for k in range(start, stop, step):
        out.append(k)
    return out


def sum_from(a, start):
    made = start
    for x in a:
        made = made + x
    return made


def sum_of_items(a):
    return sum(list(a))


def min_of_items(a):
    return min(list(a))


def max_of_items(a):
    return max(list(a))


def min_by(a, key):
    made = a[0]
    least = key(made)
    for k in range(1, len(a)):
        x = a[k]
        y = key(x)
        if y < least:
            made, least = x, y
    return made


def max_by(a, key):
    made = a[0]
    most = key(made)
    for k in range(1, len(a)):
        x = a[k]
        y = key(x)
        if y > most:
            made, most = x, y
    return made


def min_of_items_by(a, key):
    return min(list(a), key=key)


def max_of_items_by(a, key):
    return max(list(a), key=key)


def min_or(a, default):
    return min(a) if len(a) else default


def max_or(a, default):
    return max(a) if len(a) else default


# ---- methods of lists


def reverse(a):
    i, j = 0, len(a) - 1
    while i < j:
        a[i], a[j] = a[j], a[i]
        i += 1
        j -= 1


def extend(a, more):
    n = len(more)
    for k in range(n):
        a.append(more[k])


def extend_left(a, more):
    n = len(more)
    for k in range(n):
        a.appendleft(more[k])


def insert(a, at, x):
    a.append(x)
    n = len(a) - 1
    at = max(at + n, 0) if at < 0 else min(at, n)
    while n > at:
        a[n] = a[n - 1]
        n -= 1
    a[at] = x


def pop(a, at):
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


def contains(a, x):
    for y in a:
        # A NaN is in a list that holds this very object.
        if x != x or y != y:
            raise ValueError
        if y == x:
            return True
    return False


def lacks(a, x):
    return not x in a  # noqa: E713


def index(a, x):
    for k in range(len(a)):
        if x != x or a[k] != a[k]:
            raise ValueError
        if a[k] == x:
            return k
    raise ValueError


def count(a, x):
    n = 0
    for y in a:
        if x != x or y != y:
            raise ValueError
        if y == x:
            n += 1
    return n


def remove(a, x):
    a.pop(a.index(x))


# ---- parts of lists


def part(a, start, stop):
    n = len(a)
    if start < 0:
        start = max(start + n, 0)
    stop = stop + n if stop < 0 else min(stop, n)
    out = []
    for k in range(start, stop):
        out.append(a[k])
    return out


def from_start(a, start):
    n = len(a)
    if start < 0:
        start = max(start + n, 0)
    out = []
    for k in range(start, n):
        out.append(a[k])
    return out


def reversed_(a):
    out = []
    for k in range(len(a) - 1, -1, -1):
        out.append(a[k])
    return out


def joined(a, b):
    out = []
    for x in a:
        out.append(x)
    for x in b:
        out.append(x)
    return out


CODES = frozenset(
    f.__code__ for f in vars().copy().values() if getattr(f, "__module__", None) == __name__ and callable(f)
)  # fmt: skip
FREE_OF_ORDER = frozenset(f.__code__ for f in (sorted_, sorted_down, set_))
"""What may run over a set, whose order is Python's own."""
