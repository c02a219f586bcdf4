"""``resize_`` and ``set_`` of fake and of meta tensors: shape, strides, offset and bytes are those of real ones; nothing that is traced is changed."""

import pytest
from flambeau._subclasses import FakeTensorMode
from flambeau.fx.experimental.proxy_tensor import make_fx

import flambeau as torch


def strided(t):
    return t.set_(torch.zeros(7).untyped_storage(), 1, (2, 2), (2, 1))


CHANGES = {
    "larger": lambda: torch.ones(2, 3).resize_(4, 5),
    "smaller": lambda: torch.ones(2, 3).resize_(2),
    "channels last": lambda: torch.ones(2, 3).resize_(1, 2, 3, 4, memory_format=torch.channels_last),
    "as another": lambda: torch.ones(2, 3).resize_as_(torch.ones(4, 5)),
    "a view that has room": lambda: torch.ones(6)[2:].resize_(2, 2),
    "a tensor": lambda: torch.ones(2, 3).set_(torch.zeros(7)),
    "a storage": lambda: strided(torch.ones(2, 3)),
    "a part": lambda: torch.ones(2, 3).set_(torch.zeros(7), 1, (2,), (3,)),
    "nothing": lambda: torch.ones(2, 3).set_(),
}


def described(t):
    return tuple(t.shape), t.stride(), t.dtype, t.storage_offset(), t.untyped_storage().nbytes()


@pytest.mark.parametrize("where", ["fake", "meta"])
@pytest.mark.parametrize("name", CHANGES)
def test_like_a_real_one(name, where):
    real = described(CHANGES[name]())
    with FakeTensorMode() if where == "fake" else torch.device("meta"):
        assert described(CHANGES[name]()) == real


def test_real_and_fake_memory_dont_mix():
    real = torch.ones(2)
    with FakeTensorMode(), pytest.raises(RuntimeError, match="one of them has no data"):
        real.set_(torch.ones(2))


@pytest.mark.parametrize("change", [lambda x: x.clone().resize_(2), lambda x: x.clone().set_(torch.zeros(3))])
def test_a_trace_doesnt_lose_it(change):
    with pytest.raises((NotImplementedError, RuntimeError), match="needs a tensor with data"):
        make_fx(change, tracing_mode="fake")(torch.ones(6))
    f = torch.compile(lambda x: change(x) * 2)
    assert torch.equal(f(torch.ones(6)), change(torch.ones(6)) * 2)
