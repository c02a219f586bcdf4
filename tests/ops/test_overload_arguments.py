"""Overloads called by name with wrong arguments: RuntimeError in PyTorch's words.

``overload_arguments.txt`` has rows ``overload !! argument=kind of value (or what else is wrong) !! first line of the message``, recorded from
PyTorch 2.13 (CPU)."""

import pathlib

import numpy as np
import pytest

import flambeau as torch

ROWS = [
    tuple(row.split(" !! "))
    for row in pathlib.Path(__file__).with_name("overload_arguments.txt").read_text().splitlines()
]


def ones(*shape):
    return torch.ones(shape)


def zero():
    return torch.tensor([0])


# A call of each overload that fits.
CALLS = {
    "add.Tensor": lambda: [ones(3), ones(3)],
    "add.Scalar": lambda: [ones(3), 2],
    "sub.Tensor": lambda: [ones(3), ones(3)],
    "mul.Tensor": lambda: [ones(3), ones(3)],
    "div.Tensor_mode": lambda: [ones(3), ones(3)],
    "sum.default": lambda: [ones(3)],
    "sum.dim_IntList": lambda: [ones(3, 2), [0], False],
    "mean.dim": lambda: [ones(3, 2), [0], False],
    "amax.default": lambda: [ones(3, 2), [0], False],
    "view.default": lambda: [ones(4), [2, 2]],
    "permute.default": lambda: [ones(2, 3), [1, 0]],
    "transpose.int": lambda: [ones(2, 3), 0, 1],
    "select.int": lambda: [ones(2, 3), 0, 1],
    "slice.Tensor": lambda: [ones(5), 0, 1, 3, 1],
    "cat.default": lambda: [[ones(2), ones(2)], 0],
    "stack.default": lambda: [[ones(2), ones(2)], 0],
    "index.Tensor": lambda: [ones(3), [zero()]],
    "gather.default": lambda: [ones(3), 0, zero()],
    "zeros.default": lambda: [[2]],
    "full.default": lambda: [[2], 1.0],
    "arange.start": lambda: [0, 3],
    "empty.memory_format": lambda: [[2]],
    "rand.default": lambda: [[2]],
    "relu.default": lambda: [ones(3)],
    "softmax.int": lambda: [ones(3), 0],
    "_softmax.default": lambda: [ones(3), 0, False],
    "mm.default": lambda: [ones(2, 2), ones(2, 2)],
    "addmm.default": lambda: [ones(2, 2), ones(2, 2), ones(2, 2)],
    "convolution.default": lambda: [ones(1, 1, 3, 3), ones(1, 1, 2, 2), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1],
    "max_pool2d.default": lambda: [ones(1, 1, 4, 4), [2, 2]],
    "native_layer_norm.default": lambda: [ones(2, 3), [3], None, None, 1e-5],
    "embedding.default": lambda: [ones(3, 2), zero()],
    "nll_loss.default": lambda: [ones(2, 3), torch.tensor([0, 1])],
    "where.self": lambda: [ones(3) > 0, ones(3), ones(3)],
    "clamp.default": lambda: [ones(3), 0, 1],
    "pow.Tensor_Scalar": lambda: [ones(3), 2],
    "sort.default": lambda: [ones(3), 0, False],
    "topk.default": lambda: [ones(3), 2],
    "clone.default": lambda: [ones(3)],
    "copy_.default": lambda: [ones(3), ones(3)],
    "add_.Tensor": lambda: [ones(3), ones(3)],
    "fill_.Scalar": lambda: [ones(3), 1],
    "masked_fill.Scalar": lambda: [ones(3), ones(3) > 0, 1],
    "dropout.default": lambda: [ones(3), 0.5, True],
    "bernoulli.p": lambda: [ones(3), 0.5],
    "norm.ScalarOpt_dim": lambda: [ones(3), 2, [0]],
    "std.correction": lambda: [ones(3), [0]],
    "cumsum.default": lambda: [ones(3), 0],
    "scatter.src": lambda: [ones(3), 0, zero(), ones(1)],
    "index_put.default": lambda: [ones(3), [zero()], ones(1)],
    "repeat.default": lambda: [ones(2), [2]],
    "expand.default": lambda: [ones(1), [3]],
    "linalg_norm.default": lambda: [ones(3)],
    "bmm.default": lambda: [ones(1, 2, 2), ones(1, 2, 2)],
    "split.Tensor": lambda: [ones(4), 2],
    "chunk.default": lambda: [ones(4), 2],
    "unbind.int": lambda: [ones(2), 0],
    "eq.Tensor": lambda: [ones(3), ones(3)],
    "_to_copy.default": lambda: [ones(3)],
    "linear.default": lambda: [ones(2), ones(2, 2)],
    "lerp.Scalar": lambda: [ones(3), ones(3), 0.5],
    "argmax.default": lambda: [ones(3)],
    "all.dim": lambda: [ones(3) > 0, 0],
    "flip.default": lambda: [ones(3), [0]],
    "upsample_nearest2d.vec": lambda: [ones(1, 1, 2, 2), [4, 4], None],
    "constant_pad_nd.default": lambda: [ones(3), [1, 1]],
    "diagonal.default": lambda: [ones(2, 2)],
    "tril.default": lambda: [ones(2, 2)],
    "bucketize.Tensor": lambda: [ones(2), ones(2)],
    "detach.default": lambda: [ones(2)],
    "new_zeros.default": lambda: [ones(2), [2]],
}
VALUES = {
    "str": "a",
    "none": None,
    "int": 3,
    "float": 1.5,
    "bool": True,
    "list": [1, 2],
    "listf": [1.5],
    "lists": ["a"],
    "tensor": torch.ones(2),
    "listt": [torch.ones(2)],
    "obj": object(),
    "dtype": torch.float32,
    "dict": {},
    "cplx": 1j,
    "tuple": (1,),
    "mix": [1, torch.ones(1)],
    "np": np.ones(2),
    "npi": np.int64(1),
    "device": torch.device("cpu"),
    "empty": [],
    "bytes": b"a",
    "big": 2**70,
    "listnone": [None],
    "set": {1},
}


def overload(name):
    packet, which = name.split(".")
    return getattr(getattr(torch.ops.aten, packet), which)


def wrong_call(name, case):
    """(overload, args, kwargs)"""
    op, args = overload(name), CALLS[name]()
    names = [a.name for a in op._schema.arguments]
    if "=" in case:
        argument, kind = case.split("=")
        k = names.index(argument)
        if k >= len(args):
            return op, args, {argument: VALUES[kind]}
        args[k] = VALUES[kind]
        return op, args, {}
    return {
        "none": (op, [], {}),
        "fewer": (op, args[:-1], {}),
        "more": (op, args + [1] * 20, {}),
        "unknown": (op, args, {"nonsense": 1}),
        "emptykw": (op, args, {"": 1}),
        "twice": (op, args, {names[0]: args[0]}),
        "allkw": (op, [], dict(zip(names, args))),
        "kwself": (op, args[1:], {names[0]: args[0]}),
    }[case]


@pytest.mark.parametrize("name, case, text", ROWS)
def test_wrong_arguments(name, case, text):
    op, args, kwargs = wrong_call(name, case)
    with pytest.raises(RuntimeError) as raised:
        op(*args, **kwargs)
    assert str(raised.value).startswith(text)


# In a graph an array is a tensor, and how many numbers a tensor holds isn't known.
OTHERS = [row for row in ROWS if row[1].split("=")[-1] not in ("np", "tensor", "listt", "mix")]


@pytest.mark.parametrize("name, case, text", OTHERS[::5])
def test_wrong_arguments_compiled(name, case, text):
    op, args, kwargs = wrong_call(name, case)
    with pytest.raises(RuntimeError):
        torch.compile(lambda: op(*args, **kwargs))()


def test_the_table_is_a_table():
    assert len(ROWS) > 200 and {name for name, _, _ in ROWS} <= set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_fit(name):
    if name != "div.Tensor_mode":  # whose rounding_mode has no default
        overload(name)(*CALLS[name]())


def test_what_the_schema_takes_beside_plain_values():
    aten = torch.ops.aten
    assert aten.zeros.default([2], device="cpu").tolist() == [0, 0]
    assert aten.add.Tensor(torch.ones(2), 3).tolist() == [4, 4]
    assert aten.sum.dim_IntList(torch.ones(2, 2), (0,)).tolist() == [2, 2]
    assert aten.select.int(torch.ones(2, 2), torch.tensor(0), True).tolist() == [1, 1]
    assert aten.max_pool2d.default(torch.ones(1, 1, 2, 2), 2).tolist() == [[[[1]]]]
    with pytest.raises(RuntimeError, match="device"):
        aten.zeros.default([2], device="nowhere")


def test_an_operators_own_error_stays():
    @torch.library.custom_op("overload_arguments::picky", mutates_args=())
    def picky(x: torch.Tensor, n: int) -> torch.Tensor:
        raise ValueError("not today")

    op = torch.ops.overload_arguments.picky.default
    with pytest.raises(ValueError, match="not today"):
        op(torch.ones(2), 1)
    with pytest.raises(
        RuntimeError, match=r"overload_arguments::picky\(\) Expected a value of type 'int' for argument 'n'"
    ):
        op(torch.ones(2), "a")
