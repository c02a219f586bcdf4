"""DistributedDataParallel: a module whose gradients are the mean over all ranks."""

from __future__ import annotations

import contextlib
import importlib
import sys

from .. import _C
from ..autograd.grad_mode import is_grad_enabled
from ..base.public import public_in
from ..base.pytree import tree_leaves
from ..modules.module import Module
from . import world
from .comm_hooks import builtin
from .data_parallel_facts import facts
from .data_parallel_join import DataParallelJoinHook, agree_to_reduce, common_rank
from .join import Join, Joinable
from .process_group import ProcessGroup
from .reducer import Reducer
from .replicas import check_same_shapes, ignored_names, synchronize

__all__ = ["DistributedDataParallel"]

MIB = 1 << 20
_DEFAULT_CAP_MIB = 25


@public_in("nn.parallel.distributed")
class DistributedDataParallel(Module, Joinable):
    """``module`` with the gradients of its parameters averaged over the ranks of ``process_group`` in each backward.

    Made by all ranks of the group: parameters and buffers become those of its first rank. ``bucket_cap_mb`` (25) is the size of the buckets that
    are reduced while the backward goes on. ``find_unused_parameters`` looks in each forward for parameters that its outputs don't depend on; without
    it a backward that leaves parameters out is an error in the next forward. ``static_graph``: every iteration uses the same parameters, as often.
    ``gradient_as_bucket_view``: gradients are views of the buckets, which saves their copy. ``broadcast_buffers``: buffers are the first
    rank's in each forward. Raises ValueError for ``device_ids`` of a GPU, RuntimeError without a parameter that needs a gradient or when ranks have
    different modules.
    """

    _active: DistributedDataParallel | None = None
    _divides_by_those_going = False  # in a Join: by the ranks that still have input

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=True,
        init_sync=True,
        process_group=None,
        bucket_cap_mb=None,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        delay_all_reduce_named_params=None,
        param_to_hook_all_reduce=None,
        mixed_precision=None,
        device_mesh=None,
        skip_all_reduce_unused_params=False,
    ):
        super().__init__()
        for name, given in (
            ("mixed_precision", mixed_precision),
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce),
        ):
            if given is not None:
                raise NotImplementedError(f"DistributedDataParallel: {name} isn't built")
        if any(p.device.type == "cuda" for p in module.parameters()):
            raise NotImplementedError(
                "DistributedDataParallel of a module on device 'cuda' isn't built: the backend moves memory of the CPU"
            )
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules "
                f"or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module parameters on the CPU."
            )
        if device_mesh is not None:
            if process_group is not None:
                raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
            process_group = device_mesh.get_group(mesh_dim=0)
        self.process_group: ProcessGroup = world.of(process_group)
        ignored = ignored_names(module)
        named = [(n, p) for n, p in _named_parameters(module) if p.requires_grad and n not in ignored]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient."
            )
        if any(not p._has_data for _, p in named):
            raise NotImplementedError("DistributedDataParallel: parameters must have dense memory")
        self.module = module
        self.device, self.device_type, self.device_ids, self.output_device = named[0][1].device, "cpu", None, None
        self.dim, self.broadcast_buffers = dim, broadcast_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = ignored
        self.bucket_bytes_cap = int((_DEFAULT_CAP_MIB if bucket_cap_mb is None else bucket_cap_mb) * MIB)
        if init_sync:
            check_same_shapes([p for _, p in named], self.process_group)
            synchronize(
                [*(p for n, p in _named_parameters(module) if n not in ignored), *self._buffers_of_module()],
                self.process_group,
            )
        self._make_reducer()

    def _make_reducer(self) -> None:
        ignored = self.parameters_to_ignore
        named = [(n, p) for n, p in _named_parameters(self.module) if p.requires_grad and n not in ignored]
        self.reducer = Reducer(
            [p for _, p in named],
            [n for n, _ in named],
            self.process_group,
            self.bucket_bytes_cap,
            self.gradient_as_bucket_view,
            self.find_unused_parameters,
            self.static_graph,
        )

    def _buffers_of_module(self) -> list:
        return [b for n, b in self.module.named_buffers() if n not in self.parameters_to_ignore]

    # ---- a step --------------------------------------------------------------------------------------------

    def forward(self, *inputs, **kwargs):
        self.reducer.share = None
        if self._join_config is not None:
            Join.notify_join_context(self)
            self.reducer.share = self._join_config[0].going if self._divides_by_those_going else None
        self.reducer.times.begin()
        self._before()
        with self._inside():
            output = self.module(*inputs, **kwargs)
        self._after(output)
        return output

    @contextlib.contextmanager
    def _inside(self):
        """The compiler asks whose forward it is in."""
        outer, DistributedDataParallel._active = DistributedDataParallel._active, self
        try:
            with _around_capture(self):
                yield
        finally:
            DistributedDataParallel._active = outer

    @classmethod
    def _get_active_ddp_module(cls) -> DistributedDataParallel | None:
        return cls._active

    def _before(self) -> None:
        syncs = is_grad_enabled() and self.require_backward_grad_sync
        if syncs:
            self.reducer.check_finished()
        if self._join_config is not None:
            agree_to_reduce(self, syncs)
        if self.broadcast_buffers and self.require_forward_param_sync:
            self._sync_buffers()

    def _sync_buffers(self) -> None:
        buffers = self._buffers_of_module()
        if buffers:
            source = 0 if self._join_config is None else common_rank(self.process_group, True)
            synchronize(buffers, self.process_group, source)

    def _after(self, output) -> None:
        if not (is_grad_enabled() and self.require_backward_grad_sync):
            self.require_forward_param_sync = False
            self.reducer.expecting = False
            return
        self.require_forward_param_sync = True
        self.reducer.prepare([t for t in tree_leaves(output) if isinstance(t, _C.TensorBase)])

    @contextlib.contextmanager
    def no_sync(self):
        """Backward passes of forwards in this block leave each rank's gradients to itself; the next one outside reduces the sums."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # ---- hooks ---------------------------------------------------------------------------------------------

    def register_comm_hook(self, state, hook) -> None:
        """``hook(state, bucket) -> Future`` reduces a bucket (GradBucket) instead of the mean; its value is the reduced buffer. One hook a module."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = (state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type) -> None:
        self.register_comm_hook(self.process_group, builtin(comm_hook_type))

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """``with ddp.join(): ...``: the block may run a different number of iterations on each rank. Without
        ``divide_by_initial_world_size`` gradients are means over the ranks that still have input. RuntimeError on all ranks once one has none
        left, with ``throw_on_early_termination``."""
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, divide_by_initial_world_size: bool = True, **kwargs):
        """What this rank does for the others once it has no more input; see join.Join."""
        return DataParallelJoinHook(self, divide_by_initial_world_size)

    @property
    def join_device(self):
        return self.device

    @property
    def join_process_group(self):
        return self.process_group

    def will_sync_module_buffers(self) -> bool:
        return self.broadcast_buffers and self.require_forward_param_sync and bool(self._buffers_of_module())

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module, params_and_buffers_to_ignore) -> None:
        """Names in ``module`` that DistributedDataParallel leaves alone."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def _set_static_graph(self) -> None:
        """As ``static_graph=True``. RuntimeError behind the first forward."""
        if self.reducer.prepared:
            raise self.reducer.failed("_set_static_graph() should be called before training loop starts, and only once")
        self.static_graph = self.reducer.static = True

    def _get_ddp_logging_data(self) -> dict:
        """Facts about the reducer."""
        return facts(self)

    def _set_ddp_runtime_logging_sample_rate(self, sample_rate: int) -> None:
        """Take times each so many iterations, behind the first ten. ValueError for less than 1."""
        if sample_rate < 1:
            raise ValueError("DDP runtime logging sample rate should be equal or greater than 1")
        self.reducer.times.rate = sample_rate

    def __getstate__(self):
        if self.process_group is not world.of(None):
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group."
            )
        state = dict(self.__dict__)
        del state["process_group"], state["reducer"]
        return state

    def __setstate__(self, state) -> None:
        """In the default process group of the process that unpickles it; all ranks do."""
        super().__setstate__(state)
        self.__dict__["process_group"] = world.of(None)
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._make_reducer()


def _around_capture(ddp):
    """Graphs that are captured in this block are made for the buckets, as the setting optimize_ddp says.

    A program that compiles has imported capture already."""
    if "flambeau.dynamo.wrapped_backends" not in sys.modules:
        return contextlib.nullcontext()
    return importlib.import_module("flambeau.distributed.graph_splitting").around_capture(
        ddp.reducer, ddp.bucket_bytes_cap
    )


def _named_parameters(module):
    return list(module.named_parameters())
