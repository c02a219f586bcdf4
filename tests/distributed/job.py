"""What the ranks of a test's job run: ``python job.py WHAT``; test_processes.py starts it."""

import datetime
import os
import shutil
import signal
import sys
import tempfile
import time

import numpy as np

import flambeau as torch
import flambeau.distributed as dist
from flambeau import nn
from flambeau.distributed import checkpoint
from flambeau.distributed.fsdp import fully_shard
from flambeau.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    SplitPoint,
    pipeline,
)
from flambeau.distributed.tensor import DTensor, init_device_mesh
from flambeau.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from flambeau.nn.parallel import DistributedDataParallel as DDP


def everything(rank):
    """The engines over MPI: collectives, messages, groups, DDP."""
    n = dist.get_world_size()
    assert (n, dist.get_backend()) == (2, "gloo")
    print("engine", dist.group.WORLD._engine.name)
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64):
        x = torch.ones(300_000, dtype=dtype)
        dist.all_reduce(x)
        assert torch.equal(x, torch.full((300_000,), 1 if dtype is torch.bool else 2, dtype=dtype)), dtype
        parts = [torch.zeros(3, dtype=dtype) for _ in range(n)]
        dist.all_gather(parts, torch.full((3,), rank, dtype=dtype))
        assert torch.equal(torch.stack(parts), torch.tensor([[0] * 3, [1] * 3]).to(dtype))
    x = torch.arange(6.0) + rank
    out = torch.zeros(3)
    dist.reduce_scatter_tensor(out, x, dist.ReduceOp.AVG)
    assert out.tolist() == [k + 3 * rank + 0.5 for k in range(3)]
    dist.all_to_all_single(out := torch.zeros(4), torch.full((4,), float(rank)))
    assert out.tolist() == [0.0, 0.0, 1.0, 1.0]
    try:
        dist.all_to_all_single(torch.zeros(2), torch.ones(2), [2, 0] if rank else [1, 1], [1, 1])
    except dist.DistBackendError as error:
        assert "rank 0 sends 4 bytes to rank 1, which expects 8" in str(error), error
    else:
        raise AssertionError("pieces of other lengths")
    for root in range(n):
        dist.broadcast(y := torch.full((2,), float(rank)), root)
        assert y.tolist() == [root] * 2
        dist.reduce(z := torch.ones(2), root)
        assert z.tolist() == ([2.0, 2.0] if rank == root else [1.0, 1.0])
        got = [torch.zeros(1), torch.zeros(1)] if rank == root else None
        dist.gather(torch.full((1,), float(rank)), got, root)
        assert got is None or [t.item() for t in got] == [0.0, 1.0]
        dist.scatter(one := torch.zeros(1), [torch.zeros(1), torch.ones(1)] if rank == root else None, root)
        assert one.item() == rank
    objects = [None] * n
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]
    big = torch.zeros(500_000)
    works = [dist.irecv(big, 1 - rank), dist.isend(torch.full((500_000,), float(rank)), 1 - rank)]
    assert [w.wait() for w in works] == [True, True] and big[-1].item() == 1 - rank
    pair, alone = dist.new_group([0, 1]), dist.new_group([1])
    dist.all_reduce(x := torch.ones(1), group=pair)
    assert x.item() == 2 and (alone == dist.GroupMember.NON_GROUP_MEMBER) == (rank == 0)
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))
    data_parallel(rank)
    sharded(rank)
    pipelined(rank)
    began, used = time.monotonic(), time.process_time()
    if rank == 0:
        time.sleep(0.5)
    dist.barrier()
    if rank == 1:
        assert time.process_time() - used < 0.5 * (time.monotonic() - began), "waiting costs time of the processor"


def trained(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(10):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
    return model


def made():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))


def batch():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(8, 16, generator=generator), torch.randn(8, 4, generator=generator)


def check(model, wanted):
    for a, b in zip(model.parameters(), wanted.parameters(), strict=True):
        a = a.full_tensor() if isinstance(a, DTensor) else a
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-6)


def data_parallel(rank):
    """Ten steps on halves of the batch are those of one process."""
    x, y = batch()
    rows = slice(4 * rank, 4 * rank + 4)
    check(trained(DDP(made(), bucket_cap_mb=0.001), x[rows], y[rows]), trained(made(), x, y))


def sharded(rank):
    """So are those of sharded parameters, and of products over shards; a checkpoint holds them."""
    x, y = batch()
    rows = slice(4 * rank, 4 * rank + 4)
    wanted, model = trained(made(), x, y), made()
    fully_shard(model[0])
    check(trained(fully_shard(model), x[rows], y[rows]), wanted)
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, 0)
    checkpoint.save(model.state_dict(), checkpoint_id=folder[0])
    parallel = parallelize_module(
        made(), init_device_mesh("cpu", (2,)), {"0": ColwiseParallel(), "2": RowwiseParallel()}
    )
    check(trained(parallel, x, y), wanted)
    for fresh in made(), fully_shard(made()):
        state = fresh.state_dict()
        checkpoint.load(state, checkpoint_id=folder[0])
        fresh.load_state_dict(state)
        check(fresh, wanted)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder[0])


def pipelined(rank):
    """Stages of two ranks, whose activations are too large for MPI to buffer."""
    wide = 1 << 14
    torch.manual_seed(0)
    stages = [nn.Linear(8, wide), nn.Linear(wide, 2)]
    x, y = torch.randn(64, 8), torch.randn(64, 2)
    loss = nn.functional.mse_loss
    loss(stages[1](stages[0](x)), y).backward()
    wanted = [p.grad.clone() for p in stages[rank].parameters()]
    for cls in Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B:
        stages[rank].zero_grad()
        stage = PipelineStage(stages[rank], rank, 2)
        schedule = cls([stage] if cls is ScheduleInterleaved1F1B else stage, 4, loss)
        schedule.step(*([] if rank else [x]), target=y if rank else None)
        for p, g in zip(stages[rank].parameters(), wanted):
            torch.testing.assert_close(p.grad, g, atol=1e-5, rtol=1e-4)
    pipe = pipeline(made(), (batch()[0][:2],), split_spec={"1": SplitPoint.BEGINNING})
    out = ScheduleGPipe(pipe.build_stage(rank), 4).step(*([] if rank else [batch()[0]]))
    assert out is None if rank == 0 else torch.allclose(out, made()(batch()[0]), atol=1e-6)


def raises(rank):
    if rank == 1:
        raise ValueError("mine alone")
    dist.barrier()


def exits(rank):
    if rank == 1:
        sys.exit(3)
    dist.barrier()


def killed(rank):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def stopped(rank):
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)


def late(rank):
    """Rank 1 doesn't come within the time-out."""
    dist.barrier()
    group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=5))
    if rank == 1:
        time.sleep(600)
    dist.all_reduce(torch.ones(3), group=group)


def absent(rank):
    """Rank 1 makes no group."""
    if rank == 1:
        time.sleep(600)
    dist.new_group([0, 1], timeout=datetime.timedelta(seconds=1))


def kinds(rank):
    """Other dtypes of one size."""
    dist.all_reduce(torch.ones(3, dtype=torch.float32 if rank else torch.int32))


def disagree(rank):
    dist.all_reduce(torch.ones(3 + rank))


def waits(rank):
    print("ready")
    time.sleep(600)


def again(rank):
    """A second process group in the same processes."""
    for _ in range(2):
        dist.barrier()
        dist.destroy_process_group()
        dist.init_process_group()


def everything_in_both(rank):
    """By a window, and in a second group by messages of MPI: shared memory has no room for the window then."""
    everything(rank)
    dist.barrier()
    dist.destroy_process_group()
    os.environ["FLAMBEAU_SHM_LIMIT"] = "1000"
    dist.init_process_group()
    everything(dist.get_rank())


def spawned(rank, port):
    """For torch.multiprocessing.spawn."""
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    x = torch.ones(2)
    dist.all_reduce(x)
    assert x.tolist() == [2.0, 2.0]
    dist.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1] == "--mpi":  # MPI is started by the program, as a job of one rank
        from mpi4py import MPI

        assert MPI.COMM_WORLD.size == 1
        del sys.argv[1]
    dist.init_process_group(
        **({"init_method": sys.argv[2], "rank": int(sys.argv[3]), "world_size": 2} if len(sys.argv) > 2 else {})
    )
    globals()[sys.argv[1]](dist.get_rank())
    dist.destroy_process_group()
