"""Kept launches: what `drywarp run` predicts of a launch is what its file gives, later and elsewhere."""

from __future__ import annotations

import csv
import json
import os
import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import drywarp
from drywarp.errors import UsageError
from drywarp.execution.emulator.run import run_whole
from drywarp.frontends.binary import kept
from drywarp.frontends.binary.containers import images, images_with, load_binary_module
from drywarp.frontends.load import load
from drywarp.kernel.kernel import Kernel
from drywarp.kernel.launch.launch import Launch
from drywarp.program.estimates import Choice
from tests.effort import first

from ..cli.command import complaint
from ..cli.command import run as command
from .kept import COUNTS, THREADS, TIMES, cubin, keep, kernel, program

HEAT = Path(__file__).parents[2] / "examples" / "programs" / "heat.cu"


def prediction(path: Path, **given: Any) -> float:
    return drywarp.analyze(path, models=("pipeline",), findings=False, occupancies=range(0), **given).time_s


def launch_of(path: Path, arch: str = "sm_80") -> tuple[Kernel, Launch]:
    loaded = load(path, arch=arch)
    assert isinstance(loaded.kernel, Kernel)
    assert loaded.launch is not None
    return loaded.kernel, loaded.launch


# From a program ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "options"),
    # The first three show it: with a fault, without results, and from a graph.
    first(
        [
            (["errors"], ()),
            (["results"], ("--emulate-steps", "0")),
            (["graph"], ()),
            (["results"], ()),
            (["streams"], ()),
        ],
        3,
    ),
    ids=str,
)
def test_a_kept_launch_is_predicted_as_in_the_run(
    run: Any, words: list[str], options: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    ran = run(*words, options=(*options, "--keep", str(folder)))
    files = {one["kept"]: one for one in reversed(ran.result["launches"])}
    assert None not in files
    assert {path.name for path in folder.iterdir()} == {*files}
    assert f"kept: {len(files)} launches" in ran.report
    for name, one in files.items():
        assert name.startswith(f"{one['number']:04}-{one['kernel'].partition('(')[0]}")
        if one["time_s"] is not None:
            assert prediction(folder / name) == one["time_s"]
            _, launch = launch_of(folder / name)
            assert [launch.grid, launch.block] == [tuple(one["grid"]), tuple(one["block"])]


def test_kept_launches_are_rows_of_a_table(tmp_path: Path) -> None:
    """Their extents and shared memory are the file's own where the table states none."""
    held = program()
    made = keep(tmp_path, replace(held, launch=replace(held.launch, dynamic_shared=4096)))
    table = tmp_path / "times.csv"
    table.write_text(f"file,launch,time_us\n{made.name},,10\n")
    words = ("validate", str(table), "--gpu", "a100", "--models", "pipeline", "--out", str(tmp_path / "rows.csv"))
    assert command(*words, cwd=tmp_path).returncode == 0
    with open(tmp_path / "rows.csv", newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert float(row["pipeline_s"]) == pytest.approx(prediction(made), rel=1e-9)
    assert int(row["shared_bytes"]) == 4096


def test_a_kept_launch_holds_its_textures(run: Any, tmp_path: Path) -> None:
    ran = run("textures", options=("--keep", str(tmp_path / "kept")))
    first = ran.result["launches"][0]
    assert prediction(tmp_path / "kept" / first["kept"]) == first["time_s"]
    _, launch = launch_of(tmp_path / "kept" / first["kept"])
    assert launch.memory is not None
    image, drawn, layers, rows, line = (what for _, what, _ in launch.memory.objects)
    assert (image.linear, drawn.surface, layers.layered, line.channels) == (True, True, True, 2)
    assert rows.row > rows.extents[-1]


def test_repeated_launches_are_kept_once_and_hold_what_they_found(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    ran = run("64", options=("--keep", str(folder)), started=HEAT)
    assert ran.status == 0
    assert len(ran.result["launches"]) > 2
    assert len({one["kept"] for one in ran.result["launches"]}) == len(list(folder.iterdir())) == 2
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.stat().st_size < 64_000
        assert b"numpy" not in path.read_bytes()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_with_launches_of_another_run_is_refused(tmp_path: Path) -> None:
    keep(tmp_path)
    said = complaint(command("run", "--keep", str(tmp_path), "--", "true", cwd=tmp_path))
    assert said.startswith(f"drywarp: --keep {tmp_path}: holds launches of an earlier run")
    (tmp_path / "file").touch()
    said = complaint(command("run", "--keep", "file", "--", "true", cwd=tmp_path))
    assert "expected a folder" in said


# Which launches ---------------------------------------------------------------------------------------------------


def test_launches_are_chosen_as_nsight_compute_does() -> None:
    names = ["a", "b", "ab", "a", "c", "ba", "a"]
    assert all(Choice().takes(name) for name in names)
    chosen = Choice(re.compile("a"), skip=1, count=3)
    assert [chosen.takes(name) for name in names] == [False, False, True, True, False, True, False]
    anew, later = chosen.anew(), Choice(skip=5)
    assert [anew.takes(name) for name in names[:3]] == [False, False, True]
    assert [later.takes(name) for name in names] == [False] * 5 + [True] * 2


def test_launches_that_are_left_out_are_computed_all_the_same(run: Any) -> None:
    ran = run("graph", options=("--skip", "1", "--launches", "1"))
    assert ran.status == 0  # the program has checked its results
    assert [one["number"] for one in ran.result["launches"]] == [1]
    assert ran.result["left_out"] == {"scale": 2}
    assert ran.result["kernels"][0]["launches"] == 1
    assert "left out: 2 launches (scale 2)" in ran.report
    whole = run("results")
    part = run("results", options=("--only", "^add"))
    assert part.output == whole.output
    assert [one["kernel"] for one in part.result["kernels"]] == ["add_up"]
    assert 0 < part.result["time_s"] < whole.result["time_s"]
    nothing = run("results", options=("--only", "nothing"))
    assert nothing.status == 0
    assert nothing.result["kernels"] == []


def test_results_that_a_launch_left_out_lacks_are_named(run: Any) -> None:
    ran = run("chain", options=("--only", "scale", "--emulate-steps", "10000"))
    assert [one["kernel"] for one in ran.result["launches"]] == ["scale"]
    assert "not computed: launch 0 (spin)" in ran.result["findings"][0]


def test_no_regular_expression(tmp_path: Path) -> None:
    said = complaint(command("run", "--only", "(", "--", "true", cwd=tmp_path))
    assert said.startswith("drywarp: --only (: ")


# The file itself --------------------------------------------------------------------------------------------------


def test_a_file_holds_the_launch_and_what_it_can_reach(tmp_path: Path) -> None:
    made = program()
    path = keep(tmp_path, made)
    assert path.name == "0007-walk.launch"
    held, launch = launch_of(path)
    expected = run_whole(made.kernel, made.launch, 1 << 30)
    assert expected is not None
    again = run_whole(held, launch, 1 << 30)
    assert again is not None
    assert (again.digest, again.warp_instructions) == (expected.digest, expected.warp_instructions)
    out = np.frombuffer(bytes(again.memory.bytes_of(again.memory.regions[3])), np.int32)
    assert out.tolist() == [min(100, TIMES * COUNTS[at & 1]) for at in range(THREADS)]
    # The allocation of 5 MiB is out of reach, and reads as zeros.
    assert path.stat().st_size < 20_000
    assert not again.memory.bytes_of(again.memory.regions[4]).any()
    assert launch.memory is not None
    assert made.launch.memory is not None
    assert launch.memory.areas == made.launch.memory.areas


def test_memory_ends_with_the_launch(tmp_path: Path) -> None:
    path = keep(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        launch_of(path)
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_extents_may_be_changed_and_nothing_else(tmp_path: Path) -> None:
    path = keep(tmp_path)
    answer = drywarp.analyze(path, grid=8, block=32, shared=1024)
    assert (answer.grid, answer.block, answer.dynamic_shared) == ((8, 1, 1), (32, 1, 1), 1024)
    for words in (["--arg", "arg0=1"], ["--const", "times=2"], ["-D", "A=1"], ["--static"], ["--max-registers", "32"]):
        said = complaint(command("analyze", str(path), *words, cwd=tmp_path))
        assert said.startswith(f"drywarp: {path}: holds a launch with its code and data: ")
    assert "no kernel named 'other'" in complaint(command("analyze", str(path), "--entry", "other", cwd=tmp_path))
    assert "no clusters" in complaint(command("analyze", str(path), "--cluster", "2", cwd=tmp_path))
    assert "positive" in complaint(command("analyze", str(path), "--grid", "0", cwd=tmp_path))


@pytest.mark.parametrize("verb", ["list", "counts", "compare", "rank", "models", "benefits", "corpus"])
def test_every_verb_takes_it(verb: str, tmp_path: Path) -> None:
    path = keep(tmp_path)
    words = {
        "compare": [str(path), str(path), "--gpu", "a100"],
        "rank": [str(path), "--gpu", "a100,rtx4090"],
        "benefits": [str(path)],
        "corpus": [str(tmp_path)],
    }.get(verb, [str(path)])
    ran = command(verb, *words, "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    if verb == "list":
        (one,) = told["kernels"]
        assert (one["name"], one["launch"]) == ("walk", "kept in the file")
        assert one["command"] == f"drywarp analyze {path} --entry walk"
    if verb == "corpus":
        assert told["rows"][0]["kernels"][0]["time_s"] == prediction(path)
    if verb == "rank":
        assert {one["gpu"]: one["mode"] for one in told["gpus"]} == {"a100": "emulated", "rtx4090": "emulated"}


def test_a_sweep_over_block_sizes(tmp_path: Path) -> None:
    path = keep(tmp_path)
    space = f'kernel = "{path}"\nmacros = []\ngrid = "256//b"\nblock = "b"\n[parameters]\nb = [32, 64]\n'
    (tmp_path / "space.toml").write_text(space)
    ran = command("sweep", "space.toml", "--json", "--jobs", "1", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(ran.stdout)["rows"]
    assert {one["b"]: one["time_s"] for one in rows}[64] == prediction(path)


# Another GPU ------------------------------------------------------------------------------------------------------


def test_another_architecture_needs_ptx(run: Any, tmp_path: Path) -> None:
    assert "no machine code that runs on sm_90a (it holds: sm_80)" in complaint(
        command("analyze", str(keep(tmp_path)), "--gpu", "h100", cwd=tmp_path)
    )
    folder = tmp_path / "kept"
    run("results", options=("--keep", str(folder)))
    for path in folder.iterdir():
        answer = drywarp.analyze(path, gpu="h100")
        assert answer.arch == "sm_90"
        said = "the program ran its code for sm_80 on NVIDIA A100 PCIe 40 GB; this is its code for sm_90"
        assert said in answer.notes
        # The same numbers in memory, found by code whose variables may lie elsewhere.
        runs = [run_whole(*launch_of(path, arch), 1 << 30) for arch in ("sm_80", "sm_90")]
        left = [one.memory.bytes_of(one.memory.regions[1]).tobytes() for one in runs if one is not None]
        assert len(left) == 2
        assert left[0] == left[1]


def test_variables_that_lie_elsewhere_are_found_by_name(tmp_path: Path) -> None:
    made = program()
    path = keep(tmp_path, made)
    data = path.read_bytes()
    held = kept.read_kept(data, "f")
    # The same variables in another order, as another compiler may place them.
    symbols = dict(kernel().symbols)
    symbols |= {"times": replace(symbols["times"], offset=8), "before": replace(symbols["before"], offset=12)}
    symbols |= {"most": replace(symbols["most"], offset=0), "unused": replace(symbols["unused"], offset=4)}
    other = replace(kernel(), symbols=symbols)
    found, launch = kept.launch_in(held, data, other, "f")
    assert found.constant_banks[3][8:12] == TIMES.to_bytes(4, "little")
    assert launch.memory is not None
    name, start, size = launch.memory.areas[-1]
    assert (name, start, size) == ("variables", launch.memory.variables, len(other.global_image))
    assert os.pread(launch.memory.file, 4, start - launch.memory.start) == (100).to_bytes(4, "little")


def test_a_file_holds_the_images_with_the_kernel_alone(tmp_path: Path) -> None:
    code = images_with(cubin(), kernel().symbol, "f")
    assert [(one.is_cubin, one.sm, one.packed) for one in images(code, "f")] == [(True, 80, cubin())]
    assert images_with(code, kernel().symbol, "f") == code
    assert list(images(images_with(code, "another", "f"), "f")) == []
    ptx = (Path(__file__).parents[2] / "examples" / "axpy.ptx").read_bytes()
    (text,) = images(images_with(ptx + b"\0", "axpy", "f"), "f")
    assert (text.is_cubin, text.packed) == (False, ptx.rstrip(b"\0"))
    assert load_binary_module(Path("f"), images_with(ptx, "axpy", "f"), arch="sm_80").keys() == {"axpy"}


def test_a_launch_that_finds_too_much_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_MEMORY", 1 << 12)
    with pytest.raises(UsageError, match="more than"):
        keep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_a_later_version_says_so(tmp_path: Path) -> None:
    path = keep(tmp_path)
    held = kept.read_kept(path.read_bytes(), "f")
    path.unlink()
    kept.write_kept(path, msgspec.structs.replace(held, form=2), [])
    assert "from another version of drywarp" in complaint(command("analyze", str(path), cwd=tmp_path))


def test_launches_that_differ_in_where_their_pointers_lie_are_predicted_once(
    run: Any, more: Path, tmp_path: Path
) -> None:
    """Unless their distance in one allocation or their alignment differs: three kinds of ten launches."""
    ran = run("slices", started=more, options=("--keep", str(tmp_path / "kept")))
    assert (ran.status, ran.output) == (0, f"{(0x01010101 << 9) & 0xFFFFFFFF:x}\n")
    assert [path.name for path in sorted((tmp_path / "kept").iterdir())] == [
        f"{number:04}-twice.launch" for number in (0, 8, 9)
    ]
