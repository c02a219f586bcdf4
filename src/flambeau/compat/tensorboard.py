"""``torch.utils.tensorboard`` needs the tensorboard package, which only its own ``SummaryWriter`` of PyTorch knows how to feed."""

from __future__ import annotations

raise ModuleNotFoundError(
    "No module named 'tensorboard': torch.utils.tensorboard is not part of flambeau; log with tensorboardX or write files of your own",
    name="tensorboard",
)
