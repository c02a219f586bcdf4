"""``python -m flambeau.demo``, and ``flambeau launch -n 2 -m flambeau.demo``: the demo in several processes."""

import sys

from flambeau.cli import main

sys.exit(main(["demo", *sys.argv[1:]]))
