"""Networks of libraries that no list names: attention of all kinds, segmentation, equivariance, operators, agents."""

import torch
import torch.nn.functional as F
from harness import both, steps
from torch import nn


def x_transformers_language_model():
    from x_transformers import Decoder, TransformerWrapper

    model = TransformerWrapper(
        num_tokens=32,
        max_seq_len=16,
        attn_layers=Decoder(dim=16, depth=2, heads=2, rotary_pos_emb=True, ff_glu=True, attn_dim_head=8),
    )
    ids = torch.randint(0, 32, (2, 12))
    out = steps(model, lambda: F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:]))
    return out | both(model, (ids,))


def vit_pytorch_models():
    from vit_pytorch import SimpleViT, ViT
    from vit_pytorch.cct import CCT

    x, out = torch.randn(2, 3, 16, 16), {}
    options = dict(image_size=16, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32)
    for name, model in {
        "vit": ViT(**options, dim_head=8),
        "simple": SimpleViT(**options, dim_head=8),
        "cct": CCT(
            img_size=(16, 16),
            embedding_dim=16,
            n_conv_layers=1,
            kernel_size=3,
            num_layers=2,
            num_heads=2,
            num_classes=5,
            stochastic_depth_rate=0.0,
            dropout_rate=0.0,
            attention_dropout=0.0,
        ),
    }.items():
        out |= {f"{name} {k}": v for k, v in both(model, (x,)).items()}
    return out


def segmentation_models():
    import segmentation_models_pytorch as smp

    model = smp.Unet("resnet18", encoder_weights=None, classes=2, decoder_channels=(16, 16, 8, 8, 8))
    loss = smp.losses.DiceLoss(mode="multiclass")
    x, y = torch.randn(2, 3, 96, 96), torch.randint(0, 2, (2, 96, 96))
    out = steps(model, lambda: loss(model(x), y), 2, torch.optim.SGD(model.parameters(), lr=1e-2))
    return out | both(model.eval(), (x,))


def vector_quantize():
    from vector_quantize_pytorch import FSQ, VectorQuantize

    torch.manual_seed(0)
    vq = VectorQuantize(dim=8, codebook_size=16)
    quantized, index, loss = vq(torch.randn(2, 10, 8))
    fsq, fsq_index = FSQ([5, 3])(torch.randn(2, 6, 2))
    return {"quantized": quantized, "index": index, "loss": loss, "fsq": fsq, "fsq index": fsq_index}


def monai_networks():
    from monai.losses import DiceCELoss
    from monai.metrics import DiceMetric
    from monai.networks.nets import UNet
    from monai.transforms import Compose, NormalizeIntensity, RandFlip

    model = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
    x, y = torch.randn(2, 1, 32, 32), torch.randint(0, 2, (2, 1, 32, 32))
    loss = DiceCELoss(to_onehot_y=True, softmax=True)
    out = steps(model, lambda: loss(model(x), y), 2)
    metric = DiceMetric()
    metric(y_pred=(x > 0).float(), y=y)
    turned = Compose([NormalizeIntensity(), RandFlip(prob=1.0, spatial_axis=0)])(x[0])
    return out | both(model.eval(), (x,)) | {"dice": metric.aggregate(), "transformed": torch.as_tensor(turned)}


def sentence_embeddings():
    from sentence_transformers import util
    from sentence_transformers.models import Dense, Normalize, Pooling

    pooling = Pooling(8, pooling_mode="mean")
    tokens = torch.randn(3, 5, 8)
    features = pooling(
        {"token_embeddings": tokens, "attention_mask": torch.tensor([[1, 1, 1, 0, 0], [1] * 5, [1, 1, 0, 0, 0]])}
    )
    vectors = Normalize()(Dense(8, 4)(features))["sentence_embedding"]
    return {
        "vectors": vectors,
        "cosine": util.cos_sim(vectors, vectors),
        "hits": [float(h["score"]) for h in util.semantic_search(vectors[:1], vectors)[0]],
        "pairs": util.pairwise_dot_score(vectors, vectors),
    }


def open_clip_model():
    from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg

    model = CLIP(
        embed_dim=16,
        vision_cfg=CLIPVisionCfg(layers=2, width=64, head_width=32, patch_size=8, image_size=16),
        text_cfg=CLIPTextCfg(context_length=8, vocab_size=50, width=32, heads=2, layers=2),
    )
    image, text = torch.randn(3, 3, 16, 16), torch.randint(1, 50, (3, 8))

    def loss():
        a, b, scale = model(image, text)[:3]
        logits = scale * a @ b.T
        return F.cross_entropy(logits, torch.arange(3)) + F.cross_entropy(logits.T, torch.arange(3))

    return steps(model, loss) | both(model, (image, text))


def equivariant_networks():
    from e3nn import o3
    from e3nn.nn import Gate

    irreps = o3.Irreps("2x0e + 1x1o")
    product = o3.FullyConnectedTensorProduct(irreps, irreps, "2x0e + 1x1o + 1x2e")
    x = irreps.randn(4, -1)
    compiled = both(product, (x, x))
    y = product(x, x)
    gate = Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o")
    return {
        "spherical": o3.spherical_harmonics([0, 1, 2], torch.randn(5, 3), normalize=True),
        "product": y,
        "gate": gate(gate.irreps_in.randn(3, -1)),
        "wigner": o3.wigner_3j(1, 1, 2),
        "linear": o3.Linear(irreps, "3x0e")(x),
    } | compiled


def neural_operator():
    from neuralop.models import FNO

    model = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2)
    x = torch.randn(2, 1, 12, 12)
    return steps(model, lambda: (model(x) - x).pow(2).mean()) | both(model, (x,))


def reinforcement_learning():
    import gymnasium
    import numpy as np
    from stable_baselines3 import A2C, DQN, PPO

    class Corridor(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            self.at, self.t = 0.0, 0
            return self._see(), {}

        def _see(self):
            return np.array([self.at, self.t / 10], np.float32)

        def step(self, action):
            self.at, self.t = float(np.clip(self.at + (0.2 if action else -0.2), -1, 1)), self.t + 1
            return self._see(), self.at, self.t >= 10, False, {}

    out = {}
    for name, algorithm, options in (
        ("a2c", A2C, {}),
        ("ppo", PPO, dict(n_steps=32, batch_size=16, n_epochs=2)),
        ("dqn", DQN, dict(learning_starts=8, buffer_size=64)),
    ):
        model = algorithm("MlpPolicy", Corridor(), seed=0, device="cpu", **options).learn(64)
        out[name] = [float(sum(p.detach().double().pow(2).sum() for p in model.policy.parameters()))]
    return out


def tabular_network():
    from pytorch_tabnet.tab_network import TabNet

    net = TabNet(6, 3, n_d=4, n_a=4, n_steps=2, virtual_batch_size=8, group_attention_matrix=torch.eye(6))
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))

    def loss():
        out, sparsity = net(x)
        return F.cross_entropy(out, y) - 1e-3 * sparsity

    return steps(net, loss) | both(net.eval(), (x,))


def diffusion_by_lucidrains():
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    net = Unet(dim=8, dim_mults=(1, 2), flash_attn=False, attn_heads=2, attn_dim_head=8)
    diffusion = GaussianDiffusion(net, image_size=8, timesteps=20)
    x = torch.rand(2, 3, 8, 8)
    return steps(diffusion, lambda: diffusion(x), 2) | both(net, (x, torch.tensor([3, 7])))


def attention_by_lucidrains():
    from conformer import Conformer
    from linformer import Linformer
    from perceiver_pytorch import Perceiver
    from performer_pytorch import Performer
    from rotary_embedding_torch import RotaryEmbedding

    x, out = torch.randn(2, 16, 16), {}
    for name, model in {
        "conformer": Conformer(dim=16, depth=1, dim_head=8, heads=2, conv_kernel_size=5),
        "linformer": Linformer(dim=16, seq_len=16, depth=1, heads=2, k=8),
        "performer": Performer(dim=16, depth=1, heads=2, dim_head=8, causal=False),
    }.items():
        out |= {f"{name} {k}": v for k, v in both(model, (x,)).items()}
    perceiver = Perceiver(
        input_channels=3,
        input_axis=2,
        num_freq_bands=2,
        max_freq=4.0,
        depth=1,
        num_latents=4,
        latent_dim=8,
        num_classes=3,
        latent_heads=2,
        latent_dim_head=4,
        cross_dim_head=8,
    )
    rotary = RotaryEmbedding(dim=8)
    return (
        out
        | both(perceiver, (torch.randn(2, 5, 5, 3),))
        | {"rotary": rotary.rotate_queries_or_keys(torch.randn(1, 2, 5, 8))}
    )


def self_supervised_losses():
    from lightly.loss import BarlowTwinsLoss, DINOLoss, NTXentLoss, VICRegLoss
    from lightly.models.modules import SimCLRProjectionHead

    a, b, out = torch.randn(6, 8, requires_grad=True), torch.randn(6, 8), {}
    for name, loss in {"ntxent": NTXentLoss(), "barlow": BarlowTwinsLoss(), "vicreg": VICRegLoss()}.items():
        a.grad = None
        value = loss(a, b)
        value.backward()
        out[name], out[f"{name} gradient"] = value, a.grad
    return out | both(SimCLRProjectionHead(8, 8, 4), (b,)) | {"dino": DINOLoss(output_dim=8)([a, b], [b, a], epoch=1)}


def pruned_network():
    import torch_pruning as tp

    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(4 * 16, 3)
    )
    x = torch.randn(2, 3, 8, 8)
    pruner = tp.pruner.MagnitudePruner(
        net, x, importance=tp.importance.MagnitudeImportance(p=2), pruning_ratio=0.5, ignored_layers=[net[-1]]
    )
    pruner.step()
    return {"out": net(x), "shapes": [float(n) for p in net.parameters() for n in p.shape]}
