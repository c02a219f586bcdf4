"""Lists and dicts held by nodes: changing one in place would leave ``Node.users`` wrong, so it is refused."""

from __future__ import annotations

from ..base import pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self, *args, **kwargs):
    raise TypeError(
        f"'{type(self).__name__}' object does not support mutation. If you are attempting to modify the kwargs or "
        "args of a Node, assign a new tuple or dict to node.args or node.kwargs instead."
    )


class immutable_list(list):
    __slots__ = ()
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    __slots__ = ()
    clear = pop = popitem = setdefault = update = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return immutable_dict, (tuple(self.items()),)


pytree.register_pytree_node(immutable_list, lambda x: (list(x), None), lambda children, _: immutable_list(children))
pytree.register_pytree_node(
    immutable_dict, lambda x: (list(x.values()), tuple(x)), lambda children, keys: immutable_dict(zip(keys, children))
)
