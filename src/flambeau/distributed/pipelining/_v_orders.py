"""Orders of two stages a rank, placed in a V: of P ranks, rank r has stage r, which microbatches pass on their way *down*, and stage 2P - 1 - r, on
their way *up*. So the rank of the first stage has the last one as well, and begins with backwards as soon as a microbatch is back."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence

from ._orders import Action, Kind, Order

__all__ = ["dual_pipe_v", "zero_bubble_v"]

_Step = tuple[int, Kind]


def _numbered(steps: Iterable[_Step]) -> Order:
    """Each step with its microbatch: forwards, and backwards, take those of their stage in order; WEIGHT takes the first whose INPUT is done."""
    forwards: collections.Counter[int] = collections.Counter()
    backwards: collections.Counter[int] = collections.Counter()
    split: dict[int, collections.deque[int]] = collections.defaultdict(collections.deque)
    out: Order = []
    for stage, kind in steps:
        if kind is Kind.WEIGHT:
            m = split[stage].popleft()
        else:
            counter = forwards if kind is Kind.FORWARD else backwards
            m = counter[stage]
            counter[stage] += 1
        if kind is Kind.INPUT:
            split[stage].append(m)
        out.append(Action(stage, kind, m))
    return out


def zero_bubble_v(rank: int, stages: Sequence[int], ranks: int, microbatches: int) -> Order:
    """ZB-V: each backward in two parts; ranks don't idle where a forward and both parts take the same time (Qi et al. 2024, section 6).

    Fewer microbatches than fill the pipeline, 2P - 1, are run in the order of so many."""
    down, up = stages
    n, below = max(microbatches, 2 * ranks - 1), ranks - rank
    # Forwards on the way down before the first backward there.
    ahead = 2 * below - 1 + rank
    down_split, up_split = [(down, Kind.INPUT), (down, Kind.WEIGHT)], [(up, Kind.INPUT), (up, Kind.WEIGHT)]
    steps = [(down, Kind.FORWARD)] * (ahead - rank)
    steps += [(up, Kind.FORWARD), (down, Kind.FORWARD)] * rank
    steps += [(up, Kind.FORWARD), *up_split] * below
    for k in range(n - ranks):
        steps += [(down, Kind.FORWARD)] if ahead + k < n else []
        steps += [*down_split, (up, Kind.FORWARD), *up_split]
    steps += [(down, Kind.INPUT), (up, Kind.INPUT)] * rank
    steps += down_split * below
    steps += [(up, Kind.WEIGHT)] * rank + [(down, Kind.WEIGHT)] * rank
    return [a for a in _numbered(steps) if a.microbatch < microbatches]


def dual_pipe_v(rank: int, stages: Sequence[int], ranks: int, microbatches: int) -> Order:
    """DualPipeV: in the middle each forward is followed by a backward of the other direction, and only the first and the last backwards are in two
    parts (DeepSeek-AI 2024, and its DualPipe repository).

    ValueError for fewer microbatches than stages."""
    if microbatches < 2 * ranks:
        raise ValueError(
            f"DualPipeV requires at least as many microbatches as stages, but got {microbatches} microbatches and {2 * ranks} stages."
        )
    down, up = stages
    # Ranks further down, and those up to here.
    below, above = ranks - 1 - rank, rank + 1
    steps = [(down, Kind.FORWARD)] * (2 * below)
    steps += [(down, Kind.FORWARD), (up, Kind.FORWARD)] * above
    steps += [(up, Kind.INPUT), (up, Kind.WEIGHT), (up, Kind.FORWARD)] * below
    pair = [(up, Kind.FORWARD), (down, Kind.BACKWARD)]
    steps += [(down, Kind.FORWARD), (up, Kind.BACKWARD), *pair] * (microbatches - 2 * ranks + above)
    steps += [(up, Kind.BACKWARD), *pair] * below
    # Half of the backwards that are left are whole. The second parts of the others wait until there is nothing else to do.
    left = [up, down] * above
    steps += [(stage, Kind.BACKWARD) for stage in left[:above]] + [(stage, Kind.INPUT) for stage in left[above:]]
    later = [(stage, Kind.WEIGHT) for stage in left[above:] + [down] * below]
    for weight in later[:below]:
        steps += [weight, (down, Kind.INPUT)]
    return _numbered(steps + later[below:])
