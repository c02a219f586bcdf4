"""The errors of distributed programs, as ``torch.distributed`` names them."""

from ..base.public import public_in

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


@public_in("distributed")
class DistError(RuntimeError):
    """Any error of a distributed program."""


@public_in("distributed")
class DistBackendError(DistError):
    """A collective failed: ranks disagree, one is gone, or the time is over."""


@public_in("distributed")
class DistNetworkError(DistError):
    """A connection failed."""


@public_in("distributed")
class DistStoreError(DistError):
    """A store failed, or a key didn't come in time."""


@public_in("distributed")
class QueueEmptyError(DistStoreError):
    """Nothing is in a store's queue."""
