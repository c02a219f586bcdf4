"""Names of torch.distributed.elastic and the launcher that programs use: what they say and write is PyTorch's."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import flambeau.distributed as dist
from flambeau.distributed.elastic import events
from flambeau.distributed.elastic.agent.server import RunResult, SimpleElasticAgent, WorkerSpec, WorkerState
from flambeau.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std, start_processes, to_map
from flambeau.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record
from flambeau.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousTimeoutError,
    rendezvous_handler_registry,
)
from flambeau.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend, create_backend
from flambeau.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousTimeout, create_handler
from flambeau.distributed.elastic.rendezvous.registry import get_rendezvous_handler
from flambeau.distributed.elastic.rendezvous.utils import parse_rendezvous_config
from flambeau.distributed.elastic.utils.data import CyclingIterator, ElasticDistributedSampler
from flambeau.distributed.launcher.api import LaunchConfig, elastic_launch
from flambeau.distributed.run import config_from_args, parse_args

LIMIT = 50


# ---- error files -------------------------------------------------------------------------------------------


def fails(how):
    if how == "exits":
        raise SystemExit(3)
    if how == "raises":
        raise ValueError("mine")
    return how


@pytest.fixture
def error_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    return tmp_path / "error.json"


def test_record(error_file):
    assert record(fails)("well") == "well"
    with pytest.raises(SystemExit):
        record(fails)("exits")
    assert not error_file.exists()
    with pytest.raises(ValueError, match="mine"):
        record(fails)("raises")
    message = json.loads(error_file.read_text())["message"]
    assert message["message"] == "ValueError: mine"
    assert message["extraInfo"]["py_callstack"].startswith("Traceback (most recent call last):\n")
    assert abs(int(message["extraInfo"]["timestamp"]) - time.time()) < 60


def test_failures_of_processes(error_file, tmp_path, monkeypatch):
    with pytest.raises(ValueError):
        record(fails)("raises")
    raised = ProcessFailure(0, 123, 1, str(error_file))
    raised.timestamp = 100
    assert raised.message["message"] == "ValueError: mine" and raised.signal_name() == "<N/A>"
    killed = ProcessFailure(1, 124, -9, str(tmp_path / "none"))
    killed.timestamp = 200
    assert (killed.error_file, killed.signal_name()) == ("<N/A>", "SIGKILL")
    assert killed.message == "Signal 9 (SIGKILL) received by PID 124"
    error = ChildFailedError("train.py", {1: killed, 0: raised})
    assert error.get_first_failure() == (0, raised)
    lines = [line.rstrip() for line in str(error).strip().splitlines()]
    assert lines[:5] == ["=" * 60, "train.py FAILED", "-" * 60, "Failures:", "[0]:"]
    assert "  rank      : 1 (local_rank: 1)" in lines and "  exitcode  : -9 (pid: 124) (SIGKILL)" in lines
    assert lines.index("Root Cause (first observed failure):") > lines.index("  rank      : 1 (local_rank: 1)")
    assert lines[-2:] == ["    ValueError: mine", "=" * 60]
    # An agent that is itself a recorded process passes the first failure on.
    outer = tmp_path / "outer.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(outer))

    @record
    def agent():
        raise error

    with pytest.raises(ChildFailedError):
        agent()
    assert json.loads(outer.read_text())["message"]["message"] == "ValueError: mine"
    assert json.loads(outer.read_text())["message"]["errorCode"] == 1


# ---- processes ---------------------------------------------------------------------------------------------


def test_programs(tmp_path):
    program = (
        "import sys, os; print('out', os.environ['WHO']); print('err', file=sys.stderr); sys.exit(int(sys.argv[1]))"
    )
    specs = DefaultLogsSpecs(str(tmp_path), redirects=Std.OUT, tee={1: Std.ERR})
    args = {k: ("-c", program, str(2 * k)) for k in range(2)}
    context = start_processes("t", sys.executable, args, {k: {"WHO": f"w{k}"} for k in range(2)}, specs)
    while not context.is_done():
        time.sleep(0.02)
    result = context.wait()
    assert result.is_failed() and result.failures[1].exitcode == 2 and list(result.failures) == [1]
    assert Path(result.stdouts[0]).read_text() == "out w0\n"
    assert Path(context.dest.tee_stderrs[1]).read_text() == "err\n" and context.dest.tee_stderrs[0] == ""


def test_output_of_functions_is_not_doubled(tmp_path):
    with pytest.raises(NotImplementedError, match="tee is built for programs only"):
        start_processes("t", fails, {0: ("well",)}, {0: {}}, DefaultLogsSpecs(str(tmp_path), tee=Std.OUT))


def test_functions():
    context = start_processes("t", fails, {0: ("well",), 1: ("raises",)}, {0: {}, 1: {}}, start_method="fork")
    while not context.is_done():
        time.sleep(0.02)
    result = context.wait(timeout=LIMIT)
    assert result.return_values == {0: "well"} and result.failures[1].message["message"] == "ValueError: mine"
    context.logs_specs.close()
    context = start_processes("t", time.sleep, {0: (600,)}, {0: {}}, start_method="fork")
    assert context.wait(timeout=0.1) is None
    context.close()
    assert context.codes[0] < 0
    context.logs_specs.close()


@pytest.mark.parametrize(
    "text, wanted", [("0", Std.NONE), ("3", Std.ALL), ("0:1,1:2", {0: Std.OUT, 1: Std.ERR}), ("4", None), ("a", None)]
)
def test_streams(text, wanted):
    if wanted is None:
        with pytest.raises(ValueError):
            Std.from_str(text)
    else:
        assert Std.from_str(text) == wanted
        assert to_map({1: Std.OUT}, 2) == {0: Std.NONE, 1: Std.OUT}


# ---- rendezvous --------------------------------------------------------------------------------------------


def handlers(n, least, most, store=None, **conf):
    store = store or dist.HashStore()
    conf = {"last_call_timeout": "1", "join_timeout": "20"} | conf
    made = []
    for _ in range(n):
        params = RendezvousParameters("c10d", "", "run", least, most, **conf)
        made.append(create_handler(store, C10dRendezvousBackend(store, "run"), params))
    return made


def met(handlers, number):
    """All of them ask for the next round at once."""
    found: dict = {}

    def ask(k):
        try:
            found[k] = handlers[k].next_rendezvous()
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=ask, args=(k,)) for k in number]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    return [found[k] for k in number]


def test_rounds_of_threads():
    made = handlers(3, 2, 4)
    try:
        infos = met(made, range(3))
        assert sorted(i.rank for i in infos) == [0, 1, 2] and {i.world_size for i in infos} == {3}
        assert len({(i.bootstrap_store_info.master_addr, i.bootstrap_store_info.master_port) for i in infos}) == 1
        infos[0].store.set("x", "1")
        assert infos[1].store.get("x") == b"1"
        assert not any(h.is_round_over() or h.num_nodes_waiting() for h in made)
        order = sorted(range(3), key=lambda k: infos[k].rank)
        made[order[0]].leave()
        assert all(made[k].is_round_over() for k in order)
        rest = met(made, order[1:])
        assert [i.rank for i in rest] == [0, 1] and not rest[0].store.check(["x"])  # a store of its own, the old order
        made[order[1]].shutdown()
        assert made[order[2]].is_closed()
        with pytest.raises(RendezvousClosedError, match="'run' has ended"):
            made[order[0]].next_rendezvous()
    finally:
        for handler in made:
            handler.shutdown()


def test_too_few():
    (handler,) = handlers(1, 2, 2, join_timeout="1")
    with pytest.raises(RendezvousTimeoutError, match="1 of at least 2 machines are there"):
        handler.next_rendezvous()


def test_a_silent_machine_is_taken_out():
    a, b = handlers(2, 1, 2, keep_alive_interval="1", keep_alive_max_attempt="2")
    try:
        met([a, b], range(2))
        b._stopped.set()  # as if it were killed
        end = time.monotonic() + LIMIT
        while not a.is_round_over():
            assert time.monotonic() < end
            time.sleep(0.02)
        assert a.next_rendezvous().world_size == 1
    finally:
        a.shutdown()


def test_a_damaged_state():
    store = dist.HashStore()
    store.set("torch.rendezvous.run", "!")
    (handler,) = handlers(1, 1, 1, store)
    with pytest.raises(RendezvousStateError, match="damaged"):
        handler.next_rendezvous()


def test_parameters():
    params = RendezvousParameters("c10d", "", "id", 1, 2, timeout="12", is_host="true", x="what")
    assert (params.get("timeout"), params.get_as_int("timeout"), params.get_as_bool("is_host")) == ("12", 12, True)
    assert params.get("no", 4) == 4
    for call in (lambda: params.get_as_int("x"), lambda: params.get_as_bool("x")):
        with pytest.raises(ValueError, match="The rendezvous configuration option 'x' does not represent a valid"):
            call()
    for arguments in (("", "", "x", 1, 2), ("b", "", "x", 0, 2), ("b", "", "x", 3, 2)):
        with pytest.raises(ValueError):
            RendezvousParameters(*arguments)
    with pytest.raises(ValueError, match="'nix' is not registered"):
        get_rendezvous_handler(RendezvousParameters("nix", "", "id", 1, 2))
    with pytest.raises(NotImplementedError, match="'etcd' isn't built"):
        get_rendezvous_handler(RendezvousParameters("etcd", "a:1", "id", 1, 2))
    with pytest.raises(ValueError, match="already registered"):
        rendezvous_handler_registry.register("c10d", fails)
    with pytest.raises(ValueError, match="join timeout"):
        RendezvousTimeout(join=RendezvousTimeout().join * 0)
    assert parse_rendezvous_config("a=1, b=2") == {"a": "1", "b": "2"}
    for text in ("a", "=1", "a=1,b="):
        with pytest.raises(ValueError):
            parse_rendezvous_config(text)


def test_a_store_in_a_file(tmp_path):
    params = RendezvousParameters("c10d", str(tmp_path / "store"), "id", 1, 2, store_type="file")
    backend, _ = create_backend(params)
    assert backend.name == "c10d" and backend.get_state() is None
    state, token, was_set = backend.set_state(b"one")
    assert (state, was_set) == (b"one", True)
    assert backend.set_state(b"two")[0::2] == (b"one", False)  # there is one already
    assert backend.set_state(b"two", token)[0::2] == (b"two", True)
    assert backend.get_state()[0] == b"two"


# ---- events, options ---------------------------------------------------------------------------------------


def test_events():
    event = events.Event("n", events.EventSource.AGENT)
    assert event.serialize() == str(event) == '{"name": "n", "source": "AGENT", "timestamp": 0, "metadata": {}}'
    assert events.Event.deserialize(str(event)) == event
    meeting = events.RdzvEvent("n", "r", "m", "h", 1, events.NodeState.INIT)
    assert events.RdzvEvent.deserialize(meeting.serialize()) == meeting
    assert str(meeting).startswith(
        '{"name": "n", "run_id": "r", "message": "m", "hostname": "h", "pid": 1, "node_state": "INIT"'
    )
    with pytest.raises(ValueError, match="unknown destination"):
        events.get_logging_handler("nowhere")


@pytest.mark.parametrize(
    "options, wanted",
    [
        ("--nnodes 2:4 --rdzv-endpoint h:1", "needs --rdzv-backend c10d"),
        ("--nnodes 2:4 --rdzv-backend c10d", "several machines need --rdzv-endpoint"),
        ("--nnodes 2 --rdzv-endpoint h:1 --node-rank 2", "isn't one of 2 machines"),
        ("--nnodes 1:2 --rdzv-backend c10d --rdzv-endpoint h:1 --node-rank 0", "needs a fixed number"),
        ("--nnodes 1:2 --rdzv-backend c10d --rdzv-endpoint h:1 --rdzv-conf a", "must have a value"),
        ("--nnodes 2 --standalone", "--standalone is for one machine"),
        ("--nnodes 1:3 --rdzv-backend c10d --rdzv-endpoint h", (1, 3, "c10d", "h")),
        ("--nnodes 2 --rdzv-backend static --master-addr h --node-rank 1", (2, 2, "static", "h:29500")),
        ("--nnodes 2 --master-addr h --master-port 7", (2, 2, "c10d", "h:7")),
        ("-n 3", (1, 1, "c10d", "")),
    ],
)
def test_options(options, wanted):
    args = parse_args([*options.split(), "train.py", "x"])
    if isinstance(wanted, str):
        with pytest.raises(ValueError, match=wanted):
            config_from_args(args)
        return
    config, program, rest = config_from_args(args)
    assert (config.min_nodes, config.max_nodes, config.rdzv_backend, config.rdzv_endpoint) == wanted
    assert program == sys.executable and rest[-2:] == ["train.py", "x"]


def test_options_of_the_environment(monkeypatch):
    for name, value in (("NNODES", "2:3"), ("RDZV_BACKEND", "c10d"), ("RDZV_ENDPOINT", "h:1"), ("NPROC_PER_NODE", "4")):
        monkeypatch.setenv(f"PET_{name}", value)
    config = config_from_args(parse_args(["train.py"]))[0]
    assert (config.min_nodes, config.max_nodes, config.rdzv_endpoint, config.nproc_per_node) == (2, 3, "h:1", 4)


def test_options_that_a_program_fills_in():
    args = parse_args(["train.py"])
    args.nnodes, args.nproc_per_node, args.master_addr, args.master_port, args.node_rank = "2:2", "3", "h", "7", "1"
    config = config_from_args(args)[0]
    assert (config.min_nodes, config.max_nodes, config.nproc_per_node, config.rdzv_endpoint) == (2, 2, 3, "h:7")
    assert (config.rdzv_backend, config.rdzv_configs["rank"]) == ("static", 1)
    args.nnodes = "3:2"
    with pytest.raises(ValueError, match="nnodes: 3:2: at least one machine"):
        config_from_args(args)


# ---- data ---------------------------------------------------------------------------------------------------

# (epoch, first index, rank): the indices that PyTorch's sampler gives of 11 samples on 3 ranks.
SAMPLED = {
    (0, 0, 0): [10, 3, 2, 7],
    (0, 0, 2): [4, 8, 9, 10],
    (0, 4, 1): [4, 6, 8],
    (3, 0, 1): [0, 4, 8, 7],
    (3, 4, 0): [9, 10, 5],
    (3, 4, 2): [8, 6, 7],
}


@pytest.mark.parametrize("epoch, start, rank", SAMPLED)
def test_samples_from_the_middle_of_an_epoch(epoch, start, rank):
    sampler = ElasticDistributedSampler(range(11), 3, rank, start)
    sampler.set_epoch(epoch)
    assert list(sampler) == SAMPLED[epoch, start, rank] and len(sampler) == len(SAMPLED[epoch, start, rank])


def test_odd_samplers():
    with pytest.raises(ValueError, match="Start index 5 should be less than dataset size 5"):
        ElasticDistributedSampler(range(5), 2, 0, 5)
    assert [list(ElasticDistributedSampler(range(5), 4, rank, 4)) for rank in range(4)] == [[4]] * 4
    assert list(CyclingIterator(3, lambda epoch: iter(range(epoch + 1)), 1)) == [0, 1, 0, 1, 2]


# ---- agents ------------------------------------------------------------------------------------------------


def numbers(base):
    """Of a rank of a job that functions are: its number, after one restart."""
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["RANK"] == "1":
        raise ValueError("at first")
    return base + int(os.environ["RANK"])


def test_functions_on_one_machine():
    config = LaunchConfig(1, 1, 2, max_restarts=1)
    assert elastic_launch(config, numbers)(10) == {0: 10, 1: 11}
    config = LaunchConfig(1, 1, 2, max_restarts=0, start_method="fork")
    with pytest.raises(ChildFailedError, match="numbers FAILED(.|\n)*ValueError: at first") as error:
        elastic_launch(config, numbers)(10)
    assert error.value.failures[1].message["message"] == "ValueError: at first"


def test_functions_on_several_machines():
    """Two processes that call elastic_launch, as two machines do."""
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_elastic_names import numbers\n"
        "from flambeau.distributed.launcher.api import LaunchConfig, elastic_launch\n"
        "config = LaunchConfig(2, 2, 1, rdzv_endpoint=f'localhost:{sys.argv[1]}', run_id='f', max_restarts=1, start_method='fork',\n"
        "    rdzv_configs={'keep_alive_max_attempt': 40, 'join_timeout': 40})\n"
        "print(elastic_launch(config, numbers)(10))\n"
    )
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    machines = [
        subprocess.Popen([sys.executable, "-c", program, str(port)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [m.communicate(timeout=LIMIT)[0] for m in machines]
    assert [m.returncode for m in machines] == [0, 0] and sorted(said) == ["{0: 10}\n", "{1: 11}\n"]


class Threads(SimpleElasticAgent):
    """An agent of one's own, whose only rank has ended at once."""

    def _start_workers(self, worker_group):
        return {0: "here"}

    def _stop_workers(self, worker_group, death_sig=None):
        pass

    def _monitor_workers(self, worker_group):
        return RunResult(WorkerState.SUCCEEDED, {worker_group.workers[0].global_rank: worker_group.workers[0].id})


def test_an_agent_of_ones_own():
    made = handlers(1, 1, 1)
    agent = Threads(WorkerSpec("role", 1, made[0], entrypoint=fails))
    assert agent.run().return_values == {0: "here"}
    assert agent.get_worker_group().group_world_size == 1 and made[0].is_closed()


def test_signals():
    assert SignalException("m", 15).sigval == 15
    with pytest.raises(ValueError, match="SIGNOTHING is no signal"):
        elastic_launch(LaunchConfig(1, 1, 1, signals_to_handle="SIGNOTHING"), fails)("well")
