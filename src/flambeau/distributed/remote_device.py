"""Where a part of a program lies: a device of one of the job's workers."""

from __future__ import annotations

from ..base.device import Device, as_device
from ..base.public import public_in

__all__ = ["_remote_device"]


def _is_device(text: str) -> bool:
    try:
        as_device(text)
    except RuntimeError:
        return False
    return True


@public_in("distributed.remote_device")
class _remote_device:  # noqa: N801
    """``remote_device``: "worker/device", "rank:k/device" or a device of this worker. The device may be left out: the CPU.

    ValueError for text of another form, TypeError for what is neither text nor a device, RuntimeError for a device that there isn't."""

    def __init__(self, remote_device: str | Device):
        self._worker_name: str | None = None
        self._rank: int | None = None
        device: str | Device = "cpu"
        if isinstance(remote_device, Device):
            device = remote_device
        elif not isinstance(remote_device, str):
            raise TypeError(f"Invalid type for remote_device: {type(remote_device)}")
        elif "/" not in remote_device and _is_device(remote_device):
            device = remote_device
        else:
            worker, slash, rest = remote_device.partition("/")
            kind, colon, number = worker.partition(":")
            of_rank = bool(colon) and kind == "rank" and number.isdigit()
            if not worker or "/" in rest or (colon and not of_rank):
                raise ValueError(
                    f"Could not parse remote_device: {remote_device}. The valid format is '<workername>/<device>' or "
                    "'rank:<rank>/<device>' or '<device>'"
                )
            self._rank, self._worker_name = (int(number), None) if of_rank else (None, worker)
            device = rest if slash else "cpu"
        self._device = as_device(device)

    def worker_name(self) -> str | None:
        """The worker's name, where that was given."""
        return self._worker_name

    def rank(self) -> int | None:
        """The worker's rank, where that was given."""
        return self._rank

    def device(self) -> Device:
        """The device, of that worker."""
        return self._device

    def __repr__(self) -> str:
        worker = self._worker_name if self._rank is None else f"rank:{self._rank}"
        return f"{self._device}" if worker is None else f"{worker}/{self._device}"

    def __eq__(self, other) -> bool:
        return isinstance(other, _remote_device) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))
