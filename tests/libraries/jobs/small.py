"""Libraries around models: lightning, torchmetrics, skorch, accelerate, einops, safetensors."""

import os
import tempfile

import numpy as np
import torch
from harness import both, on_flambeau, summary
from torch import nn


def _net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def _data():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(24, 4, generator=generator)
    return torch.utils.data.TensorDataset(x, (x.sum(1) > 0).long())


def lightning_fit():
    import lightning as L

    class Work(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.seen = _net(), []

        def training_step(self, batch, index):
            x, y = batch
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.log("loss", loss)
            self.seen.append(loss.item())
            return loss

        def validation_step(self, batch, index):
            x, y = batch
            self.log("validation", nn.functional.cross_entropy(self.net(x), y))

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), lr=0.05)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    work, loader = Work(), torch.utils.data.DataLoader(_data(), batch_size=8)
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=True,
                            default_root_dir=folder, num_sanity_val_steps=1, gradient_clip_val=1.0)  # fmt: skip
        trainer.fit(work, loader, loader)
        path = os.path.join(folder, "kept.ckpt")
        trainer.save_checkpoint(path)
        again = Work.load_from_checkpoint(path)
    same = all(torch.equal(a, b) for a, b in zip(again.net.state_dict().values(), work.net.state_dict().values()))
    return {"losses": work.seen, "validation": trainer.callback_metrics["validation"], "same": [float(same)]}


def lightning_compiled():
    import lightning as L

    class Work(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.seen = _net(), []
            if on_flambeau():
                self.net = torch.compile(self.net)

        def training_step(self, batch, index):
            loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
            self.seen.append(loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    work = Work()
    trainer = L.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
                        enable_checkpointing=False)  # fmt: skip
    trainer.fit(work, torch.utils.data.DataLoader(_data(), batch_size=8))
    return {"losses": work.seen}


def lightning_fabric():
    import lightning as L

    fabric = L.Fabric(accelerator="cpu")
    fabric.launch()
    model = _net()
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    losses = []
    for x, y in fabric.setup_dataloaders(torch.utils.data.DataLoader(_data(), batch_size=8)):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}


def torchmetrics_classification():
    import torchmetrics.classification as c

    torch.manual_seed(0)
    scores, target = torch.rand(20, 4), torch.randint(0, 4, (20,))
    out = {}
    for metric in (c.MulticlassAccuracy(4), c.MulticlassF1Score(4), c.MulticlassConfusionMatrix(4), c.MulticlassAUROC(4),
                   c.MulticlassAveragePrecision(4), c.MulticlassCalibrationError(4), c.MulticlassCohenKappa(4)):  # fmt: skip
        metric.update(scores[:10], target[:10])
        metric.update(scores[10:], target[10:])
        out[type(metric).__name__] = metric.compute().float()
    return out


def torchmetrics_regression():
    import torchmetrics as m

    torch.manual_seed(0)
    a, b = torch.randn(30), torch.randn(30)
    found = m.MetricCollection(
        [m.MeanSquaredError(), m.MeanAbsoluteError(), m.R2Score(), m.PearsonCorrCoef(), m.SpearmanCorrCoef()]
    )
    found.update(a, b)
    return {**found.compute(), "cosine": m.functional.pairwise_cosine_similarity(a.view(6, 5), b.view(6, 5))}


def torchmetrics_image_and_text():
    from torchmetrics.functional.image import peak_signal_noise_ratio, structural_similarity_index_measure
    from torchmetrics.text import BLEUScore, Perplexity

    torch.manual_seed(0)
    a, b = torch.rand(1, 3, 24, 24), torch.rand(1, 3, 24, 24)
    return {
        "psnr": peak_signal_noise_ratio(a, b, data_range=1.0),
        "ssim": structural_similarity_index_measure(a, b, data_range=1.0),
        "bleu": BLEUScore(2)(["the cat sat here"], [["the cat sat down here"]]),
        "perplexity": Perplexity()(torch.rand(2, 5, 7), torch.randint(0, 7, (2, 5))),
    }


def skorch_fit():
    from skorch import NeuralNetClassifier

    x, y = (t.numpy() for t in _data().tensors)
    net = NeuralNetClassifier(
        _net, criterion=nn.CrossEntropyLoss, max_epochs=3, lr=0.1, batch_size=8, verbose=0, train_split=None
    )
    net.fit(x, y)
    again = NeuralNetClassifier(_net, criterion=nn.CrossEntropyLoss, verbose=0).initialize()
    with tempfile.TemporaryDirectory() as folder:
        net.save_params(f_params=f"{folder}/p.pt")
        again.load_params(f_params=f"{folder}/p.pt")
    same = np.array_equal(net.predict(x), again.predict(x))
    return {"losses": net.history[:, "train_loss"], "score": [float(net.score(x, y))], "same": [float(same)]}


def skorch_search():
    from sklearn.model_selection import GridSearchCV
    from skorch import NeuralNetClassifier

    x, y = (t.numpy() for t in _data().tensors)
    net = NeuralNetClassifier(
        _net, criterion=nn.CrossEntropyLoss, max_epochs=2, batch_size=8, verbose=0, train_split=None
    )
    found = GridSearchCV(net, {"lr": [0.01, 0.3]}, cv=2, refit=False).fit(x, y)
    return {"scores": found.cv_results_["mean_test_score"].tolist()}


def accelerate_loop():
    from accelerate import Accelerator
    from accelerate.utils import set_seed

    set_seed(0)
    work = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = _net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)
    loader = torch.utils.data.DataLoader(_data(), batch_size=6)
    model, optimizer, loader, schedule = work.prepare(model, optimizer, loader, schedule)
    losses = []
    for x, y in loader:
        with work.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            work.backward(loss)
            if work.sync_gradients:
                work.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(work.gather(loss).item())
    with tempfile.TemporaryDirectory() as folder:
        work.save_state(folder)
        work.load_state(folder)
    return {"losses": losses, "weight": work.unwrap_model(model)[0].weight}


def accelerate_empty():
    """Models without memory, loaded later."""
    from accelerate import init_empty_weights, load_checkpoint_and_dispatch

    source = _net()
    with init_empty_weights():
        empty = _net()
    assert all(p.device.type == "meta" for p in empty.parameters())
    with tempfile.TemporaryDirectory() as folder:
        torch.save(source.state_dict(), f"{folder}/model.bin")
        full = load_checkpoint_and_dispatch(empty, f"{folder}/model.bin", device_map={"": "cpu"})
    return {"out": full(torch.ones(1, 4))}


def einops_functions():
    from einops import einsum, pack, rearrange, reduce, repeat, unpack

    x = torch.arange(48.0).reshape(2, 3, 2, 4)
    packed, shapes = pack([x, x[:, 0]], "b * c")
    return {
        "rearranged": rearrange(x, "b c (h p) w -> b (h w) (p c)", p=1),
        "reduced": reduce(x, "b c h w -> b c", "max"),
        "repeated": repeat(x[0, 0], "h w -> (h 2) w"),
        "product": einsum(x, x, "b c h w, b d h w -> b c d"),
        "packed": packed,
        "unpacked": unpack(packed, shapes, "b * c")[1],
    }


def einops_layers():
    from einops.layers.torch import Rearrange, Reduce

    torch.manual_seed(0)
    model = nn.Sequential(
        Rearrange("b (h p) (w q) -> b (h w) (p q)", p=2, q=2), nn.Linear(4, 5), Reduce("b n c -> b c", "mean")
    )
    return both(model, (torch.randn(3, 4, 6),))


def safetensors_both_ways():
    from safetensors import safe_open
    from safetensors.torch import load, load_file, load_model, save, save_file, save_model

    model = _net()
    tensors = {
        "a": torch.arange(6.0).reshape(2, 3),
        "b": torch.ones(3, dtype=torch.bfloat16),
        "c": torch.tensor([1, 2]),
    }
    with tempfile.TemporaryDirectory() as folder:
        save_file(tensors, f"{folder}/x.safetensors", metadata={"made": "here"})
        again = load_file(f"{folder}/x.safetensors")
        with safe_open(f"{folder}/x.safetensors", framework="pt") as file:
            part, keys = file.get_slice("a")[:, 1:], sorted(file.keys())
        save_model(model, f"{folder}/m.safetensors")
        other = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        load_model(other, f"{folder}/m.safetensors")
    bytes_ = load(save(tensors))
    assert keys == ["a", "b", "c"]
    return {
        "a": again["a"],
        "b": again["b"].float(),
        "part": part,
        "c": bytes_["c"],
        "out": summary(other(torch.ones(1, 4))),
    }
