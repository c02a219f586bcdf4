"""A connection of two workers: a handshake that proves a secret both ways, then messages.

Nothing is unpickled before the handshake. A message is a head (a pickle) and buffers, the memory of tensors, which are sent from where they lie and
received where they will lie. Nothing is encrypted."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import socket
import struct
import threading
from collections.abc import Sequence

__all__ = ["Channel", "Refused", "accept", "connect"]

_NONCE = 32
_RANK = struct.Struct("<Q")
_LENGTHS = struct.Struct("<QQ")
_HANDSHAKE_SECONDS = 20.0
# The system takes 1024 at a time.
_BUFFERS_AT_ONCE = 512


class Refused(ConnectionError):
    """The other side doesn't know the secret."""


def _proof(secret: bytes, *parts: bytes) -> bytes:
    return hmac.new(secret, b"flambeau-rpc\0" + b"\0".join(parts), hashlib.sha256).digest()


class Channel:
    """Messages over a socket; several threads may send."""

    def __init__(self, sock: socket.socket, rank: int):
        # Of the other worker.
        self.rank = rank
        self._socket, self._lock = sock, threading.Lock()
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, head: bytes, buffers: Sequence) -> None:
        """Send a message. OSError when the connection is gone."""
        views = [memoryview(b).cast("B") for b in buffers]
        lengths = _LENGTHS.pack(len(head), len(views)) + struct.pack(f"<{len(views)}Q", *map(len, views))
        pieces = [memoryview(lengths + head), *(v for v in views if len(v))]
        with self._lock:
            while pieces:
                sent = self._socket.sendmsg(pieces[:_BUFFERS_AT_ONCE])
                while pieces and sent >= len(pieces[0]):
                    sent -= len(pieces.pop(0))
                if sent:
                    pieces[0] = pieces[0][sent:]

    def receive(self) -> tuple[bytearray, list[bytearray]]:
        """The next message. EOFError when the other side has closed."""
        size, count = _LENGTHS.unpack(_exactly(self._socket, _LENGTHS.size))
        lengths = struct.unpack(f"<{count}Q", _exactly(self._socket, 8 * count))
        head = _exactly(self._socket, size)
        return head, [_exactly(self._socket, n) for n in lengths]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _exactly(sock: socket.socket, size: int) -> bytearray:
    out = bytearray(size)
    view, at = memoryview(out), 0
    while at < size:
        n = sock.recv_into(view[at:])
        if n == 0:
            raise EOFError("the connection was closed")
        at += n
    return out


def connect(address: tuple[str, int], secret: bytes, own: int, other: int) -> Channel:
    """The channel from worker ``own`` to worker ``other``, which listens there. Refused when it doesn't prove that it knows the secret."""
    sock = socket.create_connection(address, timeout=_HANDSHAKE_SECONDS)
    try:
        asked = bytes(_exactly(sock, _NONCE))
        asking, rank = secrets.token_bytes(_NONCE), _RANK.pack(own)
        sock.sendall(asking + rank + _proof(secret, b"opens", asked, asking, rank))
        answer = bytes(_exactly(sock, hashlib.sha256().digest_size))
        if not hmac.compare_digest(answer, _proof(secret, b"accepts", asking, asked, _RANK.pack(other))):
            raise Refused(f"who listens on {address[0]}:{address[1]} isn't worker {other} of this job")
        return Channel(sock, other)
    except BaseException as error:
        sock.close()
        if isinstance(error, EOFError):
            raise Refused(f"{address[0]}:{address[1]} refused this worker") from error
        raise


def accept(sock: socket.socket, secret: bytes, own: int) -> Channel:
    """The channel of a connection that was opened. Refused when the other side doesn't know the secret; the socket is closed then."""
    try:
        sock.settimeout(_HANDSHAKE_SECONDS)
        asking = secrets.token_bytes(_NONCE)
        sock.sendall(asking)
        hello = bytes(_exactly(sock, _NONCE + _RANK.size + hashlib.sha256().digest_size))
        asked, rank, proof = hello[:_NONCE], hello[_NONCE : _NONCE + _RANK.size], hello[_NONCE + _RANK.size :]
        if not hmac.compare_digest(proof, _proof(secret, b"opens", asking, asked, rank)):
            raise Refused("a connection without the secret of the job")
        sock.sendall(_proof(secret, b"accepts", asked, asking, _RANK.pack(own)))
        return Channel(sock, _RANK.unpack(rank)[0])
    except BaseException:
        sock.close()
        raise
