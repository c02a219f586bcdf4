"""What a graph can't hold: history that its inputs bring along, the state of generators, devices without kernels, objects of the library."""

from __future__ import annotations

import pytest

import flambeau as torch

BACKENDS = ("eager", "aot_eager", "inductor")


def leaf_and_product():
    x = torch.ones(3, requires_grad=True)
    return x, x * 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backward_goes_on_through_the_history_of_an_input(backend):
    x, y = leaf_and_product()
    torch.compile(lambda y: y.sum().backward(), backend=backend)(y)
    assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_leaf_made_inside_gets_its_gradient_across_a_break(backend):
    @torch.compile(backend=backend)
    def f():
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        torch._dynamo.graph_break()
        y.sum().backward()
        return x.grad

    assert f().tolist() == [2, 2, 2]


def test_whether_an_input_is_a_leaf_is_guarded():
    f = torch.compile(lambda y: (y * 2).sum().backward(), backend="aot_eager")
    x = torch.ones(3, requires_grad=True)
    f(x)
    assert x.grad.tolist() == [2, 2, 2]
    f(x * 1)
    assert x.grad.tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    ("ends", "want"),
    [
        (lambda x, y: torch.autograd.grad((y * x).sum(), x), [4, 4, 4]),
        (lambda x, y: torch.autograd.grad((y * x).sum(), [x, y])[0], [4, 4, 4]),
        (lambda x, y: torch.autograd.grad((y * x).sum(), [y]), [1, 1, 1]),
    ],
)
def test_gradients_by_autograd_grad_include_what_lies_before_the_graph(ends, want):
    x, y = leaf_and_product()
    got = torch.compile(ends, backend="aot_eager")(x, y)
    assert (got[0] if isinstance(got, tuple) else got).tolist() == want


def test_states_of_generators_are_read_and_written_in_order():
    @torch.compile(backend="aot_eager")
    def f():
        torch.rand(2)
        state = torch.get_rng_state()
        first = torch.rand(2)
        torch.set_rng_state(state)
        return first, torch.rand(2)

    first, again = f()
    assert torch.equal(first, again)


@pytest.mark.parametrize("make", [lambda: torch.ones(2, device="meta"), lambda: torch.zeros(3).to("meta")])
def test_tensors_on_the_meta_device_stay_there(make):
    assert torch.compile(make)().device.type == "meta"


@pytest.mark.parametrize("make", [lambda: torch.ones(2, device="cuda"), lambda: torch.ones(2).cuda()])
def test_a_device_without_kernels_is_an_error(make):
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        torch.compile(make)()


def test_distributions_are_traced_through():
    normal = torch.distributions.Normal(torch.zeros(2), 1.0, validate_args=False)
    f = torch.compile(lambda x: normal.log_prob(x), backend="eager", fullgraph=True)
    x = torch.ones(2)
    f(x)
    normal.loc = torch.ones(2) * 3
    assert torch.equal(f(x), normal.log_prob(x))

    def draw():
        torch.manual_seed(0)
        chances = torch.distributions.Categorical(logits=torch.zeros(3))
        sample = chances.sample((4,))
        return sample, chances.log_prob(sample)

    for got, want in zip(torch.compile(draw)(), draw()):
        assert torch.allclose(got, want)


def test_slices_of_a_shape_are_sizes():
    f = torch.compile(lambda x: (x.shape[1:], x.size()[::-1]), backend="eager", fullgraph=True)
    assert [type(s) for s in f(torch.ones(2, 3))] == [torch.Size, torch.Size]


def test_defaults_of_the_writing_form_alone():
    torch.manual_seed(0)
    want = torch.empty(8).bernoulli_()
    torch.manual_seed(0)
    assert torch.equal(torch.compile(lambda: torch.empty(8).bernoulli_())(), want)


def test_a_distribution_given_to_a_function_is_guarded_by_its_class():
    d = torch.distributions
    made = []

    def backend(gm, inputs):
        made.append(gm)
        return gm.forward

    def score(x, which):
        return which.log_prob(x).sum() + which.entropy()

    f = torch.compile(score, backend=backend)
    for scale in (1.0, 2.0, 3.0):
        x, which = torch.tensor(0.5), d.Normal(torch.tensor(0.0), torch.tensor(scale))
        assert torch.equal(f(x, which), score(x, which))
    assert len(made) == 1
    which = d.Laplace(torch.tensor(0.0), torch.tensor(1.0))
    assert torch.equal(f(x, which), score(x, which))


def inverted(x):
    try:
        return torch.linalg.inv(x)
    except RuntimeError:
        return x + 1


def indexed(x):
    log = []
    try:
        y = torch.arange(3.0)[x]
        log.append("read")
    except IndexError as e:
        log.append(str(e))
        y = x * 0
    finally:
        log.append("left")
    return y, log


class Suppressing:
    entered = 0

    def __init__(self):
        self.seen = []

    def __enter__(self):
        Suppressing.entered += 1

    def __exit__(self, kind, *_):
        Suppressing.entered -= 1
        self.seen.append(kind)
        return True


def factored(x):
    y, block = x, Suppressing()
    with block:
        y = torch.linalg.cholesky(x)
    return y, block.seen, Suppressing.entered


def with_growing_jitter(x, n=0):
    try:
        return torch.linalg.cholesky(x)
    except torch.linalg.LinAlgError:
        if n > 3:
            raise
        return with_growing_jitter(x + torch.eye(2) * 10**n * 0.01, n + 1)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "fn, good, bad",
    [
        (inverted, torch.eye(2) * 2, torch.zeros(2, 2)),
        (indexed, torch.tensor([1]), torch.tensor([7])),
        (factored, torch.eye(2), -torch.eye(2)),
        (with_growing_jitter, torch.eye(2), torch.tensor([[1.0, 2.0], [2.0, 1.0]])),
    ],
)
def test_an_error_that_data_make_comes_to_the_handler_around_the_operator(fn, good, bad, backend):
    """The graph runs where the block is left already; without effects it is given up and the function runs plainly."""
    f = torch.compile(fn, backend=backend)
    for x in (good, bad, good, bad):
        want, got = fn(x), f(x)
        if isinstance(want, tuple):
            assert want[1:] == got[1:]
            want, got = want[0], got[0]
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_element_of_an_expanded_input_is_written(backend):
    def f(x):
        y = x.sum() * 2
        x[..., -1].sub_(5)
        return y, x

    base = torch.arange(1.0, 7.0)
    y, x = torch.compile(f, backend=backend)(base[:1].expand(4))
    assert y.item() == 8 and x.tolist() == [-4] * 4 and base.tolist() == [-4, 2, 3, 4, 5, 6]


def test_the_grad_mode_is_as_before_where_the_function_of_a_program_s_backend_raises():
    def backend(gm, inputs):
        return lambda *args: gm(*args)

    def f(x, i):
        with torch.no_grad():
            return x[i]

    with pytest.raises(IndexError):
        torch.compile(f, backend=backend)(torch.ones(2, requires_grad=True), torch.tensor([7]))
    assert torch.is_grad_enabled()
