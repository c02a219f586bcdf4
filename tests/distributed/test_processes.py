"""Real processes: how they start, what they do, how they end. Each test is a job of two processes."""

import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mpi4py", reason="process groups of several processes need the extra `distributed`")

from flambeau.distributed.rendezvous import first_host  # noqa: E402

JOB = Path(__file__).with_name("job.py")
LIMIT = 90


def environment(**more):
    env = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("PMI", "MASTER_", "TORCHELASTIC")) and k not in ("RANK", "WORLD_SIZE")
    }
    return {**env, **more}


def launched(*args, options=(), **more):
    command = [sys.executable, "-m", "flambeau.distributed.run", "-n", "2", *options, str(JOB), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment(**more))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(autouse=True)
def nothing_left():
    """No file of MPICH's stays in /dev/shm, and no process of the job. Others may run jobs at the same time: theirs are mapped."""
    before = set(glob.glob("/dev/shm/mpich*"))
    yield
    end = time.monotonic() + 60
    while left := running() + unmapped(set(glob.glob("/dev/shm/mpich*")) - before):
        assert time.monotonic() < end, left
        time.sleep(0.1)


def running():
    """Command lines of this test file's jobs that this process started."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            text = Path(path).read_bytes()
        except OSError:
            continue
        if f"FLAMBEAU_TEST_JOB={os.getpid()}".encode() in text and b"TORCHELASTIC_RUN_ID" in text:
            found.append(path)
    return found


def unmapped(paths):
    used = ""
    for maps in glob.glob("/proc/[0-9]*/maps"):
        try:
            used += Path(maps).read_text()
        except OSError:
            continue
    return [p for p in paths if p not in used]


@pytest.fixture(autouse=True)
def marked(monkeypatch):
    monkeypatch.setenv("FLAMBEAU_TEST_JOB", str(os.getpid()))


def test_everything_in_a_window_and_by_mpi_where_shm_is_too_small():
    done = launched("everything_in_both")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        f"[rank {rank}] engine {engine}" for engine in ("MPI window", "MPI") for rank in range(2)
    )


@pytest.mark.slow
def test_everything_by_mpi_in_the_first_group():
    done = launched("everything", FLAMBEAU_SHM_LIMIT="1000")
    assert done.returncode == 0, done.stderr
    assert "[rank 0] engine MPI\n" in done.stdout


@pytest.mark.slow
def test_everything_where_mpi_runs_already():
    done = launched("--mpi", "everything")
    assert done.returncode == 0, done.stderr
    assert "[rank 0] engine shared file\n" in done.stdout


def _own_shm(size: str) -> list[str]:
    """The beginning of a command that runs what follows with a /dev/shm of this size."""
    return ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size={size} tmpfs /dev/shm && exec "$@"', "sh"]


def test_everything_where_shm_has_no_room_for_mpi():
    """MPI itself would end its ranks by SIGBUS."""
    if shutil.which("unshare") is None or subprocess.run([*_own_shm("1m"), "true"], capture_output=True).returncode:
        pytest.skip("mounting a small /dev/shm isn't allowed here")
    command = [*_own_shm("1m"), sys.executable, "-m", "flambeau.cli", "launch", "-n", "2", str(JOB), "everything"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment())
    assert done.returncode == 0, done.stderr
    assert "[rank 0] engine shared file\n" in done.stdout


ENDS = {
    "raises": (1, "rank 1 of 2 .* exited with status 1(.|\n)*ValueError: mine alone\n$"),
    "exits": (3, "rank 1 of 2 .* exited with status 3"),
    "killed": (137, "rank 1 of 2 .* was killed by SIGKILL"),
    "stopped": (1, "rank 1 has not answered for 4 s"),
    "late": (1, r"timed out after the timeout of 5 s: rank 1 did not come"),
    "absent": (1, r"new_group of the ranks \[0, 1\]: rank 1 didn't come within 1 s"),
    "kinds": (1, r"ranks called different collectives\n.*rank 0: .*3 x int32.*\n.*rank 1: .*3 x float32"),
    "disagree": (1, r"ranks called different collectives\n.*rank 0: .*3 x float32.*\n.*rank 1: .*4 x float32"),
}


# Each is a job of seconds: the way by which a rank ends is told to all others in the same way. Who isn't told waits longer than the launcher is
# given.
@pytest.mark.parametrize(
    "how", [how if how in ("raises", "killed") else pytest.param(how, marks=pytest.mark.slow) for how in ENDS]
)
def test_one_rank_ends_all(how):
    status, text = ENDS[how]
    done = launched(how)
    assert done.returncode == status, done.stderr
    assert re.search(text, done.stderr), done.stderr


@pytest.mark.slow
def test_ranks_that_disagree_by_mpi_in_debug_mode():
    done = launched("disagree", FLAMBEAU_SHM_LIMIT="1000", TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert done.returncode == 1 and re.search(ENDS["disagree"][1], done.stderr), done.stderr


@pytest.mark.slow
def test_the_demo_trains_as_in_one_process_with_the_whole_batch(tmp_path):
    pytest.importorskip("rich"), pytest.importorskip("matplotlib")
    options = "--steps 6 --n-layer 1 --n-head 2 --n-embd 16 --block-size 16 --sample 0 --no-compile".split()
    command = [sys.executable, "-m", "flambeau.distributed.run", "--no-prefix", "-m"]
    losses = []
    for ranks in (1, 2):
        given = ["-n", str(ranks), "flambeau.demo", *options, "--batch-size", str(4 // ranks), "--out", str(tmp_path)]
        done = subprocess.run([*command, *given], capture_output=True, text=True, timeout=LIMIT, env=environment())
        assert done.returncode == 0, done.stderr
        losses.append(re.findall(r"loss [\d.]+ -> [\d.]+", done.stdout))
    assert losses[0] == losses[1] != []


@pytest.mark.slow
def test_programs_that_import_torch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, torch.distributed as dist\n"
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "dist.init_process_group('gloo')\n"
        "model = DDP(torch.nn.Linear(2, 2))\n"
        "model(torch.ones(1, 2)).sum().backward()\n"
        "print('done', flush=True)\n"
        "dist.destroy_process_group()\n"
    )
    for command in (["launch", "--torch", "-n", "2"], ["run", "-m", "torch.distributed.run", "--nproc_per_node=2"]):
        given = [sys.executable, "-m", "flambeau.cli", *command, str(program)]
        done = subprocess.run(given, capture_output=True, text=True, timeout=LIMIT, env=environment())
        assert done.returncode == 0 and done.stdout.count("done") == 2, done.stderr


def test_interrupt_ends_all():
    command = [sys.executable, "-m", "flambeau.cli", "launch", "-n", "2", str(JOB), "waits"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as job:
        assert [job.stdout.readline() for _ in range(2)].count("") == 0
        job.send_signal(signal.SIGINT)
        _, errors = job.communicate(timeout=LIMIT)
    assert job.returncode == 130 and "ended by SIGINT" in errors


@pytest.mark.slow
def test_nobody_survives_the_launcher():
    """Killed, it can end nobody: ranks hear of it by the watch. The fixture looks for them."""
    command = [sys.executable, "-m", "flambeau.cli", "launch", "-n", "2", str(JOB), "waits"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as job:
        assert [job.stdout.readline() for _ in range(2)].count("") == 0
        assert len(running()) >= 2
        job.kill()
        job.wait(LIMIT)


@pytest.mark.slow
def test_a_second_group_and_restarts():
    assert launched("again").returncode == 0
    done = launched("exits", options=["--max-restarts", "1"])
    assert done.returncode == 3 and "starting all ranks again (1 of 1)" in done.stderr


@pytest.mark.parametrize(
    "hosts, first",
    [
        ("node7", "node7"),
        ("node1,node2", "node1"),
        ("node[003-007,12],other", "node003"),
        ("a,node[1-2]", "a"),
        ("node[5,7-9]-ib", "node5-ib"),
        ("rack[1-2]node[03,5],x", "rack1node03"),
    ],
)
def test_first_of_the_hosts_that_slurm_names(hosts, first):
    assert first_host(hosts) == first


@pytest.mark.slow
def test_variables_of_slurm():
    """srun without MPI's own start: ranks, their number and the meeting place come from its variables."""
    for number in range(1000):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", 29500 + number)):
                break
    processes = []
    for rank in range(2):
        env = environment(
            SLURM_PROCID=str(rank), SLURM_NTASKS="2", SLURM_JOB_ID=str(7000 + number), SLURM_JOB_NODELIST="localhost"
        )
        processes.append(
            subprocess.Popen([sys.executable, str(JOB), "data_parallel"], env=env, stderr=subprocess.PIPE, text=True)
        )
    ends = [(p.communicate(timeout=LIMIT)[1], p.returncode) for p in processes]
    assert [code for _, code in ends] == [0, 0], ends


@pytest.mark.slow
def test_mpiexec():
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if mpiexec is None:
        pytest.skip("there is no mpiexec")
    command = [mpiexec, "-n", "2", sys.executable, str(JOB), "data_parallel"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("how", ["env", pytest.param("file", marks=pytest.mark.slow)])
def test_started_apart(how, tmp_path):
    port = free_port()
    processes = []
    for rank in range(2):
        env = (
            environment(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            if how == "env"
            else environment()
        )
        args = [] if how == "env" else [f"file://{tmp_path}/meet", str(rank)]
        command = [sys.executable, str(JOB), "raises" if how == "env" else "data_parallel", *args]
        processes.append(subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True))
    ends = [(p.communicate(timeout=LIMIT)[1], p.returncode) for p in processes]
    if how == "env":  # the launcher is not there: the watch ends the other rank
        assert [code for _, code in ends] == [1, 1]
        assert "rank 1 ended without leaving" in ends[0][0] and "mine alone" in ends[1][0]
    else:
        assert [code for _, code in ends] == [0, 0], ends


def test_spawn():
    program = f"import sys; sys.path.insert(0, {str(JOB.parent)!r})\nimport job\nimport flambeau.multiprocessing as mp\nif __name__ == '__main__': mp.spawn(job.spawned, ({free_port()},), 2)\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT, env=environment()
    )
    assert done.returncode == 0, done.stderr


def test_without_mpi4py(tmp_path):
    (tmp_path / "mpi4py.py").write_text("raise ModuleNotFoundError('No module named mpi4py', name='mpi4py')")
    program = (
        "import flambeau.distributed as dist\ndist.init_process_group(store=dist.HashStore(), rank=0, world_size=2)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=environment(PYTHONPATH=f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"),
    )
    assert done.returncode == 1 and "pip install 'flambeau[distributed]'" in done.stderr, done.stderr


def test_importing_flambeau_loads_nothing_of_it():
    program = "import sys, flambeau; print([n for n in sys.modules if 'mpi4py' in n or 'flambeau.distributed' in n or '_exchange' in n])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout.strip() == "[]", done.stdout
