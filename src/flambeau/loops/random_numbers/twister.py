"""The memory of NumPy's legacy generator: MT19937's state, and the spare normal number that a RandomState keeps.

``get_state`` makes an array of the 624 words one by one, 30 microseconds, as long as a thousand draws take. MT19937 tells where its state lies
(``bit_generator.ctypes``). Where a RandomState keeps its spare number isn't told; it is looked for once, in an object of our own whose
spare numbers are known.
"""

from __future__ import annotations

import ctypes
import functools
import struct

import numpy as np

__all__ = ["Twister", "spare_place"]

STATE = 4 * 625  # bytes: the words, and the position
SPARE = struct.Struct("=i4xd")  # whether there is a spare number, and the number


@functools.cache
def spare_place() -> int | None:
    """Offset in a RandomState of what :data:`SPARE` tells; None where it isn't found beyond doubt."""
    probe = np.random.RandomState(np.random.MT19937(0))
    size = type(probe).__basicsize__
    places = set(range(8, size - SPARE.size + 1, 8))
    state = probe.get_state(legacy=False)
    for has, number in ((1, 0.8414709848078965), (0, 0.0), (1, -2.1932800507380152)):
        probe.set_state({**state, "has_gauss": has, "gauss": number})
        memory = ctypes.string_at(id(probe), size)
        places = {at for at in places if SPARE.unpack_from(memory, at) == (has, number)}
    return places.pop() if len(places) == 1 else None


class Twister:
    """The state of a RandomState over MT19937, read and written where it lies. The caller holds the bit generator's lock."""

    def __init__(self, generator: np.random.RandomState, bits: np.random.MT19937):
        place = spare_place()
        assert place is not None
        self._words = (ctypes.c_char * STATE).from_address(bits.ctypes.state_address)
        self._spare = (ctypes.c_char * SPARE.size).from_address(id(generator) + place)

    def state(self) -> bytes:
        return self._words.raw + self._spare.raw

    def restore(self, state: bytes) -> None:
        self._words.raw, self._spare.raw = state[:STATE], state[STATE:]

    def read_spare(self, into: np.ndarray) -> None:
        """Write the spare number into two numbers of 8 bytes: whether there is one, and its bits."""
        has, number = SPARE.unpack(self._spare)
        into[0] = has
        into[1:].view(np.float64)[0] = number

    def write_spare(self, given: np.ndarray) -> None:
        """The spare number is what these two numbers tell, see :meth:`read_spare`."""
        SPARE.pack_into(self._spare, 0, int(given[0]), float(given[1:].view(np.float64)[0]))
