"""Options that all tests share, and the folder in which they keep what takes long to make."""

from __future__ import annotations

import gc
import importlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from .effort import VARIABLE, exhaustive

ROOT = Path(__file__).parents[1]

# However slow the machine is, a law holds.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fixed", derandomize=True, **UNTIMED)
settings.register_profile("random", print_blob=True, **UNTIMED)
settings.register_profile("part", settings.get_profile("fixed"), max_examples=50)
settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="rewrite the golden reports instead of comparing")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the folder that tests share, and say how much is to be repeated.

    One cache serves all tests and all parallel workers: each kernel is compiled and each loop built once. It lies in
    pytest's own cache (`--cache-clear` empties it). What it holds is named by a digest of our sources.
    """
    if "DRYWARP_CACHE_DIR" not in os.environ:
        kept = getattr(config, "cache", None)  # not there under `-p no:cacheprovider`
        os.environ["DRYWARP_CACHE_DIR"] = str(kept.mkdir("drywarp")) if kept else tempfile.mkdtemp(prefix="drywarp-")
    # GPUs that whoever runs the tests has added are none of theirs.
    os.environ["DRYWARP_GPU_DIR"] = os.path.join(os.environ["DRYWARP_CACHE_DIR"], "no-gpus")
    # Where Python is told to keep no bytecode, each worker and each started program would compile all modules anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if "exhaustive" in config.option.markexpr.replace("not exhaustive", ""):
        os.environ[VARIABLE] = "exhaustive"
    if not exhaustive() and not config.getoption("--hypothesis-profile", None):
        settings.load_profile("part")


FIRST = ("test_types.py", "test_wheel.py")
"""Files that are started first because one test of theirs takes long, so that parallel workers end together."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One more than there are cores: some tests wait for processes that they start."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each parallel worker begin with another part of the files, so that each file is compiled by one worker only.

    Collecting takes them all in the same order. Where no bytecode is left from before, as in a new checkout, every
    worker would rewrite the assertions of every file, which takes longer than all else that a collection does.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    folders = [path for path in map(Path, session.config.args) if path.is_dir()]
    files = sorted({file.resolve() for folder in folders for file in folder.rglob("test_*.py")})
    share = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[share:] + files[:share]:
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        # What cannot be imported, or is skipped whole, is for the collection to report.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what takes longest, so that parallel workers end together.

    Laws are part of an exhaustive run: there they are tried on many more examples.
    """
    # What was imported and collected stays: the garbage collector need not look through it again and again.
    gc.collect()
    gc.freeze()
    items.sort(key=lambda item: FIRST.index(item.path.name) if item.path.name in FIRST else len(FIRST))
    if exhaustive():
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker(pytest.mark.exhaustive)


@pytest.fixture(scope="session", autouse=True)
def no_nvcc() -> Iterator[None]:
    """What NVRTC refuses stays refused, whatever compilers this machine has; tests of nvcc say so themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRYWARP_NVCC", "off")
        yield


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test's own, with nothing in it."""
    folder = tmp_path / "own-cache"
    folder.mkdir()
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def own_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test's own with nothing in it but the compiled kernels, which it shares with all tests."""
    shared, folder = Path(os.environ["DRYWARP_CACHE_DIR"]), tmp_path / "own-results"
    folder.mkdir()
    for part in ("kernels", "listings", "drywarp-headers", "sources"):
        (shared / part).mkdir(parents=True, exist_ok=True)
        (folder / part).symlink_to(shared / part)
    monkeypatch.setenv("DRYWARP_CACHE_DIR", str(folder))
    return folder
