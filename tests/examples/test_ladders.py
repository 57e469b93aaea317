"""The ladders of optimisations: each rung emulated whole against NumPy, and the order of the predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.ladders import (
    FOLDER,
    Ladder,
    Rung,
    as_said,
    gains,
    in_order,
    ladder_files,
    main,
    predict,
    read_ladder,
    time_s,
)
from msgspec.structs import replace

from drywarp.errors import InputFileError
from drywarp.execution.emulator import emulate
from drywarp.experiments.sweep.row import configurations
from drywarp.experiments.sweep.space import read_space
from drywarp.frontends.cuda import CudaOptions
from drywarp.frontends.cuda.compile import compile_cuda
from drywarp.frontends.loaded import launch_comment
from drywarp.hardware import load_gpu
from drywarp.kernel.launch.arguments import make_launch, parse_dim3
from drywarp.kernel.launch.launch import Dim3
from tests.effort import first, some

RUNGS = [(name, rung) for name in ladder_files() for rung in read_ladder(name).rung]
NAMED = [pytest.param(name, rung, id=f"{name}-{rung.name}") for name, rung in RUNGS]
LAST = [pytest.param(name, read_ladder(name).rung[-1], id=name) for name in ladder_files()]


def extents(value: int | list[int] | str | None, what: str) -> Dim3:
    return parse_dim3(",".join(map(str, value)) if isinstance(value, list) else str(value), what)


def run(name: str, rung: Rung, arch: str, grid: Dim3, args: dict[str, Any], output: str, **more: str) -> np.ndarray:
    defines = {key: str(value) for key, value in rung.defines.items()} | more
    options = CudaOptions(defines)
    kernel = compile_cuda(FOLDER / name.split("/")[0] / rung.file, arch=arch, entry=rung.kernel, options=options)
    block = extents(rung.block, "block")
    if "POINTS" in more:
        block = (int(more["POINTS"]) // int(defines.get("TARGETS", 1)), 1, 1)
    return emulate(kernel, make_launch(kernel, grid, block, args), blocks="all").buffer(output)


def reduction(name: str, rung: Rung, arch: str) -> None:
    """A grid that covers the array just so, with a last block that does not end with it; K6's goes on three times."""
    n, blocks = 13_000, {"K3": 26, "K4": 26, "K5": 26, "K6": 9}.get(rung.name, 51)
    data = np.random.default_rng(1).integers(-(2**31), 2**31, n, np.int32)
    args = {"in": data, "out": np.zeros(blocks, np.int32), "n": n}
    padded = np.zeros(3 * 51 * 512, np.int32)
    padded[:n] = data
    share = 256 if blocks == 51 else 512
    iterations = -(-n // (share * blocks))
    expected = padded[: iterations * blocks * share].reshape(iterations, blocks, share).sum(axis=(0, 2), dtype=np.int32)
    np.testing.assert_array_equal(run(name, rung, arch, (blocks, 1, 1), args, "out"), expected)


def sgemm(name: str, rung: Rung, arch: str) -> None:
    """Every rung adds the products in the order of k, each rounded once, so that all digits are known."""
    n = 256
    a, b = np.random.default_rng(2).random((2, n, n), dtype=np.float32)
    expected = np.zeros((n, n), np.float32)
    for k in range(n):
        expected = (a[:, k : k + 1].astype(np.float64) * b[k : k + 1, :] + expected).astype(np.float32)
    full = extents(rung.grid, "grid")
    grid = (full[0] * n // 4096, full[1] * n // 4096, 1)
    args = {"A": a, "B": b, "C": np.zeros((n, n), np.float32), "n": n}
    np.testing.assert_array_equal(run(name, rung, arch, grid, args, "C"), expected)


def nbody(name: str, rung: Rung, arch: str) -> None:
    """Boxes of 64 points on a periodic grid of 3 x 2 x 2: a neighbour may come twice, from both sides."""
    held, grid = 64, (3, 2, 2)
    boxes = np.random.default_rng(3).random((2, 2, 3, held, 4), dtype=np.float32)
    expected = np.zeros(boxes.shape[:-1])
    for dz, dy, dx in np.ndindex(3, 3, 3):
        sources = np.roll(boxes, (1 - dz, 1 - dy, 1 - dx), (0, 1, 2)).astype(np.float64)[..., None, :, :]
        square = ((boxes[..., :, None, :3] - sources[..., :3]) ** 2).sum(axis=-1) + np.float32(1e-3)
        expected += (sources[..., 3] / np.sqrt(square)).sum(axis=-1)
    points = boxes.reshape(-1, 4)
    count = len(points)
    given = points if rung.defines.get("PACKED") else np.ascontiguousarray(points.T)
    args = {"points": given, "potentials": np.zeros(count, np.float32), "count": count}
    actual = run(name, rung, arch, grid, args, "potentials", POINTS=str(held))
    np.testing.assert_allclose(actual, expected.ravel(), rtol=5e-6)


def cutcp(name: str, rung: Rung, arch: str) -> None:
    """A box of 3 x 3 x 2 cells, so that the atoms of a cell come from both sides, and each image counts once."""
    cells, slots = (2, 3, 3), {"C1": 16}.get(rung.name, 8)  # z, y, x
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 17, cells, np.int32) if rung.name == "C1" else np.full(cells, 8, np.int32)
    held = rng.random((*cells, slots, 4), dtype=np.float32)
    points = np.indices([8 * extent for extent in cells]).reshape(3, -1).T[:, ::-1] / 8  # x, y, z in cutoffs
    expected = np.zeros(len(points))
    box = np.array(cells[::-1], np.float64)
    there, charges = [], []
    for place in np.ndindex(cells):
        for atom in held[place][: counts[place]].astype(np.float64):
            there.append(atom[:3] + place[::-1])
            charges.append(atom[3])
    for shift in np.ndindex(3, 3, 3):  # the images of an atom beyond each border
        for atom, charge in zip(there, charges, strict=True):
            square = ((points - atom - (np.array(shift) - 1) * box) ** 2).sum(axis=1) + 1e-6
            near = square < 1
            expected[near] += charge / np.sqrt(square[near]) * (1 - square[near]) ** 2
    grid = (cells[2], cells[1], cells[0] if rung.name == "C3" else 4 * cells[0])
    args: dict[str, Any] = {"atoms": held.reshape(-1, 4), "map": np.zeros(len(points), np.float32)}
    if rung.name == "C0":
        fractions = np.column_stack([np.array(there) / box, charges])
        args |= {"atoms": fractions.astype(np.float32), "count": len(there)}
    elif rung.name == "C1":
        args["counts"] = counts.ravel()
    # An atom at the very cutoff adds next to nothing, whichever side of it rounding puts it.
    np.testing.assert_allclose(run(name, rung, arch, grid, args, "map"), expected, rtol=2e-5, atol=1e-6)


def tpacf(name: str, rung: Rung, arch: str) -> None:
    """600 points of length one, three parts of 200: the last block is not full. Each product is rounded as stated."""
    count, grid = 600, (3, 3, 1)
    points = np.random.default_rng(5).normal(size=(3, count))
    x, y, z = (points / np.sqrt((points**2).sum(axis=0))).astype(np.float32)
    last = np.float32(np.multiply.outer(z, z))
    inner = (np.multiply.outer(y.astype(np.float64), y) + last).astype(np.float32)
    cosines = (np.multiply.outer(x.astype(np.float64), x) + inner).astype(np.float32)
    edges = np.cos(np.radians(180 * 10 ** ((np.arange(1, 32) - 32) / 10))).astype(np.float32)
    expected = np.bincount((cosines[..., None] < edges).sum(axis=-1).ravel(), minlength=32)
    assert expected.sum() == count * count
    assert np.count_nonzero(expected) > 20
    args = {"points": np.stack([x, y, z]), "bins": np.zeros(32, np.uint32), "count": count}
    np.testing.assert_array_equal(run(name, rung, arch, grid, args, "bins"), expected)


CHECKS = {"reduction": reduction, "sgemm": sgemm, "nbody": nbody, "cutcp": cutcp, "tpacf": tpacf}


@pytest.mark.parametrize(("name", "rung"), some(NAMED, 6))
def test_every_rung_computes_what_numpy_does(name: str, rung: Rung) -> None:
    CHECKS[name.split("/")[0]](name, rung, "sm_80")


SPACE = read_space(FOLDER / "nbody" / "space.toml")
VARIANTS = [dict(one.parameters) for one in configurations(SPACE, {"a100": load_gpu("a100")}, "nbody/space.toml")]


def test_the_space_of_the_near_field_has_the_papers_44_variants() -> None:
    """Every one is another kernel, and those without shared memory all have their like with it."""
    assert len(VARIANTS) == 44
    bare = [one for one in VARIANTS if not one["SHARED"]]
    assert all(one | {"SHARED": 1} in VARIANTS for one in bare)
    steps = [change.set for change in SPACE.optimisations.values()]
    assert {name for change in steps for name in change} == set(SPACE.parameters)


@pytest.mark.parametrize("macros", some(VARIANTS, 11), ids=lambda one: "".join(str(v) for v in one.values()))
def test_every_variant_of_the_near_field_computes_what_numpy_does(macros: dict[str, Any]) -> None:
    rung = read_ladder("nbody").rung[0]
    nbody("nbody", replace(rung, defines={name: value for name, value in macros.items() if value}), "sm_80")


@pytest.mark.parametrize(("name", "rung"), first(LAST))
def test_the_last_rung_does_on_a_newer_architecture_too(name: str, rung: Rung) -> None:
    CHECKS[name.split("/")[0]](name, rung, "sm_120")


@pytest.mark.parametrize(("name", "rung"), NAMED)
def test_the_launch_of_a_rung_is_that_of_its_file(name: str, rung: Rung) -> None:
    said = launch_comment((FOLDER / name.split("/")[0] / rung.file).read_text(), rung.file)
    assert extents(rung.grid, "grid") == parse_dim3(said.grid or "", "grid")
    assert said.entry in (None, rung.kernel)
    if not rung.defines:  # a file of several rungs shows the launch of the first
        assert extents(rung.block, "block") == parse_dim3(said.block or "", "block")
        assert {key: str(value) for key, value in rung.args.items()} == said.arguments


# Predictions -----------------------------------------------------------------------------------------------------


def smaller(name: str, rung: Rung) -> Rung:
    """A rung at a size that is predicted in a second or two: 1024 x 1024 matrices, an eighth of half-full boxes.

    Ladders have their order at these sizes up to where large tiles or many targets a thread leave SMs without work.
    """
    if name == "sgemm":
        grid = [extent // 4 for extent in rung.grid]  # type: ignore[union-attr]
        args = dict.fromkeys(("A", "B", "C"), "f32[1024,1024]:random") | {"n": 1024}
        return replace(rung, grid=grid, args=args)
    if name == "nbody":
        args = {"points": "f32[262144]:random", "potentials": "f32[65536]", "count": 65536}
        return replace(rung, grid=[8, 8, 8], block=128, args=args, defines=rung.defines | {"POINTS": 128})
    return rung


@pytest.mark.exhaustive  # the reduction below shows it by default
@pytest.mark.parametrize(("name", "rungs"), [("sgemm", 7), ("nbody", 4)])
def test_each_rung_is_faster_than_the_one_before(name: str, rungs: int) -> None:
    whole = read_ladder(name)
    ladder = replace(whole, rung=tuple(smaller(name, rung) for rung in whole.rung[:rungs]))
    assert in_order(ladder, [time_s(name, rung) for rung in ladder.rung])


def test_the_reduction_is_as_its_file_says() -> None:
    """At its full size: order, and what is found on each rung."""
    ladder = read_ladder("reduction")
    answers = [predict("reduction", rung) for rung in ladder.rung]
    assert in_order(ladder, [answer.time_s for answer in answers])
    assert time_s("reduction", ladder.rung[-1]) == answers[-1].time_s
    for answer, following in zip(answers, ladder.rung[1:], strict=False):
        assert as_said([finding.rule for finding in answer.findings], following), following.name


@pytest.mark.exhaustive
def test_what_is_found_on_the_first_rungs_of_the_product() -> None:
    rungs = [smaller("sgemm", rung) for rung in read_ladder("sgemm").rung[:3]]
    answers = [predict("sgemm", rung) for rung in rungs]
    for answer, following in zip(answers, read_ladder("sgemm").rung[1:4], strict=True):
        assert as_said([finding.rule for finding in answer.findings], following), following.name
    # S2 is S1 with coalesced accesses and nothing else, so that it gains what the finding promises.
    promised = answers[0].findings[0].gain
    assert answers[0].time_s / answers[1].time_s == pytest.approx(promised, rel=0.05)


def ladder_of(against: str, *more: Rung) -> Ladder:
    return Ladder(title="", source="", against=against, rung=more)  # type: ignore[arg-type]


def rung_of(**keys: Any) -> Rung:
    return Rung(name="", title="", file="", kernel="", grid=1, **keys)


def test_a_rung_that_is_slower_is_out_of_order_unless_somebody_found_it_so() -> None:
    plain, known = rung_of(), rung_of(slower="a paper")
    assert in_order(ladder_of("before", plain, plain, plain), [3, 2, 1])
    assert not in_order(ladder_of("before", plain, plain, plain), [3, 1, 2])
    assert in_order(ladder_of("before", plain, plain, known), [3, 1, 2])
    assert in_order(ladder_of("first", plain, plain, plain), [3, 1, 2])
    assert gains(ladder_of("before", plain, plain, plain), [4, 1, 2]) == [4, 0.5]
    assert gains(ladder_of("first", plain, plain, plain), [4, 1, 2]) == [4, 2]


def test_findings_are_as_said_where_the_top_one_is_what_comes_next_or_the_file_says_why_not() -> None:
    following, elsewhere = rung_of(fixes=("a", "b")), rung_of(fixes=("a",), elsewhere="because")
    assert as_said(["b", "c"], following)
    assert not as_said(["c", "b"], following)
    assert not as_said([], following)
    assert as_said(["c", "a"], elsewhere)
    assert as_said([], elsewhere)
    assert not as_said(["a"], elsewhere)


def test_the_command_prints_a_table_and_refuses_what_it_does_not_know(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["ladders", "reduction/modulo", "--gpu", "a100", "--gpu", "h100"])
    assert main() == 0
    out = capsys.readouterr().out
    assert "| rung | a100 | h100 |" in out
    assert out.count("\n| K") == 3
    monkeypatch.setattr("sys.argv", ["ladders", "reduction", "--gpu", "abacus"])
    assert main() == 2
    assert "abacus" in capsys.readouterr().err


# Files -----------------------------------------------------------------------------------------------------------


def test_every_file_is_a_rung() -> None:
    held = {path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.cu")}
    assert held == {f"{name.split('/')[0]}/{rung.file}" for name, rung in RUNGS}


@pytest.mark.parametrize("name", ladder_files())
def test_names_are_given_once_and_every_cure_has_an_illness(name: str) -> None:
    rungs = read_ladder(name).rung
    assert len({rung.name for rung in rungs}) == len(rungs)
    assert not rungs[0].fixes


def test_a_ladder_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputFileError, match=r"no such ladder; expected one of .*reduction"):
        read_ladder("deduction")


def test_a_ladder_with_an_unknown_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "ladder.toml").write_text('title = "odd"\nsource = ""\nrungs = []\n')
    monkeypatch.setattr("benchmarks.ladders.FOLDER", tmp_path)
    with pytest.raises(InputFileError, match=r"odd/ladder\.toml: .*rungs"):
        read_ladder("odd")
