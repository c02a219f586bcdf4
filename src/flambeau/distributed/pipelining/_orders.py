"""What each rank of a pipeline computes, in order, for each schedule.

An order needs no sends and receives: a message is sent when its value is there, without waiting, and is received by the action that needs it. So
ranks can't wait for each other in a circle unless an action comes, in its rank's order, before one that it needs; :func:`check` plays all ranks'
orders and finds that.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "Action",
    "Kind",
    "check",
    "gpipe",
    "interleaved_1f1b",
    "interleaved_zero_bubble",
    "looped_bfs",
    "one_forward_one_backward",
]


class Kind(enum.Enum):
    """``INPUT`` and ``WEIGHT``: the two parts of a backward, gradients of the stage's inputs and of its parameters."""

    FORWARD = "F"
    BACKWARD = "B"
    INPUT = "I"
    WEIGHT = "W"


class Action(NamedTuple):
    stage: int
    kind: Kind
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind.value}{self.microbatch}"


Order = list[Action]


def gpipe(stage: int, microbatches: int) -> Order:
    """All forwards, then all backwards (Huang et al. 2019)."""
    return [Action(stage, kind, m) for kind in (Kind.FORWARD, Kind.BACKWARD) for m in range(microbatches)]


def one_forward_one_backward(stage: int, stages: int, microbatches: int) -> Order:
    """As many forwards as there are stages from this one on, then a backward and a forward in turn (PipeDream-Flush, Narayanan et al. 2021)."""
    ahead = min(microbatches, stages - stage)
    out = [Action(stage, Kind.FORWARD, m) for m in range(ahead)]
    for m in range(microbatches):
        out.append(Action(stage, Kind.BACKWARD, m))
        if ahead + m < microbatches:
            out.append(Action(stage, Kind.FORWARD, ahead + m))
    return out


def looped_bfs(stages: Sequence[int], microbatches: int) -> Order:
    """All forwards of a stage before those of the next one here, and backwards the other way round (Lamy-Poirier 2023)."""
    forwards = [Action(s, Kind.FORWARD, m) for s in stages for m in range(microbatches)]
    backwards = [Action(s, Kind.BACKWARD, m) for s in reversed(stages) for m in reversed(range(microbatches))]
    return forwards + backwards


def _in_rounds(stages: Sequence[int], microbatches: int, per_round: int) -> list[tuple[int, int]]:
    """(stage, microbatch) of one direction: each stage of the rank in turn takes a round of microbatches."""
    return [
        (s, m) for first in range(0, microbatches, per_round) for s in stages for m in range(first, first + per_round)
    ]


def _rounds(ranks: int, microbatches: int, schedule: str) -> int:
    rounds = max(1, microbatches // ranks)
    if microbatches % rounds:
        raise ValueError(
            f"{schedule} requires the number of microbatches to be a multiple of the number of rounds ({rounds}), but got {microbatches}."
        )
    return microbatches // rounds


def interleaved_1f1b(rank: int, stages: Sequence[int], ranks: int, microbatches: int) -> Order:
    """One forward, one backward over several stages a rank, in rounds of microbatches (Narayanan et al. 2021).

    ValueError when the microbatches make no whole rounds."""
    per_round = _rounds(ranks, microbatches, "Interleaved 1F1B")
    forwards = [Action(s, Kind.FORWARD, m) for s, m in _in_rounds(stages, microbatches, per_round)]
    backwards = [Action(s, Kind.BACKWARD, m) for s, m in _in_rounds(stages[::-1], microbatches, per_round)]
    ahead = min(len(forwards), (len(stages) - 1) * per_round + 2 * (ranks - 1 - rank))
    out = forwards[:ahead]
    for k, backward in enumerate(backwards):
        out += forwards[ahead + k : ahead + k + 1]
        out.append(backward)
    return out


def interleaved_zero_bubble(rank: int, stages: Sequence[int], ranks: int, microbatches: int) -> Order:
    """interleaved_1f1b with each backward in two parts, of which the parameters' comes later by as many steps as the rank would idle (ZB1P of Qi et
    al. 2023)."""
    out: Order = []
    waiting: list[Action] = []
    for action in interleaved_1f1b(rank, stages, ranks, microbatches):
        if action.kind is Kind.FORWARD:
            out.append(action)
            continue
        out.append(action._replace(kind=Kind.INPUT))
        waiting.append(action._replace(kind=Kind.WEIGHT))
        if len(waiting) > rank:
            out.append(waiting.pop(0))
    return out + waiting


def check(orders: Sequence[Order], stages: int) -> None:
    """RuntimeError when the ranks would wait for each other, or an action is missing or comes twice."""
    done: set[Action] = set()
    total = sum(map(len, orders))
    at = [0] * len(orders)
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while at[rank] < len(order) and _ready(order[at[rank]], stages, done):
                action = order[at[rank]]
                if action in done:
                    raise RuntimeError(f"{action} comes twice")
                done.add(action)
                at[rank] += 1
                moved = True
    if len(done) < total:
        stuck = [str(order[k]) for order, k in zip(orders, at) if k < len(order)]
        raise RuntimeError(f"ranks would wait for each other: {', '.join(stuck)}")


def _ready(action: Action, stages: int, done: set[Action]) -> bool:
    stage, kind, m = action
    if kind is Kind.FORWARD:
        return stage == 0 or Action(stage - 1, Kind.FORWARD, m) in done
    if kind is Kind.WEIGHT:
        return Action(stage, Kind.INPUT, m) in done
    if Action(stage, Kind.FORWARD, m) not in done:
        return False
    return stage == stages - 1 or any(Action(stage + 1, k, m) in done for k in (Kind.BACKWARD, Kind.INPUT))
