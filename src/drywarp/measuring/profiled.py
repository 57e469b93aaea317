"""The process that Nsight Compute watches: `python -m drywarp.measuring.profiled JSON` launches one kernel."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ..device import open_card
from ..errors import DrywarpError, UsageError
from .configuration import Configuration, configurations
from .counters import WARM_UP
from .on_card import CardRunner
from .suite_file import read_suite


def configuration_of(what: dict[str, Any]) -> Configuration:
    """The configuration that is meant. Raises UsageError where the suite has no such."""
    for kernel in read_suite(Path(what["described"])):
        for configuration in configurations(kernel, small=what["small"]):
            if (configuration.name, configuration.variant) == (what["kernel"], what["variant"]):
                return configuration
    raise UsageError(f"{what['described']}: no kernel {what['kernel']!r} with {what['variant']!r}")


def main(text: str) -> int:
    """Launch what the JSON object says."""
    what = json.loads(text)
    try:
        with open_card(what["device"]) as card, CardRunner(card, 1).prepare(configuration_of(what)) as prepared:
            prepared.profile(what["dynamic_shared"], WARM_UP)
    except DrywarpError as error:
        print(f"==ERROR== {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
