"""The process groups of this process: the default one, those made later, and how ranks are called in each."""

from __future__ import annotations

import datetime
import itertools
import os
import threading

from . import mpi
from .backend import Backend, BackendConfig, chosen, warn_of_options
from .fake_engine import FakeEngine
from .job import Job
from .process_group import ProcessGroup
from .rendezvous import rendezvous
from .store import HashStore, PrefixStore, Store

__all__ = [
    "GroupMember",
    "World",
    "current",
    "default_pg_timeout",
    "destroy_process_group",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_initialized",
    "new_group",
    "of",
    "use",
]

default_pg_timeout = datetime.timedelta(minutes=30)


class _GroupMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802
        """The default process group, None before ``init_process_group``."""
        return current().default

    @WORLD.setter
    def WORLD(cls, pg) -> None:  # noqa: N802
        current().default = pg


class group(metaclass=_GroupMeta):  # noqa: N801
    """``dist.group.WORLD`` is the default process group."""


class GroupMember(metaclass=_GroupMeta):
    """``NON_GROUP_MEMBER`` is what ``new_group`` returns to ranks that aren't in it."""

    NON_GROUP_MEMBER = -100


class World:
    """What one rank knows of its groups. Each process has one; so has each thread that plays a rank (threads.py)."""

    def __init__(self):
        self.default: ProcessGroup | None = None
        self.groups: dict[str, ProcessGroup] = {}
        self.ranks: dict[str, tuple[int, ...]] = {}  # those too that this rank isn't in
        self.counter = itertools.count()
        self.orders: set[tuple[str, str]] = set()  # collective_order.py: what was compared in which group
        self.job: Job | None = None
        self.threads = None  # threads.Crew of a rank that is a thread
        self.timeout = default_pg_timeout

    def forget(self) -> None:
        self.default = self.job = None
        self.groups.clear()
        self.ranks.clear()
        self.orders.clear()
        self.counter = itertools.count()


_process = World()
_thread = threading.local()


def current() -> World:
    """The World of this thread's rank."""
    return getattr(_thread, "world", _process)


def use(world: World | None) -> None:
    """This thread is a rank of its own from now on; None: of the process again."""
    if world is None:
        vars(_thread).pop("world", None)
    else:
        _thread.world = world


def of(pg) -> ProcessGroup:
    """The group that is meant: the default one for None. ValueError when there is none."""
    if isinstance(pg, ProcessGroup):
        return pg
    if pg is None or pg is group or pg is GroupMember:
        pg = current().default
        if pg is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group."
            )
        return pg
    raise TypeError(f"expected a ProcessGroup, got {type(pg).__name__}")


def default_group() -> ProcessGroup:
    return of(None)


def default_store() -> Store:
    return of(None).get_group_store()


def default_timeout(backend=None) -> datetime.timedelta:
    return default_pg_timeout


def name_of(group) -> str:
    return of(group).group_name


def resolve(name: str) -> ProcessGroup:
    """The group of that name. RuntimeError when this process has none."""
    found = current().groups.get(name)
    if found is None:
        raise RuntimeError(f"Could not resolve the process group registered under the name {name}")
    return found


def _rank_not_in_group(group) -> bool:
    return group == GroupMember.NON_GROUP_MEMBER


def is_initialized() -> bool:
    """Whether there is a default process group."""
    return current().default is not None


def is_member(pg) -> bool:
    return pg is not GroupMember.NON_GROUP_MEMBER


def get_rank(group=None) -> int:
    """This process's rank, -1 when it isn't in ``group``."""
    return of(group).rank() if is_member(group) else -1


def get_world_size(group=None) -> int:
    """Ranks of the group, -1 when this process isn't in it."""
    return of(group).size() if is_member(group) else -1


def get_backend(group=None) -> Backend:
    """The name of the group's backend."""
    if not is_member(group):
        raise ValueError("Invalid process group specified")
    return Backend(of(group).name())


def get_backend_config(group=None) -> str:
    return repr(BackendConfig(get_backend(group)))


def get_process_group_ranks(group=None) -> list[int]:
    """The global ranks of a group, in its order."""
    return list(of(group)._ranks)


def get_group_rank(group, global_rank: int) -> int:
    """The rank in ``group`` of a global rank. ValueError when it isn't a member."""
    return of(group).group_rank(global_rank)


def get_global_rank(group, group_rank: int) -> int:
    """The global rank of a rank of ``group``. ValueError when there is none."""
    ranks = of(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {of(group).group_name}")
    return ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """``LOCAL_RANK`` of the environment, else the fallback. RuntimeError without either."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def get_pg_count() -> int:
    return len(current().groups)


def _checked_timeout(timeout) -> datetime.timedelta:
    if timeout is None:
        return current().timeout
    if not isinstance(timeout, datetime.timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: datetime.timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options=None,
    device_id=None,
    _ranks=None,
) -> None:
    """Make the default process group of all ranks; every rank must call it.

    ``backend``: "gloo", "mpi", "cpu:gloo" (all mean MPI through mpi4py, started here), "fake" (this rank alone is real) or "threaded" (inside of
    ``threads.spawn``). The ranks meet by ``init_method`` ("env://", "tcp://host:port", "file:///path") or by ``store``. ``timeout`` (30 minutes)
    holds for every operation. ModuleNotFoundError names the extra where mpi4py is missing; ValueError when there is a default group already.
    """
    world = current()
    if world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if init_method is not None and store is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    timeout = _checked_timeout(timeout)
    name = chosen(backend)
    warn_of_options(pg_options)
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    elif name == Backend.FAKE and rank >= 0 and world_size > 0 and init_method is None:
        store = HashStore()
    elif world.threads is not None:
        store, rank, world_size = world.threads.store, world.threads.rank, world.threads.size
    else:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} isn't one of {world_size} ranks")
    if name == Backend.FAKE:
        engine = FakeEngine(rank, world_size)
    elif world.threads is not None:
        engine = world.threads.engine(tuple(range(world_size)))
    elif name == Backend.THREADED:
        raise RuntimeError("the backend 'threaded' is for threads that flambeau.distributed.threads.spawn started")
    else:
        if world_size > 1:
            mpi.check()
        world.job = Job(rank, world_size, store, timeout)
        engine = world.job.world_engine()
    world.timeout = timeout
    ranks = tuple(range(world_size))
    prefix = PrefixStore("default_pg", store)
    pg = ProcessGroup(engine, ranks, group_name or str(next(world.counter)), name, timeout, prefix, "default_pg")
    world.groups[pg.group_name] = world.default = pg
    world.ranks[pg.group_name] = ranks


def new_group(
    ranks=None,
    timeout: datetime.timedelta | None = None,
    backend: str | None = None,
    pg_options=None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id=None,
    sort_ranks: bool = True,
):
    """A group of some ranks of the default one (all by default). All ranks call it in the same order, members only with
    ``use_local_synchronization``. Ranks outside the group get ``GroupMember.NON_GROUP_MEMBER``."""
    world, default = current(), of(None)
    warn_of_options(pg_options)
    members = list(range(default.size())) if ranks is None else list(ranks)
    if len(members) > default.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for member in members:
        if not 0 <= member < default.size():
            raise ValueError(
                f"The new group's rank should be within the world_size set by init_process_group, got {member}"
            )
    if len(set(members)) != len(members):
        raise ValueError(f"a group has each rank once, got {members}")
    members = tuple(sorted(members) if sort_ranks else members)
    name = default.name() if backend is None else chosen(backend)
    number = (
        f"local-{'-'.join(map(str, members))}-{len(world.groups)}"
        if use_local_synchronization
        else str(next(world.counter))
    )
    world.ranks[number] = members
    if default.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    limit = default.timeout if timeout is None else _checked_timeout(timeout)
    if name == Backend.FAKE or default.name() == Backend.FAKE:
        engine = FakeEngine(members.index(default.rank()), len(members))
    elif world.threads is not None:
        engine = world.threads.engine(members, number)
    else:
        engine = world.job.engine(members, limit)
    store = PrefixStore(number, default.get_group_store())
    pg = ProcessGroup(engine, members, number, name, limit, store, group_desc or "")
    world.groups[number] = pg
    return pg


def destroy_process_group(group=None) -> None:
    """End a group, or with the default one all of them. No rank is waited for; a rank that waits for this one gets an error. A
    ``ProcessGroup`` that was destroyed refuses operations."""
    world = current()
    if not is_member(group):
        return
    pg = of(group)
    if pg is not world.default:
        if pg.group_name not in world.groups:
            raise ValueError("Invalid process group specified")
        _end(pg)
        del world.groups[pg.group_name], world.ranks[pg.group_name]
        return
    for each in list(world.groups.values()):
        _end(each)
    job = world.job
    world.forget()
    if job is not None:
        job.leave()


def _end(pg: ProcessGroup) -> None:
    pg.shutdown()
    pg._queue.drain()
    pg._engine.close()


def abort(group=None) -> None:
    """End a group at once: ranks that wait for this one get an error."""
    pg = of(group)
    pg.abort()
    destroy_process_group(group)
