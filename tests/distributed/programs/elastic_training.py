"""A training program that may be ended at any moment and started again with another number of ranks: ``elastic_training.py FOLDER STEPS``.

It goes on from the last checkpoint. All ranks together take the same batches, each rank its part. At step 3 it waits for the file ``go``."""

import os
import sys
import time
from pathlib import Path

import flambeau as torch
import flambeau.distributed as dist
from flambeau.distributed.elastic.multiprocessing.errors import record
from flambeau.nn.parallel import DistributedDataParallel as DDP


def made():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    return model


def step(model, optimizer, number, rank=0, size=1):
    generator = torch.Generator().manual_seed(number)
    x, y = torch.randn(12, 6, generator=generator), torch.randn(12, 2, generator=generator)
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x[rank::size]), y[rank::size]).backward()
    optimizer.step()


@record
def main(folder: Path, steps: int) -> None:
    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    model = DDP(made())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    first = 0
    if (folder / "checkpoint.pt").exists():
        saved = torch.load(folder / "checkpoint.pt")
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"] + 1
    print(f"from step {first} on {size} ranks", flush=True)
    for number in range(first, steps):
        step(model, optimizer, number, rank, size)
        if rank == 0:
            # Whole or not at all: this rank may be killed meanwhile.
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": number}
            torch.save(state, folder / "checkpoint.part")
            os.replace(folder / "checkpoint.part", folder / "checkpoint.pt")
        dist.barrier()
        while number == 3 and not (folder / "go").exists():
            time.sleep(0.02)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
