"""Stores: keys and values that all ranks of a job share, with which they find each other."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Sequence

from .errors import DistStoreError, QueueEmptyError

__all__ = ["DEFAULT_TIMEOUT", "HashStore", "PrefixStore", "Store", "seconds"]

DEFAULT_TIMEOUT = datetime.timedelta(seconds=300)


def seconds(timeout) -> float:
    """A timedelta (or a number of seconds) as seconds."""
    return timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else float(timeout)


def _bytes(value) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """What every store can do. A subclass gives ``_get``, ``_set``, ``_add``, ``_compare_set``, ``_check``, ``_delete``, ``_append``, ``num_keys``
    and, where it can do better than asking again, ``_wait``. Keys are text, values bytes (text is encoded)."""

    def __init__(self):
        self._timeout = DEFAULT_TIMEOUT

    @property
    def timeout(self) -> datetime.timedelta:
        """How long ``get`` and ``wait`` wait for keys."""
        return self._timeout

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        self._timeout = timeout

    def set(self, key: str, value) -> None:
        """Set ``key``, whatever it was."""
        self._set({key: _bytes(value)})

    def get(self, key: str) -> bytes:
        """The value of ``key``, waited for. DistStoreError when it doesn't come within the store's timeout."""
        return self.multi_get([key])[0]

    def add(self, key: str, amount: int) -> int:
        """Add to the number at ``key`` (0 when there is none) and return the sum."""
        return self._add(key, int(amount))

    def compare_set(self, key: str, expected_value, desired_value) -> bytes:
        """Set ``key`` to the desired value if it is the expected one, or if there is none and the expected is empty. The value afterwards."""
        return self._compare_set(key, _bytes(expected_value), _bytes(desired_value))

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        """Wait until all keys are there. DistStoreError after the timeout."""
        limit = seconds(self._timeout if timeout is None else timeout)
        if not self._wait(list(keys), limit):
            raise DistStoreError(f"wait timeout after {round(limit * 1000)}ms, keys: /{', /'.join(keys)}")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return self._check(list(keys))

    def delete_key(self, key: str) -> bool:
        """Whether the key was there."""
        return self._delete(key)

    def append(self, key: str, value) -> None:
        """Append to the value of ``key``."""
        self._append(key, _bytes(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        self.wait(keys)
        return [self._get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values) -> None:
        self._set({k: _bytes(v) for k, v in zip(keys, values, strict=True)})

    def has_extended_api(self) -> bool:
        return True

    def queue_push(self, key: str, value) -> None:
        """Put a value behind the others of queue ``key``."""
        self.set(f"{key}/queue/{self.add(f'{key}/queue/pushed', 1)}", value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of queue ``key``. Without ``block`` QueueEmptyError when there is none."""
        if not block and not self.queue_len(key):
            raise QueueEmptyError(f"queue {key} is empty")
        name = f"{key}/queue/{self.add(f'{key}/queue/popped', 1)}"
        value = self.get(name)
        self.delete_key(name)
        return value

    def queue_len(self, key: str) -> int:
        return self.add(f"{key}/queue/pushed", 0) - self.add(f"{key}/queue/popped", 0)

    def clone(self) -> Store:
        """A store of the same data that another thread may use while this one waits."""
        return self

    def _wait(self, keys: list[str], limit: float) -> bool:
        end, pause = time.monotonic() + limit, 0.001
        while not self._check(keys):
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        return True

    def _get(self, key: str) -> bytes:
        raise NotImplementedError(f"{type(self).__name__} has no get")

    def _set(self, values: dict[str, bytes]) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no set")

    def _add(self, key: str, amount: int) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no add")

    def _compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        raise NotImplementedError(f"{type(self).__name__} has no compare_set")

    def _check(self, keys: list[str]) -> bool:
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def _delete(self, key: str) -> bool:
        raise NotImplementedError(f"{type(self).__name__} has no delete_key")

    def _append(self, key: str, value: bytes) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no append")

    def num_keys(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no num_keys")

    def list_keys(self) -> list[str]:
        raise NotImplementedError(f"{type(self).__name__} has no list_keys")


def added(old: bytes | None, amount: int) -> int:
    """The sum that ``add`` stores."""
    return int(old or b"0") + amount


def swapped(old: bytes | None, expected: bytes, desired: bytes) -> tuple[bool, bytes]:
    """(whether compare_set writes, what it returns), as PyTorch's: of no key and something expected, the expected."""
    if old is None:
        return (False, expected) if expected else (True, desired)
    return (True, desired) if old == expected else (False, old)


class HashStore(Store):
    """A store of the threads of one process."""

    def __init__(self):
        super().__init__()
        self._data: dict[str, bytes] = {}
        self._changed = threading.Condition()

    def _wait(self, keys, limit):
        with self._changed:
            return self._changed.wait_for(lambda: all(k in self._data for k in keys), limit)

    def _get(self, key):
        return self._data[key]

    def _set(self, values):
        with self._changed:
            self._data.update(values)
            self._changed.notify_all()

    def _add(self, key, amount):
        with self._changed:
            value = added(self._data.get(key), amount)
            self._data[key] = str(value).encode()
            self._changed.notify_all()
            return value

    def _compare_set(self, key, expected, desired):
        with self._changed:
            writes, value = swapped(self._data.get(key), expected, desired)
            if writes:
                self._data[key] = value
                self._changed.notify_all()
            return value

    def _check(self, keys):
        return all(k in self._data for k in keys)

    def _delete(self, key):
        with self._changed:
            return self._data.pop(key, None) is not None

    def _append(self, key, value):
        with self._changed:
            self._data[key] = self._data.get(key, b"") + value
            self._changed.notify_all()

    def num_keys(self) -> int:
        return len(self._data)

    def list_keys(self) -> list[str]:
        return list(self._data)


class PrefixStore(Store):
    """Another store whose keys all begin with ``prefix/``."""

    def __init__(self, prefix: str, store: Store):
        super().__init__()
        self.prefix, self.underlying_store = prefix, store
        self._timeout = store.timeout

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self.underlying_store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    def set_timeout(self, timeout):
        super().set_timeout(timeout)
        self.underlying_store.set_timeout(timeout)

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{key}"

    def wait(self, keys, timeout=None):
        self.underlying_store.wait([self._key(k) for k in keys], self._timeout if timeout is None else timeout)

    def multi_get(self, keys):
        return self.underlying_store.multi_get([self._key(k) for k in keys])

    def clone(self):
        return PrefixStore(self.prefix, self.underlying_store.clone())

    def _set(self, values):
        self.underlying_store._set({self._key(k): v for k, v in values.items()})

    def _add(self, key, amount):
        return self.underlying_store._add(self._key(key), amount)

    def _compare_set(self, key, expected, desired):
        return self.underlying_store._compare_set(self._key(key), expected, desired)

    def _check(self, keys):
        return self.underlying_store._check([self._key(k) for k in keys])

    def _delete(self, key):
        return self.underlying_store._delete(self._key(key))

    def _append(self, key, value):
        self.underlying_store._append(self._key(key), value)

    def num_keys(self) -> int:
        return self.underlying_store.num_keys()

    def list_keys(self) -> list[str]:
        head = self._key("")
        return [k.removeprefix(head) for k in self.underlying_store.list_keys() if k.startswith(head)]
