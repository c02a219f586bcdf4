"""Python's operators on tensors: the public function that ``__torch_function__`` is handed, as PyTorch 2.13 hands it, plainly and captured."""

import operator

import pytest

import flambeau
from flambeau.core.python_operators import OPERATORS

# Operator: what is handed where the tensor stands on the left, and on the right of a number.
BINARY = {
    "add": ("add", "add"),
    "sub": ("sub", "__rsub__"),
    "mul": ("mul", "mul"),
    "truediv": ("div", "__rtruediv__"),
    "floordiv": ("__floordiv__", "__rfloordiv__"),
    "mod": ("remainder", "__rmod__"),
    "pow": ("__pow__", "__rpow__"),
    "and_": ("__and__", "bitwise_and"),
    "or_": ("__or__", "bitwise_or"),
    "xor": ("__xor__", "bitwise_xor"),
    "lshift": ("__lshift__", "__rlshift__"),
    "rshift": ("__rshift__", "__rrshift__"),
    "lt": ("lt", "gt"),
    "le": ("le", "ge"),
    "gt": ("gt", "lt"),
    "ge": ("ge", "le"),
    "eq": ("__eq__", "__eq__"),
    "ne": ("ne", "ne"),
}
IN_PLACE = {
    "iadd": "add_",
    "isub": "sub_",
    "imul": "mul_",
    "itruediv": "div_",
    "ifloordiv": "floor_divide_",
    "imod": "remainder_",
    "ipow": "__ipow__",
    "iand": "__iand__",
    "ior": "__ior__",
    "ixor": "__ixor__",
    "ilshift": "__ilshift__",
    "irshift": "__irshift__",
}
UNARY = {"neg": "neg", "pos": "positive", "abs": "abs", "invert": "__invert__"}
# Operands that a tensor leaves to Python: overrides are asked before all the same, where PyTorch has the operator in Python.
IN_PYTHON = frozenset(
    "__rsub__ __rtruediv__ __floordiv__ __rfloordiv__ __rmod__ __pow__ __rpow__ __rlshift__ __rrshift__ __eq__".split()
)
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def overriding(torch):
    """A subclass, a class that is no tensor and a mode, which log what they are handed."""
    log = []

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((func, args))
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append((func, args))
            return torch.zeros(1)

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append((func, args))
            return func(*args, **(kwargs or {}))

    return log, Sub, Duck, Mode


def handed(torch):
    """For each kind of call of each operator: the qualified names that are handed, and where the operands stand."""
    log, Sub, Duck, Mode = overriding(torch)
    P = lambda: torch.tensor([1, 2, 3])  # noqa: E731
    S = lambda: P().as_subclass(Sub)  # noqa: E731
    found = {}

    def record(case, f, *operands):
        log.clear()
        try:
            f(*operands)
        except TypeError:
            pass
        places = [
            (
                torch.overrides.resolve_name(func),
                tuple(next((i for i, o in enumerate(operands) if o is a), None) for a in args),
            )
            for func, args in log
        ]
        found[case] = list(dict.fromkeys(places))

    def in_mode(f):
        def run(*args):
            with Mode():
                return f(*args)

        return run

    for name in BINARY:
        f = getattr(operator, name)
        number = 1 if name != "truediv" else 2
        for kind, a, b in (
            ("S S", S(), S()), ("S P", S(), P()), ("P S", P(), S()), ("S 1", S(), number), ("1 S", number, S()), ("P D", P(), Duck()),
            ("D P", Duck(), P()), ("S None", S(), None), ("None S", None, S()), ("S text", S(), "a"), ("P list", P(), [1]),
        ):  # fmt: skip
            record((name, kind), f, a, b)
        for kind, a, b in (("P P", P(), P()), ("P 1", P(), number), ("1 P", number, P())):
            record((name, "mode " + kind), in_mode(f), a, b)
    for name in IN_PLACE:
        f = getattr(operator, name)
        left = torch.tensor([1.0, 2.0, 3.0]) if name == "itruediv" else P()
        for case, a, b in (
            ("S P", left.as_subclass(Sub), P()),
            ("P S", left, S()),
            ("S 1", left.as_subclass(Sub), 1),
            ("P D", left, Duck()),
        ):
            record((name, case), f, a, b)
        record((name, "mode P P"), in_mode(f), left, P())
    for name in UNARY:
        record((name, "S"), getattr(operator, name), S())
        record((name, "mode P"), in_mode(getattr(operator, name)), P())
    return found


def expected() -> dict:
    def name(n):
        return f"torch.Tensor.{n}"

    made = {}
    for op, (left, right) in BINARY.items():
        swaps = op in COMPARISONS
        first, second = [(name(left), (0, 1))], [(name(right), (1, 0))]
        for kind in ("S S", "S P", "S 1", "mode P P", "mode P 1"):
            made[op, kind] = first
        # A subclass on the right is asked first about a comparison.
        made[op, "P S"] = second if swaps else first
        made[op, "1 S"] = made[op, "mode 1 P"] = second
        made[op, "P D"], made[op, "D P"] = first, second
        if op == "eq":
            made[op, "P D"], made[op, "D P"] = [(name("eq"), (0, 1))], [(name("eq"), (1, 0))]
        left, right = BINARY[op]
        made[op, "S None"] = made[op, "S text"] = [(name(left), (0, 1))] if left in IN_PYTHON else []
        made[op, "None S"] = [(name(right), (1, 0))] if right in IN_PYTHON else []
        made[op, "P list"] = []
    # A text is repeated by an index.
    made["mul", "S text"] = [(name("__index__"), (0,))]
    for op, method in IN_PLACE.items():
        for kind in ("S P", "P S", "S 1", "P D", "mode P P"):
            made[op, kind] = [(name(method), (0, 1))]
    for op, method in UNARY.items():
        made[op, "S"] = made[op, "mode P"] = [(name(method), (0,))]
    return made


def test_overrides_are_handed_the_functions_of_pytorch():
    found, right = handed(flambeau), expected()
    wrong = {k: (found.get(k), v) for k, v in right.items() if found.get(k) != v}
    assert found.keys() == right.keys() and not wrong


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_beside_pytorch():
    torch = pytest.importorskip("torch")
    found = handed(torch)
    wrong = {k: (found.get(k), v) for k, v in expected().items() if found.get(k) != v}
    assert not wrong


def test_names_of_what_is_handed():
    T = flambeau.Tensor
    assert [f.__name__ for f in (T.__pow__, T.__ipow__, T.__rtruediv__, T.__floordiv__)] == [
        "pow",
        "pow_",
        "__rdiv__",
        "__floordiv__",
    ]
    assert T.__neg__ is T.neg and T.__abs__ is T.abs and T.__pos__ is T.positive and T.__rdiv__ is T.__rtruediv__
    listed = flambeau.overrides.get_overridable_functions()[T]
    assert all(getattr(T, name) in listed for name in OPERATORS)


def by_function(torch):
    """A subclass that answers by the function that it is handed, with its number in the table."""
    names = sorted({n for both in BINARY.values() for n in both} | set(IN_PLACE.values()) | set(UNARY.values()))
    table = {getattr(torch.Tensor, n): k for k, n in enumerate(names)}

    class Answers(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return (
                torch.full((2,), table[func])
                if func in table
                else super().__torch_function__(func, types, args, kwargs or {})
            )

    return Answers, table


@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_captured_code_hands_the_same(name):
    Answers, table = by_function(flambeau)
    f = getattr(operator, name)

    def run(s, p):
        return [f(s), f(-s)] if name in UNARY else [f(s, s), f(s, p), f(p, s), f(s, 1), f(1, s)]

    s, p = flambeau.tensor([1, 2, 3]).as_subclass(Answers), flambeau.tensor([1, 2, 3])
    plain, captured = run(s, p), flambeau.compile(run, backend="eager", fullgraph=True)(s, p)
    assert [x.tolist() for x in plain] == [x.tolist() for x in captured]
    if name in BINARY:
        left, right = (table[getattr(flambeau.Tensor, n)] for n in BINARY[name])
        assert [x[0].item() for x in plain] == [left, left, right if name in COMPARISONS else left, left, right]


@pytest.mark.parametrize("name", BINARY)
def test_captured_code_asks_an_object_that_is_no_tensor(name):
    log, _, Duck, _ = overriding(flambeau)
    f, d, p = getattr(operator, name), Duck(), flambeau.tensor([1, 2, 3])

    def run(p):
        return f(p, d), f(d, p)

    seen = []
    for call in (run, flambeau.compile(run, backend="eager", fullgraph=True)):
        log.clear()
        results = call(p)
        assert [type(r) for r in results] == [flambeau.Tensor] * 2
        seen.append([func for func, _ in log])
    assert seen[0] == seen[1] and len(seen[0]) == 2


def foreign_sum(x):
    x += None
    return x


@pytest.mark.parametrize(
    "f, text",
    [
        (foreign_sum, r"unsupported operand type\(s\) for \+=: 'Tensor' and 'NoneType'"),
        (lambda x: x @ 2, r"unsupported operand type\(s\) for @: 'Tensor' and 'int'"),
        (lambda x: 2.5 @ x, r"unsupported operand type\(s\) for @: 'float' and 'Tensor'"),
        (lambda x: x // None, r"unsupported operand type\(s\) for //: 'Tensor' and 'NoneType'"),
        (lambda x: x - "a", r"unsupported operand type\(s\) for -: 'Tensor' and 'str'"),
    ],
)
def test_operands_that_a_tensor_leaves_to_python(f, text):
    with pytest.raises(TypeError, match=text):
        f(flambeau.ones(2))


def test_a_sum_in_place_asks_the_right_operand():
    class Right:
        def __radd__(self, other):
            return "right"

    x = flambeau.ones(2)
    x += Right()
    assert x == "right"
