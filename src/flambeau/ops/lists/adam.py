"""Adam's step, stated once for all ways of running it.

Kingma & Ba 2015; greatest second moments (amsgrad): Reddi et al. 2018; decoupled weight decay: Loshchilov & Hutter 2019.
"""

from __future__ import annotations

from typing import Any

__all__ = ["adam"]


def adam(h: Any, p, grad, mean, square, greatest=None, *, betas, eps, weight_decay, decoupled, maximize):
    """The new (parameter, mean, square, greatest) after a step of gradient ``grad``.

    ``h`` runs the operations, in place or not, on a tensor or on a list of tensors. It has ``neg``, ``add``, ``sqrt``, ``div``, ``lerp``,
    ``mul``, ``addcmul`` and ``maximum`` with the meaning of the operators of these names, and what depends on options and on the count of
    steps: ``shrink(p)`` is ``p * (1 - lr * weight_decay)``, ``decay(grad, p)`` is ``grad + weight_decay * p``, ``second`` is ``sqrt(1 - beta2 ** t)``, and ``descend(p, mean, root)`` is
    ``p - lr / (1 - beta1 ** t) * mean / root``. ``greatest``: the greatest squares so far, None without amsgrad.
    """
    beta1, beta2 = betas
    if maximize:
        grad = h.neg(grad)
    if hasattr(weight_decay, "dtype") or weight_decay != 0:
        if decoupled:
            p = h.shrink(p)
        else:
            grad = h.decay(grad, p)
    mean = h.lerp(mean, grad, 1 - beta1)
    square = used = h.addcmul(h.mul(square, beta2), grad, grad, 1 - beta2)
    if greatest is not None:
        greatest = used = h.maximum(greatest, square)
    root = h.add(h.div(h.sqrt(used), h.second), eps)
    return h.descend(p, mean, root), mean, square, greatest
