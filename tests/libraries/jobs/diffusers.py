"""diffusers: a UNet, the schedulers' steps, an autoencoder, a pipeline from parts."""

import torch
from harness import both, summary


def _unet():
    from diffusers import UNet2DModel

    torch.manual_seed(0)
    return UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8,
    )  # fmt: skip


def unet():
    return both(_unet(), dict(sample=torch.randn(2, 3, 16, 16), timestep=torch.tensor([3, 7])))


def unet_conditioned():
    from diffusers import UNet2DConditionModel

    torch.manual_seed(0)
    model = UNet2DConditionModel(
        sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=12, attention_head_dim=4,
    )  # fmt: skip
    inputs = dict(sample=torch.randn(1, 4, 8, 8), timestep=torch.tensor(5), encoder_hidden_states=torch.randn(1, 3, 12))
    return both(model, inputs)


def autoencoder():
    from diffusers import AutoencoderKL

    torch.manual_seed(0)
    model = AutoencoderKL(block_out_channels=(8, 16), norm_num_groups=4, down_block_types=("DownEncoderBlock2D",) * 2,
                          up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=2, sample_size=16)  # fmt: skip
    x = torch.randn(1, 3, 16, 16)
    latent = model.encode(x).latent_dist
    out = model.decode(latent.mode()).sample
    (out.pow(2).mean() + latent.kl().mean()).backward()
    return {"latent": latent.mean, "out": out, "gradient": model.encoder.conv_in.weight.grad}


def schedulers():
    """Ten steps of each scheduler with a fixed "model"."""
    import diffusers

    out = {}
    for name in (
        "DDPM",
        "DDIM",
        "PNDM",
        "EulerDiscrete",
        "DPMSolverMultistep",
        "LMSDiscrete",
        "HeunDiscrete",
        "UniPCMultistep",
    ):
        scheduler = getattr(diffusers, f"{name}Scheduler")(num_train_timesteps=100)
        scheduler.set_timesteps(5)
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(1, 2, 4, 4, generator=generator) * scheduler.init_noise_sigma
        for t in scheduler.timesteps:
            noise = torch.tanh(scheduler.scale_model_input(x, t))
            options = {"generator": generator} if name in ("DDPM", "EulerDiscrete") else {}
            x = scheduler.step(noise, t, x, **options).prev_sample
        out[name] = summary(x)
    return out


def training_step():
    """Add noise, predict it, one optimizer step: DDPM's training loop."""
    from diffusers import DDPMScheduler

    model, scheduler = _unet(), DDPMScheduler(num_train_timesteps=50)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(2):
        clean, noise = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16)
        steps = torch.randint(0, 50, (2,))
        loss = torch.nn.functional.mse_loss(model(scheduler.add_noise(clean, noise, steps), steps).sample, noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return {"losses": losses}


def pipeline():
    from diffusers import DDIMScheduler, DDPMPipeline

    work = DDPMPipeline(_unet().eval(), DDIMScheduler(num_train_timesteps=20))
    work.set_progress_bar_config(disable=True)
    images = work(
        batch_size=1, num_inference_steps=2, generator=torch.Generator().manual_seed(0), output_type="np"
    ).images
    return {"image": torch.from_numpy(images)}
