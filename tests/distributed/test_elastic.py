"""Jobs whose ranks and machines fail, leave and join. A machine is a launcher process of this host. Tests wait for what launchers and ranks say, never
for a time; limits are far above what is needed."""

import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.distributed.programs import elastic_training

import flambeau as torch
from flambeau.distributed.elastic.rendezvous._state import State
from flambeau.distributed.elastic.rendezvous.utils import parse_rendezvous_config, parse_rendezvous_endpoint

JOB = Path(__file__).with_name("elastic_job.py")
TRAINING = Path(__file__).with_name("programs") / "elastic_training.py"
LIMIT = 50


class Machine:
    """One launcher."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, start_new_session=True
        )
        self.said, self.lines = [], queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        with self.process.stdout:
            for line in self.process.stdout:
                self.lines.put(line)
        self.lines.put(None)

    def hear(self, text):
        """Wait for the next line that matches; the match."""
        end = time.monotonic() + LIMIT
        while True:
            line = self.lines.get(timeout=max(0.1, end - time.monotonic()))
            assert line is not None, f"ended without {text!r}:\n{''.join(self.said)}"
            self.said.append(line)
            found = re.search(text, line)
            if found:
                return found

    def kill(self):
        self.process.kill()
        self.process.wait()

    def leave(self):
        self.process.send_signal(signal.SIGTERM)

    def end(self):
        """(exit status, all that it said)."""
        status = self.process.wait(LIMIT)
        while (line := self.lines.get(timeout=LIMIT)) is not None:
            self.said.append(line)
        return status, "".join(self.said)


class Cluster:
    """Launchers that meet at one port."""

    def __init__(self, folder):
        self.folder, self.machines = folder, []
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]

    def start(self, nodes, restarts=0, run_id="job", conf="", ranks=1, program=(JOB,), options=(), backend="c10d"):
        # No machine is taken for dead by mistake, and no test waits for a silence that it doesn't cause.
        conf = {
            "join_timeout": "40",
            "last_call_timeout": "40",
            "keep_alive_interval": "1",
            "keep_alive_max_attempt": "40",
        } | (parse_rendezvous_config(conf))
        command = [sys.executable, "-m", "flambeau.distributed.run", "--nnodes", nodes, "-n", str(ranks)]
        command += ["--max-restarts", str(restarts), "--rdzv-backend", backend, "--rdzv-id", run_id]
        command += [
            "--rdzv-endpoint",
            f"localhost:{self.port}",
            "--rdzv-conf",
            ",".join(f"{k}={v}" for k, v in conf.items()),
        ]
        command += [*options, str(program[0]), str(self.folder), *map(str, program[1:])]
        own = ("PMI", "MASTER_", "TORCHELASTIC", "RANK", "WORLD_SIZE")
        env = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        machine = Machine(command, env)
        self.machines.append(machine)
        return machine

    def has_store(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def tell(self, name):
        (self.folder / name).touch()


def wait_for(condition):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    for machine in made.machines:
        if machine.process.poll() is None:
            machine.kill()
        machine.reader.join(LIMIT)


def ready(world, restarts=0):
    return rf"ready rank=(\d+) world={world} machine=(\d+)/\d+ restarts={restarts} .* pid=(\d+)"


def test_a_rank_that_fails_starts_all_again(cluster):
    a, b = (cluster.start("2:2", restarts=1, ranks=2) for _ in range(2))
    for machine in a, b:
        for _ in range(2):
            machine.hear(ready(4))
    cluster.tell("fail.3")
    for machine in a, b:
        machine.hear(r"rank 3 of 4 \(process \d+ on .*\) exited with status 3; the other ranks were ended")
        machine.hear(r"starting all ranks again \(1 of 1\)")
        for _ in range(2):
            machine.hear(ready(4, restarts=1))
    cluster.tell("go")
    assert [m.end()[0] for m in (a, b)] == [0, 0]


def test_what_ranks_are_told(cluster):
    a = cluster.start("1:2", ranks=1, conf="last_call_timeout=1", options=["--role", "trainer"], run_id="mine")
    told = a.hear("ready (.*)")[1]
    assert told.startswith("rank=0 world=1 machine=0/1 restarts=0 of=0 run=mine role=trainer/0/1 local=0/1 pid=")
    # Of another number of ranks and another role.
    b = cluster.start("1:2", ranks=2, options=["--role", "reader"], run_id="mine")
    told = sorted([b.hear("ready (.*) of=.*(role=.*) pid").groups() for _ in range(2)])
    assert told == [
        ("rank=1 world=3 machine=1/2 restarts=0", "role=reader/0/2 local=0/2"),
        ("rank=2 world=3 machine=1/2 restarts=0", "role=reader/1/2 local=1/2"),
    ]
    a.hear(ready(3))
    cluster.tell("go")
    assert [m.end()[0] for m in (a, b)] == [0, 0]


def test_restarts_end(cluster):
    a, b = (cluster.start("2:2", restarts=1) for _ in range(2))
    for restarts in range(2):
        for machine in a, b:
            machine.hear(ready(2, restarts))
        cluster.tell("fail.0")
    for machine in a, b:
        status, said = machine.end()
        assert status == 3 and said.endswith("exited with status 3; the other ranks were ended\n"), said


@pytest.mark.slow
def test_a_killed_rank(cluster):
    a, b = (cluster.start("2:2", restarts=1) for _ in range(2))
    a.hear(ready(2))
    os.kill(int(b.hear(ready(2))[3]), signal.SIGKILL)
    for machine in a, b:
        machine.hear("was killed by SIGKILL")
        machine.hear(ready(2, restarts=1))
    cluster.tell("go")
    assert [m.end()[0] for m in (a, b)] == [0, 0]


def test_a_machine_leaves_and_one_joins(cluster):
    """Neither counts as a restart. Who goes away on purpose says so: nobody waits for silence."""
    a = cluster.start("1:2", conf="last_call_timeout=1")
    a.hear(ready(1))
    b = cluster.start("1:2")
    for machine in a, b:
        machine.hear(ready(2))
    b.leave()
    a.hear(ready(1))
    status, said = b.end()
    assert status == 128 + signal.SIGTERM and "ended by SIGTERM" in said
    cluster.tell("go")
    assert a.end()[0] == 0


@pytest.mark.slow
def test_a_spare_machine_takes_the_place_of_one_that_leaves(cluster):
    a, b = (cluster.start("2:2") for _ in range(2))
    for machine in a, b:
        machine.hear(ready(2))
    spare = cluster.start("2:2", conf="join_timeout=5")
    a.leave()
    for machine in b, spare:
        machine.hear(ready(2))
    cluster.tell("go")
    assert [m.end()[0] for m in (a, b, spare)] == [143, 0, 0]


@pytest.mark.slow
def test_the_machine_of_the_store_is_killed(cluster):
    """The others hear of it by its silence, go on, and meet a new machine at the store, which has a process of its own."""
    conf = "keep_alive_max_attempt=8"
    a = cluster.start("1:2", conf=conf)
    # The first one keeps the store.
    wait_for(cluster.has_store)
    b = cluster.start("1:2", conf=conf)
    for machine in a, b:
        machine.hear(ready(2))
    a.kill()
    b.hear(ready(1))
    c = cluster.start("1:2", conf=conf)
    for machine in b, c:
        machine.hear(ready(2))
    cluster.tell("go")
    assert [m.end()[0] for m in (b, c)] == [0, 0]


def test_too_few_machines_are_left(cluster):
    a, b = (cluster.start("2:3", conf="join_timeout=3,last_call_timeout=1") for _ in range(2))
    for machine in a, b:
        machine.hear(ready(2))
    b.leave()
    status, said = a.end()
    assert status == 1, said
    assert "error: The rendezvous of the job 'job' timed out after 3 s: 1 of at least 2 machines are there." in said


def test_machines_of_other_jobs_do_not_meet(cluster):
    a, b = (cluster.start("2:2", run_id=name, conf="join_timeout=6") for name in ("mine", "yours"))
    (status_a, a), (status_b, b) = a.end(), b.end()
    assert status_a == status_b == 1
    assert (
        "job 'mine' timed out after 6 s: 1 of at least 2 machines are there. Other jobs meet at the same store: 'yours'."
        in a + b
    )


@pytest.mark.slow
def test_numbered_machines(cluster):
    """--node-rank: the order is given, and a machine that is lost is a failure."""
    b = cluster.start("2", options=["--node-rank", "1"], backend="static")
    a = cluster.start("2", options=["--node-rank", "0"], backend="static")
    assert (a.hear(ready(2))[1], b.hear(ready(2))[1]) == ("0", "1")
    a.leave()
    status, said = b.end()
    assert status == 1 and "a machine has left the job" in said
    assert a.end()[0] == 143


def test_training_goes_on_where_it_was(cluster):
    """A machine is killed in a collective job; the rest goes on from the checkpoint with the numbers of an undisturbed run."""
    pytest.importorskip("mpi4py", reason="process groups of several processes need the extra `distributed`")
    program, conf = (TRAINING, 6), "keep_alive_max_attempt=8"
    a, b = (cluster.start("1:2", conf=conf, program=program) for _ in range(2))
    for machine in a, b:
        machine.hear("from step 0 on 2 ranks")
    saved = cluster.folder / "checkpoint.pt"
    wait_for(lambda: saved.exists() and torch.load(saved)["step"] == 3)
    b.kill()
    a.hear("from step 4 on 1 ranks")
    cluster.tell("go")
    status, said = a.end()
    assert status == 0, said
    model = elastic_training.made()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for number in range(6):
        elastic_training.step(model, optimizer, number)
    found = torch.load(saved)
    assert found["step"] == 5
    for name, value in model.state_dict().items():
        torch.testing.assert_close(found["model"][name], value, atol=1e-5, rtol=1e-5)


# ---- the state ---------------------------------------------------------------------------------------------


def test_rounds():
    state = State()
    for node in "abcd":
        state.join(node, 3)
    assert (state.participants, state.waiting) == (["a", "b", "c"], ["d"]) and state.is_full(1, 3)
    state.fix()
    assert not state.is_over_for("b", 0) and state.is_over_for("d", 0) and state.room(3) == 0
    state.leave("b")
    assert state.is_over_for("a", 0) and state.room(3) == 1
    state.join("c", 3)
    assert (state.round, state.participants, state.expected) == (1, ["c"], ["a", "c", "d"])
    assert not state.is_enough(1)  # the others are alive, and will come
    state.join("e", 3)
    assert state.waiting == ["d", "e"]  # places are kept for those that were there
    state.join("d", 3), state.join("a", 3)
    assert state.is_full(1, 3)
    state.fix()
    assert state.participants == ["a", "c", "d"] and State.decode(state.encode()) == state


def test_places_that_machines_ask_for():
    state = State()
    state.join("a", 2, 1), state.join("b", 2, 0)
    state.fix()
    assert state.participants == ["b", "a"]


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_events(seed):
    """Machines come, go and ask again in any order: who is alive is in the end in one round of at most three, or waits."""
    generator = torch.Generator().manual_seed(seed)
    state, alive, number = State(), [], 0
    for _ in range(60):
        choice = torch.randint(4, (), generator=generator).item()
        if choice == 0 or not alive:
            alive.append(f"n{number}")
            number += 1
            state.join(alive[-1], 3)
        else:
            node = alive[torch.randint(len(alive), (), generator=generator).item()]
            if choice == 1:
                alive.remove(node)
                state.leave(node)
            else:
                state.join(node, 3)
        if state.is_full(1, 3):
            state.fix()
        names = state.participants + state.waiting
        assert len(names) == len(set(names)) and len(state.participants) <= 3
        assert set(names) <= set(alive) and set(state.beats) <= set(alive)
    for _ in range(3):
        for node in alive:
            state.join(node, 3) if not state.complete or state.broken else None
        if state.is_enough(1):
            state.fix()
    assert not alive or (state.complete and len(state.participants) >= 1)
    assert set(state.participants + state.waiting) == set(alive)


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("", ("localhost", 29400)),
        ("a", ("a", 29400)),
        ("a:5", ("a", 5)),
        ("[::1]:5", ("::1", 5)),
        ("a:b", "must be an integer between 0 and 65536"),
        (":5", "hostname of the rendezvous endpoint ':5'"),
        ("a:70000", "must be an integer between 0 and 65536"),
        ("a b:4", "hostname of the rendezvous endpoint 'a b:4'"),
    ],
)
def test_endpoints(text, wanted):
    if isinstance(wanted, tuple):
        assert parse_rendezvous_endpoint(text, 29400) == wanted
    else:
        with pytest.raises(ValueError, match=wanted):
            parse_rendezvous_endpoint(text, 29400)
