"""Operators whose kernels read as much as other operands say refuse operands of other sizes, instead of reading outside."""

import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing import guard_pages, samples

aten = torch.ops.aten
f = torch.ones


def i(*values):
    return torch.tensor(values)


def _gradients(ct, image=(2, 4, 9, 9), weight=(6, 4, 3, 3), stride=2, padding=1, transposed=False):
    tensors = [f(ct), f(image), f(weight)]
    how = [None, [stride] * 2, [padding] * 2, [1, 1], transposed, [0, 0], 1, [True, True, False]]
    return lambda: aten.convolution_backward(*tensors, *how)


def _ctc(probs=(6, 3, 5), targets=(3, 2), lengths=(3,), ct=None):
    tensors = [f(probs), torch.ones(targets, dtype=torch.int64), torch.full(lengths, 2), i(1, 1, 1)]
    if ct is not None:
        return lambda: aten._ctc_each_backward(f(ct), *tensors, 0)
    return lambda: aten._ctc_each(*tensors, 0, False)


def _layer(kind, gates, x=(5, 2, 3), h=(1, 2, 4), w_ih=None, w_hh=None, bias=None):
    wide = gates * 4
    params = [f(w_ih or (wide, 3)), f(w_hh or (wide, 4)), f(bias or (wide,)), f(bias or (wide,))]
    state = [f(h), f(h)] if kind == "lstm" else f(h)
    return lambda: getattr(aten, kind).input(f(x), state, params, True, 1, 0.0, False, False, False)


def _layers():
    for kind, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
        yield f"{kind}, the weight's rows", _layer(kind, gates, w_hh=(gates * 4 - 1, 4))
        yield f"{kind}, the weight's columns", _layer(kind, gates, w_hh=(gates * 4, 3))
        yield f"{kind}, gates", _layer(kind, gates, w_ih=(gates * 3, 3))
        yield f"{kind}, biases", _layer(kind, gates, bias=(gates * 4 - 1,))
        yield f"{kind}, width of the state", _layer(kind, gates, h=(1, 2, 9))
        yield f"{kind}, batch of the state", _layer(kind, gates, h=(1, 1, 4))


WRONG = {
    "a row less": _gradients((2, 6, 4, 5)),
    "rows more": _gradients((2, 6, 8, 5)),
    "fewer images": _gradients((1, 6, 5, 5)),
    "more images": _gradients((5, 6, 5, 5)),
    "other outputs": _gradients((2, 5, 5, 5)),
    "an image's channels": _gradients((2, 6, 5, 5), image=(2, 3, 9, 9)),
    "fewer rows of the image": _gradients((2, 6, 5, 5), image=(2, 4, 2, 9)),
    "a dimension less": _gradients((6, 5, 5)),
    "an image without its batch": _gradients((2, 6, 5, 5), image=(4, 9, 9)),
    "a larger kernel": _gradients((2, 6, 5, 5), weight=(6, 4, 5, 5)),
    "transposed": _gradients((2, 4, 9, 9), image=(2, 6, 5, 5), transposed=True, padding=0),
    "targets of fewer sequences": _ctc(targets=(2, 2)),
    "targets of three dimensions": _ctc(targets=(3, 2, 1)),
    "fewer lengths": _ctc(lengths=(2,)),
    "one sequence": _ctc(probs=(6, 5)),
    "gradients of fewer losses": _ctc(ct=(2,)),
    "targets of ctc_loss": lambda: torch.nn.functional.ctc_loss(
        f(6, 3, 5), torch.ones(2, 2, dtype=torch.int64), (6, 6, 6), (1, 1, 1)
    ),
    "columns of points": lambda: aten._cdist_forward(f(4, 3), f(5, 2), 2.0, None),
    "labels of fewer rows": lambda: aten._label_margins(f(3, 4), torch.zeros(2, 4, dtype=torch.int64)),
    "fewer labels": lambda: aten._label_margins(f(3, 4), torch.zeros(3, 3, dtype=torch.int64)),
    "a row of margins": lambda: aten._label_margins(f(4), torch.zeros(4, dtype=torch.int64)),
    "gradients of fewer rows": lambda: aten._label_margins_backward(
        f(2), f(3, 4), torch.zeros(3, 4, dtype=torch.int64)
    ),
    "one point": lambda: aten._cdist_forward(f(3), f(5, 3), 2.0, None),
    **dict(_layers()),
}
RIGHT = (
    _gradients((2, 6, 5, 5)),
    _ctc(),
    _ctc(ct=(3,)),
    _layer("lstm", 4),
    _layer("gru", 3),
    _layer("rnn_tanh", 1),
    lambda: aten._cdist_forward(f(4, 3), f(5, 3), 2.0, None),
)


def _refused(call) -> None:
    with pytest.raises(RuntimeError, match="size|dimension|columns|at least 2D|multiplied"):
        call()


@pytest.mark.parametrize("what", WRONG)
def test_wrong_sizes_are_refused(what):
    _refused(torch.compile(WRONG[what]))


def inside() -> None:
    for call in WRONG.values():
        _refused(call)
    for call in RIGHT:
        call()


def test_nothing_outside_is_read():
    guard_pages.run_alone(__file__, "inside()", FLAMBEAU_ALLOCATOR="guarded")


def _other_sizes(x):
    """Arrays of x's elements, each with one dimension changed, or with one more or less."""
    for d, n in enumerate(x.shape):
        for other in {max(n - 1, 0), n + 3, 0} - {n}:
            yield np.resize(x, (*x.shape[:d], other, *x.shape[d + 1 :]))
    if x.ndim and len(x):
        yield x[0].copy()
    yield x[None].copy()


def _as(dtype, x):
    if isinstance(x, list):
        return [_as(dtype, y) for y in x]
    return x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype == np.float64 else x


def sweep(dtype: str, most: int = 2) -> None:
    """Every operator of the sample tables with every operand of another size: it may take it, or raise what it likes, but must return."""
    warnings.simplefilter("ignore")
    refused = taken = 0
    for row in list(samples.load().values()):
        if row.name == "einsum":  # a function of operators, none itself
            continue
        op = samples.operator(row.name)
        for call in row.calls[:most]:
            for place, x in enumerate(call.args):
                for other in _other_sizes(x) if isinstance(x, np.ndarray) else ():
                    args = [_as(dtype, y) for y in (*call.args[:place], other, *call.args[place + 1 :])]
                    try:
                        op(*samples.to_tensors(args), **samples.to_tensors(call.kwargs))
                        taken += 1
                    except Exception:  # noqa: BLE001
                        refused += 1
    assert refused > 1000 and taken > 1000, (refused, taken)


@pytest.mark.parametrize(
    "dtype, most, allocator",
    [("d", 1, "guarded"), *(pytest.param(*p, marks=pytest.mark.slow) for p in [("d", 2, "guarded"), ("f", 2, "guarded"), ("f", 2, "guarded_below")])],
)  # fmt: skip
def test_no_operator_reads_outside(dtype, most, allocator):
    guard_pages.run_alone(__file__, f"sweep({dtype!r}, {most})", FLAMBEAU_ALLOCATOR=allocator)
