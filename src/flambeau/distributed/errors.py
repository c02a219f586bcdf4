"""The errors of distributed programs, as ``torch.distributed`` names them."""

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """Any error of a distributed program."""


class DistBackendError(DistError):
    """A collective failed: ranks disagree, one is gone, or the time is over."""


class DistNetworkError(DistError):
    """A connection failed."""


class DistStoreError(DistError):
    """A store failed, or a key didn't come in time."""


class QueueEmptyError(DistStoreError):
    """Nothing is in a store's queue."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "flambeau.distributed"
