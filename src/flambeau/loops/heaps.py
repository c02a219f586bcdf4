"""Python's heaps as native loops have them: functions whose bytecode joins that of the loop, in the place of those of ``heapq``.

The steps are those of ``heapq``, so that the list is the same after each call.
"""

from __future__ import annotations

import heapq

__all__ = ["WRITTEN_OUT"]


def _heappush(heap, item):
    heap.append(item)
    at = len(heap) - 1
    while at > 0:
        above = (at - 1) >> 1
        other = heap[above]
        if not item < other:
            break
        heap[at] = other
        at = above
    heap[at] = item


def _heappop(heap):
    last = heap.pop()
    if len(heap) == 0:
        return last
    least = heap[0]
    heap[0] = last
    end, at = len(heap), 0
    child = 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    while at > 0:
        above = (at - 1) >> 1
        other = heap[above]
        if not last < other:
            break
        heap[at] = other
        at = above
    heap[at] = last
    return least


WRITTEN_OUT = {heapq.heappush: _heappush, heapq.heappop: _heappop}
