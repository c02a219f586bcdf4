"""Lightning's trainer, which starts the second process itself. ``STRATEGY FOLDER``."""

import sys

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))

    def training_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.layers(x), y)

    def validation_step(self, batch, index):
        x, y = batch
        self.log("right", (self.layers(x).argmax(-1) == y).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 2e-2)


if __name__ == "__main__":
    lightning.seed_everything(0)
    x = torch.randn(64, 8)
    data = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=8)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=sys.argv[1],
        max_epochs=4,
        logger=False,
        enable_progress_bar=False,
        default_root_dir=sys.argv[2],
    )
    trainer.fit(Model(), data, data)
    assert trainer.world_size == 2 and float(trainer.callback_metrics["right"]) > 0.8, trainer.callback_metrics
    print("done", flush=True)
