"""Emulations kept on disk: the same again, and never another's."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from drywarp.analysis import emulation_cache as emulations
from drywarp.analysis.emulation_cache import CacheEntry, cache_entry_of
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.prepared import Prepared
from drywarp.analysis.request import Options
from drywarp.execution.emulator import emulate
from drywarp.kernel.launch.launch import array_buffer
from drywarp.kernel.profile import AccessLog, Profile

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def cache(own_results: Path) -> Path:
    return own_results


def ready(name: str = "histogram.cu", **more: object) -> Prepared:
    return prepare_kernel(EXAMPLES / name, gpu="a100", **more)  # type: ignore[arg-type]


def place(bound: Prepared) -> CacheEntry:
    return cache_entry_of(bound.kernel, bound.launch, None, None, Options().limits)


def same(one: object, other: object) -> bool:
    """Whether two values are equal in every part, arrays included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)  # type: ignore[arg-type]
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))  # type: ignore[arg-type]
    if is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return one == other


def test_equal_machine_code_of_two_architectures_is_emulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare_kernel(EXAMPLES / "histogram.cu", gpu="a4000")
    alone = first.profile
    with monkeypatch.context() as patch:
        patch.setattr("drywarp.execution.emulator.emulate", None)  # it must not be asked again
        second = prepare_kernel(EXAMPLES / "histogram.cu", gpu="rtx4090")
    assert (first.kernel.arch, second.kernel.arch, second.profile.kernel.arch) == ("sm_86", "sm_89", "sm_89")
    emulated = emulate(second.kernel, second.launch).profile
    for ours, theirs in zip(alone.paths, emulated.paths, strict=True):
        assert np.array_equal(ours.blocks, theirs.blocks)
    for field in fields(AccessLog):
        assert np.array_equal(getattr(alone.accesses, field.name), getattr(emulated.accesses, field.name))
    hopper = prepare_kernel(EXAMPLES / "histogram.cu", gpu="h100")
    assert place(hopper).key != place(second).key


TABLE = """__constant__ float table[1024];
__global__ void f(float* y) { y[threadIdx.x] = table[(threadIdx.x * threadIdx.x) & 1023]; }
"""


def test_addresses_of_constants_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> tuple[dict[int, float], list[list[int]]]:
        made = prepare_kernel(TABLE, gpu="a100", grid=(4,), block=(64,), args={"y": "f32[64]"})
        return dict(made.profile.constant_addresses), made.profile.constants.tolist()

    first = asked()
    (mean,) = first[0].values()
    assert mean > 1
    assert first[1]
    monkeypatch.setattr("drywarp.execution.emulator.emulate", None)
    assert asked() == first


@pytest.mark.parametrize("name", ["tiled_matmul.cu", "histogram.cu", "pointer_chase.cu"])
def test_what_comes_back_is_what_was_emulated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ready(name)
    monkeypatch.setattr("drywarp.execution.emulator.emulate", None)  # it must not be asked again
    again = ready(name)
    for field in fields(Profile):
        assert same(getattr(first.profile, field.name), getattr(again.profile, field.name)), field.name
    assert first.behaviour == again.behaviour
    assert first.costed == again.costed


def test_the_key_holds_all_that_matters() -> None:
    bound = ready()
    keys = {place(bound).key}
    launches = [
        replace(bound.launch, grid=(7, 1, 1)),
        replace(bound.launch, seed=1),
        replace(bound.launch, arguments=(array_buffer(np.arange(9)), *bound.launch.arguments[1:])),
        replace(bound.launch, arguments=(array_buffer(np.arange(9)[::-1]), *bound.launch.arguments[1:])),
    ]
    keys |= {cache_entry_of(bound.kernel, launch, None, None, Options().limits).key for launch in launches}
    kernel = replace(bound.kernel, instructions=bound.kernel.instructions[:-1])
    keys |= {cache_entry_of(kernel, bound.launch, None, None, Options().limits).key}
    keys |= {
        cache_entry_of(bound.kernel, bound.launch, asked, None, Options().limits).key for asked in (4, "all", [0, 5])
    }
    keys |= {cache_entry_of(bound.kernel, bound.launch, None, 0.1, Options().limits).key}
    assert len(keys) == 1 + 4 + 1 + 3 + 1
    assert place(bound).key == place(ready()).key


def test_another_process_finds_it() -> None:
    code = (
        "import json, sys; import drywarp.execution.emulator as e; from drywarp.analysis.prepare import prepare_kernel;"
        f"b = prepare_kernel({str(EXAMPLES / 'tiled_matmul.cu')!r}, gpu='a100');"
        "print(json.dumps([b.profile.steps,"
        " 'drywarp.execution.emulator.session' in sys.modules]))"
    )
    ran = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    first, second = (json.loads(run.stdout) for run in ran)
    assert first[0] == second[0]
    assert first[1:] == [True]
    assert second[1:] == [False]


def test_a_damaged_entry_counts_as_absent(cache: Path) -> None:
    first = ready()
    entries = list((cache / emulations.FOLDER).iterdir())
    assert entries
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:-5])
    again = ready()
    assert again.costed == first.costed


def test_what_limits_of_time_cut_short_is_not_kept() -> None:
    bound = ready()
    sampling = bound.profile.sampling
    assert sampling is not None
    elsewhere = CacheEntry("0" * 64, bound.kernel, bound.launch)
    elsewhere.cache_profile(replace(bound.profile, sampling=replace(sampling, basis="limited")))
    assert elsewhere.profile() is None
    elsewhere.cache_profile(replace(bound.profile, sampling=replace(sampling, basis="all")))
    assert elsewhere.profile() is not None


def test_the_oldest_go_when_there_are_too_many(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from drywarp.frontends import cache as disk

    monkeypatch.setattr(disk, "LOOK_EVERY", 1)
    for number in range(6):
        disk.write("emulations", f"{number}", bytes(1000), 3500)
    held = sorted(path.stem for path in (cache / "emulations").iterdir())
    assert held == ["3", "4", "5"]


def test_a_warm_run_loads_no_validator() -> None:
    """Options that need no conversion do not load pydantic, which typer imports for the others."""
    code = (
        "import sys; from drywarp.cli.main import run; status = run(sys.argv[1:]);"
        " print(status, 'pydantic' in sys.modules, file=sys.stderr)"
    )
    kernel = str(Path(__file__).parents[1] / "examples" / "saxpy.cu")
    found = []
    for further in ((), ("--lane-steps", "1e9"), ("--max-registers", "many")):
        command = [sys.executable, "-c", code, "analyze", kernel, "--gpu", "a100", *further]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found.append(done.stderr.splitlines())
    plain, converted, wrong = found
    assert plain[-1] == "0 False"
    assert converted[-1] == "0 True"
    assert wrong[-1] == "2 True"
    assert "--max-registers" in wrong[-2]


def test_an_entry_is_measured_as_it_is_written(own_results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = ready("tiled_matmul.cu")
    log = sum(getattr(bound.profile.accesses, field.name).nbytes for field in fields(AccessLog))
    monkeypatch.setattr(emulations, "LARGEST_ENTRY", log // 3)  # a log is far smaller packed
    place(bound).cache_profile(bound.profile)
    assert place(bound).profile() is not None
    monkeypatch.setattr(emulations, "LARGEST_ENTRY", 16)
    other = replace(place(bound), key="another")
    other.cache_profile(bound.profile)
    assert other.profile() is None
