"""The core gives the same bits whatever compiler made it, and stays within its arrays.

Each build runs the tests that compare the core with NumPy, bit by bit, and with the plain simulator, tick for tick. The
one with sanitizers runs those that reach every function of the core, and kernels with random damage; with
`DRYWARP_SANITIZE=all` all tests of emulator, memory phase and simulation, and more kernels.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from drywarp.core import build
from drywarp.core.library import LIBRARY_VARIABLE

ROOT = Path(__file__).parents[2]
COMPARED = (
    "tests/emulator/test_compiled_loop.py",
    "tests/pipeline/test_against_reference.py",
    *(f"tests/memory/test_{name}.py" for name in ("core", "footprint", "l1")),
)
ZIG = [sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=undefined"]
ALL = os.environ.get("DRYWARP_SANITIZE") == "all"
SANITIZED = (
    ("tests/emulator", "tests/memory", "tests/pipeline", "--deselect=tests/emulator/test_isolation.py")
    if ALL
    else (*COMPARED, *(f"tests/emulator/test_{name}.py" for name in ("apart", "faults", "memories")))
)
"""A process under an audit hook, as in `test_isolation.py`, would see the sanitizers' own files."""
DAMAGED = 1500 if ALL else 300
SANITIZERS = ("-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


def built(folder: Path, command: list[str], *flags: str) -> dict[str, str]:
    """The environment in which drywarp uses the core that a compiler makes with further flags."""
    library = folder / "core.so"
    units = [str(path) for path in build.sources() if path.suffix == ".c"]
    words = [*command, *build.FLAGS, *flags, '-DDRYWARP_DIGEST="test"', *units, "-lm", "-o", str(library)]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return {**os.environ, LIBRARY_VARIABLE: str(library)}


def passes(environment: dict[str, str], *what: str) -> None:
    words = [sys.executable, "-m", *what]
    done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-8000:]}"


@pytest.mark.exhaustive
def test_unoptimised_code_gives_the_same_bits(tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    passes(built(tmp_path, ["gcc"], "-O0"), "pytest", "-q", *COMPARED)


@pytest.mark.exhaustive
def test_zig_gives_the_same_bits(tmp_path: Path) -> None:
    if not importlib.util.find_spec("ziglang"):
        pytest.skip("ziglang is not installed")
    passes(built(tmp_path, ZIG), "pytest", "-q", *COMPARED)


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    names = ("libasan.so", "libubsan.so")
    found = [subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip() for name in names]
    if not all(map(os.path.isabs, found)):
        pytest.skip("gcc has no sanitizers")
    environment = built(tmp_path_factory.mktemp("core"), ["gcc"], *SANITIZERS)
    # Python itself is not built with them, and its own allocator would hide where an array ends.
    return {
        **environment,
        "LD_PRELOAD": ":".join(found),
        "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }


@pytest.mark.exhaustive
def test_sanitizers_find_nothing(sanitized: dict[str, str]) -> None:
    passes(sanitized, "pytest", "-q", *SANITIZED)


@pytest.mark.exhaustive
def test_no_damage_makes_the_core_stray(sanitized: dict[str, str]) -> None:
    passes(sanitized, "tests.emulator.damaged", "0", str(DAMAGED))
