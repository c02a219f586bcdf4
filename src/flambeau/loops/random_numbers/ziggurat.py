"""The quick way of NumPy's normal numbers, without a call of NumPy's.

``random_standard_normal`` is a ziggurat (Marsaglia and Tsang 2000, in Doornik's form) of 256 layers: of 64 random bits eight name a layer, one is
the sign, and 52 are a fraction that is taken when it is below the layer's limit, times the layer's width. Where it isn't, one time in a hundred,
NumPy's own function is called and given the same bits again, so all that is needed are limits and widths, and these are asked of that function: it is
called with a bit generator that says what we like. So they are this NumPy's, whatever its version; where its answers don't look like that, there
is no quick way.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

__all__ = ["FUNCTIONS", "tables"]

LAYERS, FRACTION = 256, 52
_NEXT64 = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_NEXT32 = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_DOUBLE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)


class _Bits(ctypes.Structure):
    """``bitgen_t`` of NumPy's documented C interface."""

    _fields_ = [("state", ctypes.c_void_p), ("next64", _NEXT64), ("next32", _NEXT32), ("double", _DOUBLE), ("raw", _NEXT64)]  # fmt: skip


class _Unlike(Exception):
    """The function isn't the ziggurat that is expected."""


class _Probe:
    """``random_standard_normal`` at ``address``, asked about single words of random bits."""

    def __init__(self, address: int):
        self.function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)(address)
        self.word = self.asked = 0
        self.bits = _Bits(None, _NEXT64(self.next64), _NEXT32(lambda _: 0), _DOUBLE(self.double), _NEXT64(self.next64))

    def next64(self, _) -> int:
        self.asked += 1
        # What follows a word that wasn't taken ends the call, in a few words.
        return self.word if self.asked == 1 else 2 + self.asked % 8 + (self.asked << 9)

    def double(self, _) -> float:
        self.asked += 1
        return self.asked % 2 * 0.5

    def __call__(self, layer: int, fraction: int, sign: int = 0) -> float | None:
        """The number that the bits give at once; None where they aren't taken."""
        self.word, self.asked = layer | sign << 8 | fraction << 9, 0
        x = self.function(ctypes.addressof(self.bits))
        return x if self.asked == 1 else None

    def limit(self, layer: int, near: int) -> int:
        """The first fraction of a layer that isn't taken; about ``near``."""
        low, high, step = near, near, 1
        while low > 0 and self(layer, low - 1) is None:
            low, step = max(low - step, 0), step * 2
        step = 1
        while high < 1 << FRACTION and self(layer, high) is not None:
            high, step = min(high + step, 1 << FRACTION), step * 2
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self(layer, middle) is None else (middle + 1, high)
        return low


def _found(address: int) -> np.ndarray:
    probe = _Probe(address)
    widths, limits = np.zeros(LAYERS), np.zeros(LAYERS, np.int64)
    for k in range(LAYERS):
        widths[k] = probe(k, 1) or 0.0
    for k in range(LAYERS):
        if widths[k] == 0.0:  # no fraction but perhaps 0 is taken
            if probe(k, 0) is not None:
                raise _Unlike
            continue
        # The limit is the ratio of the edges of this layer and the one above it; the lowest is as wide as the last.
        above = widths[k - 1] if k else widths[-1]
        limits[k] = n = probe.limit(k, min(int(above / widths[k] * 2.0**FRACTION), 1 << FRACTION))
        for fraction in (n - 1, n // 3):
            x = fraction * widths[k]
            if probe(k, fraction) != x or probe(k, fraction, 1) != -x:
                raise _Unlike
    return np.concatenate([widths.view(np.int64), limits])


@functools.cache
def tables(address: int) -> np.ndarray | None:
    """Widths and limits of the layers, which NumPy's ``random_standard_normal`` at this address uses; None where it is another function."""
    try:
        return _found(address)
    except _Unlike:
        return None


FUNCTIONS = f"""
define internal i64 @flb_first64(ptr %shim) {{
  %given = getelementptr i64, ptr %shim, i64 1
  %g = load i64, ptr %given
  %again = icmp ne i64 %g, 0
  br i1 %again, label %next, label %first
first:
  store i64 1, ptr %given
  %r = load i64, ptr %shim
  ret i64 %r
next:
  %at = getelementptr i64, ptr %shim, i64 2
  %bits = load ptr, ptr %at
  %state = load ptr, ptr %bits
  %f = getelementptr ptr, ptr %bits, i64 1
  %fn = load ptr, ptr %f
  %v = call i64 %fn(ptr %state)
  ret i64 %v
}}
define internal double @flb_then_double(ptr %shim) {{
  %at = getelementptr i64, ptr %shim, i64 2
  %bits = load ptr, ptr %at
  %state = load ptr, ptr %bits
  %f = getelementptr ptr, ptr %bits, i64 3
  %fn = load ptr, ptr %f
  %v = call double %fn(ptr %state)
  ret double %v
}}
define internal double @flb_normal_again(i64 %r, ptr %bits, ptr %standard_normal) noinline {{
  %shim = alloca [3 x i64]
  store i64 %r, ptr %shim
  %given = getelementptr i64, ptr %shim, i64 1
  store i64 0, ptr %given
  %real = getelementptr i64, ptr %shim, i64 2
  store ptr %bits, ptr %real
  %own = alloca [5 x ptr]
  store ptr %shim, ptr %own
  %p1 = getelementptr ptr, ptr %own, i64 1
  store ptr @flb_first64, ptr %p1
  %p2 = getelementptr ptr, ptr %own, i64 2
  store ptr null, ptr %p2
  %p3 = getelementptr ptr, ptr %own, i64 3
  store ptr @flb_then_double, ptr %p3
  %p4 = getelementptr ptr, ptr %own, i64 4
  store ptr @flb_first64, ptr %p4
  %v = call double %standard_normal(ptr %own)
  ret double %v
}}
define internal double @flb_normal(ptr %tables, ptr %bits, ptr %state, ptr %next64, ptr %standard_normal) {{
  %r = call i64 %next64(ptr %state)
  %layer = and i64 %r, {LAYERS - 1}
  %high = lshr i64 %r, 9
  %fraction = and i64 %high, {(1 << FRACTION) - 1}
  %w = getelementptr double, ptr %tables, i64 %layer
  %width = load double, ptr %w
  %l = getelementptr i64, ptr %w, i64 {LAYERS}
  %limit = load i64, ptr %l
  %below = icmp ult i64 %fraction, %limit
  br i1 %below, label %taken, label %not, !prof !0
taken:
  %d = sitofp i64 %fraction to double
  %x = fmul double %d, %width
  %bit = shl i64 %r, 55
  %sign = and i64 %bit, -9223372036854775808
  %whole = bitcast double %x to i64
  %signed = xor i64 %whole, %sign
  %out = bitcast i64 %signed to double
  ret double %out
not:
  %v = call double @flb_normal_again(i64 %r, ptr %bits, ptr %standard_normal)
  ret double %v
}}"""
"""``@flb_normal``: a normal number of the bit generator at %bits, whose state and next_uint64 are given as well; ``%tables``: of :func:`tables`."""
