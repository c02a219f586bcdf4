"""The store of a server (server.py), which the launcher or the process of rank 0 keeps."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from .errors import DistNetworkError, DistStoreError
from .server import ERROR, OPS, TIMEOUT, frame, parse
from .store import DEFAULT_TIMEOUT, Store, seconds

__all__ = ["ServerProcess", "TCPStore", "connect"]

_OP = {name: k for k, name in enumerate(OPS)}


class ServerProcess:
    """A server in a process of its own; it ends when :meth:`close` was called, or this process has ended, and nobody is connected to it. With
    ``linger`` it takes new clients until then."""

    def __init__(self, host: str, port: int, linger: bool = False):
        program = str(Path(__file__).with_name("server.py"))
        # A session of its own: Ctrl-C is for the ranks, whose end the server has to see.
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", program, host, str(port), *(["linger"] if linger else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        said = self.process.stdout.readline().decode().split(" ", 2)
        self.process.stdout.close()
        self.owner = os.getpid()
        if not said[0].strip().isdigit():
            self.close()
            self.process.wait()
            why = said[2].strip() if len(said) == 3 else "it ended at once"
            raise DistNetworkError(
                f"The server socket has failed to listen on port {port} of {host or 'any address'}: {why}"
            )
        self.port = int(said[0])

    def close(self) -> None:
        if self.process.stdin is not None and not self.process.stdin.closed:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def __del__(self):
        if getattr(self, "owner", None) == os.getpid():
            self.close()
            # It ends when the last client is gone; nobody waits for it.
            self.process.returncode = self.process.poll() or 0


def connect(host: str, port: int, limit: float) -> socket.socket:
    """A connection, tried until it is there. DistNetworkError after ``limit`` seconds."""
    end, pause = time.monotonic() + limit, 0.01
    while True:
        try:
            sock = socket.create_connection((host, port), timeout=max(0.1, end - time.monotonic()))
            sock.settimeout(None)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            if time.monotonic() + pause > end:
                raise DistNetworkError(
                    f"The client socket has timed out after {limit:g}s while trying to connect to ({host}, {port}): {error}"
                ) from None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.5)


class TCPStore(Store):
    """``TCPStore(host, port, world_size, is_master)``: the master starts the server (port 0 takes a free one), all connect to it. With
    ``wait_for_workers`` and a world size, made when that many have connected. DistNetworkError where that takes longer than ``timeout``."""

    def __init__(
        self,
        host_name: str,
        port: int = 0,
        world_size: int | None = None,
        is_master: bool = False,
        timeout=DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ):
        super().__init__()
        if master_listen_fd is not None:
            raise NotImplementedError(
                "TCPStore: master_listen_fd isn't built: the server listens in a process of its own"
            )
        self._timeout, self.host = timeout, host_name
        self._server = ServerProcess("", port) if is_master else None
        self.port = self._server.port if self._server is not None else port
        self._lock = threading.Lock()
        self._sock: socket.socket = connect(host_name, self.port, seconds(timeout))
        self._sock.sendall(b"\x01")
        if world_size and world_size > 0 and wait_for_workers:
            self._wait_for_workers(world_size)
        elif world_size and world_size > 0:
            self.add("init/", 1)

    def _wait_for_workers(self, n: int) -> None:
        end = time.monotonic() + seconds(self._timeout)
        if self.add("init/", 1) >= n:
            self.set("init/all", b"1")
        if not self._wait(["init/all"], end - time.monotonic()):
            raise DistStoreError(
                f"Timed out after {seconds(self._timeout):g} seconds waiting for clients. {self.add('init/', 0)}/{n} clients joined."
            )

    def _ask(self, name: str, fields, limit: float = 0.0) -> list[bytes] | None:
        """The reply's fields; None when the server gave up waiting."""
        message = frame(_OP[name], fields)
        with self._lock:
            try:
                self._sock.sendall(message)
                head = self._receive(4)
                body = self._receive(struct.unpack(">I", head)[0])
            except OSError as error:
                raise DistNetworkError(
                    f"the connection to the store at ({self.host}, {self.port}) is lost: {error}"
                ) from None
        status, out = parse(body)
        if status == ERROR:
            raise DistStoreError(out[0].decode())
        return None if status == TIMEOUT else out

    def _receive(self, n: int) -> bytes:
        data = bytearray()
        while len(data) < n:
            part = self._sock.recv(n - len(data))
            if not part:
                raise ConnectionError("closed by the server")
            data += part
        return bytes(data)

    def multi_get(self, keys):
        limit = seconds(self._timeout)
        found = self._ask("get", [struct.pack(">d", limit), *(k.encode() for k in keys)])
        if found is None:
            raise DistStoreError(f"wait timeout after {round(limit * 1000)}ms, keys: /{', /'.join(keys)}")
        return found

    def clone(self):
        return TCPStore(self.host, self.port, timeout=self._timeout)

    def _wait(self, keys, limit):
        return self._ask("wait", [struct.pack(">d", limit), *(k.encode() for k in keys)]) is not None

    def _set(self, values):
        self._ask("set", [x for k, v in values.items() for x in (k.encode(), v)])

    def _add(self, key, amount):
        return int(self._ask("add", [key.encode(), str(amount).encode()])[0])

    def _compare_set(self, key, expected, desired):
        return self._ask("compare_set", [key.encode(), expected, desired])[0]

    def _check(self, keys):
        return bool(self._ask("check", [k.encode() for k in keys])[0])

    def _delete(self, key):
        return bool(self._ask("delete", [key.encode()])[0])

    def _append(self, key, value):
        self._ask("append", [key.encode(), value])

    def num_keys(self) -> int:
        return int(self._ask("count", [])[0])

    def list_keys(self) -> list[str]:
        return [k.decode() for k in self._ask("keys", [])]

    def own_address(self) -> str:
        """The address by which this machine reaches the server."""
        return self._sock.getsockname()[0]

    def join(self, description: bytes) -> str:
        """Tell the server where this rank runs; the name of its MPI job."""
        return self._ask("join", [description])[0].decode()

    def __del__(self):
        if hasattr(self, "_sock"):
            self._sock.close()

    @property
    def libuvBackend(self) -> bool:  # noqa: N802
        return False

    def __repr__(self) -> str:
        return f"TCPStore(host={self.host!r}, port={self.port})"
