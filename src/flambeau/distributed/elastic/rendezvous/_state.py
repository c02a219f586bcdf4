"""What the machines of a job know of each other: one record in the store, and the steps by which it changes. No clock and no network is here.

A round is *open* while machines join it, and *complete* when its members and their order are fixed. A complete round is *over* when a member has
left, or when a member asks for the next one; what was known of it is kept as ``expected``, in order: the next round waits for these machines, and
for no others.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

__all__ = ["State"]


@dataclass
class State:
    """Machines are named by texts. ``beats`` counts the signs of life of each. ``places`` are the numbers that machines ask for (``--node-rank``)."""

    round: int = 0
    complete: bool = False
    broken: bool = False
    closed: bool = False
    participants: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    beats: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> State:
        """ValueError or TypeError for what is no such record."""
        return cls(**json.loads(data))

    def join(self, node: str, most: int, place: int | None = None) -> bool:
        """``node`` asks for a place in the next round. Whether anything changed."""
        if self.complete and (self.broken or node in self.participants):
            self._open_next(most)
        before = (list(self.participants), list(self.waiting))
        if node not in self.participants:
            if not self.complete and self._has_room(node, most):
                self.participants.append(node)
                if node in self.waiting:
                    self.waiting.remove(node)
            elif node not in self.waiting:
                self.waiting.append(node)
        if place is not None:
            self.places[node] = place
        if before == (self.participants, self.waiting):
            return False
        self.beat(node)
        return True

    def _has_room(self, node: str, most: int) -> bool:
        reserved = set(self.participants) | set(self.expected)
        return node in reserved or len(reserved) < most

    def _open_next(self, most: int) -> None:
        self.expected = (self.participants + self.waiting)[:most]
        self.round += 1
        self.complete = self.broken = False
        self.participants = []

    def leave(self, node: str, finished: bool = False) -> bool:
        """``node`` has left, or is dead; or its part is ``finished``, which the round goes on without. Whether anything changed."""
        known = node in self.beats or node in self.participants or node in self.waiting
        self.broken = self.broken or (self.complete and node in self.participants and not finished)
        for names in (self.participants, self.waiting, self.expected):
            if node in names:
                names.remove(node)
        self.beats.pop(node, None)
        self.places.pop(node, None)
        return known

    def beat(self, node: str) -> bool:
        self.beats[node] = self.beats.get(node, 0) + 1
        return True

    def is_enough(self, least: int) -> bool:
        """Whether the open round may be made complete once nobody else comes: the machines of the last round are there, or gone."""
        return not self.complete and len(self.participants) >= least and set(self.expected) <= set(self.participants)

    def is_full(self, least: int, most: int) -> bool:
        """Whether there is nobody to wait for."""
        return self.is_enough(least) and (bool(self.expected) or len(self.participants) == most)

    def fix(self) -> bool:
        """Make the open round complete. Members keep their order, new ones come behind them; asked places come first of all."""
        old = {node: k for k, node in enumerate(self.expected)}
        arrived = list(self.participants)
        self.participants.sort(
            key=lambda node: (self.places.get(node, len(arrived)), old.get(node, len(old)), arrived.index(node))
        )
        self.complete, self.expected = True, []
        return True

    def room(self, most: int) -> int:
        """How many of the waiting machines the next round has room for."""
        return min(len(self.waiting), max(0, most - len(self.participants))) if self.complete else 0

    def is_over_for(self, node: str, number: int) -> bool:
        """Whether round ``number`` isn't one that ``node`` can go on with."""
        return self.round != number or not self.complete or self.broken or node not in self.participants

    def close(self) -> bool:
        changed, self.closed = not self.closed, True
        return changed
