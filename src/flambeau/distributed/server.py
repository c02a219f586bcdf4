"""The server of a job: its store, the start of MPI by PMI-1, and the watch over its ranks, on one port.

It is Python's standard library alone, because it also runs as a program of its own (``python -I -S server.py``): MPI_Init holds the GIL of the
process that calls it, so the process that starts MPI can't serve at the same time. The first byte of a connection tells what it speaks:

- ``\\x01``: requests of ``store.py``: an op, then fields, each a length of four bytes and that many bytes. The reply is a status and fields.
- ``c``: PMI-1, lines of text (``cmd=init ...``), the protocol of MPICH's simple PMI client.
- ``\\x02``: a rank of four bytes: from then on the connection is its watch (csrc/distributed/watch.c).
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import selectors
import socket
import struct
import sys
import threading
import time

__all__ = ["Server"]

BEAT_TIMEOUT = 4.0
OK, TIMEOUT, MISSING, ERROR = range(4)
OPS = ("set", "get", "add", "compare_set", "wait", "check", "delete", "count", "append", "join", "push", "pop", "keys")


def frame(status: int, fields=()) -> bytes:
    """A request (op and fields) or a reply (status and fields)."""
    body = b"".join(struct.pack(">I", len(f)) + f for f in fields)
    return struct.pack(">IB", len(body) + 1, status) + body


def parse(body: bytes) -> tuple[int, list[bytes]]:
    fields, at = [], 1
    while at < len(body):
        (n,) = struct.unpack_from(">I", body, at)
        fields.append(body[at + 4 : at + 4 + n])
        at += 4 + n
    return body[0], fields


class Connection:
    """One client: the requests that it has sent and the reply that it waits for."""

    def __init__(self, sock):
        self.sock, self.received, self.unsent = sock, bytearray(), bytearray()
        self.kind = b""
        self.waits = None  # (op, fields, deadline)
        self.rank, self.beat, self.left = None, 0.0, False


class Server:
    """Listens from the start; :meth:`serve` runs until :meth:`finished`. ``on_event(text)`` is told which process died. With ``linger`` new clients
    are taken when the owner is gone, too, as long as one is connected."""

    def __init__(self, host: str = "", port: int = 0, owner: int | None = None, on_event=None, linger: bool = False):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, port))
        self.listener.listen(512)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.on_event = on_event
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.owner, self.linger, self.orphaned = owner, linger, False
        if owner is not None:
            self.selector.register(owner, selectors.EVENT_READ)
        self.data: dict[bytes, bytes] = {}
        self.queues: dict[bytes, list[bytes]] = {}
        self.connections: dict[object, Connection] = {}
        self.waiting: list[Connection] = []
        self.stopping = False
        self.stopped = threading.Event()
        self.born = time.time() - 0.1
        # PMI
        self.name = f"flambeau_{os.getpid()}_{os.urandom(4).hex()}"
        self.hosts: dict[int, str] = {}
        self.size = 0
        self.pmi: dict[str, str] = {}
        self.in_barrier: list[Connection] = []

    # ---- the loop ------------------------------------------------------------------------------------------

    def finished(self) -> bool:
        return self.stopping or (self.orphaned and not self.connections)

    def serve(self) -> None:
        last = time.monotonic()
        while not self.finished():
            events = self.selector.select(self._pause())
            now = time.monotonic()
            if now - last > 2.0:  # the whole job was stopped, or the machine slept: nobody could send
                for c in self.connections.values():
                    c.beat = now
            last = now
            for key, mask in events:
                if key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj == self.owner:
                    self._owner_gone()
                else:
                    c = self.connections[key.fileobj]
                    if mask & selectors.EVENT_WRITE:
                        self._flush(c)
                    if mask & selectors.EVENT_READ:
                        self._receive(c)
            self._overdue(now)
        self.close()
        self.stopped.set()

    def stop(self) -> None:
        """End :meth:`serve`, which another thread runs, within half a second; returns when it has."""
        self.stopping = True
        self.stopped.wait(2.0)

    def _pause(self) -> float:
        ends = [c.waits[2] for c in self.waiting]
        return max(0.0, min([0.5, *(e - time.monotonic() for e in ends)]))

    def close(self) -> None:
        for sock in [*self.connections, self.listener]:
            if sock is not None:
                sock.close()
        self.connections.clear()
        self.selector.close()
        self._sweep()

    def _sweep(self) -> None:
        """Remove what MPICH left in /dev/shm when a rank was killed while MPI started: files of this user made since then that no process maps.
        (Once all ranks have such a file mapped they remove its name, see mpi.py.)"""
        found = [p for p in glob.glob("/dev/shm/mpich_shm_*") if self._mine(p)]
        if not found:
            return
        time.sleep(0.1)  # a process that has made one maps it next
        used = set()
        for maps in glob.glob("/proc/[0-9]*/maps"):
            with contextlib.suppress(OSError), open(maps) as file:
                used.update(p for line in file for p in found if p in line)
        for path in set(found) - used:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _mine(self, path: str) -> bool:
        try:
            status = os.stat(path)
        except OSError:
            return False
        return status.st_uid == os.getuid() and status.st_ctime >= self.born

    def _owner_gone(self) -> None:
        """The process that started this one closed the store or ended; connected processes are still served."""
        if os.read(self.owner, 1):
            return
        self.selector.unregister(self.owner)
        self.owner, self.orphaned = None, True
        if self.linger:
            return
        self.selector.unregister(self.listener)
        self.listener.close()
        self.listener = None

    def _accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections[sock] = Connection(sock)
        self.selector.register(sock, selectors.EVENT_READ)

    def _send(self, c: Connection, data: bytes) -> None:
        c.unsent += data
        self._flush(c)

    def _flush(self, c: Connection) -> None:
        try:
            while c.unsent:
                del c.unsent[: c.sock.send(c.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            return  # reading will tell
        if c.sock in self.connections:
            write = selectors.EVENT_WRITE if c.unsent else 0
            self.selector.modify(c.sock, selectors.EVENT_READ | write)

    def _receive(self, c: Connection) -> None:
        try:
            data = c.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(c)
            return
        c.received += data
        if not c.kind:
            c.kind = bytes(c.received[:1])
            if c.kind in (b"\x01", b"\x02"):
                del c.received[:1]
        if c.kind == b"\x01":
            self._store(c)
        elif c.kind == b"\x02":
            self._watched(c)
        elif c.kind == b"c":
            self._pmi(c)
        else:
            self._drop(c)

    def _drop(self, c: Connection) -> None:
        self.selector.unregister(c.sock)
        del self.connections[c.sock]
        c.sock.close()
        if c in self.waiting:
            self.waiting.remove(c)
        if c in self.in_barrier:
            self.in_barrier.remove(c)
        if c.rank is not None and not c.left:
            self._died(c, "ended without leaving the process group (killed, crashed, os._exit or an exception)")

    # ---- the watch -----------------------------------------------------------------------------------------

    def _watched(self, c: Connection) -> None:
        c.beat = time.monotonic()
        if c.rank is None:
            if len(c.received) < 4:
                return
            (c.rank,) = struct.unpack(">I", c.received[:4])
            del c.received[:4]
        if b"b" in c.received:
            c.left = True
            self._tell(c, b"L" + struct.pack(">I", c.rank))
        c.received.clear()

    def _tell(self, about: Connection, message: bytes) -> None:
        for c in list(self.connections.values()):
            if c is not about and c.rank is not None and not c.left:
                self._send(c, message)

    def _died(self, c: Connection, how: str) -> None:
        text = f"rank {c.rank} {how}"
        if self.on_event is not None:
            self.on_event(text)
        c.left = True
        body = text.encode()
        self._tell(c, b"D" + struct.pack(">II", c.rank, len(body)) + body)

    def _overdue(self, now: float) -> None:
        for c in list(self.connections.values()):
            if c.rank is not None and not c.left and now - c.beat > BEAT_TIMEOUT:
                self._died(c, f"has not answered for {BEAT_TIMEOUT:g} s (stopped, or its machine is gone)")
        for c in list(self.waiting):
            if now >= c.waits[2]:
                self.waiting.remove(c)
                c.waits = None
                self._send(c, frame(TIMEOUT))
                self._store(c)

    # ---- the store -----------------------------------------------------------------------------------------

    def _store(self, c: Connection) -> None:
        while c.waits is None and len(c.received) >= 4:
            (n,) = struct.unpack_from(">I", c.received)
            if len(c.received) < 4 + n:
                return
            op, fields = parse(bytes(c.received[4 : 4 + n]))
            del c.received[: 4 + n]
            name = OPS[op] if op < len(OPS) else ""
            if name in ("get", "wait", "pop"):
                c.waits = (name, fields[1:], time.monotonic() + struct.unpack(">d", fields[0])[0])
                if not self._try(c):
                    self.waiting.append(c)
                continue
            try:
                reply = frame(OK, getattr(self, f"_op_{name}")(*fields))
            except Exception as error:  # a bad request must not end the server
                reply = frame(ERROR, [f"{type(error).__name__}: {error}".encode()])
            self._send(c, reply)

    def _try(self, c: Connection) -> bool:
        """Answer a request that waits for keys, if they are there."""
        name, keys, _ = c.waits
        if name == "pop":
            if not self.queues.get(keys[0]):
                return False
            reply = [self.queues[keys[0]].pop(0)]
        elif any(k not in self.data for k in keys):
            return False
        else:
            reply = [self.data[k] for k in keys] if name == "get" else []
        c.waits = None
        self._send(c, frame(OK, reply))
        return True

    def _changed(self) -> None:
        for c in list(self.waiting):
            if c.waits is not None and self._try(c):
                self.waiting.remove(c)
                self._store(c)

    def _op_set(self, *pairs):
        self.data.update(zip(pairs[::2], pairs[1::2]))
        self._changed()
        return []

    def _op_add(self, key, amount):
        value = int(self.data.get(key, b"0")) + int(amount)
        self.data[key] = str(value).encode()
        self._changed()
        return [self.data[key]]

    def _op_compare_set(self, key, expected, desired):
        now = self.data.get(key)
        if now is None and expected:
            return [expected]  # as in PyTorch: no key, and the caller expected one
        if now is None or now == expected:
            now = self.data[key] = desired
            self._changed()
        return [now]

    def _op_check(self, *keys):
        return [b"1" if all(k in self.data for k in keys) else b""]

    def _op_delete(self, key):
        return [b"1" if self.data.pop(key, None) is not None else b""]

    def _op_count(self):
        return [str(len(self.data)).encode()]

    def _op_keys(self):
        return list(self.data)

    def _op_append(self, key, value):
        self.data[key] = self.data.get(key, b"") + value
        self._changed()
        return []

    def _op_push(self, key, value):
        self.queues.setdefault(key, []).append(value)
        self._changed()
        return []

    def _op_join(self, description):
        """A rank says where it runs; PMI needs the number of ranks, and which of them share a machine."""
        who = json.loads(description)
        if self.size and self.size != who["size"]:
            raise ValueError(f"rank {who['rank']} expects {who['size']} ranks, others {self.size}")
        self.size = who["size"]
        self.hosts[who["rank"]] = who["host"]
        return [self.name.encode()]

    # ---- PMI-1 ---------------------------------------------------------------------------------------------

    def _mapping(self) -> str:
        """Which ranks share a machine, as runs of ranks: (vector,(machine,1,ranks),...)."""
        machines, runs = {}, []
        for rank in range(self.size):
            machine = machines.setdefault(self.hosts.get(rank, ""), len(machines))
            if runs and runs[-1][0] == machine:
                runs[-1][1] += 1
            else:
                runs.append([machine, 1])
        return "(vector," + ",".join(f"({m},1,{n})" for m, n in runs) + ")"

    def _pmi(self, c: Connection) -> None:
        while b"\n" in c.received:
            line, _, rest = bytes(c.received).partition(b"\n")
            c.received[:] = rest
            words = dict(word.split("=", 1) for word in line.decode().split(" ") if "=" in word)
            for reply in self._pmi_reply(c, words.get("cmd", ""), words):
                self._send(c, reply.encode() + b"\n")

    def _pmi_reply(self, c: Connection, cmd: str, words: dict) -> list[str]:
        if cmd == "initack":
            rank = words.get("pmiid", "0")
            return ["cmd=initack", f"cmd=set size={self.size}", f"cmd=set rank={rank}", "cmd=set debug=0"]
        if cmd == "init":
            return ["cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"]
        if cmd == "get_maxes":
            return ["cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=4096"]
        if cmd == "get_appnum":
            return ["cmd=appnum appnum=0"]
        if cmd == "get_universe_size":
            return [f"cmd=universe_size size={self.size}"]
        if cmd == "get_my_kvsname":
            return [f"cmd=my_kvsname kvsname={self.name}"]
        if cmd == "put":
            self.pmi[words["key"]] = words.get("value", "")
            return ["cmd=put_result rc=0 msg=success"]
        if cmd == "get":
            key = words["key"]
            value = self._mapping() if key == "PMI_process_mapping" else self.pmi.get(key)
            if value is None:
                return ["cmd=get_result rc=-1 msg=key_not_found value=unknown"]
            return [f"cmd=get_result rc=0 msg=success value={value}"]
        if cmd == "barrier_in":
            self.in_barrier.append(c)
            if len(self.in_barrier) == self.size:
                for other in self.in_barrier:
                    self._send(other, b"cmd=barrier_out\n")
                self.in_barrier.clear()
            return []
        if cmd == "finalize":
            return ["cmd=finalize_ack"]
        if cmd == "abort":
            return []
        return [f"cmd={cmd}_result rc=-1 msg=unknown_command"]


def main() -> None:
    """``server.py HOST PORT [linger]``: prints the port, serves until standard input is closed and nobody is connected."""
    try:
        server = Server(sys.argv[1], int(sys.argv[2]), owner=0, linger="linger" in sys.argv[3:])
    except OSError as error:
        print(f"error {error.errno} {error.strerror}", flush=True)
        return
    print(server.port, flush=True)
    os.close(1)
    try:
        server.serve()
    except KeyboardInterrupt:
        pass  # the ranks end by the same signal


if __name__ == "__main__":
    main()
