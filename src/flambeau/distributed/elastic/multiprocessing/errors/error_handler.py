"""Writes error files: JSON of one exception."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
import traceback

__all__ = ["ErrorHandler"]


class ErrorHandler:
    """Writes to the file that the variable ``TORCHELASTIC_ERROR_FILE`` names; nothing without it."""

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self) -> None:
        """Have fatal signals print a traceback (``faulthandler``), where standard error is a file."""
        try:
            faulthandler.enable(all_threads=True)
        except (AttributeError, ValueError, OSError) as error:
            print(f"tracebacks of fatal signals can't be enabled: {error}", file=sys.stderr)

    def _write_error_file(self, file_path: str, error_msg: str) -> None:
        # Whole or not at all: the process may be killed meanwhile.
        with open(f"{file_path}.part", "w") as file:
            file.write(error_msg)
        os.replace(f"{file_path}.part", file_path)

    def record_exception(self, e: BaseException) -> None:
        """Write the exception, its traceback and the time."""
        path = self._get_error_file_path()
        if path is None:
            return
        told = {"py_callstack": "".join(traceback.format_exception(e)), "timestamp": str(int(time.time()))}
        message = {"message": f"{type(e).__name__}: {e}", "extraInfo": told}
        self._write_error_file(path, json.dumps({"message": message}))

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Write what another file says, with the exit status of its process."""
        with open(rootcause_error_file) as file:
            data = json.load(file)
        if error_code and isinstance(data.get("message"), dict):
            data["message"]["errorCode"] = error_code
        path = self._get_error_file_path()
        if path is None:
            print(f"{rootcause_error_file} says: {json.dumps(data, indent=2)}", file=sys.stderr)
        else:
            self._write_error_file(path, json.dumps(data))
