"""Pytrees: nested Python containers as a flat list of leaves and a spec, on optree. None is a leaf, as in PyTorch.

The names are those of ``torch.utils._pytree``.
"""

from __future__ import annotations

import collections
import warnings

from . import pytree_nodes
from .forks import held_while_forking
from .public import public_in
from .pytree_nodes import SUPPORTED_NODES
from .pytree_nodes import node_type as _get_node_type  # noqa: F401  (libraries import it)
from .records import slotted
from .shapes import Size

__all__ = [
    "Context",
    "DumpableContext",
    "FlattenFn",
    "FromDumpableContextFn",
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "SequenceKey",
    "ToDumpableContextFn",
    "TreeSpec",
    "UnflattenFn",
    "arg_tree_leaves",
    "is_leaf_class",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]

_NS = "flambeau"


class _Later:
    """optree, imported when something is flattened for the first time: its import takes longer than all of flambeau's levels below nn."""

    def __init__(self):
        size = SUPPORTED_NODES[Size]
        self.registered: list = [(Size, size.flatten_fn, size.unflatten_fn)]  # what was made a node before that

    def __getattr__(self, name):
        global optree
        import optree as loaded

        with held_while_forking:  # of several threads that come here, one registers, and nobody flattens before it has
            if optree is self:
                loaded._C.set_dict_insertion_ordered(True, _NS)  # leaves come in the order of the keys, as in PyTorch
                while self.registered:
                    _register(loaded, *self.registered.pop(0))
                optree = loaded
        return getattr(loaded, name)


optree = _Later()


def __getattr__(name):
    if name == "PyTreeSpec":
        return optree.PyTreeSpec
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def tree_flatten(tree, is_leaf=None):
    """(leaves, spec)."""
    return optree.tree_flatten(tree, is_leaf=is_leaf, none_is_leaf=True, namespace=_NS)


def tree_unflatten(leaves, spec):
    """Inverse of tree_flatten; accepts (spec, leaves) order too, the way older code calls it."""
    if isinstance(leaves, optree.PyTreeSpec):
        leaves, spec = spec, leaves
    return optree.tree_unflatten(spec, leaves)


def tree_leaves(tree, is_leaf=None):
    """A list of the leaves."""
    return optree.tree_leaves(tree, is_leaf=is_leaf, none_is_leaf=True, namespace=_NS)


def arg_tree_leaves(*args, **kwargs):
    """The leaves of arguments and keyword arguments, in this order."""
    return [*tree_leaves(args), *tree_leaves(kwargs)]


def tree_structure(tree, is_leaf=None):
    """The structure without its leaves."""
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
    """Call ``fn`` with each leaf for what it does; ``tree`` itself comes back."""
    tree_map(fn, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_any(pred, tree, is_leaf=None):
    """Whether ``pred`` holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all(pred, tree, is_leaf=None):
    """Whether ``pred`` holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any_only(types, pred, tree, is_leaf=None):
    """Whether ``pred`` holds for a leaf of the given types."""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, types))


def tree_all_only(types, pred, tree, is_leaf=None):
    """Whether ``pred`` holds for all leaves of the given types."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, types))


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """Make ``cls`` a node. ``flatten_fn(x) -> (children, context)``, ``unflatten_fn(children, context)``.

    ValueError for a class that is a node, and where only one of the functions for dumpable contexts is given.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) ^ (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered, but one of them is given alone."
        )
    SUPPORTED_NODES[cls] = pytree_nodes.NodeDef(
        cls,
        flatten_fn,
        unflatten_fn,
        flatten_with_keys_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )
    with held_while_forking:
        if optree.__class__ is _Later:
            optree.registered.append((cls, flatten_fn, unflatten_fn))
        else:
            _register(optree, cls, flatten_fn, unflatten_fn)


def _register_pytree_node(cls, flatten_fn, unflatten_fn, to_str_fn=None, maybe_from_str_fn=None, **options):
    """The old name of :func:`register_pytree_node`, with a FutureWarning. A class may be registered again, with a UserWarning."""
    warnings.warn(
        "torch.utils._pytree._register_pytree_node is deprecated. Please use torch.utils._pytree.register_pytree_node instead.",
        FutureWarning,
        stacklevel=2,
    )
    if cls in SUPPORTED_NODES:
        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous registration.", stacklevel=2
        )
        optree.unregister_pytree_node(cls, namespace=_NS)
        del SUPPORTED_NODES[cls]
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _register_namedtuple(cls, *, serialized_type_name: str) -> None:
    """``serialized_type_name`` stands for the namedtuple class in JSON."""
    pytree_nodes.name_namedtuple(cls, serialized_type_name)


def _register(optree, cls, flatten_fn, unflatten_fn):
    optree.register_pytree_node(
        cls, lambda x: tuple(flatten_fn(x)), lambda ctx, ch: unflatten_fn(list(ch), ctx), namespace=_NS
    )


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of ``tree`` repeated so that each stands for every leaf below its place in ``treespec``; None where the two don't fit."""
    whole = treespec.unflatten([0] * treespec.num_leaves)
    try:
        return optree.broadcast_prefix(tree, whole, is_leaf=is_leaf, none_is_leaf=True, namespace=_NS)
    except ValueError:
        return None


def is_leaf_class(cls: type) -> bool:
    """Whether objects of ``cls`` are not taken apart."""
    return optree.register_pytree_node.get(cls, namespace=_NS) is None


# Keys: where a leaf is in its tree.


@slotted
class SequenceKey:
    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"


@slotted
class MappingKey:
    key: object

    def __str__(self):
        return f"[{self.key!r}]"


@slotted
class GetAttrKey:
    name: str

    def __str__(self):
        return f".{self.name}"


def keystr(path) -> str:
    """``['a'][0].b`` from a path of keys."""
    return "".join(map(str, path))


def key_get(tree, path):
    """What is at a path."""
    for key in path:
        tree = (
            getattr(tree, key.name)
            if isinstance(key, GetAttrKey)
            else tree[key.key if isinstance(key, MappingKey) else key.idx]
        )
    return tree


def _key(entry, container):
    if is_namedtuple_instance(container):
        return GetAttrKey(container._fields[entry])
    return SequenceKey(entry) if isinstance(container, (list, tuple, collections.deque)) else MappingKey(entry)


def tree_flatten_with_path(tree, is_leaf=None):
    """([(path, leaf)], spec); a path is a tuple of keys."""
    paths, leaves, spec = optree.tree_flatten_with_path(tree, is_leaf=is_leaf, none_is_leaf=True, namespace=_NS)
    out = []
    for path, leaf in zip(paths, leaves):
        at, keys = tree, []
        for entry in path:
            keys.append(_key(entry, at))
            at = _child(at, entry)
        out.append((tuple(keys), leaf))
    return out, spec


def _child(container, entry):
    try:
        return container[entry]
    except (TypeError, KeyError, IndexError):  # a registered class: only its own flattening knows its children
        return None


def tree_leaves_with_path(tree, is_leaf=None):
    """A list of (path, leaf)."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(fn, tree, *rests, is_leaf=None):
    """``fn(path, leaf, ...)`` on each leaf."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return tree_unflatten([fn(path, leaf, *(o[k] for o in others)) for k, (path, leaf) in enumerate(pairs)], spec)


def tree_iter(tree, is_leaf=None):
    """The leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_is_leaf(tree, is_leaf=None) -> bool:
    """Whether ``tree`` is a leaf itself."""
    return optree.tree_is_leaf(tree, is_leaf=is_leaf, none_is_leaf=True, namespace=_NS)


def tree_map_only_(types, fn, tree, is_leaf=None):
    """:func:`tree_map_` for leaves of the given types."""
    tree_map_only(types, fn, tree, is_leaf)
    return tree


def is_namedtuple_class(cls) -> bool:
    """Whether ``cls`` is a class of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_namedtuple_instance(obj) -> bool:
    """Whether ``obj`` is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj) -> bool:
    """Whether ``obj`` is a named tuple or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls) -> bool:
    """Whether ``cls`` is a class of structures of the interpreter's."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "n_sequence_fields")


def is_structseq_instance(obj) -> bool:
    """Whether ``obj`` is a structure of the interpreter's."""
    return is_structseq_class(type(obj))


def is_structseq(obj) -> bool:
    """Whether ``obj`` is a structure of the interpreter's (``time.struct_time``) or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


_dict_flatten, _dict_unflatten = SUPPORTED_NODES[dict].flatten_fn, SUPPORTED_NODES[dict].unflatten_fn
_list_flatten, _list_unflatten = SUPPORTED_NODES[list].flatten_fn, SUPPORTED_NODES[list].unflatten_fn
_tuple_flatten, _tuple_unflatten = SUPPORTED_NODES[tuple].flatten_fn, SUPPORTED_NODES[tuple].unflatten_fn


def _dict_flatten_with_keys(d):
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _list_flatten_with_keys(values):
    return [(SequenceKey(k), v) for k, v in enumerate(values)], None


_tuple_flatten_with_keys = _list_flatten_with_keys


class _SpecType(type):
    def __instancecheck__(cls, value):
        return isinstance(value, optree.PyTreeSpec)


@public_in("utils._pytree")
class TreeSpec(metaclass=_SpecType):
    """``TreeSpec(type, context, children_specs)`` is the spec of such a node; every spec is an instance."""

    def __new__(cls, type, context, children_specs):
        return tree_structure(
            pytree_nodes.sample(type, context, [s.unflatten([0] * s.num_leaves) for s in children_specs])
        )


@public_in("utils._pytree")
class LeafSpec(metaclass=_SpecType):
    """``LeafSpec()`` is the spec of a single leaf."""

    def __new__(cls):
        return tree_structure(0)


def treespec_dumps(treespec, protocol=None) -> str:
    """The spec as JSON, in PyTorch's format. ValueError for a protocol other than 1, which is the only one."""
    if not isinstance(treespec, optree.PyTreeSpec):
        raise TypeError(
            f"treespec_dumps(spec): Expected `spec` to be instance of TreeSpec but got item of type {type(treespec)}."
        )
    from .pytree_json import dumps  # json is imported when a tree is written as JSON

    return dumps(treespec.unflatten([0] * treespec.num_leaves), protocol)


def treespec_loads(serialized: str):
    """The spec that :func:`treespec_dumps` wrote."""
    from .pytree_json import loads

    return tree_structure(loads(serialized, 0))


class _Star:
    def __repr__(self):
        return "*"


def treespec_pprint(treespec) -> str:
    """The structure with ``*`` for leaves."""
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))


PyTree = object
Context = DumpableContext = object
FlattenFn = UnflattenFn = ToDumpableContextFn = FromDumpableContextFn = FlattenWithKeysFn = object


def _is_leaf(tree, is_leaf=None) -> bool:
    return tree_is_leaf(tree, is_leaf)
