"""``python -m flambeau``: the ``flambeau`` command."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
