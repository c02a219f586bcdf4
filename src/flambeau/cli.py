"""``python -m flambeau.cli``: the ``flambeau`` command. It is a module beside the package, so that ``--help`` needn't import this one."""

import sys

from flambeau_command import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
