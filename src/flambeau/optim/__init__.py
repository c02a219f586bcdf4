"""Optimizers and learning-rate schedules.

``optimizer.py`` is the base (groups of parameters, state, saving); each algorithm is one file with one update function over one
parameter, all in-place tensor operations under no_grad. ``lr_scheduler.py`` changes the groups' ``lr`` between steps.
"""

from flambeau.optim import lr_scheduler
from flambeau.optim.adadelta import Adadelta
from flambeau.optim.adafactor import Adafactor
from flambeau.optim.adagrad import Adagrad
from flambeau.optim.adam import Adam
from flambeau.optim.adamax import Adamax
from flambeau.optim.adamw import AdamW
from flambeau.optim.asgd import ASGD
from flambeau.optim.lbfgs import LBFGS
from flambeau.optim.muon import Muon
from flambeau.optim.nadam import NAdam
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.radam import RAdam
from flambeau.optim.rmsprop import RMSprop
from flambeau.optim.rprop import Rprop
from flambeau.optim.sgd import SGD
from flambeau.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
]
__all__ += ["Rprop", "SGD", "SparseAdam", "lr_scheduler", "swa_utils"]


def __getattr__(name):
    """``swa_utils`` imports the layers: only when it is asked for."""
    if name == "swa_utils":
        import importlib

        return importlib.import_module("flambeau.optim.swa_utils")
    raise AttributeError(f"module 'torch.optim' has no attribute {name!r}")
