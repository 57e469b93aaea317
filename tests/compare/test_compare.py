"""Old against new: regressions, improvements, and nothing at all where nothing changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import drywarp
from drywarp.analysis.compare.judge import match_lines
from drywarp.analysis.compare.result import Line
from drywarp.errors import UsageError
from tests.counting import calls_of
from tests.effort import first

EXAMPLES = Path(__file__).parents[2] / "examples"
NAIVE, PADDED, SAXPY = (EXAMPLES / f"{name}.cu" for name in ("transpose_naive", "transpose_padded", "saxpy"))


@pytest.fixture(scope="module")
def improved() -> drywarp.Comparison:
    return drywarp.compare(NAIVE, PADDED, gpu="a100,a100-sxm4-80gb", fail_above=0.05)


def test_an_improvement_is_one_and_passes_the_gate(improved: drywarp.Comparison) -> None:
    assert [gpu.gpu for gpu in improved.gpus] == ["a100", "a100-sxm4-80gb"]
    assert all(-1 < gpu.change < -0.05 for gpu in improved.gpus)
    assert not improved.regressed


def test_each_side_is_what_analyze_says(improved: drywarp.Comparison) -> None:
    for gpu in improved.gpus:
        for side, source in ((gpu.old, NAIVE), (gpu.new, PADDED)):
            alone = drywarp.analyze(source, gpu=gpu.gpu)
            assert side.time_s == alone.time_s
            assert side.prediction.limiter == alone.limiter
            assert side.occupancy.warps_per_sm == alone.occupancy.warps_per_sm


def test_the_lines_explain_the_whole_change(improved: drywarp.Comparison) -> None:
    for gpu in improved.gpus:
        changed = sum(line.change_s for line in gpu.lines)
        assert changed == pytest.approx(gpu.new.time_s - gpu.old.time_s, rel=1e-9)
        sizes = [abs(line.change_s) for line in gpu.lines]
        assert sizes == sorted(sizes, reverse=True)
        assert 0 not in sizes


def test_the_other_way_round_is_a_regression() -> None:
    worse = drywarp.compare(PADDED, NAIVE, fail_above=0.05)
    assert worse.regressed
    assert worse.gpus[0].regressed
    assert worse.gpus[0].change > 0.05


def test_the_limit_is_what_is_allowed() -> None:
    change = drywarp.compare(PADDED, NAIVE).gpus[0].change
    assert not drywarp.compare(PADDED, NAIVE, fail_above=change).regressed
    assert drywarp.compare(PADDED, NAIVE, fail_above=change * 0.999).regressed
    assert not drywarp.compare(PADDED, NAIVE).regressed


def test_counts_are_those_of_the_counts_verb(improved: drywarp.Comparison) -> None:
    from drywarp.analysis.counters.count import count

    counts = {c.name: c for c in improved.gpus[0].counts}
    for source, attribute in ((NAIVE, "old"), (PADDED, "new")):
        said = count(source, gpu="a100", simulated=False).counts
        assert {name: getattr(counts[name], attribute) for name in said} == said
    assert counts["resources.registers"].old == drywarp.analyze(NAIVE).resources.registers


@pytest.mark.parametrize("name", first(["histogram", "tiled_matmul", "collatz", "saxpy", "reduction"]))
def test_the_same_kernel_changes_by_exactly_nothing(name: str, tmp_path: Path) -> None:
    source = EXAMPLES / f"{name}.cu"
    moved = tmp_path / f"{name}.cu"
    moved.write_text("// a comment\n\n// that moves every line\n" + source.read_text())
    found = drywarp.compare(source, moved, fail_above=0.0)
    (gpu,) = found.gpus
    assert gpu.change == 0.0
    assert gpu.lines == ()
    assert [c for c in gpu.counts if c.old != c.new] == []
    assert gpu.notes == ()
    assert not found.regressed


def test_an_edited_line_is_found_where_it_now_stands(tmp_path: Path) -> None:
    text = SAXPY.read_text()
    old_line = next(line.strip() for line in text.splitlines() if "y[i] =" in line)
    new = tmp_path / "saxpy.cu"
    new.write_text("// one line more\n" + text.replace(old_line, old_line.replace("y[i] =", "y[i] = 2 / x[i] *")))
    (gpu,) = drywarp.compare(SAXPY, new).gpus
    edited = [line for line in gpu.lines if line.match == "edited"]
    assert [(line.old.text, "2 / x[i]" in line.new.text) for line in edited if line.old and line.new] == [
        (old_line, True)
    ]
    assert edited[0].new is not None
    assert edited[0].old is not None
    assert edited[0].new.line == edited[0].old.line + 1


def test_one_kernel_with_another_launch() -> None:
    (gpu,) = drywarp.compare(EXAMPLES / "tiled_matmul.cu", new_launch={
        "grid": (32, 32), "block": (32, 32), "defines": {"TILE": "32"},
    }).gpus  # fmt: skip
    assert gpu.old.launch.block == (16, 16, 1)
    assert gpu.new.launch.block == (32, 32, 1)
    assert any("launches differ" in note for note in gpu.notes)
    assert gpu.change != 0


def test_arguments_of_one_side_go_before_the_common_ones() -> None:
    found = drywarp.compare(SAXPY, args={"n": 1 << 20}, grid=4096, new_launch={"args": {"n": 1 << 19}})
    by_name = {c.name: c for c in found.gpus[0].counts}
    sectors = by_name["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"]
    assert sectors.old == 2 * (sectors.new or 0)


def test_answers_at_hand_are_compared_without_running_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = drywarp.analyze(SAXPY), drywarp.analyze(SAXPY, warm_l2=False, grid=65536)
    monkeypatch.setattr("drywarp.analysis.several_gpus.prepare", lambda *a, **k: pytest.fail("bound a kernel"))
    assert drywarp.compare(first, second).gpus[0].change == 0.0
    with pytest.raises(UsageError, match="old is for a100, new for elsewhere"):
        drywarp.compare(first, replace(second, gpu="elsewhere"))
    with pytest.raises(UsageError, match="clock_hz"):
        drywarp.compare(first, replace(second, clock_hz=1e9))


def test_what_else_may_have_changed_is_said() -> None:
    first = drywarp.analyze(SAXPY)
    second = replace(first, gpu_hash="0", versions={**first.versions, "nvrtc": "1.0"})
    notes = drywarp.compare(first, second).gpus[0].notes
    assert any("GPU file" in note for note in notes)
    assert any(note.startswith("nvrtc ") and "1.0 for new" in note for note in notes)


@pytest.mark.exhaustive
def test_all_leaves_out_what_neither_side_runs_on() -> None:
    wgmma = EXAMPLES / "hopper" / "wgmma_tile.cu"
    found = drywarp.compare(wgmma, wgmma, gpu="all")
    assert [gpu.gpu for gpu in found.gpus] == ["h100", "h100-pcie", "h200"]
    assert "a100" in found.left_out
    with pytest.raises(drywarp.DrywarpError, match=r"^new: "):
        drywarp.compare(SAXPY, wgmma, gpu="a100,t4")
    with pytest.raises(drywarp.DrywarpError, match=r"^old: "):
        drywarp.compare(wgmma, wgmma, gpu="a100")


def test_errors_say_which_side() -> None:
    with pytest.raises(drywarp.DrywarpError, match=r"^new: .*undefined_name"):
        drywarp.compare(SAXPY, "__global__ void saxpy(float* a) {\n a[0] = undefined_name; }", grid=1, block=32)
    with pytest.raises(UsageError, match="unknown argument 'warm_12'"):
        drywarp.compare(SAXPY, SAXPY, warm_12=True)
    with pytest.raises(UsageError, match="only one kernel given"):
        drywarp.compare(SAXPY)
    with pytest.raises(UsageError, match="fail_above"):
        drywarp.compare(SAXPY, SAXPY, fail_above=-0.1)


def many(step: int, lines: int) -> list[Line]:
    return [Line("k.cu", n, 1.0, 1e-4, "wait", f"v{n} += {step if n % 7 == 0 else 0};") for n in range(lines)]


def test_thousands_of_lines_find_their_partners() -> None:
    """Every seventh line is edited; the others stay as they are, in their order."""
    pairs = match_lines(many(1, 4000), many(2, 4000), "k.cu", "k.cu")
    assert len(pairs) == 4000
    assert all(old is not None and new is not None and old.line == new.line for old, new in pairs)


def test_matching_does_not_compare_each_pair_of_lines() -> None:
    """Fewer calls than half the pairs: comparing the texts of each pair would take a hundred times as many."""
    assert calls_of(lambda: match_lines(many(1, 4000), many(2, 4000), "k.cu", "k.cu")) < 4000**2 / 2
