"""PowerSGD: gradients travel as low-rank matrices (Vogels, Karimireddy, Jaggi: "PowerSGD", 2019, algorithm 1, with error feedback and warm start)."""

from __future__ import annotations

import math

from ..autograd.grad_mode import no_grad
from ..core.bindings import function
from ..core.generator import Generator
from . import collectives, world
from .comm_hooks import allreduce_hook
from .futures import Future
from .reduce_op import ReduceOp

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

randn, zeros, cat = function("randn"), function("zeros"), function("cat")


class PowerSGDState:
    """What PowerSGD keeps between steps: the error of each bucket, and the matrices Q that the next step starts from. The first
    ``start_powerSGD_iter`` steps reduce whole gradients; matrices that the rank makes smaller by less than ``min_compression_rate`` always do."""

    def __init__(
        self,
        process_group,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,  # noqa: N803
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ):
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can only be applied after "
                "the first two iterations in DDP."
            )
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon, self.random_seed = orthogonalization_epsilon, random_seed
        self.errors: dict = {}
        self.q: dict = {}
        self.iter = 0

    def generator(self) -> Generator:
        """All ranks draw the same numbers."""
        out = Generator()
        out.manual_seed(self.random_seed + self.iter)
        return out

    def count(self, bucket) -> None:
        if bucket.is_last():
            self.iter += 1


def _orthogonal(matrix, epsilon: float):
    """Columns made orthonormal, one after the other (Gram and Schmidt)."""
    columns = []
    for k in range(matrix.shape[1]):
        column = matrix[:, k]
        for other in columns:
            column = column - (other @ column) * other
        columns.append(column / (column.norm() + (epsilon or 1e-30)))
    return function("stack")(columns, 1)


def _mean(tensor, group) -> None:
    collectives.all_reduce(tensor, ReduceOp.AVG, group)


def _reduced(state: PowerSGDState, bucket, gradients: list):
    """Write the means of the gradients over them."""
    group = world.of(state.process_group)
    rank = state.matrix_approximation_rank
    buffer, index = bucket.buffer(), bucket.index()
    given = buffer.clone()
    if state.use_error_feedback:
        if index in state.errors and state.errors[index].shape == buffer.shape:
            buffer += state.errors[index]
        given = buffer.clone()
    whole, matrices = [], []
    for g in gradients:
        rows = g.shape[0] if g.dim() > 1 else 1
        m, n = rows, g.numel() // max(rows, 1)
        small = g.dim() > 1 and (m + n) * min(rank, m, n) * state.min_compression_rate < m * n
        (matrices if small else whole).append(g)
    if whole:
        flat = cat([g.reshape(-1) for g in whole])
        _mean(flat, group)
        for g, part in zip(whole, flat.split([g.numel() for g in whole])):
            g.copy_(part.view(g.shape))
    if matrices:
        shapes = [(g.shape[0], g.numel() // g.shape[0]) for g in matrices]
        ranks = [min(rank, *s) for s in shapes]
        kept = state.q.get(index) if state.warm_start else None
        draw = state.generator()
        qs = kept if kept is not None and [q.shape[0] for q in kept] == [n for _, n in shapes] else None
        qs = [
            _orthogonal(q if qs else randn(n, r, generator=draw, dtype=g.dtype), state.orthogonalization_epsilon)
            for g, (_, n), r, q in zip(matrices, shapes, ranks, qs or [None] * len(matrices))
        ]
        flats = [g.reshape(s) for g, s in zip(matrices, shapes)]
        ps = _together([m @ q for m, q in zip(flats, qs)], group)
        ps = [_orthogonal(p, state.orthogonalization_epsilon) for p in ps]
        qs = _together([m.t() @ p for m, p in zip(flats, ps)], group)
        if state.warm_start:
            state.q[index] = qs
        for g, p, q in zip(matrices, ps, qs):
            g.copy_((p @ q.t()).view(g.shape))
    if state.use_error_feedback:
        state.errors[index] = given - buffer


def _together(parts: list, group) -> list:
    """The means of several matrices by one reduction."""
    flat = cat([p.reshape(-1) for p in parts])
    _mean(flat, group)
    return [x.view(p.shape) for x, p in zip(flat.split([p.numel() for p in parts]), parts)]


def _run(state: PowerSGDState, bucket, gradients: list) -> Future:
    out: Future = Future()
    with no_grad():
        _reduced(state, bucket, gradients)
    out.set_result(bucket.buffer())
    state.count(bucket)
    return out


def powerSGD_hook(state: PowerSGDState, bucket) -> Future:  # noqa: N802
    """Each matrix of the bucket by its low-rank approximation, the rest whole. The reductions are waited for in the backward."""
    if state.iter < state.start_powerSGD_iter:
        state.count(bucket)
        return allreduce_hook(state.process_group, bucket)
    return _run(state, bucket, bucket.gradients())


def batched_powerSGD_hook(state: PowerSGDState, bucket) -> Future:  # noqa: N802
    """The whole bucket as one square matrix: less to compute, and less exact."""
    if state.iter < state.start_powerSGD_iter:
        state.count(bucket)
        return allreduce_hook(state.process_group, bucket)
    buffer = bucket.buffer()
    side = math.isqrt(buffer.numel())
    square, rest = buffer[: side * side].view(side, side), buffer[side * side :]
    return _run(state, bucket, [square, rest] if rest.numel() else [square])
