"""Libraries of other fields: differential equations, Gaussian processes, image operators, graphs, adapters, attributions, optimizers."""

import copy
import tempfile

import torch
import torch.nn.functional as F
from harness import both, gradients
from torch import nn


def torchdiffeq_adjoint():
    from torchdiffeq import odeint, odeint_adjoint

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

        def forward(self, t, y):
            return self.net(y**3)

    field, y, t = Field(), torch.tensor([[2.0, 0.0]]), torch.linspace(0, 1, 5)
    out = {}
    for name, solve in (("plain", odeint), ("adjoint", odeint_adjoint)):
        for method in ("dopri5", "rk4"):
            field.zero_grad()
            got = solve(field, y, t, method=method)
            got.sum().backward()
            out[f"{name} {method}"] = got
            out[f"{name} {method} gradient"] = gradients(field)["total"]

    class Solved(nn.Module):
        def __init__(self):
            super().__init__()
            self.field = field

        def forward(self, y):
            return odeint(self.field, y, t, method="rk4")

    return out | both(Solved(), (y,))


def gpytorch_regression():
    import gpytorch

    x = torch.linspace(0, 1, 20)
    y = torch.sin(x * 6.28) + torch.randn(20) * 0.1

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(x, y, likelihood)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    model.train(), likelihood.train()
    for _ in range(4):
        optimizer.zero_grad()
        loss = -mll(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval(), likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(model(torch.linspace(0, 1, 7)))
    return {"losses": losses, "mean": found.mean, "variance": found.variance}


def kornia_images():
    import kornia

    x = torch.rand(1, 3, 16, 16, requires_grad=True)
    out = kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0))
    out = kornia.color.rgb_to_hsv(out)
    out.sum().backward()
    first = {"hsv": out, "gradient": x.grad}
    m = torch.tensor([[[1.0, 0.1, 2.0], [0.0, 1.0, -1.0]]])
    y, x = x.detach(), x.detach().requires_grad_()

    class Filters(nn.Module):
        def forward(self, x):
            return kornia.color.rgb_to_lab(
                kornia.filters.sobel(kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0))) + 0.1
            )

    return (
        {k: v.detach() for k, v in first.items()}
        | both(Filters(), (x,))
        | {
            "affine": kornia.geometry.warp_affine(y, m, (12, 12)),
            "sobel": kornia.filters.sobel(y),
            "canny": kornia.filters.canny(y)[0],
            "gray": kornia.color.rgb_to_grayscale(y),
            "ssim": kornia.metrics.ssim(y, y.flip(-1), 5),
            "rotate": kornia.geometry.rotate(y, torch.tensor([30.0])),
            "dilation": kornia.morphology.dilation(y, torch.ones(3, 3)),
            "resize": kornia.geometry.resize(y, (9, 9)),
            "harris": kornia.feature.harris_response(y),
            "lab": kornia.color.rgb_to_lab(y),
        }
    )


def kornia_augmentation():
    import kornia.augmentation as K

    torch.manual_seed(3)
    aug = K.AugmentationSequential(
        K.RandomHorizontalFlip(p=0.5),
        K.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
        K.RandomAffine(15.0, p=1.0),
        data_keys=["input"],
    )
    return {"out": aug(torch.rand(2, 3, 16, 16))}


def geometric_convolutions():
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool

    edge = torch.tensor([[0, 1, 1, 2, 3, 0], [1, 0, 2, 1, 0, 3]])
    graphs = [Data(x=torch.randn(4, 3), edge_index=edge, y=torch.tensor([i % 2])) for i in range(4)]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c, self.out = GCNConv(3, 8), GATConv(8, 4, heads=2), SAGEConv(8, 8), nn.Linear(8, 2)

        def forward(self, x, edge_index, batch):
            x = F.relu(self.a(x, edge_index))
            x = F.elu(self.b(x, edge_index))
            return self.out(global_mean_pool(self.c(x, edge_index), batch))

    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for batch in DataLoader(graphs, batch_size=2):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(batch.x, batch.edge_index, batch.batch), batch.y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses} | both(net, (batch.x, batch.edge_index, batch.batch))


def peft_lora():
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    base = GPT2LMHeadModel(
        GPT2Config(
            n_layer=2,
            n_head=2,
            n_embd=32,
            n_positions=32,
            vocab_size=64,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
    )
    fresh = copy.deepcopy(base)
    model = get_peft_model(
        base,
        LoraConfig(
            r=4, lora_alpha=8, target_modules=["c_attn"], lora_dropout=0.0, task_type="CAUSAL_LM", fan_in_fan_out=True
        ),
    )
    ids = torch.randint(0, 64, (2, 8))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(3):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    compiled = both(model, {"input_ids": ids, "labels": ids})
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = PeftModel.from_pretrained(fresh, folder)
    merged = again.merge_and_unload()
    return {
        "losses": losses,
        "merged": merged(ids).logits,
        "trainable": [float(sum(p.numel() for p in model.parameters() if p.requires_grad))],
    } | compiled


def torch_optimizer_steps():
    import torch_optimizer as opt

    out = {}
    for name in (
        "RAdam",
        "Yogi",
        "Lamb",
        "AdaBound",
        "DiffGrad",
        "QHAdam",
        "NovoGrad",
        "Shampoo",
        "AdaBelief",
        "SGDW",
        "Lookahead",
        "Ranger",
    ):
        torch.manual_seed(0)
        net = nn.Linear(3, 2)
        o = (
            opt.Lookahead(opt.Yogi(net.parameters(), lr=0.05))
            if name == "Lookahead"
            else getattr(opt, name)(net.parameters(), lr=0.05)
        )
        for _ in range(4):
            o.zero_grad()
            net(torch.ones(4, 3)).pow(2).mean().backward()
            o.step()
        out[name] = net.weight
    return out


def captum_attributions():
    from captum.attr import DeepLift, IntegratedGradients, LayerGradCam, Occlusion, Saliency

    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)).eval()
    x = torch.randn(2, 1, 8, 8)
    return {
        "ig": IntegratedGradients(net).attribute(x, target=1, n_steps=10),
        "saliency": Saliency(net).attribute(x.clone(), target=0),
        "deeplift": DeepLift(net).attribute(x, target=2),
        "cam": LayerGradCam(net, net[0]).attribute(x, target=1),
        "occlusion": Occlusion(net).attribute(x, target=1, sliding_window_shapes=(1, 4, 4), strides=(1, 4, 4)),
    }
