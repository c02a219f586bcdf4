"""Operators on lists and dicts."""

from __future__ import annotations

import operator

from ...composed import broadcast_shapes
from .table import prim, row, slices_of


def _slice(xs, start=None, end=None, step=1):
    return xs[start:end:step]


def _appended(xs, x):
    xs.append(x)
    return xs


def _extended(xs, other):
    xs.extend(other)


def _set(xs, at, x):
    xs[at] = x


def _delete(xs, at):
    del xs[at]


def _sort(xs, reverse=False):
    xs.sort(reverse=reverse)


def _times(xs, n):
    xs *= n
    return xs


row("len", len, "List[t] -> int", "Dict[k, v] -> int")
row("append", _appended, "List[t], t -> List[t]")
row("extend", _extended, "List[t], List[t] -> NoneType")
row("insert", lambda xs, at, x: xs.insert(at, x), "List[t], int, t -> NoneType")
row("reverse", lambda xs: xs.reverse(), "List[t] -> NoneType")
row("clear", lambda xs: xs.clear(), "List[t] -> NoneType", "Dict[k, v] -> NoneType")
row(
    "pop",
    lambda xs, *at: xs.pop(*at),
    "List[t] -> t",
    "List[t], int -> t",
    "Dict[k, v], k -> v",
    "Dict[k, v], k, v -> v",
)
row("remove", lambda xs, x: xs.remove(x), "List[t], t -> NoneType")
row("index", lambda xs, x: xs.index(x), "List[t], t -> int")
row("count", lambda xs, x: xs.count(x), "List[t], t -> int")
row("sort", _sort, "List[t] -> NoneType", "List[t], bool -> NoneType")
row("sorted", sorted, "List[t] -> List[t]")
row("copy", lambda xs: xs.copy(), "List[t] -> List[t]", "Dict[k, v] -> Dict[k, v]")
row("list", list, "List[t] -> List[t]")
row("add", operator.add, "List[t], List[t] -> List[t]")
row("add_", operator.iadd, "List[t], List[t] -> List[t]")
row("mul", operator.mul, "List[t], int -> List[t]", "int, List[t] -> List[t]")
row("mul_", _times, "List[t], int -> List[t]")
row("select", operator.getitem, "List[t], int -> t")
row("__getitem__", operator.getitem, "List[t], int -> t", "Dict[k, v], k -> v")
row("__contains__", operator.contains, "List[t], t -> bool", "Dict[k, v], k -> bool")
row("slice", _slice, *slices_of("List[t]"))
row("_set_item", _set, "List[t], int, t -> NoneType", "Dict[k, v], k, v -> NoneType")
row("Delete", _delete, "List[t], int -> NoneType", "Dict[k, v], k -> NoneType")
row("sum", sum, "List[int] -> int", "List[bool] -> int", "List[float] -> float")
row("any", any, "List[int] -> bool", "List[bool] -> bool", "List[float] -> bool", "List[str] -> bool")
row("all", all, "List[int] -> bool", "List[bool] -> bool", "List[float] -> bool")
row("_infer_size", lambda a, b: list(broadcast_shapes(a, b)), "List[int], List[int] -> List[int]")
row("broadcast_shapes", lambda *s: list(broadcast_shapes(*s)), "List[int], List[int] -> List[int]")
prim("rangelist", lambda n: list(range(n)), "int -> List[int]")
for _name, _fn in {"min": min, "max": max}.items():
    prim(_name, _fn, "List[t] -> t", "List[t], List[t] -> List[t]")
row("Size", list, "List[int] -> List[int]")
row("_size_if_not_equal", lambda a, b: None if a == b else a, "List[int], List[int] -> Optional[List[int]]")

# -- dicts -------------------------------------------------------------------------------------------------------------
row("keys", lambda d: list(d.keys()), "Dict[k, v] -> List[k]")
row("values", lambda d: list(d.values()), "Dict[k, v] -> List[v]")
row("items", lambda d: list(d.items()), "Dict[k, v] -> List[Tuple[k, v]]")
row("get", lambda d, key: d.get(key), "Dict[k, v], k -> Optional[v]")
row("get", lambda d, key, default: d.get(key, default), "Dict[k, v], k, v -> v")
row("setdefault", lambda d, key, x: d.setdefault(key, x), "Dict[k, v], k, v -> v")
row("update", lambda d, other: d.update(other), "Dict[k, v], Dict[k, v] -> NoneType")
row("popitem", lambda d: d.popitem(), "Dict[k, v] -> Tuple[k, v]")
row("dict", dict, "Dict[k, v] -> Dict[k, v]", "List[Tuple[k, v]] -> Dict[k, v]")
row("dict", dict, " -> Dict[str, Tensor]")
