"""Remote procedure calls: jobs of three processes (rpc_job.py), and what a worker refuses."""

import os
import pickle
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from flambeau.distributed.nn import RemoteModule

import flambeau as torch
import flambeau.distributed as dist
import flambeau.distributed.rpc as rpc
from flambeau.distributed import autograd as dist_autograd
from flambeau.distributed.rpc import _channel
from flambeau.distributed.rpc.api import _own_address

JOB = Path(__file__).with_name("rpc_job.py")
LIMIT = 90
SECRET = b"a secret"


def environment(**more):
    left_out = ("RANK", "WORLD_SIZE", "FLAMBEAU_RPC_SECRET")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MASTER_", "TORCHELASTIC")) and k not in left_out}
    return {**env, **more}


def launched(what, ranks=3, **more):
    command = [sys.executable, "-m", "flambeau.distributed.run", "-n", str(ranks), str(JOB), what]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment(**more))


def test_everything():
    """Calls, errors, references and their counts, distributed autograd and its optimizer, remote modules."""
    done = launched("everything")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[rank 0] done"] and not done.stderr


def test_a_graceful_end_waits_for_all_calls():
    """And a second job of the same processes, with a secret that doesn't go by the store."""
    done = launched("goes_on", FLAMBEAU_RPC_SECRET="mine")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("chains ended") == 3 and not done.stderr


def test_a_worker_that_is_gone():
    done = launched("killed", 2)
    assert done.returncode == 0, done.stderr
    assert "left alone" in done.stdout


# ---- what a worker refuses ---------------------------------------------------------------------------------------------


def greeted(opens):
    """What the accepting side says to who opens a connection and does ``opens(address)``."""
    found = []

    def accepting():
        sock, _ = listener.accept()
        try:
            found.append(_channel.accept(sock, SECRET, 1))
        except (OSError, EOFError) as error:
            found.append(error)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accepting)
        thread.start()
        try:
            found.append(opens(listener.getsockname()))
        except OSError as error:
            found.append(error)
        thread.join(30)
    assert not thread.is_alive()
    return sorted(found, key=lambda x: isinstance(x, Exception))


def test_two_that_know_the_secret():
    one, other = greeted(lambda address: _channel.connect(address, SECRET, 0, 1))
    opened, accepted = (one, other) if one.rank == 1 else (other, one)
    assert (opened.rank, accepted.rank) == (1, 0)
    memory = bytearray(1 << 20)
    sender = threading.Thread(target=opened.send, args=(b"head", [memory, b"", b"x"] + [b"y"] * 600))
    sender.start()
    head, buffers = accepted.receive()
    sender.join()
    assert head == b"head" and buffers[0] == memory and buffers[1:3] == [b"", b"x"] and len(buffers) == 603
    opened.close()
    with pytest.raises(EOFError):
        accepted.receive()
    accepted.close()


def test_another_secret_is_refused():
    results = greeted(lambda address: _channel.connect(address, b"another", 0, 1))
    assert [type(r) for r in results] == [_channel.Refused] * 2
    assert any("without the secret" in str(r) for r in results)


def test_another_worker_is_refused():
    """Who listens proves its rank as well."""
    results = greeted(lambda address: _channel.connect(address, SECRET, 0, 2))
    assert [r for r in results if isinstance(r, _channel.Refused) and "isn't worker 2" in str(r)]
    for r in results:
        if isinstance(r, _channel.Channel):
            r.close()


class Touches:
    """A pickle that would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def test_nothing_of_a_stranger_is_unpickled(tmp_path):
    """A whole message right behind the connection, and a proof that was seen before."""
    payload = pickle.dumps(Touches(tmp_path / "touched"))

    def stranger(address):
        with socket.create_connection(address) as sock:
            sock.recv(32)
            sock.sendall(payload * 10)
            sock.shutdown(socket.SHUT_WR)
            return sock.recv(100)

    results = greeted(stranger)
    assert b"" in results or any(isinstance(r, ConnectionError) for r in results)
    assert any(isinstance(r, _channel.Refused) for r in results) and not (tmp_path / "touched").exists()


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """A job of one worker."""
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=2, rpc_timeout=20, init_method=f"file://{tmp_path}/meet"
    )
    rpc.init_rpc("me", rank=0, world_size=1, rpc_backend_options=options)
    yield options
    rpc.shutdown()


def test_a_job_of_one(alone):
    assert rpc.rpc_sync("me", torch.add, (torch.ones(2), 1)).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="RPC is already initialized"):
        rpc.init_rpc("me", rank=0, world_size=1, rpc_backend_options=alone)
    with dist_autograd.context() as context:
        x = torch.ones(2, requires_grad=True)
        dist_autograd.backward(context, [rpc.rpc_sync("me", torch.mul, (x, 3)).sum()])
        assert dist_autograd.get_gradients(context)[x].tolist() == [3.0, 3.0]
    r = rpc.RRef(torch.ones(1, requires_grad=True))
    r.backward()
    assert r.local_value().grad.tolist() == [1.0]
    agent = rpc._agent.current()
    assert agent.listener.getsockname()[0] == "127.0.0.1"


def test_it_listens_where_it_reaches_the_others():
    assert _own_address("tcp://127.0.0.1:1") == _own_address("tcp://localhost:1") == "127.0.0.1"


REFUSED = [
    (lambda: rpc.rpc_sync("w", abs), RuntimeError, "RPC has not been initialized"),
    (rpc.shutdown, RuntimeError, "RPC has not been initialized"),
    (lambda: rpc.RRef(1), RuntimeError, "RPC has not been initialized"),
    (lambda: dist_autograd.context().__enter__(), RuntimeError, "RPC has not been initialized"),
    (lambda: rpc.init_rpc("a b", rank=0, world_size=1), ValueError, "Worker name must match"),
    (lambda: rpc.init_rpc("a" * 128, rank=0, world_size=1), ValueError, "Worker name must match"),
    (lambda: rpc.init_rpc("a", "gloo", 0, 1), TypeError, "must be a member of BackendType"),
    (lambda: rpc.init_rpc("a", rpc_backend_options=3), TypeError, "must be a `TensorPipeRpcBackendOptions`"),
    (lambda: rpc.TensorPipeRpcBackendOptions(device_maps={"a": {0: 1}}), ValueError, "invalid devices"),
    (lambda: rpc.TensorPipeRpcBackendOptions(devices=["cuda:0"]), ValueError, "which is the CPU"),
    (lambda: rpc.TensorPipeRpcBackendOptions(num_worker_threads=0), ValueError, "must be positive"),
]  # fmt: skip


@pytest.mark.parametrize("call, error, text", REFUSED)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


PLACES = [("w/cpu", "w", None, "w/cpu"), ("w", "w", None, "w/cpu"), ("rank:3", None, 3, "rank:3/cpu"), ("rank:0/meta", None, 0, "rank:0/meta"),
          ("cpu", None, None, "cpu"), (torch.device("meta"), None, None, "meta")]  # fmt: skip


@pytest.mark.parametrize("given, name, rank, text", PLACES)
def test_places_of_other_workers(given, name, rank, text):
    """PyTorch's readings."""
    place = dist._remote_device(given)
    assert (place.worker_name(), place.rank(), repr(place)) == (name, rank, text)
    assert place == dist._remote_device(text) and hash(place) == hash(dist._remote_device(text))
    assert place != dist._remote_device("other") and place.device() == torch.device(text.rpartition("/")[2])


@pytest.mark.parametrize("given", ["a/b/c", "/cpu", "rank:x/cpu", "a:1", "rank:1:2/cpu", ""])
def test_what_is_no_place(given):
    with pytest.raises(ValueError, match="Could not parse remote_device"):
        dist._remote_device(given)


def test_places_are_text_or_devices():
    with pytest.raises(TypeError, match="Invalid type for remote_device"):
        dist._remote_device(3)
    with pytest.raises(AssertionError, match="RemoteModule only works in RPC"):
        RemoteModule("w", torch.nn.Linear, (1, 1))


def test_two_of_one_name(tmp_path):
    found = []
    program = (
        "import flambeau.distributed.rpc as rpc, sys\n"
        "options = rpc.TensorPipeRpcBackendOptions(init_method='file://' + sys.argv[1])\n"
        "rpc.init_rpc('w', rank=int(sys.argv[2]), world_size=2, rpc_backend_options=options)\n"
    )
    for rank in "01":
        command = [sys.executable, "-c", program, f"{tmp_path}/meet", rank]
        found.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()))
    for process in found:
        assert (
            "RPC worker name w is not unique. Workers 0 and 1 cannot share the same name."
            in process.communicate(timeout=LIMIT)[1]
        )
