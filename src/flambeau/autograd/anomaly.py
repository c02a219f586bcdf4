"""Anomaly mode: nodes remember where they were made, and the backward names the first that fails or makes a nan."""

from __future__ import annotations

import warnings

from .. import _C
from ..base.public import public_in
from ..base.switches import SWITCHES
from ..core.device_memory import on_device
from ..core.operator import namespace
from .record import fit

aten = namespace("aten")
__all__ = [
    "detect_anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "set_anomaly_enabled",
    "set_detect_anomaly",
]
_TRACEBACK = "traceback_"


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return SWITCHES["anomaly"]


def is_anomaly_check_nan_enabled() -> bool:
    """Whether a backward that makes a nan is an error in anomaly mode."""
    return SWITCHES["anomaly_check_nan"]


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turns anomaly mode on or off. ``check_nan``: a nan in a gradient is a RuntimeError."""
    mode, check_nan = bool(mode), bool(check_nan)
    SWITCHES["anomaly"], SWITCHES["anomaly_check_nan"] = mode, check_nan
    # An interrupt comes behind a call: the last one.
    _C.set_anomaly(mode)


@public_in("autograd.anomaly_mode")
class set_detect_anomaly:
    """:func:`set_anomaly_enabled`; as a context manager until its end."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self._before = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        set_anomaly_enabled(*self._before)


@public_in("autograd.anomaly_mode")
class detect_anomaly(set_detect_anomaly):
    """Context manager: the traceback of the forward call is shown for a backward that fails, and a nan in a gradient is an error."""

    def __init__(self, check_nan: bool = True):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            stacklevel=2,
        )
        self._check_nan = check_nan
        self._before = is_anomaly_enabled(), is_anomaly_check_nan_enabled()

    def __enter__(self):
        try:
            set_anomaly_enabled(True, self._check_nan)
        except BaseException:
            # An interrupt: nothing would leave the block.
            set_anomaly_enabled(*self._before)
            raise


def _note(node) -> None:
    import traceback  # only here: importing flambeau doesn't need it

    node.metadata[_TRACEBACK] = traceback.format_stack()[:-1]


def _explain(node) -> None:
    lines = node.metadata.get(_TRACEBACK)
    if lines is None:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward pass for "
            "more information.",
            stacklevel=3,
        )
    else:
        warnings.warn(
            f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(lines)}",
            stacklevel=3,
        )


def _run(node, cts):
    """The cotangents a node passes on."""
    try:
        got = node.apply(*cts)
        if is_anomaly_check_nan_enabled():
            for k, g in enumerate(got):
                if (
                    g is not None
                    and (g._has_data or on_device(g))
                    and g._dtype.category >= 2
                    and aten.isnan.default(g).any().item()
                ):
                    raise RuntimeError(f"Function '{node.name()}' returned nan values in its {k}th output.")
    except Exception:
        _explain(node)
        raise
    return got


_C.configure_apply(fit, _note, _run)
