"""Hardware counters of a launch, where Nsight Compute is installed: it watches a process that launches the kernel."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import DrywarpError
from ..frontends.ncu import parse_ncu
from .configuration import Configuration
from .occupancies import Occupied
from .row import COUNTERS

WARM_UP = 3
"""Launches before the one that is watched, which leave the L2 as a loop of launches does."""
TIME_LIMIT_S = 300.0


def find_ncu() -> str | None:
    """Nsight Compute's command, where there is one on the path."""
    return shutil.which("ncu")


@dataclass
class Counters:
    """A `Profile` of `measure`. After the first failure nothing more is tried, and `note` says why."""

    ncu: str
    device: int = 0
    small: bool = False
    note: str = field(default="", init=False)

    def __call__(self, configuration: Configuration, occupied: Occupied) -> Mapping[str, float]:
        """Counters of a launch at this occupancy; empty where they cannot be had."""
        if self.note:
            return {}
        what = {
            "described": str(configuration.kernel.described),
            "kernel": configuration.name,
            "variant": configuration.variant,
            "dynamic_shared": occupied.dynamic_shared,
            "small": self.small,
            "device": self.device,
        }
        # Clocks and caches are left alone: by itself ncu would lock the one and clear the other.
        command = [self.ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
        command += ["--cache-control", "none", "--launch-skip", str(WARM_UP), "--launch-count", "1"]
        command += ["--metrics", ",".join(COUNTERS), sys.executable, "-m", "drywarp.measuring.profiled"]
        try:
            done = subprocess.run(
                [*command, json.dumps(what)], capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
            )
            found = parse_ncu(done.stdout, str(Path(self.ncu).name))
        except (OSError, subprocess.TimeoutExpired) as error:
            self.note = f"no counters: {error}"
            return {}
        except DrywarpError:
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("==ERROR==")]
            reason = said[0].removeprefix("==ERROR==").strip() if said else f"it ended with status {done.returncode}"
            self.note = f"no counters: {self.ncu}: {reason}"
            return {}
        return {name: found[0].metrics[name] for name in COUNTERS if name in found[0].metrics}
