"""Whether code is being captured by the compiler, or exported."""

import threading

__all__ = ["exporting", "is_compiling", "is_exporting"]


def is_compiling() -> bool:
    """False when run as plain Python. Capture answers True for a call of this function, so code can take another path there."""
    return False


class _State(threading.local):
    exporting = 0


_state = _State()


def is_exporting() -> bool:
    """Whether this thread is inside ``torch.export.export``."""
    return _state.exporting > 0


class exporting:  # noqa: N801
    """Context manager: the thread exports a program."""

    def __enter__(self):
        _state.exporting += 1

    def __exit__(self, *exc):
        _state.exporting -= 1
