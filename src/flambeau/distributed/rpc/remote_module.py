"""Modules that lie on another worker."""

from __future__ import annotations

from typing import Any

from ...base.public import public_in
from ...modules.module import Module
from ..futures import Future
from ..remote_device import _remote_device
from . import _agent
from ._wire import Outgoing
from .api import remote, rpc_async, rpc_sync
from .references import RRef

__all__ = ["RemoteModule"]


def _create(module_cls, args: tuple, kwargs: dict[str, Any]) -> Module:
    module = module_cls(*args, **kwargs)
    if not isinstance(module, Module):
        raise ValueError(
            "Expect `module_cls(*args, **kwargs)` returns an instance of <class nn.Module>, "
            f"but it returns an instance of {type(module)}."
        )
    return module


def _call(module_rref: RRef, args: tuple, kwargs: dict[str, Any]) -> Any:
    return module_rref.local_value()(*args, **kwargs)


def _set_training(module_rref: RRef, mode: bool) -> None:
    module_rref.local_value().train(mode)


def _parameters(module_rref: RRef, recurse: bool) -> list[RRef]:
    return [RRef(p) for p in module_rref.local_value().parameters(recurse)]


@public_in("distributed.nn.api.remote_module")
class RemoteModule(Module):
    """``module_cls(*args, **kwargs)``, made and kept on the worker of ``remote_device``: "worker", "rank:1", or with "/cpu" behind them.

    Calls run there, on copies of their arguments; with distributed autograd gradients go along. ``forward_async`` returns a Future. What the class
    raises is raised by the first call: ValueError where it makes no module. Goes in arguments of calls as a reference. AssertionError without RPC,
    RuntimeError for a worker that there isn't, NotImplementedError for devices other than the CPU."""

    on: str | int
    device: str
    module_rref: RRef
    is_scriptable = False

    def __init__(
        self,
        remote_device: str,
        module_cls: type[Module],
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
    ):
        super().__init__()
        self._place(remote_device)
        self.module_rref = remote(self.on, _create, (module_cls, tuple(args or ()), dict(kwargs or {})))

    def _place(self, where: str) -> None:
        if not _agent.is_set():
            raise AssertionError("RemoteModule only works in RPC.")
        agent, place = _agent.current(), _remote_device(where)
        if place.device().type != "cpu":
            raise NotImplementedError(
                f"RemoteModule on {place.device()} isn't built: messages carry tensors of the CPU"
            )
        rank = place.rank()
        self.on = place.worker_name() or (agent.info.name if rank is None else rank)
        self.device = str(place.device())
        agent.worker(self.on)

    @staticmethod
    def init_from_module_rref(remote_device: str, module_rref: RRef, _module_interface_cls: Any = None) -> RemoteModule:
        """The remote module of a module that is there already. Errors as of the class."""
        if _module_interface_cls is not None:
            raise NotImplementedError("RemoteModule: interfaces of TorchScript aren't built")
        return _around(remote_device, module_rref)

    def forward(self, *args, **kwargs) -> Any:
        """Call the module on its worker. Raises what that raises, with the worker's traceback as its text."""
        return self.forward_async(*args, **kwargs).wait()

    def forward_async(self, *args, **kwargs) -> Future:
        """As ``forward``; a Future of the value."""
        return rpc_async(self.module_rref.owner(), _call, (self.module_rref, args, kwargs))

    def remote_parameters(self, recurse: bool = True) -> list[RRef]:
        """References to the module's parameters, for ``DistributedOptimizer``."""
        return rpc_sync(self.module_rref.owner(), _parameters, (self.module_rref, recurse))

    def get_module_rref(self) -> RRef:
        """The reference to the module."""
        return self.module_rref

    def train(self, mode: bool = True) -> RemoteModule:
        """Set the module to training, or to evaluation; waits until that is done."""
        rpc_sync(self.module_rref.owner(), _set_training, (self.module_rref, mode))
        return self

    def extra_repr(self) -> str:
        return f"on={self.on!r}, device={self.device!r}"

    def __getstate__(self):
        raise RuntimeError(
            "Cannot pickle RemoteModule in python pickler. RemoteModule can only be pickled when using RPC"
        )

    def __setstate__(self, state):
        raise RuntimeError(
            "Cannot unpickle RemoteModule in python pickler. RemoteModule can only be unpickled when using RPC"
        )

    def __rpc_reduce__(self, outgoing: Outgoing):
        return _around, (f"{self.module_rref.owner_name()}/{self.device}", self.module_rref)


def _around(where: str, module_rref: RRef) -> RemoteModule:
    out = RemoteModule.__new__(RemoteModule)
    Module.__init__(out)
    out._place(where)
    out.module_rref = module_rref
    return out


def _refused(name: str):
    instead = " Please use ``remote_parameters`` instead." if name == "parameters" else ""
    text = f"Method ``{name}`` not supported for RemoteModule{'.' + instead if instead else ''}"

    def method(self, *args, **kwargs):
        raise ValueError(text)

    method.__name__, method.__qualname__ = name, f"RemoteModule.{name}"
    method.__doc__ = "ValueError: a remote module has no parts of its own."
    return method


# What concerns parts of the module, which aren't here.
for _name in (
    "parameters named_parameters buffers named_buffers children named_children modules named_modules register_buffer register_parameter add_module "
    "apply cuda ipu xpu cpu type float double half bfloat16 to requires_grad_ zero_grad share_memory state_dict load_state_dict "
    "register_backward_hook register_forward_pre_hook register_forward_hook"
).split():
    setattr(RemoteModule, _name, _refused(_name))
