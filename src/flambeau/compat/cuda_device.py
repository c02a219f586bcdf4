"""``torch.cuda`` where there is a device: devices, streams, events, memory, random numbers. Other names have the answers of ``devices.py``."""

from __future__ import annotations

from types import SimpleNamespace

from .. import _device as _driver
from ..base.device import Device, as_device
from ..core.generator import generator_on
from . import legacy

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


def _index(device) -> int:
    """The number of a device, this thread's for None. ValueError for one of another kind."""
    if device is None:
        return _driver.current_device()
    if isinstance(device, int):
        return device if device >= 0 else _driver.current_device()
    device = as_device(device)
    if device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return device.index


# ---- devices ---------------------------------------------------------------------------------------------------------


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def init() -> None:
    """Nothing to do: naming the device was enough."""


_lazy_init = init


def device_count() -> int:
    return _driver.count()


def current_device() -> int:
    return _driver.current_device()


def set_device(device) -> None:
    """This thread's device."""
    index = _index(device)
    _driver.set_device(index)


class _CudaDeviceProperties(SimpleNamespace):
    def __repr__(self):
        shown = (
            f"name={self.name!r}",
            f"major={self.major}",
            f"minor={self.minor}",
            f"total_memory={self.total_memory >> 20}MB",
        )
        return f"_CudaDeviceProperties({', '.join(shown)}, multi_processor_count={self.multi_processor_count})"


def get_device_properties(device=None) -> _CudaDeviceProperties:
    """What the device is: name, major, minor, total_memory, multi_processor_count, warp_size, and more."""
    return _CudaDeviceProperties(**_driver.properties(_index(device)), is_integrated=0, is_multi_gpu_board=0)


def get_device_name(device=None) -> str:
    return get_device_properties(device).name


def get_device_capability(device=None) -> tuple[int, int]:
    found = get_device_properties(device)
    return found.major, found.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return True


def can_device_access_peer(device, peer_device) -> bool:
    """Whether one device reads the other's memory."""
    for d in (device, peer_device):
        if not 0 <= _index(d) < device_count():
            raise AssertionError("Invalid device id")
    return _index(device) != _index(peer_device)


def synchronize(device=None) -> None:
    """Wait for all work of a device."""
    _driver.synchronize(_index(device))


class device:  # noqa: N801
    """In the block, this is the thread's device. None or a negative number changes nothing."""

    def __init__(self, device):
        self.idx = -1 if device is None else device if isinstance(device, int) else _index(device)

    def __enter__(self):
        self.prev_idx = _driver.current_device()
        if self.idx >= 0:
            _driver.set_device(self.idx)
        return self

    def __exit__(self, *exc):
        _driver.set_device(self.prev_idx)
        return False


class device_of(device):  # noqa: N801
    """In the block, the thread's device is that of a tensor or a storage; one of the CPU changes nothing."""

    def __init__(self, obj):
        super().__init__(obj.device.index if obj.is_cuda else -1)


# ---- streams and events ----------------------------------------------------------------------------------------------


class Event(_driver.Event):
    """A place in a stream's work. ``record`` sets it; ``wait``, ``synchronize`` and ``elapsed_time`` (milliseconds) use it."""

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False):
        if interprocess:
            raise NotImplementedError("torch.cuda.Event: events between processes are not built in flambeau")
        made = super().__new__(cls, _driver.current_device())
        made.enable_timing, made.device, made._recorded = enable_timing, as_device("cuda"), False
        return made

    def record(self, stream=None) -> None:
        """Set the event behind all that ``stream`` (the current one) was given so far."""
        super().record(current_stream() if stream is None else stream)
        self._recorded = True

    def wait(self, stream=None) -> None:
        """Work given to ``stream`` (the current one) from now on comes after the event."""
        (current_stream() if stream is None else stream).wait_event(self)

    def elapsed_time(self, end_event) -> float:
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self._recorded and end_event._recorded):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return super().elapsed(end_event)

    def __repr__(self):
        return f"<torch.cuda.Event {id(self):#x}>"


class Stream(_driver.Stream):
    """A queue of work of a device, done in order."""

    def __new__(cls, device=None, priority=0, **_unused):
        made = super().__new__(cls, _index(device))
        made.priority = priority
        return made

    @property
    def device(self) -> Device:
        return Device("cuda", self.device_index)

    @property
    def cuda_stream(self) -> int:
        return self.stream_id

    def wait_stream(self, stream) -> None:
        """Work given from now on comes after all that ``stream`` was given so far."""
        self.wait_event(stream.record_event())

    def record_event(self, event=None) -> Event:
        """An event behind all that the stream was given so far."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self):
        """Work of the block goes to it."""
        self._contexts = [*getattr(self, "_contexts", ()), StreamContext(self)]
        self._contexts[-1].__enter__()
        return self

    def __exit__(self, *exc):
        return self._contexts.pop().__exit__(*exc)

    def __eq__(self, other):
        return isinstance(other, Stream) and (self.device_index, self.stream_id) == (
            other.device_index,
            other.stream_id,
        )

    def __hash__(self):
        return hash((self.device_index, self.stream_id))

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.stream_id:#x}>"


class _DefaultStream(Stream):
    def __new__(cls, index):
        made = _driver.Stream.__new__(cls, index, True)
        made.priority = 0
        return made


def default_stream(device=None) -> Stream:
    """The stream that a device's work goes to unless another one is current."""
    return _DefaultStream(_index(device))


def current_stream(device=None) -> Stream:
    """The stream that this thread's work goes to."""
    index = _index(device)
    return _driver.current_stream(index) or _DefaultStream(index)


def set_stream(stream) -> None:
    """This thread's work on the stream's device goes to it."""
    if stream is not None:
        _driver.set_stream(stream)


class StreamContext:
    """In the block, work goes to a stream. None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is None:
            return
        self._device = device(self.stream.device_index)
        self._before = current_stream(self.stream.device_index)
        self._device.__enter__()
        set_stream(self.stream)

    def __exit__(self, *exc):
        if self.stream is not None:
            set_stream(self._before)
            self._device.__exit__(*exc)
        return False


def stream(stream) -> StreamContext:
    """A block whose work goes to a stream."""
    return StreamContext(stream)


# ---- memory ----------------------------------------------------------------------------------------------------------


def mem_get_info(device=None) -> tuple[int, int]:
    """(free, total) bytes."""
    return _driver.memory(_index(device))


def memory_allocated(device=None) -> int:
    return _driver.counters(_index(device))["allocated"]


def max_memory_allocated(device=None) -> int:
    return _driver.counters(_index(device))["peak_allocated"]


def memory_reserved(device=None) -> int:
    return _driver.counters(_index(device))["reserved"]


def max_memory_reserved(device=None) -> int:
    return _driver.counters(_index(device))["peak_reserved"]


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def memory_stats(device=None) -> dict[str, int]:
    """Bytes and blocks, under PyTorch's names."""
    c = _driver.counters(_index(device))
    return {
        "active.all.current": c["blocks"],
        "allocated_bytes.all.allocated": c["allocated"],
        "allocated_bytes.all.current": c["allocated"],
        "allocated_bytes.all.peak": c["peak_allocated"],
        "allocation.all.allocated": c["allocations"],
        "allocation.all.current": c["blocks"],
        "allocation.all.freed": c["frees"],
        "num_ooms": c["refusals"],
        "reserved_bytes.all.current": c["reserved"],
        "reserved_bytes.all.peak": c["peak_reserved"],
    }


def memory_stats_as_nested_dict(device=None) -> dict:
    out: dict = {}
    for name, value in memory_stats(device).items():
        *above, last = name.split(".")
        at = out
        for part in above:
            at = at.setdefault(part, {})
        at[last] = value
    return out


def memory_summary(device=None, abbreviated: bool = False) -> str:
    """The statistics as a table."""
    rows = [f"| {name:<40} | {value:>18,} |" for name, value in memory_stats(device).items()]
    line = "|" + "=" * 63 + "|"
    return "\n".join([line, f"| {f'memory of device {_index(device)}':<61} |", line, *rows, line])


def empty_cache() -> None:
    """Memory that is kept for later goes back."""
    for index in range(device_count()):
        _driver.trim(index)


def reset_peak_memory_stats(device=None) -> None:
    _driver.counters(_index(device), True)


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats

# ---- random numbers --------------------------------------------------------------------------------------------------


def _generator(device):
    return generator_on(Device("cuda", _index(device)))


def _each():
    return [_generator(index) for index in range(device_count())]


def manual_seed(seed: int) -> None:
    """Seed this thread's device."""
    _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    for own in _each():
        own.manual_seed(int(seed))


def seed() -> None:
    _generator(None).seed()


def seed_all() -> None:
    manual_seed_all(_generator(0).seed())


def initial_seed() -> int:
    return _generator(None).initial_seed()


def get_rng_state(device="cuda"):
    """The state of a device's generator as a uint8 tensor of the CPU."""
    return _generator(device).get_state()


def set_rng_state(new_state, device="cuda") -> None:
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list:
    return [own.get_state() for own in _each()]


def set_rng_state_all(new_states) -> None:
    for own, state in zip(_each(), new_states):
        own.set_state(state)


def __getattr__(name):
    if name.endswith("Tensor") and name in legacy.BY_DTYPE.values():
        return legacy.cuda_type(name)
    if name == "default_generators":
        return tuple(_each())
    raise AttributeError(f"module 'torch.cuda' has no attribute {name!r}", name=name)
