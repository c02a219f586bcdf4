"""Pytrees: nested Python containers as a flat list of leaves and a spec, on optree. None is a leaf, as in PyTorch.

The names are those of ``torch.utils._pytree``.
"""

from __future__ import annotations

import optree

_NS = "flambeau"
TreeSpec = optree.PyTreeSpec


def tree_flatten(tree, is_leaf=None):
    """(leaves, spec)."""
    return optree.tree_flatten(tree, is_leaf=is_leaf, none_is_leaf=True, namespace=_NS)


def tree_unflatten(leaves, spec):
    """Inverse of tree_flatten; accepts (spec, leaves) order too, the way older code calls it."""
    if isinstance(leaves, TreeSpec):
        leaves, spec = spec, leaves
    return optree.tree_unflatten(spec, leaves)


def tree_leaves(tree, is_leaf=None):
    return optree.tree_leaves(tree, is_leaf=is_leaf, none_is_leaf=True, namespace=_NS)


def tree_structure(tree, is_leaf=None):
    return optree.tree_structure(tree, is_leaf=is_leaf, none_is_leaf=True, namespace=_NS)


def tree_map(fn, tree, *rests, is_leaf=None):
    """Apply ``fn`` to each leaf."""
    return optree.tree_map(fn, tree, *rests, is_leaf=is_leaf, none_is_leaf=True, namespace=_NS)


def tree_map_only(types, fn, tree, is_leaf=None):
    """Apply ``fn`` to the leaves that are instances of ``types`` (or for which a predicate ``types`` holds)."""
    if isinstance(types, (type, tuple)):
        return tree_map(lambda x: fn(x) if isinstance(x, types) else x, tree, is_leaf=is_leaf)
    return tree_map(lambda x: fn(x) if types(x) else x, tree, is_leaf=is_leaf)


def tree_map_(fn, tree, *rests, is_leaf=None):
    tree_map(fn, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_any(pred, tree, is_leaf=None):
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all(pred, tree, is_leaf=None):
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any_only(types, pred, tree, is_leaf=None):
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, types))


def tree_all_only(types, pred, tree, is_leaf=None):
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, types))


def register_pytree_node(cls, flatten_fn, unflatten_fn, **_serialization):
    """Make ``cls`` a node. ``flatten_fn(x) -> (children, context)``, ``unflatten_fn(children, context)``."""
    optree.register_pytree_node(
        cls, lambda x: tuple(flatten_fn(x)), lambda ctx, ch: unflatten_fn(list(ch), ctx), namespace=_NS
    )
