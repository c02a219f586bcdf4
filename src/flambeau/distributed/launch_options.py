"""The options of ``flambeau launch``: torchrun's. It imports nothing of the package, so that ``--help`` needn't load it."""

from __future__ import annotations

import argparse
import os

__all__ = ["get_args_parser", "machines", "usable_processors", "workers"]


def usable_processors() -> int:
    """Processors that this process may run on; all of them on a system that doesn't tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _add(parser, name: str, *more: str, **kwargs) -> None:
    """An option with dashes and with underscores. The variable PET_NAME, which operators of clusters set, is its default."""
    under = [f"--{name.replace('-', '_')}"] if "-" in name else []
    if "default" in kwargs:
        kwargs["default"] = os.environ.get(f"PET_{name.replace('-', '_').upper()}", kwargs["default"])
    parser.add_argument(*more, f"--{name}", *under, **kwargs)


def workers(text: str) -> int:
    """The processes of ``N``, ``auto`` or ``cpu``."""
    if text in ("auto", "cpu"):
        return usable_processors()
    if text in ("gpu", "xpu"):
        raise argparse.ArgumentTypeError(f"there are no devices of kind {text}")
    try:
        count = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, auto or cpu, got {text!r}") from None
    if count < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {count}")
    return count


def machines(text: str) -> tuple[int, int]:
    """(least, most) of ``N`` or ``MIN:MAX``."""
    low, _, high = text.partition(":")
    try:
        least, most = int(low), int(high or low)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected N or MIN:MAX, got {text!r}") from None
    if not 1 <= least <= most:
        raise argparse.ArgumentTypeError(f"{text}: at least one machine, and MIN no more than MAX")
    return least, most


def get_args_parser(prog: str | None = None) -> argparse.ArgumentParser:
    """The parser of torchrun's options; those without meaning here are taken and named in their help."""
    parser = argparse.ArgumentParser(
        prog=prog or "flambeau launch",
        description="Start a program in several processes, each with RANK, WORLD_SIZE and the address to meet at; end all when one fails.",
    )
    _add(
        parser,
        "nproc-per-node",
        "-n",
        type=workers,
        default=1,
        help="processes on this machine: a number, auto, cpu",
    )
    _add(
        parser,
        "nnodes",
        type=machines,
        default=(1, 1),
        help="machines: a number, or MIN:MAX of a job that machines may leave and join",
    )
    _add(
        parser,
        "node-rank",
        type=int,
        default=None,
        help="number of this machine (default: 0 of one; else by the order of arrival)",
    )
    _add(parser, "master-addr", default=None, help="the first machine's address")
    _add(
        parser,
        "master-port",
        type=int,
        default=None,
        help="a port there (default: a free one; 29500 with several machines)",
    )
    _add(
        parser,
        "rdzv-endpoint",
        default="",
        help="host:port at which machines meet; the machine of that address keeps the store",
    )
    _add(
        parser,
        "rdzv-backend",
        default="static",
        help="how machines get their numbers: static (--node-rank) or c10d (by arrival)",
    )
    _add(parser, "rdzv-id", default="none", help="the job's name")
    _add(
        parser,
        "rdzv-conf",
        default="",
        help="k=v,...: join_timeout, last_call_timeout, keep_alive_interval (seconds), keep_alive_max_attempt, is_host",
    )
    parser.add_argument("--standalone", action="store_true", help="one machine, on a free port (the default)")
    _add(
        parser,
        "max-restarts",
        type=int,
        default=0,
        help="how often all ranks are started again after a failure",
    )
    _add(parser, "monitor-interval", type=float, default=0.1, help="seconds between two looks at the ranks")
    _add(parser, "start-method", default="spawn", help="taken and ignored: ranks are processes of their own")
    parser.add_argument("--role", default="default", help="ROLE_NAME of the ranks")
    _add(parser, "log-dir", default=None, help="write each rank's output to DIR/attempt_N/RANK; N counts the starts")
    _add(
        parser,
        "redirects",
        "-r",
        default="0",
        help="streams that go to --log-dir only: 1 stdout, 2 stderr, 3 both; or LOCAL_RANK:N,...",
    )
    _add(parser, "tee", "-t", default="0", help="streams that go to both (without --redirects and --tee all do)")
    _add(
        parser,
        "local-addr",
        default=None,
        help="this machine's address for the others (default: that by which it reaches the store)",
    )
    _add(parser, "local-ranks-filter", default="", help="pass on the output of these local ranks only: 0,1")
    _add(parser, "event-log-handler", default="null", choices=["null", "console"], help="where events go, as JSON")
    _add(parser, "signals-to-handle", default="SIGTERM,SIGINT,SIGHUP,SIGQUIT", help="signals that end the ranks")
    _add(parser, "shutdown-timeout", type=int, default=None, help="seconds between SIGTERM and SIGKILL (3)")
    parser.add_argument("--virtual-local-rank", action="store_true", help="all ranks have LOCAL_RANK 0")
    parser.add_argument("--use-env", "--use_env", action="store_true", help="taken: ranks always get their numbers so")
    _add(parser, "no-python", action="store_true", help="the target is a program, not a script for Python")
    _add(parser, "run-path", action="store_true", help="the same as naming a script")
    _add(parser, "no-prefix", action="store_true", help="print output as it is, without the rank in front")
    parser.add_argument(
        "--torch", action="store_true", help="`import torch` means flambeau in the program, as with `flambeau run`"
    )
    parser.add_argument("-m", "--module", action="store_true", help="the target is a module, as with python -m")
    parser.add_argument("training_script", metavar="target", help="script, module or program")
    rest = parser.add_argument("training_script_args", metavar="args", nargs=argparse.REMAINDER, help="its arguments")
    rest.required = False  # or argparse says that they are
    return parser
