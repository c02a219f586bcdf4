"""A peer in a process of its own that answers JSON requests line by line."""

from __future__ import annotations

import json
import math
import queue
import subprocess
import threading
from pathlib import Path

LEFT_OUT = "left out"  # why a peer wasn't asked


class Peer:
    """``[python, *command]`` reads a request a line and answers each with a line: an object, with "error" where it can't.

    The process starts with the first request. One that needs longer than ``limit`` seconds for an answer is ended and started anew for the next
    request. ``failed`` tells by key why there is no answer; a key that failed isn't asked again.
    """

    def __init__(self, name: str, command: list[str], environment: dict[str, str], limit: float):
        self.name, self.command, self.environment, self.limit = name, command, environment, limit
        self.failed: dict[str, str] = {}
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=self.environment,
        )  # fmt: skip
        self.lines: queue.Queue = queue.Queue()
        threading.Thread(
            target=lambda p, q: [q.put(line) for line in p.stdout] + [q.put("")],
            args=(self.process, self.lines),
            daemon=True,
        ).start()

    def ask(self, key: str, request: dict) -> dict | None:
        if key in self.failed:
            return None
        if self.process is None:
            self.start()
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        try:
            line = self.lines.get(timeout=self.limit)
        except queue.Empty:
            line = None
        if not line:
            self.failed[key] = f"over {self.limit:.0f} s" if line is None else "the process ended"
            self.close()
            return None
        answer = json.loads(line)
        if "error" in answer:
            self.failed[key] = answer["error"]
            return None
        return answer

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def described(error: Exception) -> str:
    """An exception in one short line without the paths of this machine."""
    text = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    return text.replace(f"{Path(__file__).resolve().parents[1]}/", "")[:120]


def geometric_mean(values) -> float:
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan
