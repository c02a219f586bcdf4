"""What programs for CUDA ask of the surface besides values: kinds of tensors, streams, pinned batches, refusals, names."""

import collections

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.profiling.events import FunctionEventAvg

# (a program, a part of the error's text): what isn't built says so, and nothing comes back on another device than was asked for.
REFUSED = [
    (
        lambda: torch.eye(2).to_sparse().cuda(),
        "sparse tensors live on the CPU in flambeau; device 'cuda:0' was asked for",
    ),
    (lambda: torch.eye(2).to_sparse_csr().to("cuda"), "sparse tensors live on the CPU"),
    (lambda: torch.eye(2).cuda().to_sparse(), "sparse tensors live on the CPU"),
    (lambda: torch.eye(2).cuda().to_sparse_csr(), "sparse tensors live on the CPU"),
    (lambda: torch.eye(2).to_sparse() @ torch.eye(2).cuda(), "sparse tensors live on the CPU"),
    (
        lambda: torch.sparse_coo_tensor(torch.tensor([[0], [1]]).cuda(), torch.ones(1).cuda(), (2, 2)),
        "sparse tensors live on the CPU",
    ),
    (
        lambda: torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.ones(1).cuda(), (2, 2)),
        "sparse tensors live on the CPU",
    ),
    (
        lambda: nn.Embedding(3, 2, sparse=True).cuda()(torch.tensor([1]).cuda()).sum().backward(),
        "sparse tensors live on the CPU",
    ),
    (lambda: torch.quantize_per_tensor(torch.ones(2).cuda(), 0.1, 0, torch.qint8), "quantized tensors live on the CPU"),
    (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8).cuda(), "quantized tensors live on the CPU"),
    (
        lambda: torch.cuda.memory_snapshot(),
        "torch.cuda.memory_snapshot is not available in flambeau: it is not built for the CUDA device",
    ),
    (lambda: torch.cuda.ExternalStream(0), "it is not built for the CUDA device"),
    (
        lambda: nn.parallel.DistributedDataParallel(nn.Linear(2, 2).cuda(), device_ids=[0]),
        "of a module on device 'cuda' isn't built",
    ),
    (
        lambda: torch.rand(2, device="cuda", generator=torch.Generator()),
        "Expected a 'cuda' device type for generator but found 'cpu'",
    ),
    (
        lambda: torch.ones(2).cuda().normal_(generator=torch.Generator()),
        "Expected a 'cuda' device type for generator but found 'cpu'",
    ),
    (
        lambda: torch.ones(2)[torch.tensor([0]).cuda()],
        "indices should be either on cpu or on the same device as the indexed tensor",
    ),
    (
        lambda: torch.ones(2).cuda().pin_memory(),
        "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned",
    ),
    (
        lambda: torch.cuda.Event(enable_timing=True).elapsed_time(torch.cuda.Event(enable_timing=True)),
        "Both events must be recorded",
    ),
]


@pytest.mark.parametrize("program, text", REFUSED, ids=range(len(REFUSED)))
def test_refusals(program, text):
    with pytest.raises((NotImplementedError, RuntimeError, ValueError), match=text):
        program()


def test_types_by_their_old_names():
    x = torch.ones(3).type("torch.cuda.HalfTensor")
    assert x.type() == "torch.cuda.HalfTensor" and x.is_cuda and isinstance(x, torch.cuda.HalfTensor)
    assert not isinstance(x, torch.HalfTensor) and not isinstance(x.cpu(), torch.cuda.HalfTensor)
    assert x.type(torch.float64).is_cuda and x.type(torch.FloatTensor).type() == "torch.FloatTensor"
    y = torch.cuda.LongTensor([1, 2])
    assert y.is_cuda and y.tolist() == [1, 2] and torch.ones(2).type(torch.cuda.LongTensor).type() == y.type()
    assert (
        torch.cuda.LongTensor is torch.cuda.LongTensor
        and str(torch.cuda.LongTensor) == "<class 'torch.cuda.LongTensor'>"
    )
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    try:
        assert torch.ones(1).is_cuda
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(1).device.type == "cpu"


Pair = collections.namedtuple("Pair", "a b")


class Batch:
    def __init__(self, parts):
        self.x = torch.stack(parts)

    def pin_memory(self):
        self.x = self.x.pin_memory()
        return self


def test_batches_are_pinned():
    rows = [
        {"x": torch.ones(2), "pair": Pair(torch.zeros(1), 3), "name": "n", "list": [torch.ones(1)]} for _ in range(4)
    ]
    for workers in (0, 2):
        for batch in torch.utils.data.DataLoader(rows, batch_size=2, pin_memory=True, num_workers=workers):
            assert batch["x"].is_pinned() and batch["pair"].a.is_pinned() and batch["list"][0].is_pinned()
            assert (
                type(batch["pair"]) is Pair
                and batch["name"] == ["n", "n"]
                and batch["x"].cuda(non_blocking=True).sum() == 4
            )
    (own, _) = torch.utils.data.DataLoader(torch.arange(4.0), batch_size=2, collate_fn=Batch, pin_memory=True)
    assert own.x.is_pinned()
    assert not next(iter(torch.utils.data.DataLoader(torch.arange(4.0)))).is_pinned()


def test_streams_and_events_of_any_device():
    stream, event = torch.Stream("cuda"), torch.Event("cuda", enable_timing=True)
    assert isinstance(stream, torch.cuda.Stream) and isinstance(stream, torch.Stream) and isinstance(event, torch.Event)
    x = torch.ones(100, device="cuda")
    stream.wait_stream(torch.cuda.current_stream())
    with stream:
        assert torch.accelerator.current_stream() == stream
        y = x + 1
        stream.record_event(event)
    assert torch.accelerator.current_stream() != stream
    event.synchronize()
    assert y.sum() == 200 and repr(event).startswith("<torch.cuda.Event 0x") and event.device == torch.device("cuda:0")
    host = torch.Stream("cpu")
    assert repr(host) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0" and not isinstance(
        host, torch.cuda.Stream
    )
    with host:
        host.wait_event(torch.Event("cpu"))


def test_waiting_for_the_device_while_work_is_recorded():
    with pytest.raises(RuntimeError, match="operation not permitted when stream is capturing"):  # noqa: SIM117
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.cuda.synchronize()
    torch.cuda.synchronize()


def test_replays_draw_anew():
    x = torch.ones(1000, device="cuda")
    torch.dropout(x, 0.5, True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, z = torch.dropout(x, 0.5, True), torch.rand(8, device="cuda")
    torch.cuda.manual_seed(4)
    found = []
    for _ in range(3):
        graph.replay()
        found.append((y.clone(), z.clone()))
    assert all(0.4 < (a == 0).float().mean().item() < 0.6 and 0 <= b.min() and b.max() < 1 for a, b in found)
    assert not torch.equal(found[0][0], found[1][0]) and not torch.equal(found[1][1], found[2][1])
    torch.cuda.manual_seed(4)
    graph.replay()
    assert torch.equal(y, found[0][0]) and torch.equal(z, found[0][1])  # the state is the generator's
    graph.reset()
    torch.cuda.synchronize()


def test_a_step_with_dropout_is_graphed():
    model = nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.5)).cuda()
    graphed = torch.cuda.make_graphed_callables(model, (torch.ones(4, 8, device="cuda"),))
    first, second = (graphed(torch.ones(4, 8, device="cuda")).detach().clone() for _ in range(2))
    assert not torch.equal(first == 0, second == 0)
    model.eval()
    torch.testing.assert_close(graphed(torch.ones(4, 8, device="cuda")), model(torch.ones(4, 8, device="cuda")))


def test_a_profile_is_sorted_by_the_time_of_the_device():
    x = torch.ones(300, 300, device="cuda")
    x @ x, x + 1
    with torch.profiler.profile() as profile:
        x @ x
        x + 1
    rows = profile.key_averages()
    text = rows.table(sort_by="cuda_time_total")
    assert "Device total" in text
    launches = [e for e in rows if e.key.startswith("launch")]
    assert len(launches) == 2 and all(
        isinstance(e, FunctionEventAvg) and e.self_device_time_total > 0 for e in launches
    )
    products = [e for e in rows if e.key in ("aten::mm", "aten::matmul")]
    assert products and all(e.self_device_time_total == 0 < e.device_time_total for e in products)
    assert max(rows, key=lambda e: e.cuda_time_total).cuda_time_total == max(e.device_time_total for e in rows)


def test_what_a_device_is_shown_as():
    shown = repr(torch.cuda.get_device_properties(0))
    assert shown.startswith(
        '_CudaDeviceProperties(name="flambeau\'s simulated device", major=9, minor=0, total_memory='
    )
    assert torch.backends.cuda.is_built()
