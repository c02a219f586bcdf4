"""``torch.utils.weak``: dictionaries keyed by the identity of objects that they don't keep alive."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping

from ..base.public import public_in

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


@public_in("utils.weak")
class WeakIdRef(weakref.ref):
    """A weak reference that hashes and compares by identity of what it refers to."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        mine, theirs = self(), other() if isinstance(other, weakref.ref) else None
        return mine is theirs if mine is not None and theirs is not None else self is other

    def __ne__(self, other):
        return not self == other


class _WeakTensorRef:
    """``expired()`` tells whether the tensor is gone."""

    def __init__(self, tensor):
        self._ref = weakref.ref(tensor)

    def expired(self) -> bool:
        return self._ref() is None


class StorageWeakRef(WeakIdRef):
    """One to the memory of a storage: storages of one memory are equal. ``expired()`` tells whether it is gone."""

    __slots__ = ()

    def __new__(cls, storage):
        return super().__new__(cls, storage.untyped())

    def __init__(self, storage):
        super().__init__(storage.untyped())

    @property
    def cdata(self) -> int:
        return self._id

    def expired(self) -> bool:
        return self() is None


@public_in("utils.weak")
class TensorWeakRef:
    """``ref()`` gives the tensor or None."""

    def __init__(self, tensor):
        self.ref = weakref.ref(tensor)

    def __call__(self):
        return self.ref()


@public_in("utils.weak")
class WeakIdKeyDictionary(MutableMapping):
    """Keys by identity, weakly; an entry goes with its key."""

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.ref_type = ref_type
        self.data: dict = {}
        me = weakref.ref(self)

        def remove(reference):
            owner = me()
            if owner is not None:
                owner.data.pop(reference, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value):
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key):
        del self.data[self.ref_type(key)]

    def __contains__(self, key):
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __iter__(self):
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self):
        return sum(1 for _ in self)

    def copy(self):
        return type(self)(ref_type=self.ref_type)._filled(self)

    def _filled(self, other):
        for key in other:
            self[key] = other[key]
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary
