"""``flambeau run``: a program that says ``import torch``, run on flambeau as ``python`` would run it."""

from __future__ import annotations

import os
import runpy
import sys
import types
from collections.abc import Sequence

from . import hook, shim

__all__ = ["run"]


def run(target: str, args: Sequence[str], *, module: bool = False, missing: bool = False) -> int:
    """Run a script (or, with ``module``, ``python -m target``) as ``__main__``; the exit status.

    ``sys.argv``, ``sys.path[0]``, ``__main__`` and tracebacks are as under ``python``. Child processes find the shim through PYTHONPATH.
    With ``missing``, what the program asked ``torch`` for and didn't find is listed on stderr at the end.
    """
    hook.install()
    before, path = os.environ.get("PYTHONPATH"), shim.child_path()
    os.environ["PYTHONPATH"] = path + (os.pathsep + before if before else "")
    sys.path.insert(1, path)  # what multiprocessing hands to the processes it spawns
    if missing:
        from . import missing as recorder

        recorder.watch()
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__, __annotations__={})
    sys.modules["__main__"] = main
    try:
        if module:
            sys.path[0] = os.getcwd()
            sys.argv = [target, *args]
            return _guarded(lambda: runpy._run_module_as_main(target))
        if not os.path.exists(target):
            print(
                f"flambeau run: can't open file {os.path.abspath(target)!r}: No such file or directory", file=sys.stderr
            )
            return 2
        sys.argv = [target, *args]
        if os.path.isdir(target) or target.endswith((".zip", ".pyz")):
            sys.path[0] = target
            return _guarded(lambda: runpy._run_module_as_main("__main__", alter_argv=False))
        sys.path[0] = os.path.dirname(os.path.abspath(target))
        return _guarded(lambda: _script(target, main.__dict__))
    finally:
        if missing:
            recorder.report(sys.stderr)


def _script(path: str, namespace: dict) -> None:
    import io

    with io.open_code(os.path.abspath(path)) as file:
        source = file.read()
    namespace.update(__file__=path, __spec__=None, __package__=None, __cached__=None, __loader__=None)
    exec(compile(source, path, "exec"), namespace)


def _guarded(call) -> int:
    """Run the program; its uncaught exception is shown from the program's first line on."""
    try:
        call()
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = _from_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _from_program(tb):
    """The traceback without the frames of this file, at its beginning."""
    first = tb
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    # A SyntaxError of the script itself has no frame of it.
    return tb if tb is not None or not isinstance(first, types.TracebackType) else None
