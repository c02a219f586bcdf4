"""The demo's second part: two GPTs of one seed on the same batches, one eager and one compiled, step by step in turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import flambeau as torch
from flambeau.demo.arrays import peak_bytes
from flambeau.demo.fused import Fused, look
from flambeau.demo.text import Corpus
from flambeau.demo.timing import Pairs, in_turn

__all__ = ["Options", "Race", "Trainer", "race"]


@dataclass
class Options:
    steps: int = 900
    text: str | None = None
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 128
    block_size: int = 64
    batch_size: int = 16
    lr: float = 4e-3
    seed: int = 1337
    sample: int = 400
    temperature: float = 0.6
    compile: bool = True
    peers: bool = False
    device: str = "cpu"
    out: str = "."
    json: bool = False

    @property
    def tokens(self) -> int:
        """Of a step."""
        return self.batch_size * self.block_size


class Trainer:
    """A model, its optimizer and its schedule (a linear start, then a cosine to a twentieth)."""

    def __init__(self, options: Options, corpus: Corpus, compiled: bool):
        from flambeau.examples.gpt import GPT, GPTConfig

        torch.manual_seed(options.seed)
        config = GPTConfig(corpus.vocab_size, options.block_size, options.n_layer, options.n_head, options.n_embd)
        self.model = GPT(config).to(options.device)
        self.device = options.device
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.1)
        start = max(1, min(40, options.steps // 10))

        def rate(step: int) -> float:
            return min(1.0, (step + 1) / start) * (
                0.05 + 0.475 * (1 + math.cos(math.pi * min(1.0, step / options.steps)))
            )

        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate)
        self.forward: Callable = torch.compile(self.model) if compiled else self.model
        self.update: Callable = torch.compile(self.optimizer.step) if compiled else self.optimizer.step
        # One sequence at a time is another size: code of its own, so that training keeps what it has.
        self.alone: Callable = (
            torch.compile(self.model, dynamic=False, isolate_recompiles=True) if compiled else self.model
        )
        self.losses: list[float] = []
        self.seconds: list[float] = []

    def step(self, batch: tuple) -> None:
        begin = perf_counter()
        x, y = (torch.from_numpy(part).to(self.device) for part in batch)
        _, loss = self.forward(x, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.update()
        self.schedule.step()
        self.losses.append(loss.item())
        self.seconds.append(perf_counter() - begin)

    def logits(self, indices: Any) -> Any:
        """Of the next token, (vocab,)."""
        with torch.no_grad():
            return self.alone(indices)[0][0, -1]

    def sample(self, context: Any, length: int, temperature: float) -> list[int]:
        """``length`` tokens that continue ``context`` (1, block), drawn one after the other."""
        found: list[int] = []
        for _ in range(length):
            drawn = torch.multinomial(torch.softmax(self.logits(context) / temperature, 0), 1)
            context = torch.cat([context[:, 1:], drawn[None]], 1)
            found.append(drawn.item())
        return found


@dataclass
class Race:
    eager: Trainer
    compiled: Trainer
    first: float  # seconds of the first compiled step
    pairs: Pairs
    token: Pairs
    memory: tuple[int, int]
    fused: Fused
    differences: list[float] = field(default_factory=list)  # of the losses, step by step

    def as_data(self) -> dict[str, Any]:
        """What a program reads of it."""
        return {
            "first_step_seconds": self.first,
            "step": self.pairs.as_data() if self.pairs.plain else None,
            "token": self.token.as_data(),
            "memory_bytes": {"plain": self.memory[0], "compiled": self.memory[1]},
            "greatest_difference_of_losses": max(self.differences),
            **self.fused.as_data(),
        }


def race(options: Options, corpus: Corpus, batches: Iterable, steps: int, on_step: Callable) -> Race:
    """``steps`` steps of either, by turns; then memory and kernels of a step, and one more token."""
    eager, compiled = Trainer(options, corpus, False), Trainer(options, corpus, True)
    first_batch = next(batches := iter(batches))  # type: ignore[misc]
    eager.step(first_batch)
    begin = perf_counter()
    compiled.step(first_batch)
    first = perf_counter() - begin
    pairs = Pairs([], [])
    memory, fused = (0, 0), Fused([], 0)
    for i in range(steps):
        batch = next(batches)
        order = (eager, compiled) if i % 2 == 0 else (compiled, eager)
        if i == 1:  # a step that isn't timed, since it is looked at
            memory = peak_bytes(lambda: eager.step(batch)), peak_bytes(lambda: compiled.step(batch))  # noqa: B023
        elif i == 2:
            eager.step(batch)
            fused = look(lambda: compiled.step(batch))  # noqa: B023
        else:
            for trainer in order:
                trainer.step(batch)
            pairs.plain.append(eager.seconds[-1])
            pairs.compiled.append(compiled.seconds[-1])
        on_step(compiled.losses[-1])
    context = torch.from_numpy(first_batch[0][:1]).to(options.device)
    for trainer in (eager, compiled):
        trainer.logits(context)
    token = in_turn(lambda: eager.logits(context), lambda: compiled.logits(context), 41, seconds=3)
    differences = [abs(a - b) for a, b in zip(eager.losses, compiled.losses)]
    return Race(eager, compiled, first, pairs, token, memory, fused, differences)
