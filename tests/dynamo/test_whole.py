"""Programs that are captured whole (``fullgraph=True``), on all backends, and do what they do plainly.

PYTEST_DONT_REWRITE: their assert statements are what is tested."""

import collections.abc
import copy
import dataclasses
import os

import pytest
from programs import BACKENDS, agree, attempt

import flambeau as torch


def X():
    return torch.tensor([1.0, 2.0])


ATOMS, NUMBERS = frozenset({int, str, type(None)}), {int, float}


class Node:
    def __init__(self):
        self.parts, self.me = [1, 2], self


class Reduced:
    def __init__(self, n):
        self.n = n

    def __reduce__(self):
        return Reduced, (self.n + 1,)


class Copied:
    def __init__(self):
        self.parts = [1]

    def __deepcopy__(self, memo):
        new = Copied()
        memo[id(self)] = new
        new.parts = copy.deepcopy(self.parts, memo)
        return new


class Stateful:
    def __init__(self):
        self.x, self.y = 1, [2]

    def __getstate__(self):
        return {"x": self.x, "y": self.y}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.z = 9


@dataclasses.dataclass
class Point:
    a: object
    b: object = 2
    c: list = dataclasses.field(default_factory=list)


class Table(collections.abc.MutableMapping):
    def __init__(self, d):
        self.d = d

    def __getitem__(self, k):
        return self.d[k]

    def __setitem__(self, k, v):
        self.d[k] = v

    def __delitem__(self, k):
        del self.d[k]

    def __iter__(self):
        return iter(self.d)

    def __len__(self):
        return len(self.d)


shared = [1]
tables = {"l": shared, "m": [shared, shared], "n": [1, 2, (3, [4])], "d": Copied()}
node = Node()
seen: dict = {}


def copies_of_containers(x):
    new = copy.deepcopy(tables)
    new["l"].append(3)
    new["n"][2][1].append(5)
    return new["l"], new["m"], new["n"], new["m"][0] is new["l"], new["d"] is tables["d"], shared, x + new["n"][0]


def copies_of_objects(x):
    new = copy.deepcopy(node)
    state = copy.deepcopy(Stateful())
    return new.me is new, new is node, new.parts is node.parts, new.parts, state.z, state.y, copy.copy(Reduced(3)).n + x


def shallow_copies(x):
    new = copy.copy(node)
    return new.parts is node.parts, new.me is node, x + 1


def of_an_argument(x, parts):
    new = copy.deepcopy(parts)
    new.append(4)
    return new, parts, x + len(new)


def counted_by_identity(x):
    counts = {}
    for o in (node, tables, shared, x, node):
        counts[id(o)] = counts.get(id(o), 0) + 1
    return sorted(counts.values()), id(x) == id(x), id(node) != id(shared), id(x) in {id(x)}, x * 2


def seen_before(x):
    if id(x) in seen:
        return x * seen[id(x)]
    seen[id(x)] = 3
    return x


def as_dicts(x):
    return dataclasses.asdict(Point(1, 2, [3, {"a": (1,)}])), dataclasses.astuple(Point(1, (2,))), x


def in_sets_of_classes(x, o):
    here = type(o) in ATOMS, [c.__name__ for c in ATOMS], type(o) in NUMBERS
    return here, len(ATOMS), x * 2


def from_the_environment(x):
    found = os.environ.get("FLAMBEAU_TEST_N"), os.getenv("FLAMBEAU_TEST_N", "5"), "FLAMBEAU_TEST_N" in os.environ
    return found, x * int(os.environ["FLAMBEAU_TEST_N"] if found[2] else 7)


def mixins(x):
    t = Table({"a": x})
    t.setdefault("b", x + 1)
    t.update(c=x)
    t.pop("a")
    return dict(t), list(t.items()), t.get("z", 3), "b" in t, t == {}


def asserted(x):
    assert (x > 0).all(), "positive"
    torch._assert(x.sum() > 0, "sum")
    torch._assert_async((x > 0).any(), "any")
    torch._check_tensor_all(x > 0, lambda: "all")
    assert x.shape[0] == 2
    b = (x > 0).all().item()
    torch._check(b)
    return x + 1


PROGRAMS = {
    f.__name__: [()]
    for f in (
        copies_of_containers, copies_of_objects, shallow_copies, counted_by_identity, seen_before, as_dicts, mixins, asserted
    )
}  # fmt: skip
PROGRAMS |= {"of_an_argument": [([1, [2]],), ([1, [2]],), ([5],)], "from_the_environment": [(), (), ()]}
PROGRAMS["in_sets_of_classes"] = [(1,), ("a",), ([],), (asserted,)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_captured_whole(name, monkeypatch):
    fn = globals()[name]

    def prog(C, torch):
        seen.clear()
        os.environ.pop("FLAMBEAU_TEST_N", None)
        f, x, out = C(fn, fullgraph=True), X(), []
        for n, args in enumerate(PROGRAMS[name] * 2):
            out += [f(x, *args), args]
            monkeypatch.setenv("FLAMBEAU_TEST_N", str(n // 2))
        return out

    agree(prog)


def fails_in_words(x):
    assert (x > 5).all(), "too small"
    return x


def fails_with_a_computed_text(x):
    assert (x > 5).all(), f"too small: {x.shape}"
    return x


def fails_with_a_class(x):
    torch._check_value((x.sum() > 50).item(), lambda: "value")
    return x


def fails_in_a_block(x):
    try:
        assert (x > 5).all()
    except AssertionError:
        return x - 1
    return x


@pytest.mark.parametrize("fn", [fails_in_words, fails_with_a_computed_text, fails_with_a_class, fails_in_a_block])
def test_assertions_that_fail(fn):
    agree(lambda C, torch: [attempt(C(fn, fullgraph=True), x) for x in (X(), X() * 100)])


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_identity_is_guarded(backend):
    f = torch.compile(seen_before, backend=backend, fullgraph=True)
    x, y = X(), X()
    seen.clear()
    assert [f(v).tolist() for v in (x, y, x, y)] == [[1, 2], [1, 2], [3, 6], [3, 6]]


def inferred(x):
    with torch.inference_mode():
        y = x * 2
        v = x[0]
        with torch.enable_grad():
            z = y + x
    return y, v, z, x * 3, y.is_inference(), torch.is_inference_mode_enabled(), y + 1


@torch.inference_mode()
def doubled(x):
    return x * 2


def decorated(x):
    return doubled(x), x * 3


def left_by_an_error(x):
    try:
        with torch.inference_mode():
            y = x * 2
            raise ValueError
    except ValueError:
        pass
    return y, x * 2


@torch.no_grad()
def refuses(x):
    raise ValueError


def left_by_an_error_in_a_function(x):
    try:
        refuses(x)
    except ValueError:
        pass
    return x * 2


@pytest.mark.parametrize("fn", [inferred, decorated, left_by_an_error, left_by_an_error_in_a_function])
@pytest.mark.parametrize("inside", [False, True])
def test_inference_mode(fn, inside):
    def prog(C, torch):
        x = X().requires_grad_()
        with torch.inference_mode(inside):
            out = C(fn, fullgraph=True)(x)
        kinds = [v.is_inference() for v in (out if isinstance(out, tuple) else (out,)) if isinstance(v, torch.Tensor)]
        return [out, kinds]

    agree(prog)


def test_a_break_inside_inference_mode():
    def f(x):
        with torch.inference_mode():
            y = x * 2
            torch._dynamo.graph_break()
            z = y + 1
        return y, z, x * 3

    def prog(C, torch):
        out = C(f)(X().requires_grad_())
        return [out, [v.is_inference() for v in out]]

    agree(prog)


def test_settings_of_pytorch():
    config = torch._dynamo.config
    for name in ("optimize_ddp", "guard_nn_modules", "run_gc_after_compile"):
        with config.patch(name, False):
            assert getattr(config, name) is False
    for name, value in (("compiled_autograd", True), ("minimum_call_count", 3)):
        before = getattr(config, name)
        with pytest.raises(NotImplementedError, match=f"config.{name}"):
            setattr(config, name, value)
        assert getattr(config, name) == before


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "key", [(True,), (False,), (True, False), (True, True), (slice(None), True), (None, True)], ids=str
)
def test_an_index_by_truth_values(key, backend):
    f = torch.compile(lambda x: x[key] * 2, backend=backend, fullgraph=True)
    assert torch.equal(f(X()), X()[key] * 2) and f(X()).shape == X().numpy()[key].shape


class Counted(int):
    def __int__(self):
        return 7


class Measured(float):
    def __float__(self):
        return 7.5


class Both:
    def __int__(self):
        return 2

    def __float__(self):
        return 0.25


CONVERTED = Counted(3), Measured(1.5), Both()


@pytest.mark.parametrize("backend", BACKENDS)
def test_classes_say_their_numbers(backend):
    def f(x):
        a, b, c = CONVERTED
        return x + int(a) + float(b) + int(c) + float(c)

    assert torch.compile(f, backend=backend, fullgraph=True)(X()).tolist() == f(X()).tolist()


@pytest.mark.parametrize("backend", BACKENDS)
def test_reversed_tensors(backend):
    f = torch.compile(lambda x: (reversed(x), list(reversed(x))), backend=backend, fullgraph=True)
    for x in (X(), torch.arange(6.0).reshape(3, 2)):
        found, rows = f(x)
        assert torch.equal(found, x.flip(0))
        assert [row.tolist() for row in rows] == x.flip(0).tolist()
    assert f(torch.ones(0))[1] == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_methods_that_iter_calls_and_texts_of_views(backend):
    def f(x):
        left, d = [1, 2, 3, 4], {"a": 1, 2: None}
        return x * sum(iter(left.pop, 2)), left, repr(d.keys()), repr(d.values()), repr(d.items())

    compiled = torch.compile(f, fullgraph=True, backend=backend)
    assert str(compiled(X())) == str(f(X()))
