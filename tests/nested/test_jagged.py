"""Nested tensors beside the same computation on each sequence: functions, gradients, errors in PyTorch's words, copies, files, compiled code."""

import copy
import io
import pickle

import pytest

import flambeau as torch

F, jagged = torch.nn.functional, torch.jagged
LENGTHS = (3, 1, 4, 2)


def sequences(lengths=LENGTHS, width=6, dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.randn(n, width, dtype=dtype) for n in lengths]


def nested(parts=None, **kw):
    return torch.nested.nested_tensor(sequences() if parts is None else parts, layout=jagged, **kw)


def heads(t):
    """(B, j, 6) as (B, 2, j, 3)."""
    return t.unflatten(-1, (2, 3)).transpose(-3, -2)


W = torch.linspace(-1, 1, 24, dtype=torch.float64).view(4, 6)
SCALE = torch.linspace(0.5, 2, 6, dtype=torch.float64)

# A function of a nested tensor, and what it is on one sequence; its result is nested, so each sequence has a result of its own.
EACH = {
    "add": (lambda t: t + 1, lambda s: s + 1),
    "rsub": (lambda t: 2 - t, lambda s: 2 - s),
    "both": (lambda t: t * t.sin(), lambda s: s * s.sin()),
    "with a row": (lambda t: t * SCALE, lambda s: s * SCALE),
    "row first": (lambda t: SCALE / (t * t + 1), lambda s: SCALE / (s * s + 1)),
    "where": (lambda t: torch.where(t > 0, t, 0.0), lambda s: torch.where(s > 0, s, 0.0)),
    "clamp": (lambda t: t.clamp(-0.5, 0.5), lambda s: s.clamp(-0.5, 0.5)),
    "gelu": (F.gelu, F.gelu),
    "relu": (F.relu, F.relu),
    "module": (torch.nn.Softplus(), torch.nn.Softplus()),
    "linear": (lambda t: F.linear(t, W, W[:, 0]), lambda s: F.linear(s, W, W[:, 0])),
    "matmul": (lambda t: t @ W.T, lambda s: s @ W.T),
    "layer_norm": (lambda t: F.layer_norm(t, (6,), SCALE), lambda s: F.layer_norm(s, (6,), SCALE)),
    "rms_norm": (lambda t: F.rms_norm(t, (6,), SCALE), lambda s: F.rms_norm(s, (6,), SCALE)),
    "layer_norm of sequences": (
        lambda t: F.layer_norm(t, (t.size(1), 6)),
        lambda s: F.layer_norm(s, tuple(s.shape)),
    ),
    "softmax": (lambda t: t.softmax(-1), lambda s: s.softmax(-1)),
    "softmin": (lambda t: F.softmin(t, -1), lambda s: F.softmin(s, -1)),
    "relu6": (F.relu6, F.relu6),
    "softmax of sequences": (lambda t: F.softmax(t, dim=1), lambda s: s.softmax(0)),
    "log_softmax of sequences": (lambda t: t.log_softmax(1), lambda s: s.log_softmax(0)),
    "sum inside": (lambda t: t.sum(-1), lambda s: s.sum(-1)),
    "max inside": (lambda t: t.max(-1).values, lambda s: s.max(-1).values),
    "mean inside": (lambda t: t.mean(2, keepdim=True), lambda s: s.mean(1, keepdim=True)),
    "transpose": (lambda t: t.transpose(1, 2), lambda s: s.T),
    "back": (lambda t: t.transpose(1, 2).sin().mT, lambda s: s.sin()),
    "sum of transposed": (lambda t: t.transpose(1, 2).sum(1), lambda s: s.sum(1)),
    "unflatten": (lambda t: t.unflatten(-1, (2, 3)).flatten(2), lambda s: s),
    "view": (lambda t: t.view(4, -1, 3, 2), lambda s: s.view(-1, 3, 2)),
    "reshape": (lambda t: t.reshape(4, t.size(1), 2, 3), lambda s: s.reshape(-1, 2, 3)),
    "unsqueeze": (lambda t: t.unsqueeze(1).squeeze(1), lambda s: s),
    "permute": (lambda t: t.unflatten(2, (2, 3)).permute(0, 3, 1, 2), lambda s: s.unflatten(1, (2, 3)).permute(2, 0, 1)),
    "expand": (lambda t: t.unsqueeze(-1).expand(4, -1, 6, 2), lambda s: s.unsqueeze(-1).expand(-1, 6, 2)),
    "index": (lambda t: t[..., 1:3], lambda s: s[..., 1:3]),
    "select": (lambda t: t[:, :, 2], lambda s: s[:, 2]),
    "narrow": (lambda t: t.narrow(2, 1, 3), lambda s: s.narrow(1, 1, 3)),
    "chunk": (lambda t: t.chunk(4, -1)[2], lambda s: s.chunk(4, -1)[2]),
    "cat": (lambda t: torch.cat([t, t.sin()], -1), lambda s: torch.cat([s, s.sin()], -1)),
    "stack": (lambda t: torch.stack([t, t.sin()], 2), lambda s: torch.stack([s, s.sin()], 1)),
    "diff": (torch.diff, torch.diff),
    "to": (lambda t: t.to(torch.float32).double(), lambda s: s.to(torch.float32).double()),
    "masked_fill": (lambda t: t.masked_fill(t > 0, 2.0), lambda s: s.masked_fill(s > 0, 2.0)),
    "attention": (
        lambda t: F.scaled_dot_product_attention(*[heads(t)] * 3).transpose(1, 2).flatten(2),
        lambda s: F.scaled_dot_product_attention(*[heads(s)[None]] * 3)[0].transpose(0, 1).flatten(1),
    ),
    "causal attention": (
        lambda t: F.scaled_dot_product_attention(*[heads(t)] * 3, is_causal=True).transpose(1, 2).flatten(2),
        lambda s: F.scaled_dot_product_attention(*[heads(s)[None]] * 3, is_causal=True)[0].transpose(0, 1).flatten(1),
    ),
}  # fmt: skip
EACH["batched matmul"] = (lambda t: t @ BATCH, None)
BATCH = torch.linspace(-1, 1, 48, dtype=torch.float64).view(4, 6, 2)
# Results that are dense: what they are of the list of sequences.
WHOLE = {
    "sum": (torch.sum, lambda s: torch.cat(s).sum()),
    "mean": (torch.mean, lambda s: torch.cat(s).mean()),
    "max": (torch.max, lambda s: torch.cat(s).max()),
    "sum of sequences": (lambda t: t.sum(1), lambda s: torch.stack([x.sum(0) for x in s])),
    "mean of sequences": (lambda t: t.mean(1), lambda s: torch.stack([x.mean(0) for x in s])),
    "mean, keepdim": (lambda t: t.mean(1, keepdim=True), lambda s: torch.stack([x.mean(0, keepdim=True) for x in s])),
    "amax of sequences": (lambda t: t.amax(1), lambda s: torch.stack([x.amax(0) for x in s])),
    "min of sequences": (lambda t: t.min(1).values, lambda s: torch.stack([x.amin(0) for x in s])),
    "prod of sequences": (lambda t: t.prod(1), lambda s: torch.stack([x.prod(0) for x in s])),
    "over both": (lambda t: t.sum((0, 1)), lambda s: torch.cat(s).sum(0)),
    "over both, keepdim": (lambda t: t.sum((0, 1), keepdim=True), lambda s: torch.cat(s).sum(0)[None, None]),
    "gram": (lambda t: t.mT @ t, lambda s: torch.stack([x.T @ x for x in s])),
    "padded": (
        lambda t: t.to_padded_tensor(-1.0),
        lambda s: torch.nn.utils.rnn.pad_sequence(s, batch_first=True, padding_value=-1.0),
    ),
    "padded more": (
        lambda t: torch.nested.to_padded_tensor(t, -1.0, (5, 7, 8)),
        lambda s: F.pad(torch.nn.utils.rnn.pad_sequence(s, True, -1.0), (0, 2, 0, 3, 0, 1), value=-1.0),
    ),
    "a sequence": (lambda t: t[2], lambda s: s[2]),
    "a row": (lambda t: t[2, 1], lambda s: s[2][1]),
}


def differential(run, expected, leaves, of_nested):
    """Both results and both gradients."""
    t = torch.nested.as_nested_tensor(leaves, layout=jagged)
    got = run(t)
    got = got.unbind() if of_nested else [got]
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b)
    weights = [torch.cos(torch.arange(b.numel(), dtype=b.dtype)).view(b.shape) for b in expected]
    ours = torch.autograd.grad(sum((a * w).sum() for a, w in zip(got, weights)), leaves, materialize_grads=True)
    theirs = torch.autograd.grad(sum((b * w).sum() for b, w in zip(expected, weights)), leaves, materialize_grads=True)
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", EACH)
def test_functions_of_each_sequence(name):
    run, alone = EACH[name]
    leaves = [s.requires_grad_() for s in sequences()]
    expected = [alone(s) for s in leaves] if alone else [s @ b for s, b in zip(leaves, BATCH)]
    differential(run, expected, leaves, True)


@pytest.mark.parametrize("name", WHOLE)
def test_functions_of_all_sequences(name):
    run, alone = WHOLE[name]
    leaves = [s.requires_grad_() for s in sequences()]
    differential(run, [alone(leaves)], leaves, False)


@pytest.mark.parametrize("shape", [(6,), (1, 1, 6), (4, 1, 6), (4, 4, 6), (4, 1, 1)], ids=str)
def test_dense_operands_broadcast(shape):
    x = torch.linspace(1, 2, torch.Size(shape).numel(), dtype=torch.float64).view(shape)
    full = x.expand(4, 4, 6)
    expected = [s * full[k, : len(s)] for k, s in enumerate(sequences())]
    for made in (nested() * x, x * nested()):
        for a, b in zip(made.unbind(), expected, strict=True):
            torch.testing.assert_close(a, b)


def test_empty_sequences():
    parts = [torch.ones(0, 3), torch.arange(9.0).view(3, 3), torch.ones(0, 3)]
    t = nested(parts)
    assert t.sum(1).tolist() == [[0] * 3, [9, 12, 15], [0] * 3] and t.mean(1)[0].isnan().all()
    assert t.amax(1)[0].tolist() == [torch.finfo(torch.float32).min] * 3
    torch.testing.assert_close(t.softmax(1).unbind()[1], parts[1].softmax(0))
    assert nested([torch.ones(0, 3)]).sum(1).tolist() == [[0, 0, 0]]
    x = t.clone().requires_grad_()
    x.softmax(1).sum().backward()
    assert x.grad.values().isfinite().all()


MADE = {
    "list": lambda: torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=jagged),
    "arrays": lambda: torch.nested.nested_tensor([s.numpy() for s in sequences()], layout=jagged),
    "jagged": lambda: torch.nested.nested_tensor_from_jagged(torch.cat(sequences()), torch.tensor([0, 3, 4, 8, 10])),
    "lengths": lambda: torch.nested.nested_tensor_from_jagged(torch.cat(sequences()), lengths=torch.tensor(LENGTHS)),
    "second": lambda: torch.nested.nested_tensor([s.T for s in sequences()], layout=jagged),
    "dense": lambda: torch.nested.as_nested_tensor(torch.ones(2, 3, 4), layout=jagged),
    "selected": lambda: torch.nested.masked_select(torch.arange(4.0).view(2, 2), torch.tensor([[True, False], [True, True]])),
}  # fmt: skip
# Shapes and offsets, from PyTorch.
FACTS = {
    "list": ("(2, j, )", [0, 2, 3]),
    "arrays": ("(4, j, 6)", [0, 3, 4, 8, 10]),
    "jagged": ("(4, j, 6)", [0, 3, 4, 8, 10]),
    "lengths": ("(4, j, 6)", [0, 3, 4, 8, 10]),
    "second": ("(4, 6, j)", [0, 3, 4, 8, 10]),
    "dense": ("(2, j, 4)", [0, 3, 6]),
    "selected": ("(2, j, )", [0, 1, 3]),
}


@pytest.mark.parametrize("name", MADE)
def test_makers(name):
    t = MADE[name]()
    shape = [f"j{n.number}" if hasattr(n, "number") else n for n in t.shape]
    j = next(n for n in shape if str(n).startswith("j"))
    assert FACTS[name] == (str(tuple(shape)).replace(f"'{j}'", "j").replace("j)", "j, )" if len(shape) == 2 else "j)"),
                           t.offsets().tolist())  # fmt: skip
    assert t.is_nested and t.layout is jagged and isinstance(t, torch.Tensor) and len(t) == len(t.unbind())


def narrowed():
    x = torch.arange(24.0).view(2, 4, 3)
    return torch.nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=jagged)


def test_sequences_with_holes():
    t, x = narrowed(), torch.arange(24.0).view(2, 4, 3)
    for made in (t, (t * 2) / 2, t.contiguous()):
        assert [s.tolist() for s in made.unbind()] == [x[0, :2].tolist(), x[1, 1:4].tolist()]
    assert t.lengths().tolist() == [2, 3] and not t.is_contiguous() and t.contiguous().is_contiguous()
    assert t.sum() == x[0, :2].sum() + x[1, 1:4].sum()  # PyTorch adds what lies in the holes
    with pytest.raises(RuntimeError, match="not supported for non-contiguous nested tensors with holes"):
        t.sum(1)
    with pytest.raises(RuntimeError, match=r"to_padded_tensor\(\): not supported for nested tensors with holes"):
        t.to_padded_tensor(0.0)


def test_sizes_are_symbols():
    t, other = nested(), nested()
    j = t.shape[1]
    assert j == (t * 2).size(1) and j != other.shape[1] and j != 4 and j >= 2 and j > 0 and not j < 2
    assert isinstance(j, torch.SymInt) and repr(j * 3).startswith("3*j") and t.stride() == (6 * j, 6, 1)
    assert t.shape == (4, j, 6) and t.numel() == 60 and t.dim() == t.ndim == 3 and t.size(-1) == 6
    for ask in (lambda: j < 5, lambda: j >= 3):
        with pytest.raises(ValueError, match="relation is indeterminate"):
            ask()
    for ask in (lambda: int(j), lambda: j + 1, lambda: torch.zeros(t.shape), lambda: j % 2):
        with pytest.raises(NotImplementedError, match="the size of a ragged dimension, has no value"):
            ask()


# The words are PyTorch's.
WRONG = {
    "other sequences": (lambda t: t + nested(), RuntimeError, r"cannot call binary pointwise function add.* with inputs of shapes"),
    "length": (lambda t: t + torch.ones(4, 7, 6), RuntimeError, r"expanded size of the tensor \(4\) must match the existing size \(7\)"),
    "batch slice": (lambda t: t[0:1], RuntimeError, r"slice\(\): not supported for NestedTensor on dim=0"),
    "batch sum": (lambda t: t.sum(0), RuntimeError, r"sum\(\): reducing along the batch dimension but not the ragged dimension"),
    "ragged sum": (lambda t: t.sum((1, 2)), RuntimeError, r"sum\(\): reducing along a ragged and non-batch dimension"),
    "batch softmax": (lambda t: t.softmax(0), RuntimeError, "not supported when reducing across the batch dimension"),
    "flatten": (lambda t: t.flatten(1, 2), RuntimeError, r"flatten\(\): not supported for NestedTensor on ragged dim"),
    "squeeze": (lambda t: t.squeeze(1), RuntimeError, r"squeeze\(\): not supported for NestedTensor on ragged dim"),
    "unsqueeze": (lambda t: t.unsqueeze(0), RuntimeError, r"unsqueeze\(\): not supported for NestedTensor on dim=0"),
    "cat": (lambda t: torch.cat([t, t], 1), RuntimeError, r"cat\(\): not supported for NestedTensor on ragged dim"),
    "split": (lambda t: t.split(1, 0), RuntimeError, r"split\(\): not supported for NestedTensor on dim=0"),
    "view": (lambda t: t.view(4, -1), RuntimeError, r"view\(\): cannot view shape \(4, j\d+, 6\) as \[4, -1\]"),
    "transpose": (lambda t: t.transpose(0, 1), ValueError, "Transpose is not supported on the batch dimension for jagged NT"),
    "permute": (lambda t: t.permute(1, 0, 2), ValueError, "Permute is not supported on the batch dimension for jagged NT"),
    "T": (lambda t: t.T, ValueError, "Permute is not supported on the batch dimension"),
    "unbind": (lambda t: t.unbind(1), RuntimeError, r"unbind\(\): only supported for NestedTensor on dim=0"),
    "index": (lambda t: t[9], IndexError, "tuple index out of range"),
    "dim": (lambda t: t.sum(5), IndexError, r"Dimension out of range \(expected to be in range of \[-3, 2\], but got 5\)"),
    "product": (lambda t: t @ t.mT, RuntimeError, r"matmul\(\): not supported between inputs of shapes"),
    "linear": (lambda t: F.linear(t.mT, W), ValueError, "expected input to be a contiguous jagged layout NestedTensor"),
    "mask": (lambda t: F.scaled_dot_product_attention(*[heads(t)] * 3, attn_mask=W), ValueError, "Masks are not yet supported!"),
    "numpy": (lambda t: t.numpy(), RuntimeError, r".numpy\(\) is not supported for tensor subclasses"),
    "tolist": (lambda t: t.tolist(), RuntimeError, r".tolist\(\) is not supported for tensor subclasses, got NestedTensor"),
    "bool": (bool, RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
    "item": (lambda t: t.item(), RuntimeError, "a Tensor with 60 elements cannot be converted to Scalar"),
    "no rule": (lambda t: t.cumsum(1), NotImplementedError, "cumsum"),
    "no operator": (lambda t: torch.ops.aten.sort(t), NotImplementedError, "aten.sort"),
    "backward": (lambda t: t.requires_grad_().backward(), RuntimeError, "grad can be implicitly created only for scalar outputs"),
    "empty list": (lambda t: nested([]), RuntimeError, "Cannot construct a nested tensor from an empty tensor list"),
    "no dimension": (lambda t: nested([torch.tensor(1.0)]), RuntimeError, "from a list of zero-dim tensors"),
    "dtypes": (lambda t: nested([torch.ones(2), torch.ones(2).int()]), RuntimeError, "must have the same dtype"),
    "ranks": (lambda t: nested([torch.ones(2), torch.ones(2, 2)]), RuntimeError, "must have the same dim"),
    "neither": (lambda t: torch.nested.nested_tensor_from_jagged(W), RuntimeError, "At least one of offsets or lengths is required."),
    "outside": (lambda t: torch.nested.nested_tensor_from_jagged(W, torch.tensor([0, 9])), RuntimeError, "inside of 4 rows"),
    "backwards": (lambda t: torch.nested.nested_tensor_from_jagged(W, torch.tensor([0, 3, 2])), RuntimeError, "inside of"),
    "jagged_dim": (lambda t: torch.nested.nested_tensor_from_jagged(W, torch.tensor([0, 4]), jagged_dim=0), ValueError, "Expected jagged_dim >=1, but got 0."),
    "narrow": (lambda t: torch.nested.narrow(torch.ones(2, 4, 3), 2, 0, 1, layout=jagged), RuntimeError, "jagged layout only supports dim=1"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    run, error, text = WRONG[name]
    with pytest.raises(error, match=text):
        run(nested())


def test_autograd():
    t = nested(requires_grad=True)
    assert t.is_leaf and t.requires_grad and t.grad is None and not t.detach().requires_grad
    seen = []
    t.register_hook(lambda g: seen.append(g.shape) or g * 2)
    (t * t).sum().backward()
    torch.testing.assert_close(t.grad.values(), t.values().detach() * 4)
    assert t.grad.is_nested and seen == [t.shape] and t.grad.shape == t.shape
    (g,) = torch.autograd.grad((t**3).sum(), t, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), t)
    torch.testing.assert_close(h.values(), t.values().detach() * 6 * 2 * 2)
    y = t * 2
    y.backward(torch.ones_like(y))
    torch.testing.assert_close(t.grad.values(), t.values().detach() * 4 + 4)
    t.grad = None
    assert t.grad is None and "grad_fn=" in repr(y)


def test_operators_called_directly():
    t = nested()
    assert torch.equal(torch.ops.aten.mul.Tensor(t, 2.0).values(), t.values() * 2)
    weight = torch.ones(6, dtype=torch.float64, requires_grad=True)
    torch.ops.aten.mul.Tensor(t, weight).values().sum().backward()
    assert torch.equal(weight.grad, t.values().sum(0))


def test_text():
    t = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=jagged, requires_grad=True)
    j = t.shape[1]
    assert repr(t) == f"NestedTensor(size=(2, {j}, 3), offsets=tensor([0, 2, 3]), requires_grad=True, contiguous=True)"
    assert f"{t}" == str(t) == repr(t) and str(t.shape) == f"torch.Size([2, {j}, 3])"


@pytest.mark.parametrize(
    "make", [lambda: nested(requires_grad=True), narrowed, lambda: nested().mT], ids=["leaf", "holes", "mT"]
)
@pytest.mark.parametrize("way", ["pickle", "deepcopy", "save"])
def test_copies(make, way):
    t = make()
    if way == "save":
        file = io.BytesIO()
        torch.save({"t": t}, file)
        file.seek(0)
        made = torch.load(file)["t"]
    else:
        made = pickle.loads(pickle.dumps(t)) if way == "pickle" else copy.deepcopy(t)
    assert type(made) is type(t) and made.requires_grad == t.requires_grad and made.dim() == t.dim()
    for a, b in zip(made.unbind(), t.unbind(), strict=True):
        assert torch.equal(a, b)


def test_files_with_offsets_outside_are_refused():
    t = nested()
    t._offsets = torch.tensor([0, 99])
    file = io.BytesIO()
    torch.save(t, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="don't say sequences inside"):
        torch.load(file)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(6), torch.nn.Linear(6, 18), torch.nn.Linear(6, 6)

    def forward(self, x):
        q, k, v = map(heads, self.qkv(self.norm(x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x + F.gelu(self.out(mixed))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled(backend):
    torch.manual_seed(0)
    model = Block().double()
    compiled = torch.compile(model, backend=backend, fullgraph=True)

    def step(f, lengths):
        x = nested(sequences(lengths), requires_grad=True)
        y = f(x)
        model.zero_grad()
        (y.sum(1).square().sum() + y.softmax(1)[..., 0].sum()).backward()
        assert y.shape[1] is x.shape[1]
        return [y.values().detach(), x.grad.values(), *(p.grad.clone() for p in model.parameters())]

    for lengths in (LENGTHS, (2, 5, 3), (1, 1), (7, 2, 4, 4, 1)):
        for a, b in zip(step(compiled, lengths), step(model, lengths), strict=True):
            torch.testing.assert_close(a, b)


def test_other_lengths_are_no_recompilation():
    counter = torch._dynamo.testing.CompileCounter()
    f = torch.compile(lambda t: t.sin() * 2, backend=counter, dynamic=True, fullgraph=True)
    for lengths, width in ((LENGTHS, 6), ((2, 5, 3), 4), ((1, 1, 7, 2, 2), 3)):
        t = nested(sequences(lengths, width))
        torch.testing.assert_close(f(t).values(), t.values().sin() * 2)
    assert counter.frame_count == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_unbind(backend):
    f = torch.compile(lambda t: [s * 2 for s in t.unbind()], backend=backend, dynamic=True, fullgraph=True)
    for lengths in (LENGTHS, (2, 5, 3, 1), (1, 1)):
        t = nested(sequences(lengths))
        for a, b in zip(f(t), t.unbind(), strict=True):
            torch.testing.assert_close(a, b * 2)


def test_parts_of_libraries():
    from flambeau.nested._internal import nested_tensor as tools

    parts = [t.requires_grad_() for t in sequences()]
    t, offsets = tools.jagged_from_list(parts, None)
    other, same = tools.jagged_from_list(parts, offsets, dtype=torch.float32)
    assert same is offsets and other.shape == t.shape and other.dtype is torch.float32
    (t + other).values().sum().backward()
    assert all((p.grad == 2).all() for p in parts)
    dense = torch.arange(24.0).view(2, 4, 3)
    for starts, lengths, holes in (((0, 1), (3, 2), True), ((0, 0), (4, 4), False), ((1, 0), (3, 2), False)):
        t, offsets, kept = tools.jagged_from_tensor_and_lengths(dense, torch.tensor(starts), torch.tensor(lengths))
        assert (kept is not None) is holes and offsets.tolist() == t.offsets().tolist() or not holes
        for s, row, begin, n in zip(t.unbind(), dense, starts, lengths, strict=True):
            assert s.tolist() == row[begin : begin + n].tolist()
    offsets = torch.tensor([0, 3, 5])
    for ragged, padded in ((1, dense), (2, dense.mT)):
        t = tools.nested_from_padded(padded, offsets, ragged, 2, 3, 5)
        assert [s.movedim(ragged - 1, 0).tolist() for s in t.unbind()] == [dense[0, :3].tolist(), dense[1, :2].tolist()]
    values = torch.arange(10.0)
    t = tools.nested_view_from_values_offsets_lengths(values, torch.tensor([0, 4, 8]), torch.tensor([2, 3]))
    assert [s.tolist() for s in t.unbind()] == [[0, 1], [4, 5, 6]] and tools.buffer_from_jagged(t) is values


def test_ragged_sizes_are_those_of_lengths_and_can_be_noted():
    from flambeau.nested._internal.nested_tensor import NestedTensor, _tensor_symint_registry
    from flambeau.nested._internal.ops import extract_kwargs

    values, offsets, lengths = torch.arange(12.0).view(6, 2), torch.tensor([0, 3, 6]), torch.tensor([1, 2])
    whole, parts, others = (
        torch.nested.nested_tensor_from_jagged(values, offsets, n) for n in (None, lengths, torch.tensor([2, 2]))
    )
    assert len({whole.shape, parts.shape, others.shape}) == 3
    with pytest.raises(RuntimeError, match="shapes"):
        parts + others
    for t, name in ((whole, "offsets"), (parts, "lengths")):
        copied = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in extract_kwargs(t).items()}
        assert copied[name] not in _tensor_symint_registry
        with pytest.raises(KeyError):
            _tensor_symint_registry[copied[name]]
        with pytest.raises(RuntimeError, match="shapes"):
            t + NestedTensor(values, **copied)
        copied = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in copied.items()}
        _tensor_symint_registry[copied[name]] = _tensor_symint_registry[getattr(t, f"_{name}")]
        other = NestedTensor(values * 2, **copied)
        assert other.shape == t.shape and (t + other).shape == t.shape
        assert [s.tolist() for s in (t + other).unbind()] == [(s * 3).tolist() for s in t.unbind()]


def test_compiled_second_derivative():
    def f(t):
        (g,) = torch.autograd.grad((t.values() ** 3).sum(), t.values(), create_graph=True)
        return (g**2).sum()

    t = nested(requires_grad=True)
    eager = torch.autograd.grad(f(t), t)[0].values()
    compiled = torch.compile(f, backend="aot_eager")
    torch.testing.assert_close(torch.autograd.grad(compiled(t), t)[0].values(), eager)


@pytest.mark.parity
def test_files_are_pytorchs(tmp_path):
    theirs = pytest.importorskip("torch")
    torch.save(nested(), tmp_path / "a.pt")
    read = theirs.load(tmp_path / "a.pt")
    theirs.save(read, tmp_path / "b.pt")
    assert torch.equal(torch.load(tmp_path / "b.pt").values(), nested().values())


@pytest.mark.parametrize("make", [torch.nested.nested_tensor, torch.nested.as_nested_tensor], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_made_in_compiled_code(make, backend):
    """Without a break of the graph, and with gradients where the sequences keep theirs."""

    def f(a, b):
        return torch.nested.to_padded_tensor(make([a, b * 2], layout=jagged) * 3, 0.5)

    def outcome(g):
        a, b = (torch.full((n, 3), 2.0, requires_grad=True) for n in (2, 1))
        out = g(a, b)
        if out.requires_grad:
            out.sum().backward()
        return out.detach(), a.grad, b.grad

    for got, want in zip(outcome(torch.compile(f, backend=backend, fullgraph=True)), outcome(f), strict=True):
        assert (got is None and want is None) or torch.equal(got, want)
