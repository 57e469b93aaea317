"""Reports of many rows, of results made by hand: a sweep, a folder of modules, launches, loops, a validation."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from drywarp.analysis.series import LaunchAnswer, LaunchSeries
from drywarp.errors import UsageError
from drywarp.execution.symbolic.report import AccessReport, Assumption, LoopReport, StaticReport
from drywarp.experiments.calibrate.result import Curve
from drywarp.experiments.corpus.result import CorpusReport, KernelRow
from drywarp.experiments.corpus.result import Row as Module
from drywarp.experiments.sweep.result import SweepResult
from drywarp.experiments.sweep.row import SweepRow
from drywarp.experiments.validate.accuracy import Group, ModelAccuracy, ValidationReport
from drywarp.experiments.validate.compare import RatioAccuracy, RatioReport
from drywarp.experiments.validate.groups import Coverage
from drywarp.report.advice import loops_dict, render_loops, render_static
from drywarp.report.html.calibration import drawing
from drywarp.report.ranking import render_series, render_sweep
from drywarp.report.validation import corpus_lines, render_ratios, render_validation

from .reading import TIME, found, says
from .test_comparison import found as comparison
from .test_golden import answer

FACTS = {"occupancy": 0.75, "warps_per_sm": 48, "registers": 40, "shared_bytes": 2048}


def swept() -> SweepResult:
    times = {("a100", 64): 2e-3, ("a100", 128): 1.5e-3, ("a100", 256): 3.25e-3, ("t4", 64): 9e-3}
    rows = [
        SweepRow(number, gpu, {"bx": bx, "n": 4096}, time_s=time, limiter="dram", facts=FACTS)
        for number, ((gpu, bx), time) in enumerate(times.items())
    ]
    failed = [SweepRow(len(rows) + k, "t4", {"bx": 2048, "n": 4096}, status="failed", reason="too big") for k in (0, 1)]
    return SweepResult(
        "space.toml", (*rows, *failed), ("bx", "n"), ("pipeline",), ("n",), there=2, seconds=8.0, tools={}
    )


def test_a_sweep() -> None:
    result = swept()
    text = render_sweep(result, best=2, prune=0.5).plain
    assert found(r"^space.toml: 4 of 6 configurations predicted, 2 of them in earlier runs$", text)
    # Four rows are new, in eight seconds.
    assert found(r"^8.0 s, 0.50 configurations per second, model pipeline$", text)
    of_a100 = text[found("^a100 n=4096$", text).end() : found("^t4 n=4096$", text).start()]
    rows = re.findall(
        rf"^(\d+) +({TIME})  (\S+) +DRAM bandwidth  (\d+) \((\d+%)\) +(\d+) +(\d+)$", of_a100, re.MULTILINE
    )
    assert [int(row[0]) for row in rows] == [128, 64], "the two best, the best first"
    for row, time in zip(rows, (1.5e-3, 2e-3), strict=True):
        assert says(row[1], time)
        assert says(row[2], time / 1.5e-3)
        assert (int(row[3]), int(row[5]), int(row[6])) == (48, 40, 2048)
        assert says(row[4], 0.75)
    pruned = result.prune(0.5)
    assert found(r"^best 50.00%, to try on hardware$", text)
    for group in pruned.groups:
        line = found(rf"^{group.gpu} n=4096: (\d+) of (\d+) .*; (\d+%) chance .*, expected regret (\S+%)$", text)
        assert (int(line[1]), int(line[2])) == (len(group.rows), group.of)
        assert says(line[3], group.chance)
        assert says(line[4], group.regret)
    assert found("^failed: 2 × too big$", text)
    assert "prune" not in render_sweep(result).plain


def test_a_folder_of_modules() -> None:
    kernels = (KernelRow("f", 100, 16, 1), KernelRow("g", 50, 24, 0))
    rows = (
        Module(
            "a.cu", "analysed", "done", kernels=kernels, unclassified={"FOO": 2}, seconds=1.25, peak_rss_bytes=300 << 20
        ),
        Module("b.cu", "failed", "emulate", reason="the\nend " + "x" * 200, seconds=2.5),
        Module("c.cu", "compile_failed", "compile", reason="no"),
        Module("d.cuh", "part", "read"),
        Module("e.cpp", "no_kernels", "read"),
    )
    report = CorpusReport("folder", "a100", "0", rows, 12.4)
    text = "\n".join(corpus_lines(report))
    assert found(
        r"^3 modules for a100: 1 analysed, 2 failed, of which 1 did not compile; analysed 1 of 2 that compile$", text
    )
    assert found(r"^2 kernels, 150 instructions, 1 unclassified opcodes, 12 s$", text)
    assert found(r"^not modules: 1 files without kernels, 1 parts of other files$", text)
    assert found(r"^unclassified: FOO$", text)
    assert found(r"^compiled but not analysed: 1 at stage emulate$", text)
    assert found(r"^a.cu +analysed +done +2 +1\.2 +300$", text)
    line = found(r"^b.cu +failed +emulate +0 +2\.5 +0 +(.*)$", text)
    assert line[1].startswith("the end xxx")
    assert len(line[1]) == 110
    assert line[1].endswith("…")
    assert not report.all_analysed
    assert replace(report, rows=rows[:1] + rows[2:]).all_analysed
    assert "not modules" not in "\n".join(corpus_lines(replace(report, rows=rows[:1])))


def test_launches_of_a_series() -> None:
    first, second = answer("saxpy", "a100"), answer("tiled_matmul", "a100")
    series = LaunchSeries((LaunchAnswer("one", 3, first), LaunchAnswer("two", 10, second)))
    total = 3 * first.time_s + 10 * second.time_s
    assert series.time_s == series.to_dict()["time_s"] == pytest.approx(total)
    text = render_series(series).plain
    assert says(found(rf"\A({TIME})  predicted on .* for all launches$", text)[1], total)
    for launch in series.launches:
        row = found(rf"^{launch.name} +(\d+) +({TIME}) +(\d+%) +(\d+%) ", text)
        assert int(row[1]) == launch.times
        assert says(row[2], launch.analysis.time_s)
        assert says(row[3], launch.times * launch.analysis.time_s / total)
        assert says(row[4], launch.analysis.occupancy.fraction)
    assert [entry["times"] for entry in series.to_dict()["launches"]] == [3, 10]


LOOPS = (
    LoopReport("L1", "a.cu", 10, 14, "", 12.5, 12, 13, "derived"),
    LoopReport("L2", "a.cu", 12, 12, "L1", 64.0, 64, 64, "given", copies=4),
    LoopReport("L3", "", 0, 0, "", None, 0, 0, "not reached"),
)


def printed(*parts: object) -> str:
    out = io.StringIO()
    console = Console(file=out, width=200, highlight=False)
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_loops() -> None:
    text = printed(render_loops("kernel", LOOPS))
    assert found(r"^Loops of kernel, by the names that --trip takes$", text)
    assert found(r"^L1 +a\.cu:10-14$", text)
    assert found(r"^L2 +L1 +a\.cu:12 +4$", text)
    assert found(r"^L3 +\?$", text)
    assert printed(render_loops("kernel", ())) == "kernel has no loops"
    told = loops_dict("kernel", LOOPS)["loops"]
    assert [(loop["name"], loop["line"], loop["copies"]) for loop in told] == [
        ("L1", 10, 1),
        ("L2", 12, 4),
        ("L3", 0, 1),
    ]


def test_what_a_static_analysis_assumed() -> None:
    assumptions = tuple(Assumption(f"value {n}", "a.cu", n, "1") for n in range(42))
    accesses = [
        AccessReport(16 * k, "LDG", "a.cu", 7, "global", True, "assumed", {"tid.x": 4, "L1": 128}) for k in range(3)
    ]
    odd = AccessReport(99, "STG", "", 0, "global", False, "known")
    same = AccessReport(98, "LDS", "a.cu", 8, "shared", True, "known")
    text = printed(*render_static(StaticReport(LOOPS, assumptions, (*accesses, odd, same))))
    assert found(r"^L1 +a\.cu:10-14 +12\.5 +derived \(12 to 13\)$", text)
    assert found(r"^L2 +L1 +a\.cu:12 +4 +64 +given$", text)
    assert found(r"^L3 +\? +not reached$", text)
    assert found(r"^7 +LDG global x3 +4·tid\.x 128·L1  \(assumed\)$", text)
    assert found(r"^\? +STG global +non-affine$", text)
    assert found(r"^8 +LDS shared +constant$", text)
    assert found(r"^value 0: 1$", text), "without a line there is no place"
    assert found(r"^a\.cu:39 value 39: 1$", text)
    assert "value 40" not in text
    assert found(r"^and 2 more \(--json lists all\)$", text)
    assert "nothing: the launch determines everything" in printed(*render_static(StaticReport((), ())))
    assert "more (--json" not in printed(*render_static(StaticReport((), assumptions[:40])))
    assert render_static(None) == []


GROUPS = (Group("64", 3, 0.1, 0.2, 1.5), Group("", 1, None, None, None))
BELIEVED = ModelAccuracy(
    "pipeline", 4, 0.123, 0.1, 0.25, -0.05, 0.95, 0.08, 0.07, 0.91, 0.82, {1: 0.0, 5: 0.031}, {"dram": 3, "alu": 1},
    {"bx": GROUPS, "limiter": GROUPS, "warps_per_sm": GROUPS}, {"bx": 0.4, "n": 0.01},
    band=Coverage(0.9, 4, 0.75, 1.8, 0.5, 1.4, 1, 0),
)  # fmt: skip


def test_a_validation() -> None:
    silent = ModelAccuracy("boat_hull", 0, not_applicable={"no equations": 4, "other": 1})
    failed = {f"reason {n}" if n else "y" * 200: n + 1 for n in range(7)}
    report = ValidationReport(
        "t.csv", "k", "a100", "median_us", (), (BELIEVED, silent), failed, {"no time": 3}, "odd", 1.0
    )
    text = render_validation(report).plain
    assert found(r"^t\.csv on a100: 0 of 0 rows predicted, excluding the odd half$", text)
    assert found(r"^measured: column median_us$", text)
    assert found(r"^excluded: 3 rows with no time$", text)
    assert found(r"^failed: 1 row: y{139}…$", text)
    assert found(r"^failed: 2 rows: reason 1$", text)
    assert found(r"^failed: 2 other reasons$", text)
    row = found(r"^pipeline +4 +(.*)$", text)[1].split()
    figures = (0.123, 0.1, 0.25, -0.05, 0.95, 0.08, 0.07, 0.91, 0.82, 0.0, 0.031)
    assert [says(cell, value) for cell, value in zip(row, figures, strict=True)] == [True] * len(figures)
    assert found(r"^model +rows .* top 1 +top 5$", text)
    assert found(r"^no predictions from: boat_hull \(no equations, and similar\)$", text)
    assert found(
        r"^pipeline: 90% intervals contain 75\.0% of 4 measured times \(1 below, 0 above\), median width 1\.800; "
        r"at the assumed clock 50\.0%, width 1\.400$", text,
    )  # fmt: skip
    assert found(r"^pipeline: limited by dram 3, alu 1$", text)
    assert found(r"^share of the error variance explained by column: bx 40%$", text)
    tables = [line.split()[0] for line in text.splitlines() if re.search(r"  rows  MAPE +median +ratio$", line)]
    assert tables == ["bx", "limiter", "warps_per_sm"], "columns that explain something, and always these two"
    assert len(re.findall(r"^64 +3 +10\.0% +20\.0% +1\.500$", text, re.MULTILINE)) == 3
    assert len(re.findall(r"^– +1 +– +– +–$", text, re.MULTILINE)) == 3


def test_two_outputs_of_a_validation() -> None:
    model = RatioAccuracy("pipeline", 9, 0.5, 0.4, 0.25, 0.3, 0.6, 0.1, 0.97)
    text = render_ratios(RatioReport("a.csv", "b.csv", ("a100", "t4"), 9, (model,))).plain
    assert found(r"\Atime on t4 over time on a100, 9 configurations$", text)
    assert found(r"^pipeline +9 +0\.500 +0\.400 +25\.0% +30\.0% +60\.0% +10\.0% +0\.970$", text)


def test_points_of_a_curve_lie_where_their_axes_say() -> None:
    """Over two powers of ten an axis is logarithmic, else it begins at zero; up is less in the drawing's units."""
    curve = Curve("c", "title", "bytes", "cycles", (1e3, 1e4, 1e6), (20.0, 40.0, 100.0), (0.0, 5.0, 0.0), (20, 40, 100))
    drawn = drawing(curve)
    x, y = [point.x for point in drawn.points], [point.y for point in drawn.points]
    assert x == sorted(x)
    assert y == sorted(y, reverse=True)
    assert (x[2] - x[1]) == pytest.approx(2 * (x[1] - x[0]), abs=0.3)  # two powers of ten, and one
    assert (y[0] - y[2]) == pytest.approx(4 * (y[0] - y[1]), abs=0.3)  # 80 cycles, and 20
    below, above = drawn.points[1].low - y[1], y[1] - drawn.points[1].high
    assert below == pytest.approx((y[0] - y[1]) / 4, abs=0.2)
    assert above == pytest.approx(below, abs=0.2)
    assert [tick.text for tick in drawn.x_ticks if float(tick.text) in (1e3, 1e6)] == ["1000", "1e+06"]
    by_text = {float(tick.text): tick.at for tick in (*drawn.x_ticks, *drawn.y_ticks)}
    assert (by_text[1e3], by_text[1e4], by_text[1e6]) == tuple(x)
    for value, at in zip(curve.y, y, strict=True):
        zero, hundred = by_text[0.0], y[2]
        assert at == pytest.approx(zero + (hundred - zero) * value / 100, abs=0.2)
    assert 4 <= len(drawn.y_ticks) <= 11
    corners = re.findall(r"([\d.]+) ([\d.]+)", drawn.fit)
    assert [(float(a), float(b)) for a, b in corners] == list(zip(x, y, strict=True))
    assert drawn.fit.startswith("M")
    assert drawing(replace(curve, fit=())).fit == ""


class Frames:
    """Stands for pandas: a data frame is its rows."""

    DataFrame = list


def test_tables_for_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", Frames)
    compared = comparison()
    for row, gpu in zip(compared.to_pandas(), compared.gpus, strict=True):
        assert row == {"gpu": gpu.gpu, "old_s": gpu.old.time_s, "new_s": gpu.new.time_s, "change": gpu.change}
    lines = compared.to_pandas("lines")
    assert [row["gpu"] for row in lines] == [gpu.gpu for gpu in compared.gpus for _ in gpu.lines]
    for gpu in compared.gpus:
        own = [row for row in lines if row["gpu"] == gpu.gpu]
        assert sum(row["new_s"] - row["old_s"] for row in own) == pytest.approx(gpu.new.time_s - gpu.old.time_s)
        assert all(row["text"] for row in own)
    counts = {(row["gpu"], row["name"]): row["change"] for row in compared.to_pandas("counts")}
    assert counts == {(gpu.gpu, count.name): count.change for gpu in compared.gpus for count in gpu.counts}
    result = answer("saxpy", "a100")
    told = result.to_dict()
    assert result.to_pandas("lines") == told["lines"]
    assert {row["part"]: row["share"] for row in result.to_pandas("utilization")} == told["prediction"]["utilization"]
    assert sum(row["share"] for row in result.to_pandas("stalls")) == pytest.approx(1)
    assert {row["reason"]: row["cycles"] for row in result.to_pandas("stalls")} == told["stalls"]
    assert {row["model"]: row["time_s"] for row in result.to_pandas("models")} == {
        name: model["time_s"] for name, model in told["models"].items()
    }
    assert len(result.to_pandas("curve")) == sum(map(len, told["curve"].values()))
    series = LaunchSeries((LaunchAnswer("one", 3, result),)).to_pandas()
    assert series == [{"name": "one", "times": 3, "time_s": result.time_s, "limiter": result.limiter}]
    for wrong in (compared, result):
        with pytest.raises(UsageError, match="table 'all': expected"):
            wrong.to_pandas("all")


def test_a_comparison_in_a_notebook() -> None:
    compared = comparison()
    page = re.sub(r"<[^>]+>", "|", compared._repr_html_())
    for gpu in compared.gpus:
        row = found(rf"\|{gpu.gpu}\|+({TIME})\|+({TIME})\|+(\+\S+%)\|+{gpu.new.prediction.limiter}\|", page)
        assert says(row[1], gpu.old.time_s)
        assert says(row[2], gpu.new.time_s)
        assert says(row[3], gpu.change)
