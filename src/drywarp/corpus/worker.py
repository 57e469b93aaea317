"""The process of one module: it looks at it, tells how far it is, and ends.

It is forked off a server that has everything imported, so that starting one costs milliseconds, and it may
crash or hang: whoever watches it knows the stage from what it sent last.
"""

from __future__ import annotations

import os
import resource
import sys
from multiprocessing.connection import Connection

from .examine import Task, examine
from .result import FAILED


def work(task: Task, connection: Connection) -> None:
    """Entry point of the process. Sends ("stage", name) messages, and ("row", fields) at the end."""
    # A group of its own, so that tools which it runs end with it.
    os.setpgid(0, 0)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, sys.stdout.fileno())
    os.dup2(silent, sys.stderr.fileno())
    try:
        found = examine(
            task, lambda stage: connection.send(("stage", stage)), lambda found: connection.send(("analysed", found))
        )
    except MemoryError:
        found = {"status": FAILED, "reason": "out of memory"}
    except RecursionError as error:
        found = {"status": FAILED, "reason": f"RecursionError: {error} ({_place(error)})"}
    except Exception as error:  # a defect of ours: it belongs in the row, not at the end of the run
        found = {"status": FAILED, "reason": f"{type(error).__name__}: {error} ({_place(error)})"}
    own, tools = (resource.getrusage(who).ru_maxrss * 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    connection.send(("row", {**found, "peak_rss_bytes": max(own, tools)}))
    connection.close()


def _place(error: BaseException) -> str:
    """File and line where an exception was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "place unknown"
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
