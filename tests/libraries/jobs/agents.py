"""Dictionaries of tensors and what learns with them: tensordict, torchrl, pytorch-forecasting, fastai."""

import tempfile
import warnings

import numpy as np
import torch
from harness import gradients, steps
from torch import nn


def _td():
    from tensordict import TensorDict

    generator = torch.Generator().manual_seed(0)
    parts = {"a": torch.randn(3, 4, generator=generator), "b": {"c": torch.randn(3, 2, generator=generator)}}
    return TensorDict(parts, batch_size=[3])


def tensordict_operations():
    from tensordict import TensorDict, tensorclass

    td = _td()
    joined = torch.cat([td, td * 2], 0)
    stacked = torch.stack([td, td.apply(lambda x: x.exp())], 1)
    kept = td.memmap(tempfile.mkdtemp())

    @tensorclass
    class Pair:
        x: torch.Tensor
        y: torch.Tensor

    pair = torch.stack([Pair(x=torch.ones(3, 2), y=torch.arange(3.0), batch_size=[3])] * 2)
    return {
        "cat": joined["b", "c"],
        "stack": stacked["a"],
        "mapped": kept["a"] + 1,
        "gather": td.gather(0, torch.tensor([2, 0]))["a"],
        "masked": td.masked_fill(torch.tensor([True, False, True]), 0.0)["a"],
        "class": pair[0, 1:].y,
        "size": [float(n) for n in td.unsqueeze(0).reshape(-1).shape],
        "rows": TensorDict.from_dict({"x": torch.arange(4.0)}, auto_batch_size=True)[1:]["x"],
    }


def tensordict_vmap():
    from tensordict import TensorDict

    td = _td().lock_()
    torch.manual_seed(0)
    models = [nn.Linear(4, 2) for _ in range(3)]
    weights, empty = TensorDict.from_modules(*models, as_module=True), nn.Linear(4, 2)

    def call(x, own):
        with own.to_module(empty):
            return empty(x)

    out = torch.vmap(call, (None, 0))(torch.ones(5, 4), weights)
    out.square().sum().backward()
    twice = torch.vmap(lambda t: t.apply(lambda x: x * 2))(td)
    sums = [torch.vmap(lambda t: t["a"].sum() + t["b", "c"].prod())(td) for _ in range(2)]
    grads = torch.stack([p.grad.abs().sum() for p in weights.parameters()])
    return {"ensemble": out, "container": twice["a"], "sums": torch.stack(sums), "gradients": grads.sort().values}


def tensordict_modules():
    from tensordict.nn import TensorDictModule, TensorDictSequential

    torch.manual_seed(0)
    net = TensorDictSequential(
        TensorDictModule(nn.Linear(4, 5), in_keys=["a"], out_keys=["h"]),
        TensorDictModule(nn.Tanh(), in_keys=["h"], out_keys=["y"]),
    )
    return {"forward": net(_td())["y"], **steps(net, lambda: net(_td())["y"].square().sum())}


def torchrl_losses():
    """DQN and PPO on the same rollout: what the environment gives is NumPy's."""
    warnings.filterwarnings("ignore")
    from tensordict import TensorDict
    from tensordict.nn import NormalParamExtractor, TensorDictModule, TensorDictSequential
    from torchrl.data import OneHot
    from torchrl.modules import MLP, ProbabilisticActor, QValueModule, TanhNormal, ValueOperator
    from torchrl.objectives import ClipPPOLoss, DQNLoss, SoftUpdate
    from torchrl.objectives.value import GAE

    generator = torch.Generator().manual_seed(0)
    following = {
        "observation": torch.randn(8, 4, generator=generator),
        "reward": torch.randn(8, 1, generator=generator),
        "done": torch.tensor([False] * 7 + [True])[:, None],
        "terminated": torch.tensor([False] * 7 + [True])[:, None],
    }
    data = TensorDict({"observation": torch.randn(8, 4, generator=generator), "next": following}, [8])
    torch.manual_seed(0)
    spec = OneHot(2)
    values = TensorDictModule(
        MLP(in_features=4, out_features=2, num_cells=[8]), in_keys=["observation"], out_keys=["action_value"]
    )
    policy = TensorDictSequential(values, QValueModule(spec=spec))
    dqn = DQNLoss(value_network=policy, action_space=spec, delay_value=True)
    dqn.make_value_estimator(gamma=0.9)
    update = SoftUpdate(dqn, eps=0.9)
    batch = data.clone().set("action", nn.functional.one_hot(torch.arange(8) % 2, 2))
    trained = steps(dqn, lambda: dqn(batch.clone())["loss"])
    update.step()
    actor = ProbabilisticActor(
        TensorDictModule(
            nn.Sequential(nn.Linear(4, 4), NormalParamExtractor()), in_keys=["observation"], out_keys=["loc", "scale"]
        ),
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        return_log_prob=True,
    )
    critic = ValueOperator(nn.Linear(4, 1), in_keys=["observation"])
    with torch.no_grad():
        played = actor(data.clone())
    advantage = GAE(gamma=0.9, lmbda=0.8, value_network=critic)(played)
    found = ClipPPOLoss(actor_network=actor, critic_network=critic, clip_epsilon=0.2)(advantage)
    return {
        "dqn": trained["losses"],
        "action": played["action"],
        "ppo": torch.stack([found["loss_objective"], found["loss_critic"]]),
    }


def forecasting_transformer():
    warnings.filterwarnings("ignore")
    import pandas
    from pytorch_forecasting import QuantileLoss, TemporalFusionTransformer, TimeSeriesDataSet
    from pytorch_forecasting.data import GroupNormalizer

    rng, n, t = np.random.RandomState(0), 3, 24
    table = {
        "step": np.tile(np.arange(t), n),
        "series": np.repeat([str(i) for i in range(n)], t),
        "value": (np.sin(np.arange(t) / 3)[None] + np.arange(n)[:, None] + 3 + 0.1 * rng.randn(n, t)).ravel(),
        "price": rng.rand(n * t),
    }
    data = TimeSeriesDataSet(
        pandas.DataFrame(table), time_idx="step", target="value", group_ids=["series"], max_encoder_length=8,
        max_prediction_length=4, static_categoricals=["series"], time_varying_known_reals=["step", "price"],
        time_varying_unknown_reals=["value"], target_normalizer=GroupNormalizer(groups=["series"], transformation="softplus"),
    )  # fmt: skip
    torch.manual_seed(0)
    model = TemporalFusionTransformer.from_dataset(
        data,
        hidden_size=8,
        attention_head_size=2,
        dropout=0.0,
        hidden_continuous_size=4,
        loss=QuantileLoss(),
        log_interval=-1,
    )
    x, y = next(iter(data.to_dataloader(train=False, batch_size=8)))
    out = model(x).prediction
    loss = model.loss(out, y)
    loss.backward()
    return {"prediction": out, "loss": loss, "gradients": gradients(model)["total"]}


def fastai_tabular():
    warnings.filterwarnings("ignore")
    import pandas
    from fastai.tabular.all import Categorify, Normalize, TabularDataLoaders, accuracy, set_seed, tabular_learner

    rng = np.random.RandomState(0)
    table = pandas.DataFrame(
        {"age": rng.randint(20, 60, 96), "job": rng.choice(["x", "y", "z"], 96), "y": rng.choice(["p", "q"], 96)}
    )
    set_seed(0, True)
    loaders = TabularDataLoaders.from_df(
        table,
        y_names="y",
        cat_names=["job"],
        cont_names=["age"],
        procs=[Categorify, Normalize],
        bs=16,
        num_workers=0,
        seed=0,
    )
    learner = tabular_learner(loaders, metrics=accuracy, layers=[8])
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(2, 1e-2)
    return {"losses": [float(loss) for loss in learner.recorder.losses], "predictions": learner.get_preds()[0]}
