"""timm: one small model of each family, its data configuration, optimizers and schedules."""

import torch
from harness import both, gradients, summary


def _model(name, size=64, **options):
    import timm

    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=7, **options)
    return model, (torch.randn(2, 3, size, size),)


def resnet():
    model, inputs = _model("resnet10t")
    return both(model.eval(), inputs)


def resnet_trains():
    """Batch statistics and two steps of SGD with momentum."""
    model, (x,) = _model("resnet10t")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
    losses = []
    for _ in range(2):
        loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([1, 3]), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "statistics": summary(model.bn1.running_var)}


def vit():
    model, inputs = _model("vit_tiny_patch16_224", 32, img_size=32, patch_size=8, depth=2)
    return both(model.eval(), inputs)


def convnext():
    model, inputs = _model("convnext_atto", 64)
    return both(model.eval(), inputs)


def mixer():
    model, inputs = _model("mixer_s32_224", 64, img_size=64)
    return both(model.eval(), inputs)


def efficientnet():
    model, inputs = _model("efficientnet_lite0", 64)
    return both(model.eval(), inputs)


def mobilenet():
    model, inputs = _model("mobilenetv3_small_050", 64)
    return both(model.eval(), inputs)


def swin():
    model, inputs = _model(
        "swin_tiny_patch4_window7_224", 56, img_size=56, embed_dim=24, depths=(1, 1), num_heads=(1, 2)
    )
    return both(model.eval(), inputs)


def features():
    """A backbone that gives the maps of its stages."""
    import timm

    torch.manual_seed(0)
    model = timm.create_model("resnet10t", features_only=True).eval()
    return {f"stage {k}": x for k, x in enumerate(model(torch.randn(1, 3, 64, 64)))}


def optimizers_and_schedule():
    """timm's own optimizers by name, and its cosine schedule with warm-up."""
    import timm.optim
    import timm.scheduler

    out = {}
    for name in ("sgd", "adamw", "lamb", "adafactor", "rmsproptf", "nadamw", "lion", "madgrad", "adan"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 3))
        optimizer = timm.optim.create_optimizer_v2(model, opt=name, lr=0.05, weight_decay=0.01)
        schedule = timm.scheduler.CosineLRScheduler(optimizer, t_initial=5, warmup_t=2, warmup_lr_init=1e-3)
        x = torch.randn(4, 6)
        for step in range(3):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            schedule.step(step)
        out[name] = summary(model[0].weight) + [loss.item(), optimizer.param_groups[0]["lr"]]
    return out


def losses_and_mixup():
    import timm.data
    import timm.loss

    x, target = torch.randn(4, 5), torch.tensor([0, 2, 4, 1])
    soft = timm.data.mixup.mixup_target(target, 5, lam=0.3, smoothing=0.1)
    return {
        "soft": timm.loss.SoftTargetCrossEntropy()(x, soft),
        "smooth": timm.loss.LabelSmoothingCrossEntropy(0.1)(x, target),
        "asymmetric": timm.loss.AsymmetricLossSingleLabel()(x, target),
    }


def average():
    """The moving average of a model's weights."""
    import timm.utils

    model, (x,) = _model("resnet10t")
    ema = timm.utils.ModelEmaV2(model, decay=0.5)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1)
    ema.update(model)
    model(x).mean().backward()
    return {"weights": ema.module.fc.weight, "gradients": gradients(model)["first"]}
