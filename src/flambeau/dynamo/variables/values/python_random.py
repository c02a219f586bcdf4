"""Python's random numbers. A ``random.Random`` made while tracing from a seed that is known is an object of this trace: its draws are constants, as
every call of the program has the same. One that existed before draws at each call of captured code, before the graph runs, in the order in which the
program does: a number is a 0-dimensional input of the graph, and a symbol that nothing is known of."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np

from flambeau import _C

from ....base.records import slotted
from ...bytecode.codegen import TEMP
from ...exc import unsupported
from ...graph.inputs import GraphInput
from ...guards.source import Source
from ...tracing import world
from ...tracing.wrapping import WRAPPERS, pin
from ..base import MethodOf, Variable
from ..functions.handlers import handles
from ..numpy.random_generators import python_number
from ..objects.instance import ObjectVariable
from ..tensors.tensor import TensorVariable
from .constant import ConstantVariable
from .stdlib_values import made, value_of, values_of

__all__ = ["DRAWS", "ExistingRandomVariable", "RandomVariable"]

OWN = {name: f for c in reversed(random.Random.__mro__[:-1]) for name, f in vars(c).items()}
IN_C = ("getrandbits", "getstate", "random", "seed", "setstate")
IN_PLACE = ("shuffle",)
# Methods that give a number.
DRAWS = frozenset(
    """betavariate expovariate gammavariate gauss lognormvariate normalvariate paretovariate randint random randrange triangular uniform
    vonmisesvariate weibullvariate""".split()
)
LARGEST = 1 << 62


class RandomVariable(ObjectVariable):
    """``generator``: the one that draws while tracing; None until a seed is given."""

    def __init__(self):
        super().__init__(None, random.Random)
        self.generator: random.Random | None = None

    def seeded(self) -> random.Random:
        if self.generator is None:
            unsupported("random", "a draw of random.Random() without a seed", "The operating system gives it one.")
        return self.generator

    def getattr(self, tx, name):
        if name in OWN and name not in self.written and not name.startswith("__"):
            if world.class_attr(tx, random.Random, name) is OWN[name]:
                return MethodOf(self, name) if callable(OWN[name]) else made(tx, OWN[name])
        if name == "gauss_next" and name not in self.written:
            return ConstantVariable(self.seeded().gauss_next)
        return super().getattr(tx, name)

    def setattr(self, tx, name, value):
        if name == "gauss_next":
            unsupported("random", "gauss_next of a generator is written")
        super().setattr(tx, name, value)

    def call_method(self, tx, name, args, kwargs):
        if name not in OWN:
            return super().call_method(tx, name, args, kwargs)
        tx.side_effects.touch(self)
        if name == "seed":
            return self.seed(tx, *args, **kwargs)
        given = None if name in IN_PLACE else values_of(tx, args, kwargs)
        if given is None:  # of the program's objects: traced, down to what is written in C
            if name in IN_C or not world.is_python(OWN[name]):
                unsupported("random", f"calling Random.{name} of what isn't known while tracing")
            return tx.wrap_function(OWN[name]).call(tx, [self, *args], kwargs)
        if name == "setstate" and self.generator is None:
            self.generator = random.Random(0)
        draws = getattr(self.seeded(), name)
        return made(tx, tx.evaluated(draws, *given[0], **given[1]))

    def seed(self, tx, a: Variable | None = None, version: Variable | None = None) -> Variable:
        seed = None if a is None else value_of(tx, a)
        if seed is None:
            self.generator = None
            return ConstantVariable(None)
        try:
            self.generator = random.Random(0)
            self.generator.seed(seed, *([] if version is None else [version.as_constant()]))
        except TypeError as e:
            tx.raise_user(e)
        return ConstantVariable(None)

    def reconstruct(self, cg):
        def push():
            cg.load_const(None if self.generator is None else self.generator.getstate())

        cg.call_function(generator_in, push, 1)
        t = cg.temps[id(self)] = cg.temp()
        cg.emit("STORE_FAST", t)
        self.push_attributes(cg, t)
        cg.emit("LOAD_FAST", t)


def generator_in(state) -> random.Random:
    """A generator of that state, or of one that the operating system gives."""
    made = random.Random()
    if state is not None:
        made.setstate(state)
    return made


@handles(random.Random)
def _(tx, args, kwargs):
    if len(args) + len(kwargs) > 1 or not set(kwargs) <= {"x"}:
        return None
    for name in ("__new__", "__init__", "seed"):
        if world.class_attr(tx, random.Random, name) is not OWN.get(name, random.Random.__dict__.get(name)):
            return None
    out = RandomVariable()
    out.seed(tx, *args, *kwargs.values())
    return out


class ExistingRandomVariable(ObjectVariable):
    """A generator that existed before the call, the one of the module's functions among them."""

    def getattr(self, tx, name):
        if (
            name in DRAWS
            and name not in self.written
            and world.instance_attr(tx, self.value, self.source, name) is None
        ):
            if world.class_attr(tx, random.Random, name) is OWN[name]:
                return MethodOf(self, name)
        return super().getattr(tx, name)

    def call_method(self, tx, name, args, kwargs):
        given = values_of(tx, args, kwargs) if name in DRAWS else None
        if given is None:
            return super().call_method(tx, name, args, kwargs)
        if tx.output.recorder.graph is not tx.output.recorder.root:
            unsupported("random", f"random.{name} in a function that a transform or a branch calls")
        twin = random.Random()
        twin.setstate(self.value.getstate())
        example = tx.evaluated(getattr(twin, name), *given[0], **given[1])
        numbers = [a for a in (*given[0], *given[1].values()) if type(a) is int]
        if type(example) not in (int, float) or any(abs(n) >= LARGEST for n in numbers):
            unsupported("random", f"random.{name} of more than 64 bits")
        return drawn(tx, self, functools.partial(draw, name, *given), example)


def draw(name: str, args, kwargs, generator: random.Random) -> Any:
    """One draw, as a tensor without dimensions."""
    return as_tensor(getattr(random.Random, name)(generator, *args, **kwargs))


def as_tensor(number):
    return _C.from_array(np.array(number, "int64" if type(number) is int else "float64"))


@slotted(frozen=False, eq=False)
class DrawSource(Source):
    """What the beginning of captured code keeps of a draw."""

    local: str
    access, guarded = "draw", False

    @property
    def name(self):
        return self.local.removeprefix(TEMP)

    def load(self, cg):
        cg.emit("LOAD_FAST", self.local)


def drawn(tx, generator: ExistingRandomVariable, call, example) -> Variable:
    output = tx.output
    source = DrawSource(f"{TEMP}draw{len(output.python_draws)}")
    output.python_draws.append((generator.source, call, source.local))
    output.side_effects.oldest_touched = -1
    tensor = as_tensor(example)
    node = output.recorder.placeholder(source)
    node.meta["val"] = node.meta["example_value"] = output.fake_mode.from_tensor(tensor, static_shapes=True)
    output.recorder.inputs.append(GraphInput(node, source, tensor, False, number=True))
    output.recorder.examples[node] = tensor
    return python_number(tx, TensorVariable(node, node.meta["val"]))


@WRAPPERS.row("random generator")
def _(tx, value, source):
    if type(value) is not random.Random:
        return None
    pin(tx, source, "TYPE_MATCH", random.Random)
    return ExistingRandomVariable(value, random.Random, source)
