"""Exceptions that are raised and caught while tracing: classes of the user's, arguments that are tensors, chains, groups, what the
interpreter tells of them, and their tracebacks. Each program is one graph where it says so."""

import contextlib
import sys
import traceback

import pytest
from helpers import check

import flambeau as torch

X = torch.tensor([1.0, 2.0])


class Told(Exception):
    def __init__(self, a, *, b=3):
        super().__init__(f"{a}-{b}")
        self.a, self.b = a, b

    def __str__(self):
        return "told " + super().__str__()


class Silent(KeyError):
    """Keeps what it is given without telling its base."""

    def __init__(self, t):
        self.t = t


def fails(x, n=3):
    y = x + 1
    raise ValueError(n, y.shape[0])


def entries(tb):
    out = []
    while tb is not None:
        out.append((tb.tb_lineno, tb.tb_frame.f_code.co_name))
        tb = tb.tb_next
    return out


def own_class(x):
    try:
        raise Told(4, b=5)
    except Told as e:
        return x * e.a + e.b, str(e), repr(e), e.args


def tensor_attribute(x):
    try:
        raise Silent(x * 2)
    except KeyError as e:
        return e.t + 1, len(e.args)


def tensor_argument(x):
    try:
        raise ValueError(x * 2, 3)
    except ValueError as e:
        return e.args[0] + e.args[1]


def chains(x):
    out = []
    try:
        try:
            raise ValueError(1)
        except ValueError as e:
            raise KeyError(2) from e
    except KeyError as k:
        out.append((type(k.__cause__), k.__cause__ is k.__context__, k.__suppress_context__))
    try:
        try:
            raise ValueError(1)
        except ValueError:
            raise KeyError(2) from None
    except KeyError as k:
        out.append((k.__cause__, type(k.__context__), k.__suppress_context__))
    try:
        try:
            raise ValueError(1)
        except ValueError:
            out[100]
    except IndexError as k:
        out.append((k.__cause__, type(k.__context__), k.__suppress_context__))
    return x * 2, out


def no_cycle(x):
    try:
        try:
            raise ValueError(1)
        except ValueError as a:
            kept = a
            try:
                raise KeyError(2)
            except KeyError:
                raise kept  # noqa: B904
    except ValueError as e:
        return x + 1, type(e.__context__), e.__context__.__context__


def handled_now(x):
    out = [sys.exc_info()]
    try:
        fails(x)
    except ValueError:
        t, v, tb = sys.exc_info()
        out.append((t.__name__, v.args, tb.tb_lineno, tb.tb_frame.f_code.co_name))
    out.append(sys.exc_info())
    return x * 2, out


def lines(x):
    try:
        fails(x * 2)
    except ValueError as e:
        return x + 1, entries(e.__traceback__)


def lines_again(x):
    try:
        try:
            fails(x)
        except ValueError as e:
            x = x + 1
            raise e
    except ValueError as e:
        first = entries(e.__traceback__)
    try:
        try:
            fails(x)
        except ValueError:
            x = x + 1
            raise
    except ValueError as e:
        return x, first, entries(e.__traceback__)


def lines_finally(x):
    try:
        try:
            fails(x)
        finally:
            x = x + 1
    except ValueError as e:
        return x, entries(e.__traceback__), entries(e.with_traceback(None).__traceback__)


def notes(x):
    try:
        e = ValueError(1)
        e.add_note("a note")
        e.more = x * 2
        raise e
    except ValueError as caught:
        return caught.more + 1, caught.__notes__, caught is e


class Watching:
    def __init__(self, log, swallows=False):
        self.log, self.swallows = log, swallows

    def __enter__(self):
        return self

    def __exit__(self, t, v, tb):
        self.log.append((t and t.__name__, v and v.args, tb and (tb.tb_lineno, tb.tb_frame.f_code.co_name)))
        return self.swallows


def managers(x):
    log = []
    with Watching(log, True) as a, Watching(log):
        x = x * 2
        fails(x)
    for i in range(3):
        with Watching(log):
            if i == 1:
                break
            continue

    def inner():
        with Watching(log):
            return x * 3

    return inner(), log, a.swallows


@contextlib.contextmanager
def noting(log, n):
    log.append(("in", n))
    try:
        yield n
    except KeyError:
        log.append(("caught", n))
    finally:
        log.append(("out", n))


def exit_stack(x):
    log = []
    with contextlib.ExitStack() as s:
        a = s.enter_context(noting(log, 1))
        b = s.enter_context(noting(log, 2))
        s.callback(log.append, "called")
        x = x * a + b
        s.enter_context(torch.no_grad())
        raise KeyError(1)
    return x + 1, log


def groups(x):
    out = []
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2), ExceptionGroup("h", [ValueError(3), OSError(4)])])
    except* ValueError as e:
        out.append((e.message, [type(m).__name__ for m in e.exceptions], sys.exc_info()[1] is e))
        x = x * len(e.exceptions)
    except* (KeyError, OSError) as e:
        out.append((e.message, [type(m).__name__ for m in e.exceptions]))
        x = x + len(e.exceptions)
    return x, out


def groups_naked(x):
    out = []
    try:
        try:
            raise ValueError(5)
        except* ValueError as e:
            out.append((type(e).__name__, e.message))
            x = x * 3
            raise KeyError(7)  # noqa: B904
    except* KeyError as e:
        out.append([type(m).__name__ for m in e.exceptions])
    return x, out


def groups_left(x):
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2), ExceptionGroup("h", [ValueError(3), OSError(4)])])
        except* ValueError:
            x = x * 2
    except ExceptionGroup as e:
        inner = e.exceptions[1]
        return x, e.message, [type(m).__name__ for m in e.exceptions], [type(m).__name__ for m in inner.exceptions]


def not_exceptions(x):
    out = []
    for bad in (3, "s", int):
        try:
            raise bad
        except TypeError as e:
            out.append(str(e))
    try:
        raise ValueError from 3
    except TypeError as e:
        out.append(str(e))
    try:
        try:
            raise ValueError
        except (int, ValueError):
            out.append(1)
    except TypeError as e:
        out.append(str(e))
    try:
        raise  # noqa: PLE0704
    except RuntimeError as e:
        out.append(str(e))
    return x + 1, out


ONE_GRAPH = [
    own_class, tensor_attribute, tensor_argument, chains, no_cycle, handled_now, lines, lines_again, lines_finally, notes, managers,
    exit_stack, groups, groups_naked, groups_left, not_exceptions,
]  # fmt: skip


@pytest.mark.parametrize("fn", ONE_GRAPH, ids=lambda f: f.__name__)
def test_one_graph(fn):
    check(fn, X, graphs=1)


def summary(tb):
    return [(f.name, f.lineno, f.line, f.colno, f.end_colno) for f in traceback.extract_tb(tb)]


def trouble(fn):
    try:
        return fn(X)
    except Exception as e:
        return e


def returned(x):
    try:
        fails(x * 2)
    except ValueError as e:
        return e


def returned_after_a_break(x):
    try:
        fails(x * 2)
    except ValueError as e:
        torch._dynamo.graph_break()
        x = x + 1
        return e


def raised_again_after_a_break(x):
    try:
        fails(x * 2)
    except ValueError:
        torch._dynamo.graph_break()
        x = x + 1
        raise


def raised_behind_a_break(x):
    x = x + 1
    torch._dynamo.graph_break()
    return fails(x * 2)


def raised_from(x):
    x = x + 1
    try:
        fails(x)
    except ValueError as e:
        raise Told(1) from e


def raised_in_finally(x):
    try:
        fails(x)
    finally:
        x = x + 1
        torch._dynamo.graph_break()
        x = x + 1


def kept(x):
    e = ValueError(1)
    try:
        raise e
    except ValueError:
        x = x + 1
    raise e


ESCAPING = [
    returned, returned_after_a_break, raised_again_after_a_break, raised_behind_a_break, raised_from, raised_in_finally, kept,
]  # fmt: skip


@pytest.mark.parametrize("fn", ESCAPING, ids=lambda f: f.__name__)
def test_tracebacks_are_those_of_plain_python(fn):
    """Names, lines and columns, of the causes and contexts too."""
    plain, captured = trouble(fn), trouble(torch.compile(fn, backend="eager"))
    while plain is not None:
        assert (type(plain), plain.args, plain.__suppress_context__) == (
            type(captured),
            captured.args,
            captured.__suppress_context__,
        )
        ours = [e for e in summary(captured.__traceback__)]
        assert ours == summary(plain.__traceback__)
        plain, captured = plain.__context__, captured.__context__
    assert captured is None


def test_an_exception_that_existed_gets_its_traceback_and_context():
    def f(x, e):
        try:
            raise e
        except ValueError:
            return x + 1

    out = []
    for g in (f, torch.compile(f, backend="eager")):
        e = ValueError(1)
        g(X, e)
        g(X, e)
        out.append([(n, i) for n, i, *_ in summary(e.__traceback__)])
    assert out[0] == out[1] and len(out[0]) == 2


def test_the_exception_of_a_caller_is_noticed():
    def f(x):
        return x + 1, sys.exc_info()[1]

    g = torch.compile(f, backend="eager")
    assert g(X)[1] is None
    try:
        raise ValueError(1)
    except ValueError as e:
        assert g(X)[1] is e
    assert g(X)[1] is None


def _drawn(x):
    with torch.no_grad():
        return x.uniform_(2, 1)


def _drawn_late(x):
    y = x + 1
    with torch.no_grad():
        y.uniform_(2, 1)
        return y.clamp_(0, 1)


@pytest.mark.parametrize("backend", ["eager", "inductor", lambda gm, inputs: gm])
@pytest.mark.parametrize("fn", [_drawn, _drawn_late])
def test_an_error_leaves_the_grad_mode(fn, backend):
    with pytest.raises(RuntimeError, match="uniform_ expects"):
        torch.compile(fn, backend=backend)(torch.ones(3))
    assert torch.is_grad_enabled()
