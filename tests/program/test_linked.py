"""Programs whose device code nvlink put together (`nvcc -rdc=true`): several files, and kernels that launch kernels."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from drywarp.frontends.binary.module import load_module

from .conftest import nvcc

SOURCE = Path(__file__).with_name("linked.cu")
ARCHITECTURES = ("80", "90")


@pytest.fixture(scope="session")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, linked once for all workers."""
    compiler = nvcc()
    if compiler is None:
        pytest.skip("whole programs need nvcc (drywarp[ptx]) and g++")
    folder = tmp_path_factory.getbasetemp()
    made = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "linked"
    with open(f"{made}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            kinds = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in ARCHITECTURES]
            parts = [f"{made}{part}.o" for part in range(3)]
            for part, name in enumerate(parts):
                words = [*compiler, "-rdc=true", *kinds, f"-DPART={part}", "-c", "-o", name, str(SOURCE)]
                subprocess.run(words, check=True, capture_output=True)
            words = [*compiler, "-cudadevrt", "none", *kinds, "-o", str(made), *parts]
            subprocess.run(words, check=True, capture_output=True)
    return made


@pytest.mark.parametrize("gpu", ["a100", "h100"])
def test_functions_of_other_files_are_called(run: Any, linked: Path, gpu: str) -> None:
    """Directly, by pointers in memory and from the host, as virtual ones; their variables are those of all files."""
    ran = run(started=linked, options=("--gpu", gpu))
    assert ran.status == 0, ran.output + ran.report
    assert ran.output == "given 13 214\ngiven 8 227\nlast 62\nheap 36, no error\n"
    assert {one["kernel"]: one["computed"] for one in ran.result["kernels"]} == {"calls": 2, "given": 2, "with_heap": 1}
    assert not ran.result["faults"]


def test_only_kernels_are_listed(linked: Path) -> None:
    names = {kernel.name for kernel in load_module(linked, arch="sm_80").kernels}
    assert names == {"calls", "given", "with_heap"}


def test_a_kept_launch_takes_its_functions_along(run: Any, linked: Path, tmp_path: Path) -> None:
    ran = run(started=linked, options=("--keep", str(tmp_path / "kept")))
    assert ran.status == 0
    kept = sorted((tmp_path / "kept").iterdir())
    names = [next(iter(load_module(one, arch="sm_80").kernels)).name for one in kept]
    assert names[:2] == ["calls", "given"]
    code = next(iter(load_module(kept[1], arch="sm_80").kernels))
    # Its own code, what every kernel that calls by address may call, and `twice`.
    assert {"_Z4plusi", "_Z4cubei", "_Z5twicei"} <= {name for name, at in code.symbols.items() if at.space == "code"}


@pytest.fixture(scope="session")
def launching(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with kernels that launch kernels, linked with the device's runtime; once for all workers."""
    compiler = nvcc()
    if compiler is None:
        pytest.skip("whole programs need nvcc (drywarp[ptx]) and g++")
    folder = tmp_path_factory.getbasetemp()
    made = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "launching"
    with open(f"{made}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            kinds = [f"-gencode=arch=compute_{number},code=sm_{number}" for number in ARCHITECTURES]
            words = [*compiler, "-rdc=true", *kinds, "-o", str(made), str(SOURCE.with_name("launching.cu"))]
            subprocess.run([*words, "-lcudadevrt"], check=True, capture_output=True)
    return made


LEVELS = "0\n.0\n..0\n...0\n...1\n..1\n...2\n...3\n.1\n..2\n...4\n...5\n..3\n...6\n...7\n"


@pytest.mark.parametrize("gpu", ["a100", "h100"])
def test_kernels_launch_kernels(run: Any, launching: Path, gpu: str) -> None:
    """Two blocks of 64 threads for each thread of the parent, two of each for three levels; the tail launch is last."""
    ran = run(started=launching, options=("--gpu", gpu))
    each = 3 + 3 + 63
    expected = f"children {2 * (each + 1000)} {2 * each}\n{LEVELS}levels 1 2 4 8\norder 123, no error\n"
    assert (ran.status, ran.output) == (0, expected), ran.report
    made = {one["kernel"]: one["computed"] for one in ran.result["kernels"]}
    assert made == {"parent": 1, "child": 2, "deeper": 15, "ordered": 1, "places": 3}
    assert all(one["without_prediction"] == 0 for one in ran.result["kernels"])
    assert "kernels launched by kernels run after these, one after another; launching takes no time" in ran.report
    # The host submits three kernels only.
    assert sum(one["time_s"] for one in ran.result["critical_path"] if one["name"] == "host") < 30e-6


def test_more_launches_than_may_wait_at_once(run: Any, launching: Path) -> None:
    """Each of 256 threads launches nine kernels: a buffer that a launch took is free again."""
    ran = run("many", started=launching)
    assert ran.status == 0
    assert "many 2304\n" in ran.output
