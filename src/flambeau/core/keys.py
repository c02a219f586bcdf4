"""Dispatch keys, highest bit first to run. Mirrors csrc/core/flambeau.h."""

BACKEND, PYTHON, FUNCTIONALIZE, AUTOGRAD, FORWARD, TRANSFORM = 1, 2, 4, 8, 16, 32
ALL = 63
NO_DATA = 256  # not a key: some tensor argument has no array
SUBCLASS = 512  # not a key: some tensor argument is of a class with __torch_dispatch__

NAMES = {
    TRANSFORM: "FuncTorch",
    FORWARD: "AutogradFunctionality",
    AUTOGRAD: "AutogradCPU",
    FUNCTIONALIZE: "Functionalize",
    PYTHON: "Python",
    BACKEND: "CPU",
}

# Tensor flags (FlbTensor.flags)
REQUIRES_GRAD, PARAMETER, INFERENCE, FUNCTION = 1, 2, 4, 8


def below(key: int) -> int:
    """Mask of the keys that come after ``key``."""
    return (key - 1) | NO_DATA | SUBCLASS


def describe(keys: int) -> str:
    names = [n for k, n in NAMES.items() if keys & k]
    if keys & PYTHON:
        names.append("PythonTLSSnapshot")
    return f"DispatchKeySet({', '.join(names)})"
