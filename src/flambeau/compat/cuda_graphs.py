"""``torch.cuda.CUDAGraph`` where there is a device: work that is recorded once and given to it again as a whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from .. import _device as _driver
from .. import autograd as _autograd
from ..base import pytree
from ..core import device_memory
from ..core.generator import key_words
from . import cuda_device

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_pools = itertools.count(1)


def is_current_stream_capturing() -> bool:
    """Whether this thread's stream records its work."""
    return _driver.capturing(_driver.current_device())


def graph_pool_handle() -> tuple[int, int]:
    """A token for ``pool=``. Graphs share no memory here: each keeps what was taken while it was recorded."""
    return next(_pools), 0


class CUDAGraph:
    """Work of a stream. ``replay`` gives it to the current one: it reads and writes the memory that it did when it was recorded, and draws anew."""

    def __init__(self, keep_graph: bool = False):
        self._graph = None
        self._keys: list = []
        self._device = None
        self._pool = graph_pool_handle()

    def capture_begin(self, pool=None, capture_error_mode: str = "global") -> None:
        """From here on the current stream, which isn't the default one, records. RuntimeError where it does so already."""
        self._device = _driver.current_device()
        _driver.capture_begin(self._device)
        device_memory.recorded_keys = []

    def capture_end(self) -> None:
        if self._device is None:
            raise RuntimeError("capture_end() called before capture_begin()")
        self._keys, device_memory.recorded_keys = device_memory.recorded_keys or [], None
        self._graph = _driver.Graph(self._device)

    def replay(self) -> None:
        """Give the work to the current stream. RuntimeError before it was recorded."""
        if self._graph is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        for memory, device in self._keys:
            memory.write(0, key_words(device))
        self._graph.launch()

    def reset(self) -> None:
        """Forget the work, and give back its memory."""
        self._graph, self._keys = None, []

    def pool(self) -> tuple[int, int]:
        return self._pool


class graph:  # noqa: N801
    """In the block, work goes to a stream of its own and into ``cuda_graph``, and isn't done."""

    def __init__(self, cuda_graph: CUDAGraph, pool=None, stream=None, capture_error_mode: str = "global"):
        self.cuda_graph, self.pool = cuda_graph, pool
        self.context = cuda_device.stream(stream or cuda_device.Stream())

    def __enter__(self):
        cuda_device.synchronize()
        self.context.__enter__()
        self.cuda_graph.capture_begin()

    def __exit__(self, *exc):
        self.cuda_graph.capture_end()
        self.context.__exit__(*exc)
        return False


class _Graphed:
    """A callable and its gradient as two graphs, which read ``inputs`` and write ``outputs`` in place."""

    def __init__(self, fn: Callable, args: tuple, parameters: tuple, warmups: int):
        self.fn = fn
        leaves, self.spec = pytree.tree_flatten(args)
        self.inputs = [x.detach().clone().requires_grad_(x.requires_grad) for x in leaves]
        self.parameters = parameters
        self.wanted = [x for x in (*self.inputs, *parameters) if x.requires_grad]
        side = cuda_device.Stream()
        side.wait_stream(cuda_device.current_stream())
        with cuda_device.stream(side):
            for _ in range(warmups):
                self._gradients(self._outputs()[0])
        cuda_device.current_stream().wait_stream(side)
        cuda_device.synchronize()
        self.forward, self.backward = CUDAGraph(), CUDAGraph()
        with graph(self.forward):
            self.outputs, self.out_spec = self._outputs()
        self.cotangents = [t.new_empty_strided(t.shape, t.stride()) for t in self.outputs if t.requires_grad]
        self.gradients: list = []
        if self.cotangents:
            with graph(self.backward):
                self.gradients = list(self._gradients(self.outputs, self.cotangents))

    def _outputs(self):
        with _autograd.grad_mode.enable_grad():
            made = self.fn(*pytree.tree_unflatten(self.inputs, self.spec))
        return pytree.tree_flatten(made)

    def _gradients(self, outputs, cotangents=None):
        asked = [t for t in outputs if t.requires_grad]
        if not asked or not self.wanted:
            return ()
        given = [t.detach().clone() for t in asked] if cotangents is None else cotangents
        return _autograd.grad(asked, self.wanted, given, allow_unused=True, retain_graph=False)


def _function(graphed: _Graphed):
    class Replayed(_autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            for own, x in zip(graphed.inputs, given):
                if own.data_ptr() != x.data_ptr():
                    own.detach().copy_(x)
            graphed.forward.replay()
            return tuple(t.detach() for t in graphed.outputs)

        @staticmethod
        def backward(ctx, *given):
            asked = [g for g, t in zip(given, graphed.outputs) if t.requires_grad]
            for own, g in zip(graphed.cotangents, asked):
                own.copy_(g)
            graphed.backward.replay()
            found = iter(graphed.gradients)
            of = [next(found) if x.requires_grad else None for x in (*graphed.inputs, *graphed.parameters)]
            return tuple(None if g is None else g.detach().clone() for g in of)

    def call(*args):
        leaves = pytree.tree_flatten(args)[0]
        made = Replayed.apply(*leaves, *graphed.parameters)
        return pytree.tree_unflatten(list(made), graphed.out_spec)

    return call


def make_graphed_callables(
    callables, sample_args, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool=None
):
    """Functions or modules whose forward and backward are replayed graphs, for tensors of the shapes of ``sample_args`` (a tuple of tensors for
    each). A module keeps its parameters, and its forward in the mode (training or not) in which it was recorded."""
    several = isinstance(callables, tuple)
    fns, samples = (callables, sample_args) if several else ((callables,), (sample_args,))
    made = tuple(_graphed(fn, args, num_warmup_iters) for fn, args in zip(fns, samples))
    return made if several else made[0]


def _graphed(fn, args, warmups: int):
    if not hasattr(fn, "parameters"):
        return _function(_Graphed(fn, args, (), warmups))
    replayed, plain, training = _function(_Graphed(fn, args, tuple(fn.parameters()), warmups)), fn.forward, fn.training
    fn.forward = lambda *given: replayed(*given) if fn.training == training else plain(*given)
    return fn
