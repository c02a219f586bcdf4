"""The demo in the processes that a launcher started: the same model from the same seed on the same batches, trained eagerly and compiled."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import flambeau as torch
from flambeau.demo.several_report import Run, agreement, plot, tokens_per_second
from flambeau.demo.text import Corpus
from flambeau.demo.training import Options

__all__ = ["demo", "launched", "train"]

# Losses of both runs are equal at first; float32 rounding in another order then grows as training goes on.
TOLERANCE = 0.05


@dataclass
class Ranks:
    """The processes that a launcher started: each takes ``batch_size`` sequences of a step, gradients are averaged."""

    rank: int = 0
    size: int = 1

    @classmethod
    def found(cls) -> Ranks:
        """This process among those of the environment; joins their process group."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls()
        torch.distributed.init_process_group()
        return cls(torch.distributed.get_rank(), size)

    def part(self, batch):
        rows = len(batch) // self.size
        return torch.from_numpy(batch[self.rank * rows : (self.rank + 1) * rows])

    def wrapped(self, model):
        return model if self.size == 1 else torch.nn.parallel.DistributedDataParallel(model)

    def mean(self, loss) -> float:
        if self.size > 1:
            loss = loss.detach().clone()
            torch.distributed.all_reduce(loss, torch.distributed.ReduceOp.AVG)
        return loss.item()

    def leave(self) -> None:
        if self.size > 1:
            torch.distributed.destroy_process_group()


def train(
    options: Options, corpus: Corpus, compiled: bool, on_step=None, ranks: Ranks | None = None
) -> tuple[Run, torch.nn.Module]:
    """Train a fresh model for ``options.steps`` steps; ``on_step(loss, tokens_per_second)`` is called after each."""
    from flambeau.examples.gpt import GPT, GPTConfig

    ranks = ranks or Ranks()

    torch.manual_seed(options.seed)
    config = GPTConfig(corpus.vocab_size, options.block_size, options.n_layer, options.n_head, options.n_embd)
    model = GPT(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.1)
    wrapped = ranks.wrapped(model)
    forward, update = (torch.compile(wrapped), torch.compile(optimizer.step)) if compiled else (wrapped, optimizer.step)
    run = Run("compiled" if compiled else "eager")
    sequences = options.batch_size * ranks.size
    tokens = sequences * options.block_size
    for x, y in corpus.batches(options.seed, options.steps, sequences):
        start = perf_counter()
        _, loss = forward(ranks.part(x), ranks.part(y))
        optimizer.zero_grad()
        loss.backward()
        update()
        run.losses.append(ranks.mean(loss))
        run.seconds.append(perf_counter() - start)
        if on_step is not None:
            on_step(run.losses[-1], tokens / run.seconds[-1])
    return run, model


def _train_with_bar(options: Options, corpus: Corpus, compiled: bool, console, ranks: Ranks):
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:>9}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TextColumn("{task.fields[speed]:,.0f} tokens/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("compiled" if compiled else "eager", total=options.steps, loss=float("nan"), speed=0.0)

        def on_step(loss: float, speed: float) -> None:
            progress.update(task, advance=1, loss=loss, speed=speed)

        return train(options, corpus, compiled, on_step, ranks)


def launched() -> bool:
    """Whether a launcher started this process, alone or as one of several."""
    return "WORLD_SIZE" in os.environ


def demo(options: Options, corpus: Corpus) -> int:
    """Run the demo; the process's exit status: 0, or 1 when the two curves differ."""
    from rich.console import Console
    from rich.markup import escape

    ranks = Ranks.found()
    console = Console(highlight=False, quiet=ranks.rank > 0)
    begin = perf_counter()
    source = "the Python standard library" if options.text is None else options.text
    console.print(f"[bold]flambeau demo[/]: a character-level GPT on {escape(source)}")
    console.print(f"{len(corpus):,} characters, {corpus.vocab_size} different ones")

    eager, model = _train_with_bar(options, corpus, False, console, ranks)
    runs = [eager]
    if options.compile:
        compiled, model = _train_with_bar(options, corpus, True, console, ranks)
        runs.append(compiled)

    parameters = sum(p.numel() for p in model.parameters())
    tokens = ranks.size * options.batch_size * options.block_size
    console.print(
        f"{options.n_layer} layers, width {options.n_embd}, {parameters / 1e6:.2f} M parameters; "
        f"{tokens} tokens a step, {options.steps} steps"
    )
    status = 0
    for run in runs:
        console.print(
            f"  {run.name:>8}: loss {run.losses[0]:.3f} -> {run.losses[-1]:.3f}, {1000 * run.step:.1f} ms a step, "
            f"{tokens_per_second(run, tokens):,.0f} tokens/s"
        )
    if options.compile:
        console.print(f"  first compiled step: {compiled.first:.2f} s; speed-up {eager.step / compiled.step:.2f}x")
        same, worst, at = agreement(eager, compiled, TOLERANCE)
        verdict = "[green]agree[/]" if same else "[red]DIFFER[/]"
        console.print(f"  the loss curves {verdict}: greatest difference {worst:.2e} (step {at})")
        status = 0 if same else 1

    if options.sample > 0:
        start = torch.from_numpy(corpus.encode("\n")[:1] if "\n" in corpus.chars else corpus.data[:1]).view(1, 1)
        sample = corpus.decode(model.generate(start, options.sample)[0].tolist()[1:])
        console.rule("sample")
        console.print(escape(sample))
        console.rule()
    ranks.leave()
    if ranks.rank:
        return status
    picture = Path(options.out) / "flambeau_demo_loss.png"
    plot(runs, picture, f"GPT, {options.n_layer} layers, width {options.n_embd}, {tokens} tokens a step")
    console.print(f"loss curves: {escape(str(picture))}    total {perf_counter() - begin:.0f} s")
    return status
