"""NVIDIA's assembler as a library (nvJitLink, through cuda-bindings), where it is installed. The driver has one of its own."""

from __future__ import annotations

import functools
import logging

__all__ = ["linked", "refuse", "usable"]

log = logging.getLogger("flambeau.inductor")
_refused: list[str] = []


@functools.cache
def _library():
    """cuda-bindings' module, None where it or the library is missing."""
    try:
        from cuda.bindings import nvjitlink

        nvjitlink.version()  # it is loaded at the first call
    except Exception as e:  # ImportError, and errors of cuda-bindings' own by version
        log.info("nvJitLink isn't used: %s: %s", type(e).__name__, str(e))
        return None
    return nvjitlink


def usable() -> bool:
    """Whether it is there, and the driver has taken what it made."""
    return not _refused and _library() is not None


def refuse(reason: str) -> None:
    """The driver doesn't take what it makes: kernels are PTX from here on."""
    log.info("nvJitLink's code isn't taken by the driver, which assembles itself: %s", reason)
    _refused.append(reason)


def linked(assembly: bytes, architecture: str) -> bytes:
    """The code of PTX, which ends with a zero, for an architecture. RuntimeError with the assembler's words."""
    library = _library()
    handle = library.create(1, [f"-arch={architecture}"])
    try:
        library.add_data(handle, library.InputType.PTX, assembly, len(assembly), "kernel")
        library.complete(handle)
        code = bytearray(library.get_linked_cubin_size(handle))
        library.get_linked_cubin(handle, code)
        return bytes(code)
    except Exception as e:  # errors of cuda-bindings' own
        raise RuntimeError(f"nvJitLink: {e}") from e
    finally:
        library.destroy(handle)
