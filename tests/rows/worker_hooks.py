"""What happens to the processes of rows, by a hook that they run at their start: they hang or die at a chosen row."""

from __future__ import annotations

import os
from pathlib import Path

_HOOK = """
import os, sys
if 'drywarp.experiments.rows.worker' in ' '.join(sys.orig_argv):
    import pathlib, signal, time
    from multiprocessing.connection import Connection
    receive, got = Connection.recv, [0]
    def recv(self):
        # The task comes first, then a launch for each row.
        message = receive(self)
        got[0] += 1
        if got[0] == {row} + 1 and {when}:
            {then}
        return message
    Connection.recv = recv
"""
_HANG = "time.sleep(10**6)"


def _hook(folder: Path, row: int, when: str, then: str) -> dict[str, str]:
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_HOOK.format(row=row, when=when, then=then))
    path = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(site), *([path] if path else [])])}


def hang_at(folder: Path, row: int, switch: Path | None = None) -> dict[str, str]:
    """The environment in which each process hangs at its row of this number, while the file `switch` is there."""
    return _hook(folder, row, f"pathlib.Path({str(switch)!r}).exists()" if switch else "True", _HANG)


def die_at(folder: Path, row: int, times: int) -> dict[str, str]:
    """The environment in which so many processes are killed at their row of this number, as without memory."""
    marks = [str(folder / f"mark{number}") for number in range(times)]
    free = f"[mark for mark in {marks} if not os.path.exists(mark)]"
    then = f"pathlib.Path({free}[0]).touch(); os.kill(os.getpid(), signal.SIGKILL)"
    return _hook(folder, row, free, then)
