"""``resize_``, ``resize_as_`` and ``set_`` as operators: dispatch modes see them, the write is counted, captured code breaks its graph at them."""

import pytest

import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


def _storage():
    return torch.arange(8.0).untyped_storage()


CALLS = {  # name: (call, overload, shape, strides)
    "to nothing": (lambda x: x.resize_(0), aten.resize_.default, (0,), (1,)),
    "larger": (lambda x: x.resize_(10), aten.resize_.default, (10,), (1,)),
    "sizes": (lambda x: x.resize_((2, 3)), aten.resize_.default, (2, 3), (3, 1)),
    "in a format": (
        lambda x: x.resize_(1, 2, 1, 3, memory_format=torch.channels_last),
        aten.resize_.default,
        (1, 2, 1, 3),
        (6, 1, 6, 2),
    ),
    "as another": (lambda x: x.resize_as_(torch.ones(2, 2)), aten.resize_as_.default, (2, 2), (2, 1)),
    "empty": (lambda x: x.set_(), aten.set_.default, (0,), (1,)),
    "a tensor": (lambda x: x.set_(torch.ones(2, 2)), aten.set_.source_Tensor, (2, 2), (2, 1)),
    "a storage": (lambda x: x.set_(_storage()), aten.set_.source_Storage, (8,), (1,)),
    "a typed storage": (lambda x: x.set_(torch.arange(8.0).storage()), aten.set_.source_Storage, (8,), (1,)),
    "a part": (
        lambda x: x.set_(_storage(), 2, (2, 2), (1, 2)),
        aten.set_.source_Storage_storage_offset,
        (2, 2),
        (1, 2),
    ),
    "a part of a tensor": (
        lambda x: x.set_(torch.arange(8.0), 2, (2, 2), (1, 2)),
        aten.set_.source_Storage_storage_offset,
        (2, 2),
        (1, 2),
    ),
    "by name": (lambda x: aten.resize_(x, [2, 2]), aten.resize_.default, (2, 2), (2, 1)),
    "by the overload's name": (
        lambda x: aten.set_.source_Storage(x, _storage()),
        aten.set_.source_Storage,
        (8,),
        (1,),
    ),
}


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("fake", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_modes_see_the_call_and_the_write_is_counted(name, fake):
    call, overload, shape, strides = CALLS[name]
    with torch._subclasses.FakeTensorMode() if fake else torch.enable_grad():
        x = torch.arange(6.0)
        before = x._version
        with Seen() as seen:
            assert call(x) is x
    assert seen.calls[-1] is overload and x._version == before + 1
    assert (tuple(x.shape), x.stride()) == (shape, strides)


def test_what_set_takes():
    x = torch.arange(6.0)
    x.set_(torch.arange(8.0), 2, (2, 2), (1, 2))
    assert x.tolist() == [[2, 4], [3, 5]]
    y = torch.ones(3)
    x.set_(y)
    y[0] = 7
    assert x.tolist() == [7, 1, 1]


REFUSED = [
    (lambda x: x.set_(torch.arange(8)), "Could not set tensor of type long int to a tensor of type float"),
    (lambda x: x.set_(_storage(), -1, (3,), (1,)), "invalid storage offset -1"),
    (lambda x: x.requires_grad_().resize_(2), "cannot resize variables that require grad"),
    (lambda x: x.requires_grad_().set_(torch.ones(2)), "a leaf Variable that requires grad"),
    (lambda x: x.set_(3), "invalid combination of arguments"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_refused(k):
    call, words = REFUSED[k]
    x = torch.arange(6.0)
    with pytest.raises((RuntimeError, TypeError), match=words):
        call(x)
    assert x.tolist() == [0, 1, 2, 3, 4, 5] and x._version == 0


PROGRAMS = {
    "an argument to nothing": lambda x, y: x.resize_(0).sum() + y,
    "an argument": lambda x, y: x.resize_(2, 2) + y,
    "what was computed": lambda x, y: (x * 2).resize_(2, 2) + y,
    "as another": lambda x, y: (x * 2).resize_as_(y) + 1,
    "other memory": lambda x, y: x.set_(y) + 1,
    "other memory, written": lambda x, y: (x.set_(y), x.add_(1))[1] * 2 + y,
    "of what was computed": lambda x, y: (x * 2).set_(y * 3) + 1,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_captured_code_breaks_its_graph(name):
    fn = PROGRAMS[name]

    def run(f):
        x, y = torch.arange(6.0), torch.ones(2, 2)
        return f(x, y), x, y

    for a, b in zip(run(fn), run(torch.compile(fn, backend="eager")), strict=True):
        assert a.shape == b.shape and torch.equal(a, b)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"\.(resize_|resize_as_|set_)\(\) of a tensor"):
        run(torch.compile(fn, backend="eager", fullgraph=True))


def test_the_same_size_is_captured():
    x = torch.arange(6.0)
    assert torch.equal(torch.compile(lambda x: x.resize_(6) + 1, fullgraph=True)(x), x + 1)
