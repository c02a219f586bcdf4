"""Which calls share a graph with symbols for sizes: the form, the symbols, and what was asked about them."""

import pytest

import flambeau as torch
from flambeau.base.relations import as_symbol
from flambeau.inductor.device import single
from flambeau.inductor.device.symbolic import form, symbolic_metas, taken


def ones(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype)


SAME = [(ones(3, 4), ones(7, 2)), (ones(1, 4), ones(1, 9)), (ones(0, 4), ones(0, 2)), (ones(3, 4), ones(4, 3).t())]
OTHER = [
    (ones(3, 4), ones(1, 4)),
    (ones(3, 4), ones(3, 0)),
    (ones(3, 4), ones(3, 4, 1)),
    (ones(3), ones(3, dtype=torch.int64)),
]


def test_forms():
    assert all(form(a) == form(b) for a, b in SAME) and all(form(a) != form(b) for a, b in OTHER)
    assert form(ones(3)) != form(ones(3).cuda())


def symbols(tensors):
    env, metas, written = symbolic_metas(tensors)
    return env, metas, [[as_symbol(n) for n in shape] for shape, _ in written], written


def test_sizes_from_two_on_are_symbols():
    _, metas, found, written = symbols([ones(3, 1, 5), ones(0)])
    assert [s is not None for s in found[0]] == [True, False, True] and found[1] == [None]
    assert written[0][0][1] == 1 and written[1][0] == (0,)
    assert metas[0].dtype is torch.float32 and len(metas[0].shape) == 3


def test_equal_sizes_are_one_symbol_and_dense_strides_follow():
    _, _, (a, b), written = symbols([ones(3, 4), ones(4, 3)])
    assert a == b[::-1] and a[0] != a[1]
    assert as_symbol(written[0][1][0]) == a[1] and written[0][1][1] == 1


def fits(made, *others, ask=lambda metas: None):
    env, metas, written = symbolic_metas(made)
    ask(metas)
    sizes = taken(env, written)
    return [sizes.fit(t) for t in others]


def test_what_fits():
    made = [ones(3, 4), ones(4)]
    assert fits(made, made, [ones(5, 9), ones(9)], [ones(5, 9), ones(5)], [ones(1, 9), ones(9)], [ones(5, 0), ones(0)]) == [
        True, True, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("made", [ones(3, 4), ones(4, 3).t(), ones(3, 8)[:, ::2]], ids=["dense", "transposed", "gaps"])
def test_strides_are_part_of_it(made):
    like = {"dense": ones(5, 6), "transposed": ones(6, 5).t(), "gaps": ones(5, 12)[:, ::2]}
    kind = {(4, 1): "dense", (1, 3): "transposed", (8, 2): "gaps"}[made.stride()]
    found = dict(zip(like, fits([made], *[[t] for t in like.values()])))
    assert found[kind] and not found["transposed" if kind != "transposed" else "dense"]


def test_an_answer_holds_for_those_who_would_answer_alike():
    def ask(metas):
        assert metas[0].shape[0] * 2 > metas[0].shape[1]

    assert fits([ones(3, 5)], [ones(4, 7)], [ones(4, 8)], [ones(9, 2)], ask=ask) == [True, False, True]


def test_an_operator_asks_for_a_graph_of_its_own_where_the_answer_differs():
    single._general.clear()
    single._exact.clear()
    x = torch.arange(8.0)
    for n, k in ((5, 5), (6, 6), (6, 3)):
        a, b = torch.ones(n, 2), x[:k].reshape(k, 1)
        if n == k:
            assert torch.equal((a.cuda() + b.cuda()).cpu(), a + b)
        else:
            with pytest.raises(RuntimeError, match="must match the size"):
                a.cuda() + b.cuda()
    ((add,),) = [known for (op, *_), known in single._general.items() if op is torch.ops.aten.add.Tensor]
    assert add.sizes.fit([torch.ones(9, 2), torch.ones(9, 1)]) and not add.sizes.fit(
        [torch.ones(9, 2), torch.ones(8, 1)]
    )
