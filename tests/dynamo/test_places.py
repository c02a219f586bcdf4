"""The lists "To add ..." of docs/design/capture.md: what is added here is added in the places that they name, and works."""

import array
import dis
import pathlib
import re
from collections import Counter

import pytest

import flambeau as torch
from flambeau.dynamo.bytecode import instructions, versions
from flambeau.dynamo.bytecode.versions import BREAKABLE, normal
from flambeau.dynamo.guards.source import CallSource, GetAttrSource
from flambeau.dynamo.tracing import catalog, executor, wrapping
from flambeau.dynamo.tracing.opcodes import Opcodes
from flambeau.dynamo.tracing.opcodes.arithmetic import Arithmetic
from flambeau.dynamo.tracing.wrapping import CLASS_WRAPPERS, FUNCTION_WRAPPERS, WRAPPERS, exactly, pin
from flambeau.dynamo.variables.base import Variable
from flambeau.dynamo.variables.values.constant import ConstantVariable

X = torch.tensor([1.0, -2.0, 3.0])
VARIABLES = pathlib.Path(catalog.__file__).parents[1] / "variables"
# Instructions of CPython that have no handler: where they stand the frame runs plainly, or they never run in code that is captured.
NOT_TRACED = {
    "BEFORE_ASYNC_WITH", "CALL_INTRINSIC_1", "CALL_INTRINSIC_2", "CLEANUP_THROW", "END_FOR", "END_SEND", "ENTER_EXECUTOR",
    "EXIT_INIT_CHECK", "GET_AITER", "GET_ANEXT", "GET_AWAITABLE", "IMPORT_STAR", "INTERPRETER_EXIT",
    "PRINT_EXPR",
    "RESERVED", "STOPITERATION_ERROR",
}  # fmt: skip


# -- a Variable --
class ArrayVariable(Variable):
    """``array.array`` that existed before the call, guarded by type and contents."""

    mutable = True

    def __init__(self, value, source):
        super().__init__(source)
        self.elements = [ConstantVariable(v) for v in value]

    def python_type(self):
        return array.array

    def getitem(self, tx, key):
        return self.elements[key.as_constant()]

    def setitem(self, tx, key, value):
        tx.side_effects.touch(self)
        self.elements[key.as_constant()] = value

    def length(self, tx):
        return len(self.elements)

    def replay(self, replay):
        target = replay.target(self)
        for k, v in enumerate(self.elements):
            key, value = replay.value(ConstantVariable(k)), replay.value(v)
            replay.later(lambda r, key=key, value=value: r.store_item(target, key, value))


def wrapped_array(tx, value, source):
    pin(tx, source, "TYPE_MATCH", array.array)
    # The bytes are compared: arrays are equal by ==, as 0.0 and -0.0 are.
    tx.output.guard(GetAttrSource(source, "typecode"), "EQUALS_MATCH", value.typecode)
    tx.output.guard(CallSource(source, array.array.tobytes, "tobytes"), "EQUALS_MATCH", value.tobytes())
    return ArrayVariable(value, source)


def test_a_variable(monkeypatch):
    def f(x, a):
        a[0] = a[1] + len(a)
        return x * a[1]

    monkeypatch.setitem(wrapping.EXACT, array.array, None)
    exactly(array.array)(wrapped_array)
    graphs = []
    compiled = torch.compile(f, backend=lambda gm, _: graphs.append(gm) or gm.forward, fullgraph=True)
    for values in ([1.0, 0.0], [1.0, 0.0], [1.0, -0.0]):
        plain, captured = array.array("d", values), array.array("d", values)
        assert str(f(X, plain).tolist()) == str(compiled(X, captured).tolist())
        assert plain == captured
    assert len(graphs) == 2


def test_every_row_has_a_variable():
    for table in (WRAPPERS, CLASS_WRAPPERS, FUNCTION_WRAPPERS):
        assert not [name for name, rule in table.rows.items() if rule is None]
    with pytest.raises(KeyError):
        WRAPPERS.row("a row that no table names")


def test_the_catalog_has_every_module_of_variables():
    files = {p.stem for p in VARIABLES.rglob("*.py")} - {"__init__", "polyfills"}
    text = pathlib.Path(catalog.__file__).read_text()
    assert files == files & set(re.findall(r"import (\w+) as", text))


# -- an instruction --
def negated(x):
    y = -x
    return y + 1


def broken(x):
    n = len([x])
    m = -torch._dynamo.config.cache_size_limit if n else 0
    return x * m


@pytest.mark.parametrize("f", [negated, broken])
def test_an_instruction(monkeypatch, f):
    """UNARY_NEGATIVE under another name, as a later CPython might have it: a row of versions.py and a method of its family."""
    monkeypatch.setitem(versions.SAME, "UNARY_NEGATIVE", "TURN_SIGN")
    monkeypatch.setitem(BREAKABLE, "TURN_SIGN", BREAKABLE["UNARY_NEGATIVE"])
    ran = []
    handler = Opcodes.UNARY_NEGATIVE

    def turn_sign(self, inst):
        ran.append(inst.name)
        return handler(self, inst)

    monkeypatch.setattr(Arithmetic, "TURN_SIGN", turn_sign, raising=False)
    monkeypatch.delattr(Arithmetic, "UNARY_NEGATIVE")
    monkeypatch.setattr(executor, "HANDLERS_OF", executor._Handlers())
    code = f.__code__.replace(co_name=f"renamed_{f.__name__}")  # decoded anew
    g = type(f)(code, f.__globals__)
    assert torch.compile(g, backend="eager")(X).tolist() == f(X).tolist()
    assert ran
    assert "UNARY_NEGATIVE" not in {i.name for i in instructions.decode(code)}


def test_every_instruction_has_a_handler():
    """Those of this interpreter, as versions.py reads them."""
    names = set()
    for opcode, name in enumerate(dis.opname[:256]):
        if name.startswith("<") or "INSTRUMENTED" in name or opcode not in dis.opmap.values():
            continue
        # The fields of an instruction differ between versions.
        i = dis.Instruction(
            **dict.fromkeys(dis.Instruction._fields) | {"opname": name, "opcode": opcode, "arg": 0, "argval": 0}
        )
        names |= {n for n, _, _ in normal(i)}
    missing = {n for n in names if not hasattr(Opcodes, n)} - NOT_TRACED
    assert not (stale := {n for n in NOT_TRACED if hasattr(Opcodes, n)}), f"these have one: {sorted(stale)}"
    assert not missing, f"no handler in tracing/opcodes/: {sorted(missing)}"


def test_the_families_of_instructions_do_not_override_each_other():
    methods = [name for family in Opcodes.__bases__ for name in vars(family) if not name.startswith("__")]
    assert not [name for name, times in Counter(methods).items() if times > 1]


# -- a version of CPython --
def test_the_places_of_a_version():
    root = pathlib.Path(torch.__file__).parents[2]
    if not (root / "csrc").exists():
        pytest.skip("the places are files of the repository")
    built = sorted(p.stem.removeprefix("interpreter_3") for p in (root / "csrc/frame").glob("interpreter_3*.c"))
    # 3.14's is compiled where that interpreter is, and isn't released (docs/design/cpython-3.14.md).
    assert built.pop() == "14"
    assert built == ["11", "12", "13"]
    project = (root / "pyproject.toml").read_text()
    for minor in built:
        assert f"Python :: 3.{minor}" in project and f"cp3{minor}-*" in project
    assert f'requires-python = ">=3.{built[0]},<3.{int(built[-1]) + 1}"' in project
    assert {f"PY3{minor}" for minor in built[1:]} <= set(vars(versions))
    tested = (root / ".ci/run").read_text()
    assert all(f"3.{minor}" in tested for minor in built)
