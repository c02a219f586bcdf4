"""What the demo in several processes prints and draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

__all__ = ["Run", "agreement", "plot", "tokens_per_second"]


@dataclass
class Run:
    """One training run: the loss and the seconds of every step; the first step of a compiled run includes compilation."""

    name: str
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def first(self) -> float:
        return self.seconds[0]

    @property
    def step(self) -> float:
        """Median seconds of a step, the first one left out (unless it is the only one)."""
        return median(self.seconds[1:] or self.seconds)


def tokens_per_second(run: Run, tokens: int) -> float:
    return tokens / run.step


def agreement(a: Run, b: Run, tolerance: float) -> tuple[bool, float, int]:
    """Whether two loss curves stay within ``tolerance``, their greatest difference, and the step where it is."""
    differences = [abs(x - y) for x, y in zip(a.losses, b.losses, strict=True)]
    worst = max(range(len(differences)), key=differences.__getitem__)
    return differences[worst] <= tolerance, differences[worst], worst


def plot(runs: list[Run], path: Path, title: str) -> None:
    """Loss curves over the steps, as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), dpi=120)
    for i, run in enumerate(runs):
        axes.plot(
            run.losses,
            label=f"{run.name} ({1000 * run.step:.0f} ms/step)",
            linestyle="-" if i == 0 else "--",
            linewidth=2 - i * 0.7,
        )
    axes.set_xlabel("step")
    axes.set_ylabel("cross-entropy (nats per character)")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
