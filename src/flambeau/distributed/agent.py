"""Starts the ranks of a job on this machine and watches over them: their output with the rank in front, the end of all when one fails, the first
failure's traceback last."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field

from .launch_options import usable_processors
from .server import Server
from .tcp_store import TCPStore

__all__ = ["Options", "launch"]

GRACE = 3.0  # seconds between SIGTERM and SIGKILL
_KEPT = 200  # lines of a rank's stderr that are kept for its traceback
# What a rank writes that ended because of another.
_SECONDARY = (b"] ended: ", b"has left the job", b"gave up (a time-out")
_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Options:
    """What is started. ``command`` is the whole of a rank's command line."""

    command: list[str]
    ranks: int = 1
    nodes: int = 1
    node_rank: int = 0
    host: str = "127.0.0.1"
    port: int = 0
    restarts: int = 0
    prefix: bool = True
    log_dir: str | None = None
    run_id: str = "none"
    role: str = "default"
    environment: dict = field(default_factory=dict)


@dataclass
class _Rank:
    """One process that was started."""

    number: int
    local: int
    process: subprocess.Popen
    errors: collections.deque = field(default_factory=lambda: collections.deque(maxlen=_KEPT))
    code: int | None = None
    stopped: bool = False  # by the launcher, or because of another rank

    def failed(self) -> bool:
        return self.code not in (None, 0)


def _die_with_parent() -> None:
    _libc.prctl(_PDEATHSIG, signal.SIGKILL)


class _Output:
    """Passes on what ranks write, whole lines with the rank in front."""

    def __init__(self, prefix: bool):
        self.prefix, self.lock = prefix, threading.Lock()

    def follow(self, rank: _Rank, stream, to, log) -> None:
        kept = rank.errors if to is sys.stderr else None
        for line in iter(stream.readline, b""):
            if kept is not None:
                kept.append(line)
                if any(mark in line for mark in _SECONDARY):
                    rank.stopped = True
            if log is not None:
                log.write(line)
                log.flush()
            head = b"" if not self.prefix or line.startswith(b"[rank ") else f"[rank {rank.number}] ".encode()
            with self.lock, contextlib.suppress(OSError, ValueError):
                to.buffer.write(head + line)
                to.flush()
        stream.close()
        if log is not None:
            log.close()


class _Signals:
    """SIGINT and SIGTERM end the job."""

    def __init__(self):
        self.got: int | None = None
        self.before: dict = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self.before[number] = signal.signal(number, self._take)
        return self

    def _take(self, number, frame) -> None:
        self.got = number

    def __exit__(self, *exc) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


def _environment(options: Options, local: int, port: int, attempt: int) -> dict:
    rank = options.node_rank * options.ranks + local
    size = options.nodes * options.ranks
    env = {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(options.ranks),
        "GROUP_RANK": str(options.node_rank),
        "GROUP_WORLD_SIZE": str(options.nodes),
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(size),
        "ROLE_NAME": options.role,
        "MASTER_ADDR": options.host,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": options.run_id,
        "TORCHELASTIC_RESTART_COUNT": str(attempt),
        "TORCHELASTIC_MAX_RESTARTS": str(options.restarts),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "PYTHONUNBUFFERED": "1",
        **options.environment,
    }
    if "OMP_NUM_THREADS" not in os.environ and options.ranks > 1:
        env["OMP_NUM_THREADS"] = str(max(1, usable_processors() // options.ranks))
    return env


class _Attempt:
    """The job, run once."""

    def __init__(self, options: Options, port: int, number: int):
        self.options, self.port, self.number = options, port, number
        self.output = _Output(options.prefix and options.nodes * options.ranks > 1)
        self.ranks: list[_Rank] = []
        self.threads: list[threading.Thread] = []

    def _log(self, rank: int, name: str):
        if self.options.log_dir is None:
            return None
        folder = os.path.join(self.options.log_dir, f"attempt_{self.number}", str(rank))
        os.makedirs(folder, exist_ok=True)
        return open(os.path.join(folder, f"{name}.log"), "wb")

    def start(self) -> None:
        for local in range(self.options.ranks):
            env = _environment(self.options, local, self.port, self.number)
            command = [part.replace("${local_rank}", str(local)) for part in self.options.command]
            process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
                preexec_fn=_die_with_parent,
            )
            rank = _Rank(int(env["RANK"]), local, process)
            self.ranks.append(rank)
            for stream, to, name in ((process.stdout, sys.stdout, "stdout"), (process.stderr, sys.stderr, "stderr")):
                arguments = (rank, stream, to, self._log(rank.number, name))
                thread = threading.Thread(target=self.output.follow, args=arguments, daemon=True)
                thread.start()
                self.threads.append(thread)

    def wait(self, signals: _Signals) -> _Rank | None:
        """Until all ranks have ended well, or the job was ended: the rank that failed first."""
        first = None
        while first is None and any(r.code is None for r in self.ranks):
            time.sleep(0.02)
            for r in self.ranks:
                if r.code is None:
                    r.code = r.process.poll()
            if signals.got is not None:
                self.end(signals.got)
                return None
            if any(r.failed() for r in self.ranks):
                first = self._first_failure()
        self.end(signal.SIGTERM)
        return first

    def _first_failure(self) -> _Rank:
        """The one that others ended because of: they may end before it."""
        end = time.monotonic() + 1.0
        while True:
            for r in self.ranks:
                if r.code is None:
                    r.code = r.process.poll()
            failed = [r for r in self.ranks if r.failed()]
            cause = next((r for r in failed if not r.stopped), None)
            if time.monotonic() > end or (cause is not None and all(r.code is not None for r in self.ranks)):
                return cause or failed[0]
            time.sleep(0.02)

    def end(self, number: int) -> None:
        """End what still runs, and pass on the rest of its output."""
        self._signal(number)
        end = time.monotonic() + GRACE
        while time.monotonic() < end and any(r.process.poll() is None for r in self.ranks):
            time.sleep(0.02)
        self._signal(signal.SIGKILL)
        for r in self.ranks:
            if r.code is None:
                r.code, r.stopped = r.process.wait(), True
        for thread in self.threads:
            thread.join(1.0)

    def _signal(self, number: int) -> None:
        for r in self.ranks:
            if r.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    # A rank that was stopped would take SIGTERM only when it goes on.
                    os.killpg(r.process.pid, signal.SIGKILL if _is_stopped(r.process.pid) else number)


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return False


def _traceback(rank: _Rank) -> bytes:
    """The last traceback that a rank wrote."""
    lines = list(rank.errors)
    starts = [k for k, line in enumerate(lines) if line.startswith(b"Traceback (most recent call last)")]
    return b"".join(lines[starts[-1] :]) if starts else b""


def _report(first: _Rank, size: int) -> int:
    """Print the rank that failed, its traceback last. Returns the exit status."""
    code = first.code
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
    text = f"flambeau launch: rank {first.number} of {size} (process {first.process.pid}) {how}; the other ranks were ended\n".encode()
    sys.stdout.flush()
    sys.stderr.buffer.write(text + _traceback(first))
    sys.stderr.flush()
    return 128 - code if code < 0 else code


def _serve(options: Options) -> Server:
    server = Server("", options.port)
    threading.Thread(target=server.serve, daemon=True, name="flambeau-server").start()
    return server


def launch(options: Options) -> int:
    """Run the job; the exit status: that of the rank that failed first, 128 + the number of the signal that ended it, 0."""
    if options.run_id == "none":
        options.run_id = uuid.uuid4().hex[:8]
    server = None
    with _Signals() as signals:
        for attempt in range(options.restarts + 1):
            if options.node_rank == 0:
                server = _serve(options)
            port = server.port if server is not None else options.port
            run = _Attempt(options, port, attempt)
            try:
                run.start()
                first = run.wait(signals)
            except OSError as error:
                run.end(signal.SIGKILL)
                print(f"flambeau launch: error: {error}", file=sys.stderr)
                return 127
            finally:
                if server is not None:
                    server.stop()
            if signals.got is not None:
                print(f"flambeau launch: ended by {signal.Signals(signals.got).name}", file=sys.stderr)
                return 128 + signals.got
            if first is None:
                return 0
            status = _report(first, options.nodes * options.ranks)
            if attempt < options.restarts:
                print(
                    f"flambeau launch: starting all ranks again ({attempt + 1} of {options.restarts})", file=sys.stderr
                )
    return status


def node_rank(host: str, port: int, nodes: int, run_id: str) -> int:
    """The number of this machine among ``nodes`` that meet at one address, whose machine keeps the server.

    The machine that can listen there is number 0."""
    local = {"localhost", "127.0.0.1", socket.gethostname(), socket.getfqdn()}
    with contextlib.suppress(OSError):
        local.add(socket.gethostbyname(socket.gethostname()))
    if host in local:
        with contextlib.suppress(OSError):
            probe = socket.socket()
            with probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("", port))
            return 0
    store = TCPStore(host, port)
    number = store.add(f"nodes/{run_id}", 1)
    if number >= nodes:
        raise ValueError(f"{nodes} machines have met at {host}:{port} already")
    return number
