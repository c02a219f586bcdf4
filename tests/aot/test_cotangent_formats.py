"""A compiled backward takes the cotangent of an image in the order of the image, and gives eager's gradients in eager's strides."""

import pytest

import flambeau as torch
from flambeau.aot import aot_function, nop

SHAPES = {"channels_last": (2, 3, 5, 4), "channels_last_3d": (2, 3, 2, 4, 3)}


def image(shape, format):
    g = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=g).contiguous(memory_format=format).requires_grad_()


@pytest.mark.parametrize("format", [*SHAPES, "contiguous_format"])
@pytest.mark.parametrize("given", ["last", "row-major", "expanded", "every other"])
def test_the_order_of_the_output(format, given):
    shape = SHAPES.get(format, (2, 3, 5, 4))
    format = getattr(torch, format)
    last = {4: torch.channels_last, 5: torch.channels_last_3d}[len(shape)]
    x = image(shape, format)
    ct = {
        "last": torch.rand(*shape).contiguous(memory_format=last),
        "row-major": torch.rand(*shape),
        "expanded": torch.ones(()).expand(shape),
        "every other": torch.rand(*shape[:-1], 2 * shape[-1])[..., ::2],
    }[given]
    handed = []

    def spy(gm, example_inputs):
        (tangent,) = [n for n in gm.graph.find_nodes(op="placeholder") if n.name.startswith("tangents")]
        handed.append(tangent.meta["val"])

        def run(*args):
            handed.append(args[-1])
            return gm.forward(*args)

        return run

    def f(x):
        return (x * 2).tanh()

    (got,) = torch.autograd.grad(aot_function(f, nop, spy)(x), [x], ct)
    (want,) = torch.autograd.grad(f(x), [x], ct)
    assert all(t.is_contiguous(memory_format=format) for t in handed) and len(handed) == 2
    assert torch.equal(got, want) and got.is_contiguous(memory_format=format)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_whole_network_compiled(dynamic):
    conv = torch.nn.Conv2d(4, 6, 3, 2, 1).to(memory_format=torch.channels_last)
    compiled = torch.compile(conv, dynamic=dynamic)
    for n in (2, 3):
        x = image((n, 4, 9, 8), torch.channels_last)
        for ct in (torch.ones(n, 6, 5, 4), torch.rand(n, 6, 5, 4).contiguous(memory_format=torch.channels_last)):
            got, want = (torch.autograd.grad(run(x), [x, conv.weight], ct) for run in (compiled, conv))
            for a, b in zip(got, want):
                assert a.stride() == b.stride()
                torch.testing.assert_close(a, b)
