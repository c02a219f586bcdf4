"""Whether code is being captured by the compiler."""


def is_compiling() -> bool:
    """False when run as plain Python. Capture answers True for a call of this function, so code can take another path there."""
    return False
