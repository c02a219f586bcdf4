"""Maximum flow and minimum cut by Dinic's algorithm (E. A. Dinic, 1970), on graphs of a few thousand edges.

Written out because importing scipy.sparse costs more than the cut of a training graph, and its maximum flow is limited
to int32 capacities.
"""

from __future__ import annotations

from collections import deque

__all__ = ["INFINITE", "FlowNetwork"]

INFINITE = 1 << 60


class FlowNetwork:
    """Vertices are 0 .. n-1; add edges, then ask for :meth:`minimum_cut`."""

    def __init__(self, n: int):
        self.adjacent: list[list[int]] = [[] for _ in range(n)]
        self.head: list[int] = []
        self.capacity: list[int] = []

    def add_edge(self, u: int, v: int, capacity: int) -> None:
        """An edge and, at the odd index beside it, its residual."""
        self.adjacent[u].append(len(self.head))
        self.head.append(v)
        self.capacity.append(capacity)
        self.adjacent[v].append(len(self.head))
        self.head.append(u)
        self.capacity.append(0)

    def maximum_flow(self, s: int, t: int) -> int:
        """Saturate the network; the residual capacities are left in ``capacity``."""
        head, capacity, adjacent = self.head, self.capacity, self.adjacent
        total = 0
        while True:
            level = self._levels(s, t)
            if level[t] < 0:
                return total
            position = [0] * len(adjacent)
            path: list[int] = []
            u = s
            while True:
                if u == t:
                    amount = min(capacity[e] for e in path)
                    if amount >= INFINITE:
                        raise ValueError(
                            "the flow is unbounded: source and sink are joined by edges of infinite capacity"
                        )
                    total += amount
                    first = 0
                    for i, e in enumerate(path):
                        capacity[e] -= amount
                        capacity[e ^ 1] += amount
                        if not capacity[e] and first == 0:
                            first = i + 1
                    # Go on from the tail of the first edge that is now full.
                    u = head[path[first - 1] ^ 1]
                    del path[first - 1 :]
                    continue
                edges = adjacent[u]
                i = position[u]
                while i < len(edges):
                    e = edges[i]
                    if capacity[e] and level[head[e]] == level[u] + 1:
                        break
                    i += 1
                position[u] = i
                if i < len(edges):
                    path.append(edges[i])
                    u = head[edges[i]]
                elif path:
                    e = path.pop()
                    u = head[e ^ 1]
                    position[u] += 1
                else:
                    break

    def _levels(self, s: int, t: int) -> list[int]:
        level = [-1] * len(self.adjacent)
        level[s] = 0
        queue = deque([s])
        while queue:
            u = queue.popleft()
            for e in self.adjacent[u]:
                v = self.head[e]
                if self.capacity[e] and level[v] < 0:
                    level[v] = level[u] + 1
                    queue.append(v)
        return level

    def minimum_cut(self, s: int, t: int) -> tuple[int, set[int]]:
        """Value of the cut and the vertices on the sink's side, of the minimum cuts the one nearest to the sink."""
        value = self.maximum_flow(s, t)
        side = {t}
        queue = deque([t])
        while queue:
            v = queue.popleft()
            for e in self.adjacent[v]:
                u = self.head[e]
                # The edge u -> v is the partner of this one.
                if u not in side and self.capacity[e ^ 1]:
                    side.add(u)
                    queue.append(u)
        return value, side
