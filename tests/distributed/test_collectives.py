"""Collectives between threads: the native exchange of one machine, against NumPy."""

import datetime
import itertools
import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
import flambeau.distributed as dist
from flambeau.distributed import threads

OP = dist.ReduceOp
NUMPY = {OP.SUM: np.add, OP.PRODUCT: np.multiply, OP.MIN: np.minimum, OP.MAX: np.maximum}
BITS = {OP.BAND: np.bitwise_and, OP.BOR: np.bitwise_or, OP.BXOR: np.bitwise_xor}
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SIZES = [0, 1, 7, 40_000]  # the last is several slots of 64 KiB


def values(rank, n, dtype):
    rng = np.random.default_rng(rank)
    raw = rng.integers(0, 100, n)
    if dtype is torch.bool:
        return torch.from_numpy(raw > 50)
    t = torch.from_numpy(raw).to(dtype)
    return t * (1 + 2j) if dtype.is_complex else t


def reduced(op, parts):
    """What the elements of all ranks become, by NumPy in the dtype that sums are made in."""
    dtype = parts[0].dtype
    if dtype is torch.bool:
        joined = (
            np.logical_and
            if op in (OP.PRODUCT, OP.MIN, OP.BAND)
            else np.logical_xor
            if op == OP.BXOR
            else np.logical_or
        )
        return torch.from_numpy(joined.reduce([p.numpy() for p in parts]))
    arrays = [p.float().numpy() if dtype in (torch.float16, torch.bfloat16) else p.numpy() for p in parts]
    if op == OP.AVG:
        total = sum(arrays[1:], arrays[0])
        mean = total / len(parts) if arrays[0].dtype.kind in "fc" else np.trunc(total / len(parts))
        return torch.from_numpy(mean.astype(arrays[0].dtype)).to(dtype)
    out = {**NUMPY, **BITS}[op].reduce(arrays).astype(arrays[0].dtype)
    return torch.from_numpy(out).to(dtype)


def cases():
    for dtype in [*INTEGERS, *FLOATS, torch.complex64, torch.complex128, torch.bool]:
        ops = [OP.SUM] if dtype.is_complex else [*NUMPY, OP.AVG]
        if dtype in INTEGERS or dtype is torch.bool:
            ops += BITS
        for op in ops:
            yield dtype, op


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_reductions(ranks):
    def run(rank):
        for (dtype, op), n in itertools.product(cases(), SIZES):
            parts = [values(k, n, dtype) for k in range(ranks)]
            wanted = reduced(op, parts)
            here = parts[rank].clone()
            dist.all_reduce(here, op)
            torch.testing.assert_close(here, wanted, msg=lambda m, w=(dtype, op, n): f"{w}: {m}", equal_nan=True)
            spread = torch.stack([parts[rank], parts[rank]], 1)[:, 0] if n else parts[rank].clone()
            dist.reduce(spread, ranks - 1, op)
            torch.testing.assert_close(spread, wanted if rank == ranks - 1 else parts[rank], equal_nan=True)

    threads.spawn(run, ranks)


def test_same_bits_on_all_ranks():
    def run(rank):
        x = torch.randn(10_001, generator=torch.Generator().manual_seed(rank))
        dist.all_reduce(x)
        return x

    first, *others = threads.spawn(run, 3)
    for x in others:
        assert torch.equal(first, x)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_moves(ranks, n):
    def run(rank):
        for dtype in (torch.float32, torch.bfloat16, torch.bool):
            parts = [values(k, n, dtype) for k in range(ranks)]
            own = parts[rank]
            got = torch.zeros(n, dtype=dtype) if rank else own.clone()
            dist.broadcast(got, 0)
            assert torch.equal(got, parts[0])
            every = [torch.zeros(n, dtype=dtype) for _ in parts]
            dist.all_gather(every, own)
            assert all(torch.equal(a, b) for a, b in zip(every, parts))
            joined = torch.zeros(ranks, n, dtype=dtype)
            dist.all_gather_into_tensor(joined, own)
            assert torch.equal(joined, torch.stack(parts))
            root = ranks - 1
            every = [torch.zeros(n, dtype=dtype) for _ in parts] if rank == root else None
            dist.gather(own, every, root)
            assert every is None or all(torch.equal(a, b) for a, b in zip(every, parts))
            got = torch.zeros(n, dtype=dtype)
            dist.scatter(got, [p.clone() for p in parts] if rank == 0 else None, 0)
            assert torch.equal(got, own)
            got = [torch.zeros(n, dtype=dtype) for _ in parts]
            dist.all_to_all(got, [parts[(rank + k) % ranks] for k in range(ranks)])
            assert all(torch.equal(got[k], parts[(rank + k) % ranks]) for k in range(ranks))

    threads.spawn(run, ranks)


def test_reduce_scatter_and_uneven_parts():
    def run(rank):
        parts = [torch.arange(9.0) + 10 * k for k in range(3)]
        out = torch.zeros(3)
        dist.reduce_scatter_tensor(out, parts[rank])
        assert torch.equal(out, sum(parts)[3 * rank : 3 * rank + 3])
        dist.reduce_scatter(out, list(parts[rank].view(3, 3)), OP.MAX)
        assert torch.equal(out, parts[2][3 * rank : 3 * rank + 3])
        x = parts[rank].clone()
        dist.reduce_scatter_tensor(x[3 * rank : 3 * rank + 3], x)  # over its own input
        assert torch.equal(x[3 * rank : 3 * rank + 3], sum(parts)[3 * rank : 3 * rank + 3])
        # rank r sends k + 1 rows to rank k
        given = torch.arange(6).repeat_interleave(2).view(6, 2) + 100 * rank
        taken = torch.zeros(3 * (rank + 1), 2, dtype=torch.int64)
        dist.all_to_all_single(taken, given, [rank + 1] * 3, [1, 2, 3])
        begin = rank * (rank + 1) // 2
        rows = [torch.arange(begin, begin + rank + 1).repeat_interleave(2).view(-1, 2) + 100 * k for k in range(3)]
        assert torch.equal(taken, torch.cat(rows))

    threads.spawn(run, 3)


def test_work_is_done_in_order():
    def run(rank):
        x = torch.full((5000,), float(rank + 1))
        works = [dist.all_reduce(x, async_op=True) for _ in range(3)]
        dist.barrier()
        assert all(w.is_completed() and w.is_success() for w in works)
        assert works[-1].get_future().wait()[0] is x
        assert works[0].wait() and works[0].result() == [x]
        return x[0].item()

    assert threads.spawn(run, 2) == [12.0, 12.0]


def test_groups_and_objects():
    def run(rank):
        even = dist.new_group([2, 0])
        if rank == 1:
            assert even == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(even) == -1
            assert dist.all_reduce(torch.ones(1), group=even) is None
        else:
            x = torch.tensor([rank])
            dist.all_reduce(x, group=even)
            assert x.item() == 2 and dist.get_rank(even) == rank // 2 and dist.get_process_group_ranks(even) == [0, 2]
            assert dist.get_group_rank(even, 2) == 1 and dist.get_global_rank(even, 1) == 2
        every = [None] * 3
        dist.all_gather_object(every, {"rank": rank, "text": "x" * rank})
        assert every == [{"rank": k, "text": "x" * k} for k in range(3)]
        found = [rank, "a", None] if rank == 1 else [None] * 3
        dist.broadcast_object_list(found, 1)
        assert found == [1, "a", None]
        out = [None]
        dist.scatter_object_list(out, ["p", ("q",), [3]] if rank == 0 else None)
        assert out == [["p", ("q",), [3]][rank]]
        gathered = [None] * 3 if rank == 2 else None
        dist.gather_object(rank, gathered, 2)
        assert gathered in (None, [0, 1, 2])
        own, _ = dist.new_subgroups(1)
        assert own.size() == 1

    threads.spawn(run, 3)


def test_messages():
    def run(rank):
        right, left = (rank + 1) % 3, (rank - 1) % 3
        got = torch.zeros(4)
        ops = [dist.P2POp(dist.isend, torch.full((4,), float(rank)), right), dist.P2POp(dist.irecv, got, left)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        assert got.tolist() == [float(left)] * 4
        if rank:
            dist.send(torch.tensor([rank]), 0, tag=7)
        else:
            x = torch.zeros(1, dtype=torch.int64)
            assert {(dist.recv(x, tag=7), x.item()) for _ in range(2)} == {(1, 1), (2, 2)}
        if rank == 0:
            dist.send_object_list([1, "b"], 1)
        elif rank == 1:
            found = [None, None]
            assert dist.recv_object_list(found, 0) == 0 and found == [1, "b"]

    threads.spawn(run, 3)


def test_coalescing():
    def run(rank):
        xs = [torch.full((k + 1,), float(rank)) for k in range(3)]
        with dist._coalescing_manager(async_ops=True) as manager:
            for x in xs:
                dist.all_reduce(x)
        manager.wait()
        dist.all_reduce_coalesced(xs)
        return [x.sum().item() for x in xs]

    assert threads.spawn(run, 2) == [[2.0, 4.0, 6.0]] * 2


def test_a_factor_for_sums():
    def run(rank):
        x = torch.tensor([1.0, 2.0]) * (rank + 1)
        dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
        return x.tolist()

    assert threads.spawn(run, 2) == [[1.5, 3.0]] * 2


def test_ranks_that_disagree_all_raise_and_go_on():
    def run(rank):
        with pytest.raises(
            dist.DistBackendError, match=r"different collectives(.|\n)*rank 1: .*all_reduce \(SUM, 4 x float32\)"
        ):
            dist.all_reduce(torch.ones(3 + rank))
        with pytest.raises(dist.DistBackendError, match="different collectives"):
            dist.broadcast(torch.ones(3), 0) if rank else dist.all_reduce(torch.ones(3))
        x = torch.ones(2)
        dist.all_reduce(x)
        return x.tolist()

    assert threads.spawn(run, 2) == [[2.0, 2.0]] * 2


@pytest.mark.parametrize("elements", [1, 50_000], ids=["one slot", "several slots"])
def test_pieces_that_are_not_as_long_as_expected(elements):
    """All ranks raise, those too whose own pieces fit, and go on."""

    def run(rank):
        sizes = [elements] * 3 if rank else [elements, elements + 1, elements - 1]
        with pytest.raises(dist.DistBackendError, match=f"rank 1 sends {4 * elements} bytes to rank 0, which expects"):
            dist.all_to_all_single(torch.zeros(3 * elements), torch.ones(3 * elements), sizes, [elements] * 3)
        out = torch.zeros(3)
        dist.all_to_all_single(out, torch.full((3,), float(rank)))
        return out.tolist()

    assert threads.spawn(run, 3) == [[0.0, 1.0, 2.0]] * 3


def test_a_rank_that_does_not_come():
    def run(rank):
        if rank == 0:
            with pytest.raises(
                dist.DistBackendError, match="timed out after the timeout of 0.2 s: rank 1 did not come"
            ):
                dist.barrier()
        else:
            dist.get_group_rank(None, 0)

    threads.spawn(run, 2, timeout=datetime.timedelta(seconds=0.2))

    def monitored(rank):
        if rank == 0:
            with pytest.raises(dist.DistBackendError, match="Ranks 1, 2 failed to pass"):
                dist.monitored_barrier(timeout=datetime.timedelta(seconds=0.1), wait_all_ranks=True)

    threads.spawn(monitored, 3)


WAITS = {
    "collective": dist.barrier,
    "message": lambda: dist.recv(torch.ones(1), 1),
    "message of anybody": lambda: dist.recv(torch.ones(1)),
}


@pytest.mark.parametrize("how", WAITS)
def test_a_rank_that_raises_ends_the_wait_of_others(how):
    found = []

    def run(rank):
        if rank == 1:
            raise KeyError("mine")
        try:
            WAITS[how]()
        except dist.DistBackendError as error:
            found.append(str(error))

    with pytest.raises(KeyError, match="mine"):
        threads.spawn(run, 2)
    assert len(found) == 1 and "rank 1 gave up" in found[0]


def test_what_was_sent_before_is_received():
    def run(rank):
        if rank == 1:
            dist.send(torch.ones(2), 0)
            raise KeyError("mine")
        dist.recv(x := torch.zeros(2), 1)
        assert x.tolist() == [1, 1]

    with pytest.raises(KeyError, match="mine"):
        threads.spawn(run, 2)


WRONG = {
    "no tensor": (lambda: dist.all_reduce(3), TypeError, "torch.Tensor"),
    "no list": (lambda: dist.all_gather(torch.ones(1), torch.ones(1)), TypeError, "List"),
    "too few": (lambda: dist.all_gather([], torch.ones(1)), ValueError, "1 ranks"),
    "sizes": (lambda: dist.all_gather([torch.ones(2)], torch.ones(1)), ValueError, "bytes"),
    "dtypes": (lambda: dist.all_gather([torch.ones(1)], torch.ones(1, dtype=torch.int32)), ValueError, "dtypes"),
    "no such reduction": (lambda: dist.all_reduce(torch.ones(1), OP.BAND), RuntimeError, "BAND"),
    "complex order": (lambda: dist.all_reduce(torch.ones(1, dtype=torch.complex64), OP.MAX), ValueError, "MAX"),
    "no such rank": (lambda: dist.broadcast(torch.ones(1), 3), ValueError, "not part of group"),
    "to itself": (lambda: dist.send(torch.ones(1), 0), ValueError, "should not be the same"),
    "twice": (lambda: dist.init_process_group("fake", rank=0, world_size=2), ValueError, "twice"),
    "unknown backend": (lambda: dist.new_group(backend="what"), ValueError, "Invalid backend"),
    "gpu": (lambda: dist.new_group(backend="nccl"), RuntimeError, "NCCL built in"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors(case):
    call, error, text = WRONG[case]

    def run(rank):
        with pytest.raises(error, match=text):
            call()

    threads.spawn(run, 1)


def test_without_a_group():
    assert not dist.is_initialized() and dist.is_available()
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, lambda: dist.all_reduce(torch.ones(1))):
        with pytest.raises(ValueError, match="init_process_group"):
            call()


def test_the_package_is_an_attribute():
    program = (
        "import flambeau as torch; assert torch.distributed.is_available(); assert torch.distributed.nn.all_reduce"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)


def test_fake_group():
    dist.init_process_group("fake", rank=3, world_size=1000)
    try:
        x = torch.ones(5)
        dist.all_reduce(x)
        every = torch.zeros(1000, 5)
        dist.all_gather_into_tensor(every, x)
        assert x.tolist() == [1.0] * 5 and every.sum() == 5000
        assert dist.get_rank(dist.new_group([3, 5])) == 0
    finally:
        dist.destroy_process_group()


def test_several_tensors_in_one():
    """Lists of all_gather_coalesced are by rank, as PyTorch's, also where there are as many tensors as ranks."""

    def run(rank):
        given = [torch.full((2,), rank + 1.0), torch.full((1, 3), 10.0 * rank)]
        lists = [[torch.zeros(2), torch.zeros(1, 3)] for _ in range(2)]
        dist.all_gather_coalesced(lists, given)
        for k, (a, b) in enumerate(lists):
            assert a.tolist() == [k + 1.0] * 2 and b.tolist() == [[10.0 * k] * 3]
        work = dist.all_reduce_coalesced(given, async_op=True)
        work.wait()
        assert given[0].tolist() == [3.0, 3.0] and given[1].tolist() == [[10.0] * 3]
        dist.all_reduce_coalesced([a := torch.ones(1), b := torch.ones(1, dtype=torch.int64)])
        assert a.item() == b.item() == 2
        with pytest.raises(ValueError, match="one dtype"):
            dist.all_gather_coalesced([[a, b]] * 2, [a, b])
        with pytest.raises(ValueError, match="shapes of input_tensor_list"):
            dist.all_gather_coalesced([[torch.ones(1)], [torch.ones(2)]], [torch.ones(1)])

    threads.spawn(run, 2)


def test_sparse_sums():
    def run(rank):
        i = torch.tensor([[0, rank + 1]])
        x = torch.sparse_coo_tensor(i, torch.tensor([1.0, 2.0]), (4,))
        dist.all_reduce(x)
        assert x.to_dense().tolist() == [2.0, 2.0, 2.0, 0.0]
        with pytest.raises(RuntimeError, match="ReduceOp.SUM"):
            dist.all_reduce(x, OP.MAX)

    threads.spawn(run, 2)


def test_methods_of_groups():
    """What communication hooks of programs call."""

    def run(rank):
        group, n = dist.group.WORLD, 2
        x = torch.ones(2)
        assert group.allreduce([x]).get_future().then(lambda f: f.wait()[0] * 3).wait().tolist() == [6.0, 6.0]
        group.broadcast([y := torch.full((1,), float(rank))], 1).wait()
        assert y.item() == 1
        outs = [[torch.zeros(1) for _ in range(n)]]
        group.allgather(outs, [torch.full((1,), float(rank))]).wait()
        assert [t.item() for t in outs[0]] == [0.0, 1.0]
        group._allgather_base(z := torch.zeros(2), torch.full((1,), float(rank))).wait()
        assert z.tolist() == [0.0, 1.0]
        group.reduce_scatter([w := torch.zeros(1)], [[torch.ones(1), torch.ones(1)]]).wait()
        assert w.item() == 2
        group.barrier().wait()
        with pytest.raises(RuntimeError, match="single tensor"):
            group.allreduce([x, x])

    threads.spawn(run, 2)


def test_profiles_show_collectives():
    def run(rank):
        x = torch.ones(4, 3)
        dist.barrier()
        if rank:
            dist.all_reduce(x)
            return
        with torch.profiler.profile(record_shapes=True) as prof:
            dist.all_reduce(x)
        # The other rank is a thread of this process: its call is there, too, where it comes late.
        events = [e for e in prof.events() if e.category == "collective"]
        assert 1 <= len(events) <= 2
        assert all(e.name == "threaded:all_reduce" and e.is_async and e.input_shapes == [[4, 3]] for e in events)

    threads.spawn(run, 2)
