"""The demo's story: a NumPy function and the training of a GPT, plain and compiled in turn, then a sample of what the GPT learnt."""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import perf_counter
from typing import Any

import flambeau as torch
from flambeau.demo import arrays, peers, several
from flambeau.demo.report import agreement, fused_lines, megabytes, milliseconds, plot
from flambeau.demo.text import Corpus, read_text, standard_library_text
from flambeau.demo.training import Options, Race, Trainer, race

__all__ = ["Options", "busy", "demo", "prepare"]

# Losses of both runs are equal at first; float32 rounding in another order then grows as training goes on.
TOLERANCE = 0.05
PAIRS = 32  # steps that both models take, by turns


def prepare(options: Options) -> Corpus:
    """Make the output folder and read the text. Raises OSError or ValueError for what the user can mend."""
    Path(options.out).mkdir(parents=True, exist_ok=True)
    text = standard_library_text() if options.text is None else read_text(options.text)
    return Corpus(text, options.block_size)


def busy(load: float, threads: int) -> list[str]:
    """What to say of programs that wait for a processor while the demo begins: nothing where there are fewer than threads."""
    if load < threads:
        return []
    return [
        f"The machine is busy: {load:.0f} programs run on {threads} processor{'s' if threads > 1 else ''} beside this one. Times that are "
        "spread over threads, those of others first of all, are longer than they would be."
    ]


class _Bar:
    """A bar over the steps of one training."""

    def __init__(self, console: Any, name: str, options: Options, total: int):
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.progress = Progress(
            TextColumn(f"  {name}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]:.3f}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,  # a file gets the results alone
        )
        self.task = self.progress.add_task(name, total=total, loss=float("nan"))

    def __enter__(self) -> _Bar:
        self.progress.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.progress.__exit__(*exc)

    def __call__(self, loss: float) -> None:
        self.progress.update(self.task, advance=1, loss=loss)


def _arrays(console: Any, options: Options) -> arrays.ArrayResult:
    result = arrays.measure()
    say = console.print
    say("\n[bold]A NumPy function[/]  np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1)), X and Y of (1024, 64)")
    say(f"  first compiled call  {result.first:.2f} s")
    plain, compiled = result.pairs.medians
    say(f"  NumPy {milliseconds(plain)}, compiled {milliseconds(compiled)}: {result.pairs}")
    say(f"  memory at most       NumPy {megabytes(result.memory[0])}, compiled {megabytes(result.memory[1])}")
    say("  results              " + ("equal to 10 digits" if result.agree else "[red]DIFFER[/]"))
    for line in fused_lines(result.fused, 1):
        say(f"  {line}", markup=False)
    return result


def _race(console: Any, options: Options, corpus: Corpus, batches: Any, steps: int) -> tuple[Race, bool]:
    with _Bar(console, "by turns", options, steps) as bar:
        result = race(options, corpus, batches, steps, bar)
    say = console.print
    say(f"  first compiled step  {result.first:.2f} s, forward, backward and optimizer")
    if result.pairs.plain:
        plain, compiled = result.pairs.medians
        say(f"  a step               eager {milliseconds(plain)}, compiled {milliseconds(compiled)}: {result.pairs}")
        say(f"                       compiled {options.tokens / compiled:,.0f} tokens a second")
    plain, compiled = result.token.medians
    say(f"  one more token       eager {milliseconds(plain)}, compiled {milliseconds(compiled)}: {result.token}")
    if result.memory[0]:
        say(
            f"  memory of a step     eager {megabytes(result.memory[0])}, compiled {megabytes(result.memory[1])} at most beside the weights"
        )
    same, worst, at = agreement(result.differences, TOLERANCE)
    verdict = "[green]agree[/]" if same else "[red]DIFFER[/]"
    say(f"  the loss curves      {verdict}: greatest difference {worst:.1e} (step {at} of {len(result.differences)})")
    if result.fused.launches:
        for line in fused_lines(result.fused, 3):
            say(f"  {line}", markup=False)
    return result, same


def _sample(console: Any, options: Options, corpus: Corpus, trainer: Trainer) -> None:
    context = torch.from_numpy(corpus.data[: options.block_size]).view(1, -1).to(options.device)
    text = corpus.decode(trainer.sample(context, options.sample, options.temperature))
    words = text.split()[1:-1]  # the first and the last one are cut
    console.rule("sample")
    console.print(text, markup=False)
    console.rule()
    if words:
        known = sum(word in corpus.words for word in words)
        console.print(
            f"  {known} of its {len(words)} words occur in the text; drawn at temperature {options.temperature:g}",
            highlight=False,
        )


def demo(options: Options, corpus: Corpus) -> int:
    """Run the demo; the process's exit status: 0, or 1 when results of the two ways differ. Interrupted, it shows what there is.
    In the processes of a launcher the GPT alone is trained, see several.py."""
    if several.launched():
        return several.demo(options, corpus)
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True, stderr=options.json)
    say = console.print
    begin = perf_counter()
    say("[bold]flambeau demo[/]: plain and compiled run by turns, so that what the machine does beside meets both")
    for line in busy(os.getloadavg()[0], torch.get_num_threads()):
        say(f"[yellow]{line}[/]")
    numbers = _arrays(console, options)
    source = "the English in the Python standard library" if options.text is None else options.text
    batches = iter(corpus.batches(options.seed, options.steps, options.batch_size))
    say(f"\n[bold]A GPT[/]  {options.n_layer} layers, width {options.n_embd}, {options.tokens} tokens a step")
    say(f"  {len(corpus):,} characters of {escape(source)}, {corpus.vocab_size} different ones")
    steps, fused, same, interrupted = None, None, True, False
    data: dict[str, Any] = {"function": numbers.as_data()}
    eager_losses: list[float] = []
    try:
        if options.compile:
            result, same = _race(console, options, corpus, batches, min(PAIRS, options.steps - 1))
            trainer, eager_losses = result.compiled, result.eager.losses
            steps, fused = result.pairs if result.pairs.plain else None, result.fused
            data["gpt"] = {**result.as_data(), "agree": same}
        else:
            trainer = Trainer(options, corpus, False)
        left = options.steps - len(trainer.losses)
        try:
            with _Bar(console, "training", options, left) as bar:
                for batch in batches:
                    trainer.step(batch)
                    bar(trainer.losses[-1])
        except KeyboardInterrupt:
            interrupted = True
        first, last = trainer.losses[0], trainer.losses[-20:]
        data["training"] = {"steps": len(trainer.losses), "first_loss": first, "last_loss": sum(last) / len(last)}
        say(
            f"  {len(trainer.losses)} steps{' (interrupted)' if interrupted else ''}: loss {first:.3f} -> {sum(last) / len(last):.3f}"
        )
    except KeyboardInterrupt:
        say("interrupted before there was a model to sample from")
        return 130
    if options.sample > 0:
        _sample(console, options, corpus, trainer)
    picture = Path(options.out) / "flambeau_demo.png"
    compiled_losses = trainer.losses if options.compile else []
    plot(picture, numbers.pairs, eager_losses or trainer.losses, compiled_losses, steps, fused)
    if options.peers:
        say("\n[bold]Beside others[/], each in a process of its own, the median and the least of as many calls")
        data["peers"] = told = []
        try:
            for peer in peers.run(options):
                told.append(peer.as_data())
                say(f"  {peer}", markup=False)
        except KeyboardInterrupt:
            interrupted = True
    seconds = perf_counter() - begin
    say(f"\npicture: {escape(str(picture))}    {seconds:.0f} s in all")
    if options.json:
        print(json.dumps({**data, "picture": str(picture), "seconds": seconds, "interrupted": interrupted}, indent=2))
    return 130 if interrupted else 0 if same and numbers.agree else 1
