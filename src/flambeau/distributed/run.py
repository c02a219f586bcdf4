"""``flambeau launch``, ``python -m flambeau.distributed.run``: torchrun's options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .agent import Options, launch, node_rank
from .launch_options import get_args_parser

__all__ = ["get_args_parser", "main", "parse_args", "run"]

_ALONE = "127.0.0.1"


def parse_args(args: Sequence[str] | None = None) -> argparse.Namespace:
    return get_args_parser().parse_args(args)


def _command(args) -> list[str]:
    target, rest = args.training_script, list(args.training_script_args)
    if args.no_python:
        if args.module or args.torch:
            raise ValueError("--no-python goes with neither --module nor --torch")
        return [target, *rest]
    if args.torch:
        return [sys.executable, "-u", "-m", "flambeau.cli", "run", *(["-m"] if args.module else []), target, *rest]
    return [sys.executable, "-u", *(["-m"] if args.module else []), target, *rest]


def run(args: argparse.Namespace) -> int:
    """Run the job that the options describe; the exit status. ValueError for options that contradict each other."""
    host, port = args.master_addr, args.master_port
    if args.rdzv_endpoint and not args.standalone:
        name, _, number = args.rdzv_endpoint.rpartition(":")
        host, port = (name, int(number)) if name else (number, port)
    number, restarts = args.node_rank, args.max_restarts
    if args.standalone or args.nnodes == 1:
        host, port, number = host if host and args.nnodes == 1 and port else _ALONE, port or 0, 0
        if args.standalone and args.nnodes != 1:
            raise ValueError("--standalone is for one machine")
    else:
        port = port or 29500
        if host is None:
            raise ValueError("several machines need --rdzv-endpoint or --master-addr")
        if restarts:
            raise ValueError("--max-restarts is built for one machine only")
        if number is None:
            number = node_rank(host, port, args.nnodes, args.rdzv_id)
        if not 0 <= number < args.nnodes:
            raise ValueError(f"--node-rank {number} isn't one of {args.nnodes} machines")
    options = Options(
        command=_command(args),
        ranks=args.nproc_per_node,
        nodes=args.nnodes,
        node_rank=number,
        host=host,
        port=port,
        restarts=restarts,
        prefix=not args.no_prefix,
        log_dir=args.log_dir,
        run_id=args.rdzv_id,
        role=args.role,
    )
    return launch(options)


def main(args: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = get_args_parser()
    given = parser.parse_args(args)
    try:
        return run(given)
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
