"""Operators that a graph calls from Python: what they are given, and that results are dense and in memory of their own."""

import flambeau as torch
from flambeau.inductor.device.calls import called
from flambeau.inductor.lowering.eager_call import ArgumentSlot, EagerCall

X = torch.arange(6.0).reshape(2, 3)


def call(function, template, orders, count=1, floats=()):
    return called(EagerCall.of(lambda full: function(*full), template, floats, orders, count))


def own(found, x):
    return found._storage is not x._storage and found.is_cuda


def test_a_view_of_the_operand_gets_memory():
    x = X.cuda()
    for order, strides in (([0, 1], (2, 1)), ([1, 0], (1, 3))):
        (found,) = call(lambda x: x.t(), [ArgumentSlot(0)], [order])(x)
        assert own(found, x) and found.stride() == strides and torch.equal(found.cpu(), X.t())


def test_a_dense_result_stays_where_it_is():
    made = X.cuda() + 1
    (found,) = call(lambda x: made, [ArgumentSlot(0)], [[0, 1]])(X.cuda())
    assert found is made
    (found,) = call(lambda x: made, [ArgumentSlot(0)], [[1, 0]])(X.cuda())
    assert found is not made and found.stride() == (1, 2) and torch.equal(found.cpu(), X + 1)


def test_a_result_with_gaps_is_closed():
    (found,) = call(lambda x: (x + 1)[:, ::2], [ArgumentSlot(0)], [[0, 1]])(X.cuda())
    assert found.stride() == (2, 1) and torch.equal(found.cpu(), (X + 1)[:, ::2])


def test_strides_of_one_and_of_none_do_not_matter():
    for shape in ((1, 3), (0, 3)):
        made = torch.ones(3, shape[0], device="cuda").t()
        (found,) = call(lambda x, made=made: made, [ArgumentSlot(0)], [[0, 1]])(X.cuda())
        assert found is made


def test_what_is_given_and_what_is_no_tensor():
    seen = []
    run = call(
        lambda x, n, y, text: seen.append((n, text)) or (x + n, None, 7, y.cpu()),
        [ArgumentSlot(0), ArgumentSlot(-1), ArgumentSlot(1), "text"], [[0, 1], [], [0]], 2,
    )  # fmt: skip
    total, number, host = run(X.cuda(), torch.ones(2, device="cuda"), 5)
    assert seen == [(5, "text")] and torch.equal(total.cpu(), X + 5) and number == 7
    assert not host.is_cuda  # the graph uploads it
