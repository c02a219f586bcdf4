"""``checkpoint_sequential``, in a file of its own: capture traces through it, and calls ``checkpoint`` as one operation."""

from __future__ import annotations

import warnings

from .. import nn

__all__ = ["checkpoint_sequential"]


def checkpoint_sequential(functions, segments: int, input, use_reentrant: bool | None = None, **kwargs):
    """Checkpoint a sequence of modules in ``segments`` parts; the last part keeps its values."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if isinstance(functions, nn.Sequential) else list(functions)
    size, start = len(functions) // segments, 0

    def run(part):
        def forward(x):
            for f in part:
                x = f(x)
            return x

        return forward

    for _ in range(segments - 1):
        input = whole.checkpoint(
            run(functions[start : start + size]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
        start += size
    return run(functions[start:])(input)


from . import checkpoint as whole  # noqa: E402  which offers the function above
