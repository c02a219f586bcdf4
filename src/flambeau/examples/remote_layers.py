"""Layers that lie on other workers, trained from one of them: ``flambeau launch -n 3 remote_layers.py``; without the launcher one worker has all."""

import os
import tempfile

import flambeau as torch
import flambeau.distributed.autograd as dist_autograd
import flambeau.distributed.rpc as rpc
from flambeau import nn
from flambeau.distributed.rpc.optimizer import DistributedOptimizer


def layer(seed: int, rows: int, columns: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Linear(rows, columns)


def parameters_of(module: rpc.RRef) -> list[rpc.RRef]:
    """References to the parameters of a module of this worker."""
    return [rpc.RRef(p) for p in module.local_value().parameters()]


def train(workers: int) -> None:
    sizes = [(1, 32), (32, 32), (32, 1)]
    layers = [rpc.remote((1 + k) % workers, layer, (k, *size)) for k, size in enumerate(sizes)]
    parameters = [p for each in layers for p in rpc.rpc_sync(each.owner(), parameters_of, (each,))]
    optimizer = DistributedOptimizer(torch.optim.Adam, parameters, lr=1e-2)
    x = torch.linspace(-3, 3, 256)[:, None]
    y = torch.sin(x)
    for step in range(151):
        with dist_autograd.context() as context_id:
            out = x
            for each in layers[:-1]:
                out = torch.tanh(each.rpc_sync().forward(out))
            loss = nn.functional.mse_loss(layers[-1].rpc_sync().forward(out), y)
            dist_autograd.backward(context_id, [loss])
            optimizer.step(context_id)
        if step % 50 == 0:
            print(f"step {step:3}  loss {loss.item():.4f}  layers on {', '.join(r.owner_name() for r in layers)}")


def main() -> None:
    rank, workers = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    with tempfile.TemporaryDirectory() as folder:
        method = "env://" if "RANK" in os.environ else f"file://{folder}/meet"
        options = rpc.TensorPipeRpcBackendOptions(init_method=method)
        rpc.init_rpc(f"worker{rank}", rank=rank, world_size=workers, rpc_backend_options=options)
        if rank == 0:
            train(workers)
        rpc.shutdown()


if __name__ == "__main__":
    main()
