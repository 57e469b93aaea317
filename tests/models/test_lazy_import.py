"""Importing the models is quick: the compiled loops come with the first simulation."""

from __future__ import annotations

import subprocess
import sys


def test_importing_models_does_not_import_numba() -> None:
    code = "import sys, drywarp.models, drywarp.pipeline; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
