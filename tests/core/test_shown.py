"""A dispatch mode is shown the operators that PyTorch shows, and what it is shown computes the same, with the same gradients."""

import json
import warnings

import pytest

import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode

from .shown import CALLS, KEPT, operands, seen

EXPECTED = json.loads(KEPT.read_text())

IN_PLACE = "PyTorch writes an intermediate result in place"
OWN = "an operator of its own here, or another one there"
PARTS = "made of other parts"
UNBUILT = "PyTorch's operator isn't built"
DIFFERENT = {
    "x.quantile(0.5)": PARTS,
    "torch.where(flag, x, 0)": "a number stays a number",
    "x.take_along_dim(i, 1)": PARTS,
    "torch.einsum('ij,jk->ik', x, m)": PARTS,
    "torch.einsum('bij,bjk->bik', b, c)": PARTS,
    "torch.einsum('ij,ij->', x, y)": PARTS,
    "torch.inner(x, y)": PARTS,
    "torch.isfinite(x)": OWN,
    "torch.isclose(x, y)": OWN,
    "torch.trapezoid(x)": PARTS,
    "torch.cov(x)": PARTS,
    "torch.corrcoef(x)": PARTS,
    "F.bilinear(x, x, b.new_ones(2, 6, 6))": UNBUILT,
    "F.selu(x)": OWN,
    "F.logsigmoid(x)": OWN,
    "F.multilabel_soft_margin_loss(x, p)": OWN,
    "F.cosine_similarity(x, y)": IN_PLACE,
    "F.dropout2d(g, 0.5, True)": IN_PLACE,
    "F.alpha_dropout(x, 0.5, True)": IN_PLACE,
    "F.embedding_bag(i, m)": UNBUILT,
    "F.one_hot(t, 4)": PARTS,
    "F.rms_norm(x, (6,), v)": IN_PLACE,
    "F.rrelu(x)": UNBUILT,
    "F.pad(g, (1, 1, 1, 1), 'circular')": IN_PLACE,
    "F.cross_entropy(x, t, label_smoothing=0.1)": IN_PLACE,
    "F.cross_entropy(x, p)": PARTS,
    "F.gaussian_nll_loss(x, y, p)": IN_PLACE,
    "F.hinge_embedding_loss(x, y)": IN_PLACE,
    "F.margin_ranking_loss(v, w, w)": IN_PLACE,
    "F.cosine_embedding_loss(x, y, x[:, 0].detach())": IN_PLACE,
    "F.ctc_loss(x.log_softmax(1)[:, None], t[None, :2] % 3 + 1, (4,), (2,))": UNBUILT,
    "x.detach().__setitem__(0, 1.0)": "a number stays a number",
    "x.detach().__setitem__(flag, 0.0)": "a number stays a number",
    "torch.nn.LSTM(6, 4)(b)": OWN,
    "torch.nn.GRU(6, 4)(b)": OWN,
    "torch.nn.LSTMCell(6, 4)(x)": IN_PLACE,
    "torch.nn.MultiheadAttention(6, 2, batch_first=True)(b, b, b)": PARTS,
    "torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, dropout=0.0)(b)": PARTS,
    "torch.nn.utils.clip_grad_norm_([x], 1.0)": "the zero is a tensor made by an operator",
}


def test_the_table_is_whole():
    assert list(EXPECTED) == CALLS and set(DIFFERENT) <= set(CALLS)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_shown(call):
    got = [seen(torch, call, g) for g in (False, True)]
    if call in DIFFERENT:
        assert got != EXPECTED[call], f"{call}: agrees by now"
    else:
        assert got == EXPECTED[call]


@pytest.mark.parity
def test_pytorch_shows_what_is_kept():
    library = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in CALLS:
            assert [seen(library, call, g) for g in (False, True)] == EXPECTED[call], call


class Pass(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def results(call: str, watched: bool):
    """Results, gradients and second gradients of the call."""
    torch.manual_seed(0)
    space = operands(torch, True)
    mode = Pass() if watched else torch.enable_grad()
    with mode, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = eval(call, space)
        found = [t for t in (out if isinstance(out, (list, tuple)) else [out]) if isinstance(t, torch.Tensor)]
        roots = [t for t in found if t.requires_grad and t.is_floating_point()]
        leaves = [t for t in space.values() if isinstance(t, torch.Tensor) and t.requires_grad]
        if roots:
            total = sum((t * t).sum() for t in roots)
            first = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
            found += [g for g in first if g is not None]
            rough = [g for g in first if g is not None and g.requires_grad]
            if rough and not call.startswith(ONCE):
                again = torch.autograd.grad(sum(g.sum() for g in rough), leaves, allow_unused=True)
                found += [g for g in again if g is not None]
    return [t.detach() for t in found]


ONCE = ("F.ctc_loss",)  # no second derivative, as in PyTorch
UNSETTLED = (
    "torch.rand",
    "torch.empty",
    "torch.linalg.svd",
    "torch.linalg.eigh",
    "torch.linalg.pinv",
    "x //",
    "x.unique",
)  # no values, or no derivative


@pytest.mark.parametrize("call", [c for c in CALLS if not c.startswith(UNSETTLED) and "detach()." not in c])
def test_what_is_shown_computes_the_same(call):
    plain, watched = results(call, False), results(call, True)
    assert len(plain) == len(watched)
    for a, b in zip(plain, watched):
        assert a.stride() == b.stride()
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)


def test_running_statistics_move_once():
    found = []
    for watched in (False, True):
        torch.manual_seed(0)
        norm, x = torch.nn.BatchNorm2d(3), torch.randn(4, 3, 5, 5, requires_grad=True)
        with Pass() if watched else torch.enable_grad():
            for _ in range(2):
                y = norm(x)
            y.square().sum().backward()
        found.append((norm.running_mean, norm.running_var, norm.weight.grad, x.grad))
    for a, b in zip(*found):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_a_write_before_the_backward_is_noticed():
    x, target = torch.ones(3, requires_grad=True), torch.zeros(3)
    with Pass():
        loss = torch.nn.functional.mse_loss(x, target)
    target.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_mode_may_answer_for_the_whole():
    class Answer(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return (
                torch.full((1, 1, 2, 2), 7.0)
                if func is torch.ops.aten.avg_pool2d.default
                else func(*args, **(kwargs or {}))
            )

    with Answer():
        assert (torch.nn.functional.avg_pool2d(torch.ones(1, 1, 4, 4), 2) == 7).all()
