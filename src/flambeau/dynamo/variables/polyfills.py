"""Functions of the standard library as Python functions, for the executor to trace. They do what the documentation of itertools, functools
and re says, in the order in which the originals take their elements."""

from __future__ import annotations

import re

__all__ = [
    "accumulate",
    "compress",
    "cycle",
    "dropwhile",
    "filterfalse",
    "groupby",
    "pairwise",
    "starmap",
    "takewhile",
    "tee",
    "zip_longest",
]


def reversed_at(sequence, index):
    """``reversed(sequence)`` as it is when the element at ``index`` is next."""
    it = reversed(sequence)
    it.__setstate__(index)
    return it


def count_elements(mapping, iterable):
    for x in iterable:
        mapping[x] = mapping.get(x, 0) + 1


def accumulate(iterable, func=None, *, initial=None):
    it = iter(iterable)
    total = initial
    if initial is None:
        for first in it:
            total = first
            break
        else:
            return
    yield total
    for x in it:
        total = total + x if func is None else func(total, x)
        yield total


def compress(data, selectors):
    for d, s in zip(data, selectors):
        if s:
            yield d


def cycle(iterable):
    saved = []
    for x in iterable:
        yield x
        saved.append(x)
    while saved:
        for x in saved:  # noqa: UP028
            yield x


def dropwhile(predicate, iterable):
    it = iter(iterable)
    for x in it:
        if not predicate(x):
            yield x
            break
    for x in it:  # noqa: UP028
        yield x


def filterfalse(function, iterable):
    for x in iterable:
        if not (x if function is None else function(x)):
            yield x


def groupby(iterable, key=None):
    groups = []
    for x in iterable:
        k = x if key is None else key(x)
        if groups and groups[-1][0] == k:
            groups[-1][1].append(x)
        else:
            groups.append((k, [x]))
    for k, group in groups:
        yield k, iter(group)


def pairwise(iterable):
    before = []
    for x in iterable:
        if before:
            yield before.pop(), x
        before.append(x)


def starmap(function, iterable):
    for args in iterable:
        yield function(*args)


def takewhile(predicate, iterable):
    for x in iterable:
        if not predicate(x):
            return
        yield x


def tee(iterable, n=2):
    items = list(iterable)
    return tuple([iter(items) for _ in range(n)])


def zip_longest(*iterables, fillvalue=None):
    its = [iter(i) for i in iterables]
    alive = len(its)
    done = [False] * len(its)
    while alive:
        row = []
        for k in range(len(its)):
            value = fillvalue
            if not done[k]:
                for v in its[k]:
                    value = v
                    break
                else:
                    done[k] = True
                    alive -= 1
                    if not alive:
                        return
            row.append(value)
        yield tuple(row)


def pattern_subn(pattern, repl, string, count=0):
    parts, end, n = [], 0, 0
    for m in pattern.finditer(string):
        if count and n == count:
            break
        parts.append(string[end : m.start()])
        parts.append(repl(m))
        end = m.end()
        n += 1
    parts.append(string[end:])
    return string[:0].join(parts), n


def pattern_sub(pattern, repl, string, count=0):
    return pattern_subn(pattern, repl, string, count)[0]


def subn(pattern, repl, string, count=0, flags=0):
    return pattern_subn(re.compile(pattern, flags), repl, string, count)


def sub(pattern, repl, string, count=0, flags=0):
    return subn(pattern, repl, string, count, flags)[0]
