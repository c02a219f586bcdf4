"""The ``flambeau`` command. It stands beside the package, which takes a while to import: a command imports what it needs when it runs."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]


class _Defaults(argparse.ArgumentDefaultsHelpFormatter):
    """Help tells the defaults that say something: not that nothing is given, or that a switch is off."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, False) else super()._get_help_string(action)


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _count(text: str) -> int:
    return 0 if text == "0" else _positive(text)


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text}")
    return value


_TARGET = "script.py:function; the script's `example_inputs`, a tuple or a function that returns one, has the arguments"


def _add_demo(commands) -> None:
    parser = commands.add_parser(
        "demo",
        help="a NumPy function and a small GPT, plain and compiled",
        description="Run a NumPy function and train a character-level GPT, plain and compiled by turns; print first calls, times with their "
        "spread, memory, what was fused and a sample, and draw a picture.",
        formatter_class=_Defaults,
    )
    parser.add_argument("--steps", type=_positive, default=900, help="training steps")
    parser.add_argument(
        "--text", metavar="PATH", help="train on this file or folder (default: the Python standard library)"
    )
    parser.add_argument("--n-layer", type=_positive, default=2, help="transformer blocks")
    parser.add_argument("--n-head", type=_positive, default=4, help="attention heads")
    parser.add_argument("--n-embd", type=_positive, default=128, help="width, a multiple of --n-head")
    parser.add_argument("--block-size", type=_positive, default=64, help="characters of context")
    parser.add_argument("--batch-size", type=_positive, default=16, help="sequences a step")
    parser.add_argument("--lr", type=_rate, default=4e-3, help="learning rate of AdamW")
    parser.add_argument("--seed", type=_count, default=1337, help="seed of weights and batches")
    parser.add_argument(
        "--sample", type=_count, default=400, metavar="N", help="characters to sample at the end (0: none)"
    )
    parser.add_argument("--no-compile", action="store_true", help="train the GPT eagerly only")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where the GPT is trained")
    parser.add_argument("--peers", action="store_true", help="also time torch and numba, where they are installed")
    parser.add_argument("--out", metavar="DIR", default=".", help="folder for the picture (PNG)")
    parser.add_argument(
        "--json", action="store_true", help="print JSON alone; what else is said goes to standard error"
    )
    parser.set_defaults(run=_demo)


def _add_run(commands) -> None:
    parser = commands.add_parser(
        "run",
        help="run a program that says `import torch` on flambeau",
        usage="flambeau run [--missing] (script.py | -m module) [args ...]",
        description="Run a script or module as python would, with `import torch` meaning flambeau, in it and in its child processes.",
    )
    parser.add_argument("--missing", action="store_true", help="list what the program asked torch for and did not find")
    parser.add_argument("-m", dest="module", action="store_true", help="the target is a module, as with python -m")
    parser.add_argument("target", nargs="?", help="script or module")
    parser.add_argument("args", nargs=argparse.REMAINDER, default=[], help="arguments of the program")
    parser.set_defaults(run=lambda args, _: _run(args, parser))


def _add_launch(commands) -> None:
    parser = commands.add_parser(
        "launch",
        help="start a program in several processes, as torchrun does",
        description="Start a program in several processes that meet as ranks of one job; `flambeau launch --help` lists torchrun's options.",
        add_help=False,
    )
    parser.add_argument("args", nargs=argparse.REMAINDER)
    parser.set_defaults(run=_launch)


def _add_shim(commands) -> None:
    parser = commands.add_parser(
        "shim",
        help="make `import torch` mean flambeau in a virtual environment",
        description="Install, remove or look for a small distribution `torch` whose import is flambeau, so that pip finds requirements met.",
    )
    parser.add_argument("action", choices=["install", "remove", "status"])
    parser.set_defaults(run=_shim)


def _add_explain(commands) -> None:
    parser = commands.add_parser(
        "explain",
        help="say what the compiler does with a function, as text or as one HTML file",
        description="Compile and run a function of a script, and say what became of it: graphs, breaks, kernels with their lines, advice.",
    )
    parser.add_argument("target", help=_TARGET)
    parser.add_argument(
        "--html",
        nargs="?",
        const=True,
        metavar="PATH",
        help="write a self-contained HTML file (default: function.html)",
    )
    parser.add_argument("--guards", action="store_true", help="print what the compiled code depends on, too")
    parser.add_argument("--calls", type=_positive, default=7, help="how often to run it (default: 7)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_command("explain"))


def _add_bench(commands) -> None:
    parser = commands.add_parser(
        "bench",
        help="time a function of a script, plain and compiled by turns",
        description="Time a function of a script, plain and compiled by turns, and tell the spread.",
    )
    parser.add_argument("target", help=_TARGET)
    parser.add_argument("--pairs", type=_positive, default=21, help="how many pairs of calls (default: 21)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_command("bench"))


def _add_plan(commands) -> None:
    parser = commands.add_parser(
        "plan",
        help="predict memory, traffic and time of a training step on many ranks",
        description="Measure a step of training of the model that a function of a script makes, and predict it for many ranks. The function "
        "returns (model, inputs) or (model, inputs, loss), where loss(result) is a number.",
    )
    parser.add_argument("target", help=_TARGET)
    parser.add_argument(
        "-n", default="2..64", help="numbers of ranks: 2..10000 (by doubling) or 2,3,8 (default: 2..64)"
    )
    parser.add_argument(
        "--link", default="10GB/s", help="rate in and out of each rank: 10GB/s, 100Gbit/s (default: 10GB/s)"
    )
    parser.add_argument("--latency", type=float, default=20.0, help="microseconds of a message (default: 20)")
    parser.add_argument("--measure", action="store_true", help="also run two processes here and compare")
    parser.add_argument("--plot", metavar="FILE", help="draw steps and memory into a picture")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_command("plan", "planning"))


def _add_info(commands) -> None:
    parser = commands.add_parser(
        "info",
        help="versions, processor, threads, libraries, cache: for bug reports",
        description="Print the versions of flambeau, Python and the packages it uses, the processor, threads, BLAS, the cache's folder and the "
        "settings that were changed. Paste it into a bug report.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_command("info"))


def _add_cache(commands) -> None:
    parser = commands.add_parser(
        "cache",
        help="the compiler's files on disk: size, entries, verify, clear",
        description="Look after the files that the compiler keeps, so that another process needn't compile again. FLAMBEAU_CACHE_DIR names "
        "another folder.",
    )
    parser.add_argument(
        "action",
        nargs="?",
        choices=["size", "entries", "verify", "clear"],
        default="size",
        help="size: how many entries and bytes; entries: list them; verify: read each, and say which are damaged; clear: delete all "
        "(default: size)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_command("cache"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flambeau", description="The PyTorch 2 system from scratch, for CPUs.")
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for add in (
        _add_demo,
        _add_run,
        _add_launch,
        _add_shim,
        _add_explain,
        _add_bench,
        _add_plan,
        _add_info,
        _add_cache,
    ):
        add(commands)
    return parser


def _line(error: Exception) -> str:
    """What an error says, without the system's number for it."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{error.strerror}: {error.filename}" if error.filename is not None else error.strerror


def _command(name: str, module: str = "commands"):
    """A command of commands.py, or of another module, which is loaded when it runs: ``--help`` needs nothing of the package."""

    def run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
        from flambeau import commands

        try:
            status = getattr(importlib.import_module(f"flambeau.{module}"), name)(args)
            # A disk that is full shows here: what is printed waits in a buffer.
            if sys.stdout is not None:
                sys.stdout.flush()
            return status
        except BrokenPipeError:
            raise
        except commands.ProgramError as failed:
            failed.show(sys.stderr)
            return 1
        except (commands.CommandError, OSError) as error:
            print(f"flambeau {name}: error: {_line(error)}", file=sys.stderr)
            return 2

    return run


def _run(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    if args.target is None:
        parser.error("-m needs the name of a module" if args.module else "a script is required, or -m and a module")
    from flambeau.compat.run import run

    return run(args.target, args.args, module=args.module, missing=args.missing)


def _launch(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    _alone("distributed", "launch_options.py")["get_args_parser"]().parse_args(args.args)  # help, and wrong options
    from flambeau.distributed.run import command

    return command(args.args)


def _shim(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from flambeau.compat import shim

    if args.action == "status":
        return _tell(shim.status())
    try:
        folder = shim.install() if args.action == "install" else shim.remove()
    except shim.ShimError as error:
        print(f"flambeau shim: error: {error}", file=sys.stderr)
        return 2
    return _tell(f"{'installed into' if args.action == 'install' else 'removed from'} {folder}")


def _demo(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    if args.n_embd % args.n_head:
        parser.error(f"--n-embd ({args.n_embd}) must be a multiple of --n-head ({args.n_head})")
    if args.text is not None and not Path(args.text).exists():
        parser.error(f"--text: no such file or folder: {args.text}")
    if Path(args.out).exists() and not Path(args.out).is_dir():
        parser.error(f"--out: not a folder: {args.out}")
    from flambeau.base.optional import optional

    try:
        for package in ("rich", "matplotlib"):
            optional(package, "demo", "flambeau demo")
    except ModuleNotFoundError as error:
        print(f"flambeau demo: error: {error}", file=sys.stderr)
        return 2
    from flambeau.demo.run import Options, demo, prepare

    options = Options(
        steps=args.steps,
        text=args.text,
        n_layer=args.n_layer,
        n_head=args.n_head,
        n_embd=args.n_embd,
        block_size=args.block_size,
        batch_size=args.batch_size,
        lr=args.lr,
        seed=args.seed,
        sample=args.sample,
        compile=not args.no_compile,
        peers=args.peers,
        device=args.device,
        out=args.out,
        json=args.json,
    )
    if args.json and "WORLD_SIZE" in os.environ:
        parser.error("--json tells of one process: leave it away under flambeau launch")
    try:
        corpus = prepare(options)
    except (OSError, ValueError) as error:
        print(f"flambeau demo: error: {_line(error)}", file=sys.stderr)
        return 2
    return demo(options, corpus)


def _tell(text: str) -> int:
    """Print it: the exit status, 2 when there is no place for it."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        _not_written(error)
        return 2
    return 0


def _not_written(error: OSError) -> None:
    print(f"flambeau: error: the output can't be written: {error.strerror}", file=sys.stderr)


def _alone(*path: str) -> dict:
    """The names of one file of the package, which imports nothing of it: the package isn't loaded."""
    found = importlib.util.find_spec("flambeau")
    folder = next(iter(found.submodule_search_locations or ())) if found is not None else ""
    return runpy.run_path(os.path.join(folder, *path))


def _call(argv: Sequence[str]) -> int:
    parser = _parser()
    if argv[:1] == ["launch"]:  # its options are a parser's of its own
        args = argparse.Namespace(version=False, command="launch", args=argv[1:], run=_launch)
    else:
        args = parser.parse_args(argv)
    if args.version:
        return _tell(f"flambeau {_alone('version.py')['flambeau']}")
    if args.command is None:
        parser.print_help()
        return 2
    return args.run(args, parser)


def _written(status: int) -> int:
    """The exit status, once what was printed is written: 141 when nobody reads it any more, 2 when there is no place for it."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        status = 141  # what a shell tells of a program that the signal ends
    except OSError as error:
        # A command that has told of it ended with 2.
        if status != 2:
            _not_written(error)
            status = status or 2
    else:
        return status
    # The interpreter writes what is left when it ends, and would complain again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    try:
        status = _call(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = 130
    except BrokenPipeError:
        status = 141
    except SystemExit as left:
        # Help leaves so, with what it printed still in a buffer.
        if left.code:
            raise
        status = 0
    return _written(status)


if __name__ == "__main__":
    sys.exit(main())
