"""Optimizers and learning-rate schedules.

``optimizer.py`` is the base (groups of parameters, state, saving); each algorithm is one file with one update function over one
parameter, all in-place tensor operations under no_grad. ``lr_scheduler.py`` changes the groups' ``lr`` between steps.
"""

from flambeau.optim import lr_scheduler
from flambeau.optim.adagrad import Adagrad
from flambeau.optim.adam import Adam
from flambeau.optim.adamw import AdamW
from flambeau.optim.optimizer import Optimizer
from flambeau.optim.rmsprop import RMSprop
from flambeau.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
