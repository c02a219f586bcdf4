"""Functions of the standard library as Python functions, for the executor to trace."""

from __future__ import annotations

import re

__all__ = ["count_elements", "pattern_sub", "pattern_subn", "sub", "subn"]


def count_elements(mapping, iterable):
    for x in iterable:
        mapping[x] = mapping.get(x, 0) + 1


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
