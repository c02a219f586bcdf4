"""``flambeau launch``, ``python -m flambeau.distributed.run``: torchrun's options."""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from .elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
from .elastic.multiprocessing.errors import ChildFailedError
from .elastic.rendezvous import RendezvousError
from .elastic.rendezvous.utils import parse_rendezvous_config, parse_rendezvous_endpoint
from .launch_options import get_args_parser, machines, workers
from .launcher.api import LaunchConfig, launch_agent

__all__ = ["command", "config_from_args", "get_args_parser", "main", "parse_args", "run"]

_ALONE = "127.0.0.1"
_STATIC_PORT = 29500


def parse_args(args: Sequence[str] | None = None) -> argparse.Namespace:
    return get_args_parser().parse_args(args)


def _parsed(given: argparse.Namespace) -> argparse.Namespace:
    """The options, numbers parsed: programs that fill in a namespace themselves leave them texts, as PyTorch's parser does."""
    args = argparse.Namespace(**vars(given))
    kinds = {"nnodes": machines, "nproc_per_node": workers, "monitor_interval": float}
    kinds |= dict.fromkeys(("node_rank", "master_port", "max_restarts", "shutdown_timeout"), int)
    for name, kind in kinds.items():
        value = getattr(args, name)
        try:
            setattr(args, name, kind(value) if isinstance(value, str) else value)
        except argparse.ArgumentTypeError as error:
            raise ValueError(f"{name}: {error}") from None
    return args


def _command(args) -> list[str]:
    target, rest = args.training_script, list(args.training_script_args)
    if args.no_python:
        if args.module or args.torch:
            raise ValueError("--no-python goes with neither --module nor --torch")
        return [target, *rest]
    if args.torch:
        return [sys.executable, "-u", "-m", "flambeau.cli", "run", *(["-m"] if args.module else []), target, *rest]
    return [sys.executable, "-u", *(["-m"] if args.module else []), target, *rest]


def _meeting(args) -> dict[str, Any]:
    """The fields of LaunchConfig that say where and how machines meet. ValueError for options that contradict each other."""
    least, most = args.nnodes
    configs: dict[str, Any] = dict(parse_rendezvous_config(args.rdzv_conf))
    host, port = args.master_addr, args.master_port
    if args.rdzv_endpoint and not args.standalone:
        host, port = parse_rendezvous_endpoint(args.rdzv_endpoint, port or 0)
    if args.standalone and most != 1:
        raise ValueError("--standalone is for one machine")
    if most == 1:
        given = host and port and not args.standalone
        configs["master_port"] = port or 0
        return {"rdzv_backend": "c10d", "rdzv_configs": configs, "local_addr": host if given else _ALONE}
    if host is None:
        raise ValueError("several machines need --rdzv-endpoint or --master-addr")
    is_static = args.rdzv_backend == "static"
    if is_static and least != most:
        raise ValueError("--nnodes MIN:MAX needs --rdzv-backend c10d: with static the number of machines is fixed")
    backend, place = "c10d", args.node_rank
    if place is not None and least == most:
        if not 0 <= place < most:
            raise ValueError(f"--node-rank {place} isn't one of {most} machines")
        backend, configs["rank"] = "static", place
    elif place is not None:
        raise ValueError("--node-rank needs a fixed number of machines; with MIN:MAX they are numbered as they come")
    endpoint = f"{host}:{port or _STATIC_PORT}" if port or is_static or backend == "static" else host
    return {
        "rdzv_backend": backend if args.rdzv_backend in ("static", "c10d") else args.rdzv_backend,
        "rdzv_endpoint": endpoint,
        "rdzv_configs": configs,
        "local_addr": args.local_addr,
    }


def config_from_args(args: argparse.Namespace) -> tuple[LaunchConfig, str, list[str]]:
    """(the job, the program, its arguments) of parsed options. ValueError for options that contradict each other."""
    args = _parsed(args)
    meeting = _meeting(args)
    program, *rest = _command(args)
    redirects, tee = Std.from_str(args.redirects), Std.from_str(args.tee)
    if args.log_dir is not None and not redirects and not tee:
        tee = Std.ALL
    shown = {int(local) for local in args.local_ranks_filter.split(",") if local.strip()}
    run_id = args.rdzv_id
    if run_id == "none" and args.nnodes[1] == 1:
        run_id = uuid.uuid4().hex[:8]
    config = LaunchConfig(
        min_nodes=args.nnodes[0],
        max_nodes=args.nnodes[1],
        nproc_per_node=args.nproc_per_node,
        logs_specs=DefaultLogsSpecs(args.log_dir, redirects, tee, shown or None),
        run_id=run_id,
        role=args.role,
        max_restarts=args.max_restarts,
        monitor_interval=args.monitor_interval,
        start_method=args.start_method,
        log_line_prefix_template="" if args.no_prefix else None,
        event_log_handler=args.event_log_handler,
        signals_to_handle=args.signals_to_handle,
        virtual_local_rank=args.virtual_local_rank,
        shutdown_timeout=args.shutdown_timeout,
        **meeting,
    )
    return config, program, rest


def _say(text: str) -> None:
    sys.stdout.flush()
    print(f"flambeau launch: {text.rstrip()}", file=sys.stderr, flush=True)


def run(args: argparse.Namespace, say: Callable[[str], Any] = _say) -> None:
    """Run the job that the options describe. ChildFailedError when ranks failed, ValueError for options that contradict each other."""
    config, program, rest = config_from_args(args)
    launch_agent(config, program, rest, say)


def main(args: Sequence[str] | None = None) -> None:
    """As :func:`run`, of a command line."""
    run(parse_args(args))


def command(args: Sequence[str] | None = None) -> int:
    """The exit status of a command line: that of the rank that failed first, 128 + the number of the signal that ended it, 1 where machines didn't
    meet, 127 for a program that can't be started, 0."""
    parser = get_args_parser()
    given = parser.parse_args(args)
    try:
        run(given)
    except (ValueError, NotImplementedError) as error:
        parser.error(str(error))
    except ChildFailedError as error:
        code = next(iter(error.failures.values())).exitcode
        return 128 - code if code < 0 else code
    except SignalException as error:
        _say(str(error))
        return 128 + error.sigval
    except RendezvousError as error:
        _say(f"error: {error}")
        return 1
    except OSError as error:
        _say(f"error: {error}")
        return 127
    return 0


if __name__ == "__main__":
    sys.exit(command())
