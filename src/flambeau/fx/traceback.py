"""Notes that go with the nodes of one graph into the graph that is traced from it: ``torch.fx.traceback``.

Within :func:`preserve_node_meta` an Interpreter says which node it runs, and what is traced meanwhile gets that node's notes.
"""

from __future__ import annotations

import contextlib
import copy
import threading
import traceback
from collections.abc import Iterator
from typing import Any

__all__ = [
    "annotate",
    "copy_meta",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_custom_entry",
    "set_module_stack",
    "set_stack_trace",
]

# What a node made from another one takes over.
FIELDS = (
    "stack_trace",
    "nn_module_stack",
    "source_fn_stack",
    "torch_fn",
    "original_aten",
    "recompute",
    "from_node",
    "custom",
)


class _State(threading.local):
    preserved = False

    def __init__(self):
        self.meta: dict[str, Any] = {}


_state = _State()


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """In this block nodes get the notes of the node that is run."""
    before = _state.preserved, _state.meta
    _state.preserved = enable
    try:
        yield
    finally:
        _state.preserved, _state.meta = before


def has_preserved_node_meta() -> bool:
    """Whether :func:`preserve_node_meta` is on in this thread."""
    return _state.preserved


def get_current_meta() -> dict[str, Any]:
    """The notes of the node that is run."""
    return _state.meta


@contextlib.contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """In this block ``node`` is the one that is run."""
    if not (_state.preserved and node.meta):
        yield
        return
    before, _state.meta = _state.meta, {**_state.meta, **node.meta}
    if node.stack_trace is not None:
        _state.meta["stack_trace"] = node.stack_trace
    try:
        yield
    finally:
        _state.meta = before


def set_stack_trace(stack: list[str]) -> None:
    """Let the nodes from here on have this stack trace."""
    if _state.preserved and stack:
        _state.meta = {**_state.meta, "stack_trace": "".join(stack)}


def set_module_stack(stack: dict[str, tuple[str, str]]) -> None:
    """Let the nodes from here on belong to these calls of modules, the outermost first."""
    if _state.preserved:
        _state.meta = {**_state.meta, "nn_module_stack": stack}


def set_custom_entry(name: str, value: Any) -> None:
    """Let the nodes from here on have this entry in ``meta["custom"]``."""
    if _state.preserved:
        _state.meta = {**_state.meta, "custom": {**_state.meta.get("custom", {}), name: value}}


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """In this block nodes that are traced have these entries in ``meta["custom"]``."""
    before = _state.preserved, _state.meta
    _state.preserved = True
    _state.meta = {**_state.meta, "custom": {**_state.meta.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        _state.preserved, _state.meta = before


def format_stack() -> list[str]:
    """The stack trace of the node that is run, else that of the caller."""
    if _state.preserved:
        return [_state.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


def copy_meta(node: Any) -> None:
    """Give ``node`` the notes of the node that is run, where they are to be preserved."""
    if _state.preserved:
        node.meta.update((k, copy.copy(_state.meta[k])) for k in FIELDS if k in _state.meta)
