"""Tables of measurements: a row for each ``sub_label`` (or statement), a column for each ``description``, a block for each number of threads."""

from __future__ import annotations

import enum
import math

from .common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

_BOLD, _END = "\033[1m", "\033[0m"


class Colorize(enum.Enum):
    """What a table of times compares by colour."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _colored(text: str, value: float, best: float) -> str:
    """Green where ``value`` is about the best, red where it is far from it."""
    if value <= best * 1.01 or value <= best + 100e-9:
        return f"\033[92m{_BOLD}{text}{_END}{_END}"
    if value <= best * 1.1:
        return f"\033[34m{_BOLD}{text}{_END}{_END}"
    if value >= best * 5:
        return f"\033[31m{_BOLD}{text}{_END}{_END}"
    if value >= best * 2:
        return f"\033[2m\033[91m{text}{_END}"
    return text


class Table:
    """One label's measurements. ``cells[row][column]`` is a measurement or None; a row is (threads, env, name)."""

    def __init__(self, results: list[Measurement], colorize: Colorize, trim: bool, highlight: bool):
        self.label, self.colorize, self.trim = results[0].label, colorize, trim
        self.unit, self.scale = select_unit(min(r.median for r in results))
        self.rows = sorted(ordered_unique(self._row(r) for r in results), key=lambda row: row[:2])
        self.columns = ordered_unique(r.description for r in results)
        found = {(self._row(r), r.description): r for r in results}
        self.cells = [[found.get((row, column)) for column in self.columns] for row in self.rows]
        self.highlight = [
            highlight and any(m.has_warnings for m in self._of_column(j)) for j in range(len(self.columns))
        ]
        self.formats = [self._format(j) for j in range(len(self.columns))]

    @staticmethod
    def _row(m: Measurement) -> tuple:
        return m.num_threads, m.env, m.as_row_name

    def _of_column(self, j: int) -> list[Measurement]:
        return [row[j] for row in self.cells if row[j] is not None]

    def _format(self, j: int) -> tuple[int, int]:
        """(width, decimals) of a column's numbers."""
        found = self._of_column(j)
        digits = [math.ceil(math.log10(m.median / self.scale)) for m in found]
        decimals = min(max(m.significant_figures - d, 0) for m, d in zip(found, digits)) if self.trim else 1
        return max(digits) + decimals + bool(decimals), decimals

    def _number(self, m: Measurement | None, j: int) -> str:
        width, decimals = self.formats[j]
        tail = 7 if self.highlight[j] else 0
        if m is None:
            return " " * (max(width, len(f"{1:.{decimals}f}")) + tail)
        value = m.median / self.scale
        spread = f" (! {m.iqr / m.median * 100:.0f}%)" if self.highlight[j] and m.has_warnings else ""
        return (
            f"{trim_sigfig(value, m.significant_figures) if self.trim else value:>{width}.{decimals}f}{spread:>{tail}}"
        )

    def _best(self, i: int, j: int) -> float:
        row = [m.median for m in self.cells[i] if m is not None]
        block = [c[j].median for c, r in zip(self.cells, self.rows) if c[j] is not None and r[0] == self.rows[i][0]]
        return min(row if self.colorize is Colorize.ROWWISE else block)

    def render(self) -> str:
        environments = {row[1] for row in self.rows}
        shown = len(environments) > 1
        margin = max(map(len, environments)) if shown else 0
        names, before = [], None
        for threads, env, name in self.rows:
            mark = f"({env})" if shown and (threads, env) != before else ""
            names.append("  " + mark.ljust(margin + 4) + name)
            before = threads, env
        texts = [[self._number(m, j) for j, m in enumerate(row)] for row in self.cells]
        columns = [str(c) if c is not None else "" for c in self.columns]
        first = max(map(len, names))
        widths = [max(len(c), *(len(t[j]) for t in texts)) for j, c in enumerate(columns)]
        head = "  |  ".join([" " * first, *(c.center(w) for c, w in zip(columns, widths))])
        lines, threads = [head], None
        for i, row in enumerate(self.rows):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            cells = [t.center(w) for t, w in zip(texts[i], widths)]
            if self.colorize is not Colorize.NONE:
                cells = [
                    c if (m := self.cells[i][j]) is None else _colored(c, m.median, self._best(i, j))
                    for j, c in enumerate(cells)
                ]
            lines.append("  |  ".join([names[i].ljust(first), *cells]))
        title = f" {self.label or ''} ".center(len(head) - 2, "-")
        lines = [f"[{title}]", *lines, "", f"Times are in {unit_to_english(self.unit)}s ({self.unit})."]
        if any(self.highlight):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join(lines) + "\n"


class Compare:
    """Shows measurements as tables, one for each label: :meth:`print`, or ``str``."""

    def __init__(self, results: list[Measurement]):
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim, self._colorize, self._highlight = False, Colorize.NONE, False

    def extend_results(self, results) -> None:
        """Take more measurements in. ValueError for anything else."""
        results = list(results)
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results += results

    def trim_significant_figures(self) -> None:
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colours by distance from the best of the column (or row)."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Say where a measurement varied much."""
        self._highlight = True

    def __str__(self) -> str:
        groups: dict = {}
        for m in Measurement.merge(self._results):
            groups.setdefault(m.label, []).append(m)
        return "\n".join(Table(g, self._colorize, self._trim, self._highlight).render() for g in groups.values())

    def print(self) -> None:
        print(self)
