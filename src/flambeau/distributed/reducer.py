"""The reducer: gradients that a backward produces go into buckets, and each bucket is reduced while the backward goes on."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..autograd.engine import after_backward
from ..autograd.grad_mode import no_grad
from ..autograd.node import gradient_edge
from ..base.logs import artifact
from . import collectives
from .buckets import FIRST_BUCKET_BYTES, Bucket, Memory, assign, build, move
from .data_parallel_facts import Times
from .landing import Landing, alone, lies_in
from .optimizer_in_backward import step_and_clear, take_over
from .process_group import ProcessGroup
from .reduce_op import ReduceOp

__all__ = ["GradBucket", "Reducer"]

_log = artifact("ddp_graphs", "")

_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module has parameters "
    "that were not used in producing loss. You can enable unused parameter detection by passing the keyword argument "
    "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function outputs participate "
    "in calculating loss. "
)


class GradBucket:
    """What a communication hook is handed: one bucket's gradients, one after the other in ``buffer()``."""

    def __init__(self, bucket: Bucket, index: int, last: bool, parameters):
        self._bucket, self._index, self._last, self._parameters = bucket, index, last, parameters
        self._buffer = bucket.flat

    def index(self) -> int:
        return self._index

    def buffer(self):
        return self._buffer

    def set_buffer(self, tensor) -> None:
        self._buffer = tensor

    def gradients(self) -> list:
        return list(self._bucket.views)

    def parameters(self) -> list:
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether no bucket follows in this backward."""
        return self._last


class Reducer:
    """Of ``parameters`` (all need a gradient), in the order in which the module has them.

    The buckets are first those of the reversed order; after the first backward they are built anew in the order in which gradients came on rank 0
    of the group. ``cap`` is their size in bytes; the first is at most 1 MiB, so that the reduction begins soon.
    """

    def __init__(
        self, parameters, names, group: ProcessGroup, cap: int, as_views: bool, find_unused: bool, static: bool
    ):
        self.parameters, self.names, self.group = parameters, names, group
        self.cap, self.as_views, self.find_unused, self.static = cap, as_views, find_unused, static
        self.limits = [min(FIRST_BUCKET_BYTES, cap), cap]
        self.hook = None
        self.memory = Memory(group, parameters)
        self.rebuilt = False
        self.expecting = False
        self.unfinished = False
        self.bind = None  # noted_gradients.bind, once a graph was compiled that tells of gradients
        self.iterations = 0
        self.arrived: list[int] = []
        self.times, self.error, self.prepared = Times(), "", False
        self.counted = False  # the uses of a static graph
        self.share: int | None = None  # gradients are sums / so many ranks; means where None
        self.touched = np.zeros(len(parameters), np.int32)  # got a gradient since the last reduction, here
        self.uses = [1] * len(parameters)  # gradients of one backward; static graphs count them in the first
        self._set_buckets(assign(parameters, self.limits, list(reversed(range(len(parameters))))))
        self.stepping = take_over(parameters)  # those whose optimizers step in the backward
        self.handles = [
            p.register_post_accumulate_grad_hook(lambda _, i=i: self.ready(i)) for i, p in enumerate(parameters)
        ]

    def _set_buckets(self, assignment: list[list[int]]) -> None:
        with no_grad():
            self.buckets = build(self.memory, self.parameters, assignment)
        self.landing = Landing(self.memory, self.buckets) if self.as_views else None
        self.place = {i: (b, k) for b, bucket in enumerate(self.buckets) for k, i in enumerate(bucket.indices)}
        if _log.on:
            for k, bucket in enumerate(self.buckets):
                _log("bucket %d: %d bytes: %s", k, bucket.size, ", ".join(self.names[i] for i in bucket.indices))

    # ---- before the backward -------------------------------------------------------------------------------

    def failed(self, text: str) -> RuntimeError:
        """An error of the program's, which the facts about the module tell of from then on."""
        self.error = text
        return RuntimeError(text)

    def check_finished(self) -> None:
        """RuntimeError when the last backward left gradients out."""
        if self.unfinished:
            missing = [self.names[i] for i in range(len(self.parameters)) if not self.done[i]]
            raise self.failed(
                f"{_UNFINISHED}\nParameters which did not receive grad for rank {self.group.rank()}: {', '.join(missing)}"
            )

    def prepare(self, outputs) -> None:
        """A backward of ``outputs`` (tensors) will come: all gradients are waited for but those that they don't depend on, where
        unused parameters are to be found."""
        self._rebuild()
        n = len(self.parameters)
        self.arrived, self.prepared = [], True
        self.done, self.left = [False] * n, list(self.uses)
        self.local = np.ones(n, np.int32)
        self.next, self.expecting, self.unfinished = 0, True, False
        for bucket in self.buckets:
            bucket.pending, bucket.waits = len(bucket.indices), None
        self.count = n
        self.filled = [False] * n
        if self.bind is not None:
            self.bind(self, _reachable(outputs))
        if self._counts():
            self.left = [1 << 30] * n
            return
        # Buckets that will be built anew use the same memory: nothing may live on there.
        if self.landing is not None and (self.rebuilt or self._stays()):
            self.landing.expect(self.parameters, self.buckets)
        unused = [i for i in range(n) if self.uses[i] == 0]
        if self.find_unused and not self.static:
            used = _reachable(outputs)
            unused = [i for i, p in enumerate(self.parameters) if gradient_edge(p)[0] not in used]
        if self.find_unused or unused:
            for i in unused:
                self.local[i] = self.touched[i]
                self._mark(i)

    def prepare_for_backward(self, outputs) -> None:
        """PyTorch's name of ``prepare``. Without outputs all gradients are waited for."""
        find, self.find_unused = self.find_unused, self.find_unused and bool(outputs)
        try:
            self.prepare(list(outputs))
        finally:
            self.find_unused = find

    def _stays(self) -> bool:
        """Whether the first buckets are kept: gradients come in another order in each backward."""
        return self.find_unused and not self.static

    def _rebuild(self) -> None:
        if self.rebuilt or self.iterations == 0 or self._stays():
            return
        self.rebuilt = True
        order = [*self.arrived, *sorted(set(range(len(self.parameters))) - set(self.arrived))]
        agreed = _C.from_array(np.array(order, np.int64))
        collectives.broadcast(agreed, group=self.group, group_src=0)
        if self.as_views:  # gradients lie in the memory that gets another order
            for p in self.parameters:
                if p.grad is not None:
                    p.grad = p.grad.clone()
        self._set_buckets(assign(self.parameters, self.limits, agreed._array.tolist()))

    def shadow(self, share: int | None) -> None:
        """Take part in the reductions of other ranks' backward, with zeros. ``share`` is None where it is theirs."""
        self._rebuild()
        self.share = share
        self.local = np.zeros(len(self.parameters), np.int32)
        for index, bucket in enumerate(self.buckets):
            bucket.flat._array[...] = 0
            self._start(index)
        self._used_anywhere()
        for bucket in self.buckets:
            bucket.waits.wait()
        self.iterations += 1

    # ---- in the backward -----------------------------------------------------------------------------------

    def ready(self, i: int) -> None:
        """The gradient of parameter i has been accumulated."""
        self.touched[i] = 1
        if not self.expecting:
            return
        if self._counts():
            self._count(i)
            return
        if self.done[i]:
            raise self.failed(
                f"Expected to mark a variable ready only once. Parameter {self.names[i]} got a gradient twice in one backward: it is used outside of "
                "the forward function, or in several reentrant backward passes (static_graph=True handles those)."
            )
        self.unfinished = True
        self.left[i] -= 1
        if self.left[i] <= 0:
            self._mark(i)

    def _counts(self) -> bool:
        return self.static and not self.counted

    def _count(self, i: int) -> None:
        """The first backward of a static graph: how many gradients each parameter gets. All are reduced at its end."""
        if not self.unfinished:
            self.unfinished = True
            self.uses = [0] * len(self.parameters)
            after_backward(self._end_of_counting)
        self.uses[i] += 1
        if self.uses[i] == 1:
            self.arrived.append(i)

    def _end_of_counting(self) -> None:
        order, self.arrived, self.counted = self.arrived, [], True
        for i in [*order, *(k for k, n in enumerate(self.uses) if n == 0)]:
            if self.uses[i] == 0:
                self.local[i] = 0
            self._mark(i)

    def _mark(self, i: int) -> None:
        """Put the gradient into its bucket; reduce buckets that are full, in their order."""
        self.done[i] = True
        if not self.filled[i]:
            b, k = self.place[i]
            self._fill(i, self.buckets[b], k)
            self._filled(i)
        self.count -= 1
        if self.count == 0:
            if self.unfinished:
                self._finish()
            else:  # nothing is used: the backward, if any, has nothing to wait for
                self.expecting = False

    def note(self, i: int, grad: np.ndarray) -> None:
        """A compiled backward has computed the gradient of parameter i, all that it gets, and will hand it on at its end: reduce it now, unless it is
        to be added to what lies in the bucket."""
        p = self.parameters[i]
        if not self.expecting or self.filled[i] or self.uses[i] != 1:
            return
        if self._counts() or (p.grad is not None and (self.as_views or p.grad._array is None)):
            return
        b, k = self.place[i]
        bucket = self.buckets[b]
        if self._landed(i, bucket, lambda: lies_in(bucket.views[k]._array, grad)):
            pass  # the graph hands it on when it ends, and holds it alone until then
        elif p.grad is None:
            np.copyto(bucket.views[k]._array, grad)
        else:
            np.add(p.grad._array, grad, out=bucket.views[k]._array)
        self.unfinished = True
        self._filled(i)

    def _filled(self, i: int) -> None:
        """The gradient is in its bucket."""
        self.times.gradient()
        self.filled[i] = True
        if self.local[i]:
            self.arrived.append(i)
        bucket = self.buckets[self.place[i][0]]
        bucket.pending -= 1
        while self.next < len(self.buckets) and self.buckets[self.next].pending == 0:
            self._start(self.next)
            self.next += 1

    def _fill(self, i: int, bucket: Bucket, k: int) -> None:
        p = self.parameters[i]
        grad = p.grad
        if not self.local[i] and grad is None:
            self._landed(i, bucket, lambda: False)
            bucket.views[k]._array[...] = 0
            return
        if grad._array is None:
            raise NotImplementedError(
                f"DistributedDataParallel: a gradient of layout {grad.layout} can't be reduced; it has to be dense"
            )
        if self.as_views and grad._storage is bucket.views[k]._storage:
            return
        # The leaf has the gradient, and this function.
        if not self._landed(i, bucket, lambda: lies_in(bucket.views[k]._array, grad._array) and alone(grad, 2)):
            np.copyto(bucket.views[k]._array, grad._array)
        if self.as_views:
            p.grad = bucket.views[k]

    def _landed(self, i: int, bucket: Bucket, is_it) -> bool:
        """Whether the gradient of parameter i was made in its place. Another result that lies there may live on: then the bucket moves."""
        if self.landing is None or not self.landing.close(i):
            return False
        if bucket.home is None and is_it():
            self.landing.landed += 1
            return True
        if bucket.home is None:
            self._move(i, bucket)
        return False

    def _move(self, i: int, bucket: Bucket) -> None:
        """Give the bucket memory that nobody else writes to, until the next backward. It isn't shared between ranks, so its reduction copies."""
        before = bucket.views
        self.landing.missed(i)
        with no_grad():
            move(bucket, self.parameters)
        for k, old, view in zip(bucket.indices, before, bucket.views):
            if self.filled[k]:
                np.copyto(view._array, old._array)
                grad = self.parameters[k].grad
                if grad is not None and grad._storage is old._storage:
                    self.parameters[k].grad = view
        _log("the bucket of %s moved: another result lay in the place of its gradient", self.names[i])

    def _start(self, index: int) -> None:
        bucket = self.buckets[index]
        self.times.reduction()
        if self.hook is None:
            op = ReduceOp.AVG if self.share is None else ReduceOp.SUM
            bucket.waits = collectives.all_reduce(bucket.flat, op, self.group, async_op=True)
            return
        state, hook = self.hook
        parameters = [self.parameters[i] for i in bucket.indices]
        bucket.waits = hook(state, GradBucket(bucket, index, index == len(self.buckets) - 1, parameters))

    def _finish(self) -> None:
        """All buckets are under way: wait for them and give each parameter its gradient."""
        anywhere = self._used_anywhere()
        for bucket in self.buckets:
            got = bucket.waits.wait()
            if self.hook is not None:
                _take(bucket, got)
            elif self.share is not None:
                bucket.flat._array[...] /= self.share
            for i, view in zip(bucket.indices, bucket.views):
                if anywhere[i]:
                    self._give(self.parameters[i], view)
                    if i in self.stepping:
                        step_and_clear(self.parameters[i])
            bucket.waits = None
        self.expecting = self.unfinished = False
        if self.landing is not None:
            self.landing.close_all()
        self.touched[:] = 0
        self.times.end(self.iterations)
        self.iterations += 1

    def _used_anywhere(self):
        """By parameter, whether any rank had a gradient for it."""
        if not (self.find_unused or self.static):
            return self.local
        flags = _C.from_array(self.local.copy())
        collectives.all_reduce(flags, ReduceOp.MAX, self.group)
        return flags._array

    def _give(self, p, view) -> None:
        if self.as_views:
            if p.grad is None or p.grad._storage is not view._storage:
                p.grad = view
            return
        if p.grad is None:
            with no_grad():
                p.grad = view.clone()
            return
        np.copyto(p.grad._array, view._array)
        p.grad._bump_version()


def _take(bucket: Bucket, got) -> None:
    """A hook's result: the reduced gradients, one tensor or a list of one."""
    result = got[0] if isinstance(got, list | tuple) else got
    if result is not bucket.flat:
        np.copyto(bucket.flat._array, result._array.reshape(-1))


def _reachable(outputs) -> set:
    """All nodes of the graph above ``outputs``."""
    found: set = set()
    todo = [t.grad_fn for t in outputs if t.grad_fn is not None]
    while todo:
        node = todo.pop()
        if node in found:
            continue
        found.add(node)
        todo += [n for n, _ in node.next_functions if n is not None]
    return found
