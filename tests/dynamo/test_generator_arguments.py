"""``torch.Generator`` objects in captured code: one graph for all of them, which draws from the one that it is given."""

import pytest

import flambeau as torch

X = torch.rand(4)


def _in_place(x, g):
    return x.normal_(generator=g) + x.uniform_(1, 2, generator=g)


DRAWS = {
    "randn": lambda x, g: x + torch.randn(4, generator=g),
    "in order": lambda x, g: torch.rand(4, generator=g) - torch.randn(4, generator=g) * x + torch.rand(4, generator=g),
    "in place": _in_place,
    "bernoulli": lambda x, g: torch.bernoulli(x, generator=g),
    "multinomial": lambda x, g: torch.multinomial(x, 3, generator=g),
    "randperm": lambda x, g: x[torch.randperm(4, generator=g)],
    "randint": lambda x, g: torch.randint(0, 10, (3,), generator=g),
    "normal": lambda x, g: torch.normal(x, x, generator=g),
    "poisson": lambda x, g: torch.poisson(x, generator=g),
    "exponential": lambda x, g: x.exponential_(generator=g),
    "init": lambda x, g: torch.nn.init.xavier_uniform_(x.view(2, 2), generator=g),
    "device": lambda x, g: torch.rand(4, generator=g, device=g.device),
    "asked what it is": lambda x, g: torch.rand(4, generator=g) if isinstance(g, torch.Generator) and g else x,
    "beside the default one": lambda x, g: torch.rand(4, generator=g) + 0 * torch.rand(4),
    "vmap": lambda x, g: torch.vmap(lambda y: y + torch.rand(2, generator=g), randomness="different")(x.view(2, 2)),
}


def _counted(fn, backend):
    """The function compiled, and a list that has an entry for each of its graphs."""
    made = []
    compile_graph = torch._dynamo.lookup_backend(backend)

    def counting(gm, inputs):
        made.append(gm)
        return compile_graph(gm, inputs)

    return torch.compile(fn, backend=counting, fullgraph=True), made


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", DRAWS)
def test_one_graph_for_all_generators(name, backend):
    fn = DRAWS[name]
    compiled, graphs = _counted(fn, backend)
    for seed in range(3):
        mine, other = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
        x, y = X.clone(), X.clone()
        for _ in range(2):  # the second call goes on where the first one ended
            assert torch.equal(compiled(x, mine), fn(y, other)) and torch.equal(x, y)
            assert torch.equal(mine.get_state(), other.get_state())
    assert len(graphs) == 1


def test_a_module_that_holds_one():
    class Noise(torch.nn.Module):
        def __init__(self, seed):
            super().__init__()
            self.generator = torch.Generator().manual_seed(seed)

        def forward(self, x):
            return x + torch.rand(4, generator=self.generator)

    held, plain = Noise(1), Noise(1)
    compiled = torch.compile(held, fullgraph=True)
    assert all(torch.equal(compiled(X), plain(X)) for _ in range(3))
    held.generator = torch.Generator().manual_seed(5)
    assert torch.equal(compiled(X), X + torch.rand(4, generator=torch.Generator().manual_seed(5)))


def test_two_of_them_may_be_one():
    def fn(g, h):
        return torch.rand(4, generator=g) * 10 + torch.rand(4, generator=h) + torch.rand(4, generator=g)

    compiled, graphs = _counted(fn, "inductor")
    for same in (True, False, True):
        mine, other = ([torch.Generator().manual_seed(k) for k in (1, 2)] for _ in range(2))
        assert torch.equal(compiled(mine[0], mine[not same]), fn(other[0], other[not same]))
    assert len(graphs) <= 2


def test_gradients_and_checkpoints_draw_the_same_numbers():
    def fn(w, g):
        return (w * torch.rand(4, generator=g)).sin()

    def again(w, g):
        return torch.utils.checkpoint.checkpoint(lambda w: fn(w, g), w, use_reentrant=False)

    expected = torch.ones(4, requires_grad=True)
    fn(expected, torch.Generator().manual_seed(3)).sum().backward()
    for f in (fn, again):
        w = torch.ones(4, requires_grad=True)
        torch.compile(f)(w, torch.Generator().manual_seed(3)).sum().backward()
        torch.testing.assert_close(w.grad, expected.grad)


def test_what_more_is_asked_of_one():
    """Its seed, for instance: the object is guarded, or the graph ends."""

    def fn(x, g):
        return x + g.initial_seed()

    def seeded(x, g):
        return torch.rand(4, generator=g.manual_seed(3))

    compiled = torch.compile(fn)
    for seed in (1, 2):
        assert torch.equal(compiled(X, torch.Generator().manual_seed(seed)), X + seed)
    for seed in (1, 2):
        made = torch.compile(seeded)(X, torch.Generator().manual_seed(seed))
        assert torch.equal(made, torch.rand(4, generator=torch.Generator().manual_seed(3)))


def test_operators_of_a_program_get_the_object():
    with torch.library._scoped_library("generators", "DEF") as lib:
        lib.define("seeded(Tensor x, Generator? g) -> Tensor")
        torch.library.impl(lib, "seeded", "CPU")(lambda x, g: x + g.initial_seed())
        torch.library.register_fake("generators::seeded")(lambda x, g: torch.empty_like(x))
        compiled = torch.compile(lambda x, g: torch.ops.generators.seeded(x, g), fullgraph=True)
        for seed in (1, 2):
            assert torch.equal(compiled(X, torch.Generator().manual_seed(seed)), X + seed)


def test_other_tensors_are_no_generators():
    for wrong in (torch.zeros(3), torch.zeros(8, dtype=torch.uint8)):
        with pytest.raises((TypeError, RuntimeError), match="enerator"):
            torch.rand(3, generator=wrong)
