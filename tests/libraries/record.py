"""Writes ``recorded/LIBRARY.json`` from PyTorch: ``python record.py [LIBRARY ...]`` with an interpreter that has PyTorch 2.13 and the libraries."""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main(libraries):
    for library in libraries or sorted(path.stem for path in (HERE / "jobs").glob("*.py")):
        done = subprocess.run([sys.executable, "harness.py", library], cwd=HERE, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
        if not lines:
            raise SystemExit(f"{library}: {done.stderr[-3000:]}")
        found = json.loads(lines[0][8:])
        broken = {job: r["error"] for job, r in found.items() if "error" in r}
        if broken:
            raise SystemExit(f"{library}: " + "\n".join(f"{job}: {error}" for job, error in broken.items()))
        rows = [f'"{job}": {json.dumps(_short(r["result"]))}' for job, r in found.items()]
        (HERE / "recorded" / f"{library}.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")
        print(library, len(found), "jobs recorded")


def _short(value):
    if isinstance(value, dict):
        return {k: _short(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_short(v) for v in value]
    return float(f"{value:.8g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main(sys.argv[1:])
