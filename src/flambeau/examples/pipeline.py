"""A model of four stages, trained on microbatches: ``flambeau launch -n 2 pipeline.py`` gives each rank two stages, without the launcher one process
has all of them."""

import os

import flambeau as torch
import flambeau.distributed as dist
from flambeau import nn
from flambeau.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B

STAGES, MICROBATCHES, WIDTH = 4, 8, 32


def stage_module(index: int) -> nn.Module:
    torch.manual_seed(index)  # each rank makes its stages only
    first, last = (1 if index == 0 else WIDTH), (1 if index == STAGES - 1 else WIDTH)
    return nn.Sequential(nn.Linear(first, WIDTH), nn.Tanh(), nn.Linear(WIDTH, last))


def main() -> None:
    if "RANK" in os.environ:
        dist.init_process_group()
    rank, ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    own = range(rank, STAGES, ranks)
    stages = [PipelineStage(stage_module(k), k, STAGES) for k in own]
    schedule = ScheduleInterleaved1F1B(stages, MICROBATCHES, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.Adam([p for s in stages for p in s.submod.parameters()], lr=3e-3)
    x = torch.linspace(-3, 3, 256)[:, None]
    y = torch.sin(2 * x)
    for step in range(201):
        optimizer.zero_grad()
        losses: list[torch.Tensor] = []
        inputs = (x,) if 0 in own else ()
        target = y if STAGES - 1 in own else None
        schedule.step(*inputs, target=target, losses=losses)
        optimizer.step()
        if losses and step % 50 == 0:
            print(f"step {step:3}  loss {torch.stack(losses).mean().item():.4f}")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
