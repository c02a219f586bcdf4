"""Operators whose arguments are functions and that stand as one node: invoke_quant, local_map_hop, while_loop_stack_output, hooks, flex attention."""

import pytest
from flambeau._higher_order_ops.flex_attention import flex_attention, flex_attention_backward
from flambeau._higher_order_ops.register_hook import register_hook_op

import flambeau as torch
from flambeau import _higher_order_ops as hops
from flambeau.nn.attention import flex_attention as public

BACKENDS = ["eager", "aot_eager", "inductor"]
quant = hops.InvokeQuant(codegen_low_precision=False)


def quantised(x):
    return quant(lambda a, b: (a.sin() * b,), x, x, scheme="nf4")[0] * 2


def packed(x):
    return hops.invoke_quant_packed(lambda a: (a.sin(),), x)[0] * 2


def mapped(x):
    return hops.local_map_hop(lambda a, b: a.cos() + b, x, x * 2)


def hooked(x):
    return register_hook_op(x.sin(), lambda g, c: g * c, 3.0).cos()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fn", [quantised, packed, mapped, hooked])
def test_compiled(fn, backend):
    torch.compiler.reset()
    given = [torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_() for _ in range(2)]
    out = [f(x) for f, x in zip((fn, torch.compile(fn, backend=backend, fullgraph=fn is not hooked)), given)]
    for y in out:
        y.sum().backward()
    torch.testing.assert_close(out[0], out[1])
    torch.testing.assert_close(given[0].grad, given[1].grad)


def test_the_node_keeps_options():
    graphs = []
    torch.compile(quantised, backend=lambda gm, _: graphs.append(gm) or gm)(torch.ones(2))
    (node,) = [n for n in graphs[0].graph.nodes if n.target is hops.invoke_quant_packed]
    assert node.kwargs == {"scheme": "nf4", "quant_options": quant}


@pytest.mark.parametrize("backend", [None, *BACKENDS])
@pytest.mark.parametrize("turns", [0, 1, 4])
def test_stacked_loop(backend, turns):
    def f(n, x, y):
        loop = hops.while_loop_stack_output
        return loop(lambda n, x, y: n > 0, lambda n, x, y: (n - 1, x * y), (n, x), (y,))

    torch.compiler.reset()
    x, y = torch.tensor([1.0, -1.0]), torch.tensor(3.0)
    run = f if backend is None else torch.compile(f, backend=backend, fullgraph=True)
    n, powers = run(torch.tensor(turns), x, y)
    assert n.tolist() == (list(range(turns - 1, -1, -1)) or [0])
    assert powers.tolist() == [[3.0**k, -(3.0**k)] for k in (range(1, turns + 1) if turns else (0,))]


def test_stacked_loop_refuses():
    loop, x = hops.while_loop_stack_output, torch.ones(2)
    for message, args in {
        "callable": (1, lambda x: (x,), (x,)),
        "carried_inputs must be a tuple": (lambda x: False, lambda x: (x,), x),
        "must be tensors": (lambda x: False, lambda x: (x,), (1,)),
        "boolean scalar": (lambda x: x > 0, lambda x: (x,), (x,)),
        "as many values": (lambda x: True, lambda x: (x, x), (x,)),
    }.items():
        with pytest.raises(RuntimeError, match=message):
            loop(*args)


def test_flex_attention_and_its_backward():
    q, k, v, g = (torch.randn(2, 2, 16, 4, dtype=torch.float64) for _ in range(4))
    bias = torch.randn((), dtype=torch.float64, requires_grad=True)
    shift = torch.tensor(3)
    mask = public.create_block_mask(lambda b, h, i, j: i + 3 >= j, 2, 2, 16, 16)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    out, lse = public.flex_attention(*leaves, lambda s, b, h, i, j: s * bias, mask, 0.5, return_lse=True)
    want = torch.autograd.grad([out, lse], [*leaves, bias], [g, g[..., 0]])
    block = (*mask.as_tuple()[:-1], lambda b, h, i, j, shift: i + shift >= j)
    found, log2, _ = flex_attention(q, k, v, lambda s, b, h, i, j, t: s * t, block, 0.5, {}, (bias,), (shift,))
    torch.testing.assert_close([found, log2 * torch.log(torch.tensor(2.0, dtype=torch.float64))], [out, lse])
    grad_log2 = g[..., 0] * torch.log(torch.tensor(2.0, dtype=torch.float64))
    args = (q, k, v, found, log2, g, grad_log2, lambda s, b, h, i, j, t: s * t, None, block, 0.5, {}, (bias,), (shift,))
    *grads, others = flex_attention_backward(*args)
    torch.testing.assert_close([*grads, *others], list(want))
    with pytest.raises(NotImplementedError, match="joint_graph"):
        flex_attention_backward(*args[:8], lambda *x: x, *args[9:])


def test_assembler_is_the_devices():
    with pytest.raises(RuntimeError, match="only supports CUDA tensors"):
        hops.inline_asm_elementwise(torch.ones(2), asm_str="mov.f32 $0, $1;", constraints="=f,f", dtype=torch.float32)
