#!/usr/bin/env bash
# The libraries' jobs from a fresh environment: tests/libraries/run.sh [FOLDER] makes a virtual environment in FOLDER (a temporary one),
# installs this checkout, puts the shim in PyTorch's place, installs the libraries of requirements.txt and runs `pytest -m libraries`.
set -e
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$(mktemp -d)/libraries}
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q "$here/../.." pytest pytest-timeout
"$folder/bin/flambeau" shim install
"$folder/bin/pip" install -q -r "$here/requirements.txt"
cd "$here/../.." && exec "$folder/bin/python" -m pytest -q -m libraries tests/libraries
