"""Functions that Numba compiles, cached by what they are made of."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

READ = "len(twice.stats.cache_hits)"


def test_an_edit_of_what_a_function_calls_is_compiled_anew(tmp_path: Path) -> None:
    """Numba alone asks the date of the function's own file, and would run the old code on."""
    package = tmp_path / "edited"
    package.mkdir()
    (package / "outer.py").write_text(
        f"from inner import amount\nfrom drywarp.support.stored_code import cached\n"
        f"@cached({str(package)!r})\ndef twice(x):\n    return 2 * amount(x)\n"
    )
    code = f"import sys; sys.path.insert(0, {str(package)!r}); from outer import twice; print(twice(10), {READ})"
    found = []
    for amount in ("x + 1", "x + 1", "x - 1"):
        (package / "inner.py").write_text(f"from numba import njit\n@njit\ndef amount(x):\n    return {amount}\n")
        os.utime(package / "inner.py", (0, 0))
        environment = {**os.environ, "DRYWARP_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        found.append(ran.stdout.split())
    assert found == [["22", "0"], ["22", "1"], ["18", "0"]]


def test_what_is_compiled_is_made_of_the_sources_that_its_name_stands_for() -> None:
    """Compiled functions and their constants come from the folders that the digest covers."""
    from drywarp.execution.emulator.compiled import pointers as jit

    root = Path(jit.__file__).parents[3]
    assert all((root / source).exists() for source in jit.SOURCES)
    for path in (root / "execution/emulator/compiled").glob("*.py"):
        text = path.read_text()
        if re.search(r"^@(inner|outer)\b", text, re.MULTILINE):
            for dots, name in re.findall(r"^from (\.+)([\w.]*)", text, re.MULTILINE):
                place = path.parents[len(dots) - 1] / name.replace(".", "/")
                inside = place.relative_to(root).as_posix()
                assert any(inside.startswith(source.removesuffix(".py")) for source in jit.SOURCES), (path, inside)
