"""Figures hold the answer's own numbers: they are read back from what is drawn."""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import drywarp
from drywarp.errors import UsageError
from drywarp.models.base import Prediction
from drywarp.report import figures
from drywarp.report.figures.theme import DARK, LIGHT, REASON_COLOURS
from tests.effort import in_turn

matplotlib = pytest.importorskip("matplotlib", reason="figures are drawn with Matplotlib, the extra `plot`")

ROOT = Path(__file__).parents[2]
NASTY = "f<T>&'\"$x^2$ $\\frac{1}{2}$ _a_ \x01\u202e\n</text><script>"


@cache
def answer(example: str = "saxpy", gpu: str = "h100") -> drywarp.Analysis:
    return drywarp.analyze(ROOT / "examples" / f"{example}.cu", gpu=gpu, detail=4_000)


def named(figure: Any, gid: str) -> list[Any]:
    return [artist for axes in figure.axes for artist in axes.get_children() if artist.get_gid() == gid]


def line(figure: Any, gid: str) -> Any:
    (found,) = named(figure, gid)
    return found


def starts(shapes: list[Any]) -> list[tuple[float, float]]:
    """Where boxes begin and end, in the order of their beginning."""
    boxes = [found.get_path().vertices.reshape(-1, 5, 2)[:, :, 0] for found in shapes]
    return sorted((float(box.min()), float(box.max())) for shape in boxes for box in shape)


def test_occupancy_draws_every_models_curve_and_marks_the_launch() -> None:
    result = answer()
    assert result.detail is not None
    drawn = result.figure("occupancy")
    assert len(result.detail.curves) > 15
    for curve in result.detail.curves:
        group = "model" if curve.model in result.predictions else "others"
        found = line(drawn, f"{group}-{curve.model}")
        assert list(found.get_xdata()) == [point.occupancy_warps for point in curve.points]
        assert list(found.get_ydata()) == [point.warps_per_cycle for point in curve.points]
    here = result.occupancy.warps_per_sm
    assert list(line(drawn, "launch").get_xdata()) == [here, here]
    (own,) = [p.warps_per_cycle for p in result.prediction.curve if p.occupancy_warps == here]
    assert line(drawn, "launch-point").get_xydata().tolist() == [[here, own]]
    # The point has the colour of the primary model's curve, wherever that stands among those that are named.
    assert result.model == "pipeline"
    for named_models, curve in ((["volkov", "pipeline"], "model-pipeline"), (["volkov"], "others-pipeline")):
        other = result.figure("occupancy", models=named_models)
        assert line(other, "launch-point").get_color() == line(other, curve).get_color()
    assert drawn.axes[0].get_ylim()[1] > own
    texts = [text.get_text() for text in drawn.legends[0].get_texts()]
    others = len(result.detail.curves) - len(result.predictions)
    assert texts == [*result.predictions, f"{others} other models"]


def test_occupancy_takes_the_models_to_name_and_needs_no_detail() -> None:
    drawn = answer().figure("occupancy", models=["volkov", "mwp_cwp"])
    assert [text.get_text() for text in drawn.legends[0].get_texts()][:2] == ["volkov", "mwp_cwp"]
    bare = replace(answer(), detail=None).figure("occupancy")
    assert len(named(bare, "model-pipeline")) == 1
    assert not [each for each in bare.axes[0].lines if (each.get_gid() or "").startswith("others-")]
    with pytest.raises(UsageError, match="no curve of 'nobody'; available: pipeline"):
        answer().figure("occupancy", models=["nobody"])


def test_instruction_roofline_has_each_roof_where_the_answer_says() -> None:
    result = answer()
    assert result.detail is not None
    assert result.detail.instruction_roofline is not None
    drawn, found = result.figure("instruction_roofline"), result.detail.instruction_roofline
    sloped = 0
    for roof in found.roofs:
        if roof.intensity:
            x, y = line(drawn, f"roof-{roof.name}").get_data()
            assert np.interp(roof.intensity, x, y) == pytest.approx(roof.rate)
            point = line(drawn, f"kernel-{roof.name}").get_xydata().tolist()
            assert point == [[roof.intensity, found.rate]]
            sloped += 1
        elif named(drawn, f"roof-{roof.name}"):
            assert set(line(drawn, f"roof-{roof.name}").get_ydata()) == {roof.rate}
        else:
            assert roof.rate > 10 * found.rate
    assert sloped == 2  # L2 and DRAM
    assert set(line(drawn, "kernel").get_ydata()) == {found.rate}


def test_roofline_is_in_operations_per_second() -> None:
    result = answer()
    assert result.detail is not None
    found = result.detail.roofline
    assert found is not None
    drawn = result.figure("roofline", theme="dark")
    assert drawn.axes[0].get_ylabel() == "FLOP per second"
    for name in ("dram", "l2"):
        (roof,) = [roof for roof in found.roofs if roof.name == name]
        assert line(drawn, f"kernel-{name}").get_xydata().tolist() == [[roof.intensity, found.rate]]
    # The peak rate is shown even if it is far above a kernel that waits for memory.
    (peak,) = [roof for roof in found.roofs if roof.name == "fp32"]
    assert peak.rate > 50 * found.rate
    assert set(line(drawn, "roof-fp32").get_ydata()) == {peak.rate}
    said = f"this kernel: {found.rate / 1e9:.3g} GFLOP/s"
    assert said in [text.get_text() for text in drawn.axes[0].texts]


def test_roofline_without_floating_point_operations() -> None:
    result = answer("collatz")
    assert result.detail is not None
    found = result.detail.roofline
    assert found is not None
    assert found.work == "integer operations"
    assert {roof.name for roof in found.roofs} == {"alu", "fma", "dram", "l2"}
    assert result.figure("roofline").axes[0].get_xlabel() == "integer operations per byte"
    nothing = replace(result, detail=replace(result.detail, roofline=None))
    with pytest.raises(UsageError, match="figure roofline: no known operations"):
        nothing.figure("roofline")


def test_benefits_lead_from_the_cost_to_the_ideal() -> None:
    result = answer()
    assert result.detail is not None
    b = result.detail.benefits
    places = line(result.figure("benefits"), "steps").get_xydata().tolist()
    assert places[0] == [b["t_mem_cycles"], b["t_comp_cycles"]]
    assert places[1][0] == pytest.approx(b["t_mem_cycles"] - b["t_overlap_cycles"])
    assert places[-1][1] == pytest.approx(b["t_fp_cycles"])
    assert all(x1 <= x0 + 1e-9 and y1 <= y0 + 1e-9 for (x0, y0), (x1, y1) in pairwise(places))


def test_stalls_and_use_are_those_of_the_prediction() -> None:
    primary = answer().prediction
    drawn, total = answer().figure("stalls"), sum(primary.stalls.values())
    bars = {patch.get_gid(): patch for patch in drawn.axes[0].patches}
    shown = {name: value / total for name, value in primary.stalls.items() if value / total >= 5e-4}
    assert {f"stall-{name}" for name in shown} <= set(bars)
    for name, share in shown.items():
        assert bars[f"stall-{name}"].get_width() == pytest.approx(share)
        assert matplotlib.colors.to_hex(bars[f"stall-{name}"].get_facecolor()) == LIGHT.of_reason(name)
    widths = [patch.get_width() for patch in drawn.axes[0].patches]
    assert widths == sorted(widths, reverse=True) or bars.keys() - {f"stall-{name}" for name in shown}
    parts = {p.get_gid(): p.get_width() for p in answer().figure("utilization").axes[0].patches}
    assert parts == {f"part-{n}": share for n, share in primary.utilization.items() if share >= 5e-4}


def test_overlap_is_that_of_the_detail() -> None:
    result = answer("reduction", "a100")
    assert result.detail is not None
    assert result.detail.overlap is not None
    drawn, found = result.figure("overlap"), result.detail.overlap
    above = {patch.get_gid(): patch.get_width() for patch in drawn.axes[0].patches}
    assert above["at-once-none busy"] == pytest.approx(found.at_once[0])
    assert sum(above.values()) == pytest.approx(1.0, abs=2e-3)
    below = {patch.get_gid(): patch.get_width() for patch in drawn.axes[1].patches}
    assert below["busy-lsu"] == pytest.approx(found.busy["lsu"])
    assert below["alone-lsu"] == pytest.approx(found.alone["lsu"])


def test_profile_draws_issue_and_completion_to_the_tick() -> None:
    result = answer("reduction", "a100")
    assert result.detail is not None
    assert result.detail.events is not None
    events, drawn = result.detail.events, result.figure("profile", first=150, start=30)
    ticks, rows = events.ticks_per_cycle, range(30, 180)
    busy = [found for lane in events.lanes for found in named(drawn, f"busy-{lane.name}")]
    expected = sorted(
        (events.issue[e] / ticks, (events.issue[e] + events.nodes[events.node[e]].lambda_ticks) / ticks) for e in rows
    )
    assert np.allclose(starts(busy), expected)
    flight = starts([found for lane in events.lanes for found in named(drawn, f"flight-{lane.name}")])
    assert len(flight) == len(rows)
    assert [begin for begin, _ in flight] == pytest.approx(sorted(events.issue[e] / ticks for e in rows))
    (waits,) = named(drawn, "waits")
    inside = sum(int(events.awaited[e]) in rows for e in rows)
    assert len(waits.get_segments()) == inside > 0
    assert f"150 of {events.total:,} instructions" in drawn.axes[0].get_xlabel()


def test_profile_by_warp_colours_waits_by_reason() -> None:
    result = answer("reduction", "a100")
    assert result.detail is not None
    assert result.detail.events is not None
    events, drawn = result.detail.events, result.figure("profile", by="warp", first=300, warps=[0, 5])
    mine = [e for e in range(len(events.issue)) if events.warp[e] in (0, 5)][:300]
    issues = [begin for begin, _ in starts(named(drawn, "issue"))]
    assert issues == pytest.approx(sorted(events.issue[e] / events.ticks_per_cycle for e in mine))
    assert [text.get_text() for text in drawn.axes[0].get_yticklabels()] == ["warp 0", "warp 5"]
    shown = {text.get_text() for text in drawn.legends[0].get_texts()}
    assert "issue" in shown
    assert shown - {"issue"} <= set(events.reasons)


@pytest.mark.parametrize(("name", "theme"), in_turn([*figures.OF_ANSWERS], ["light", "dark"]))
def test_every_figure_is_the_same_each_time_and_well_formed(name: str, theme: str, tmp_path: Path) -> None:
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    with matplotlib.rc_context({"text.usetex": True, "axes.facecolor": "red", "font.size": 30, "svg.hashsalt": None}):
        before = dict(matplotlib.rcParams)
        for file in files:
            answer().figure(name, theme=theme).savefig(file)
        assert dict(matplotlib.rcParams) == before
    first, second = (file.read_bytes() for file in files)
    assert first == second
    root = ElementTree.fromstring(first)
    assert root.tag.endswith("svg")
    assert b"<dc:date>" not in first
    assert (LIGHT if theme == "light" else DARK).background in first.decode()
    assert "red" not in first.decode()
    assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(3.5 * 72)


def test_pyplot_is_left_alone() -> None:
    loaded = "matplotlib.pyplot" in sys.modules
    answer().figure("occupancy")._repr_svg_()
    assert ("matplotlib.pyplot" in sys.modules) == loaded
    if loaded:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


@pytest.mark.parametrize("name", figures.OF_ANSWERS)
def test_names_are_text_and_nothing_else(name: str, tmp_path: Path) -> None:
    file = tmp_path / "f.svg"
    replace(answer(), kernel=NASTY, gpu_title=NASTY).figure(name, width=7).savefig(file)
    root = ElementTree.parse(file).getroot()  # control characters would not be XML
    texts = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any("f<T>&'\"$x^2$ $\\frac{1}{2}$" in text for text in texts)
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    replace(answer(), kernel="核 \U0001f600 $", gpu_title=NASTY).figure(name).savefig(tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_names_of_bars_are_text_too(tmp_path: Path) -> None:
    rows = [figures.Bar(NASTY, 1e-6, note=NASTY, group=NASTY), figures.Bar("$y$", 2e-6, group="_hidden")]
    drawn = figures.bars(rows, NASTY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn.savefig(tmp_path / "f.svg")
    texts = [
        "".join(e.itertext()) for e in ElementTree.parse(tmp_path / "f.svg").iter("{http://www.w3.org/2000/svg}text")
    ]
    assert "$y$" in texts
    assert [patch.get_width() for patch in drawn.axes[0].patches] == [1e-6, 2e-6]


def test_far_apart_times_are_points_on_a_logarithmic_axis() -> None:
    drawn = figures.bars([figures.Bar("slow", 0.4, 0.3, 0.5), figures.Bar("fast", 1e-3)], "t")
    assert drawn.axes[0].get_xscale() == "log"
    assert line(drawn, "bar-0").get_xydata().tolist() == [[0.4, 0]]
    assert list(line(drawn, "band-0").get_xdata()) == [0.3, 0.5]


def test_lines_of_ones_own() -> None:
    drawn = figures.lines(
        {"a": ([1, 2], [3, 4]), "$b$": ([1, 2], [None, 5])}, x="$x$", y="y", marks={1.5: "here"}, logarithmic=True
    )
    assert line(drawn, "line-a").get_xydata().tolist() == [[1, 3], [2, 4]]
    assert np.isnan(line(drawn, "line-$b$").get_ydata()[0])
    assert list(line(drawn, "mark-0").get_xdata()) == [1.5, 1.5]
    assert "$x$" in drawn._repr_svg_()
    with pytest.raises(UsageError, match="as many y values"):
        figures.lines({"a": ([1], [])}, x="x", y="y")
    with pytest.raises(UsageError, match="expected 1 to 10"):
        figures.lines({}, x="x", y="y")


def test_ticks_are_round_and_few() -> None:
    from drywarp.report.figures.canvas import ticks

    assert ticks(1e-3, 1e-2) == pytest.approx([1e-3, 2e-3, 5e-3, 1e-2])
    assert ticks(1e-3, 1e-1) == pytest.approx([1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1])
    assert ticks(0.5, 60) == pytest.approx([0.5, 1, 2, 5, 10, 20, 50])
    assert ticks(0.02, 400) == pytest.approx([0.1, 1, 10, 100])
    assert 1 < len(ticks(1e-9, 1e9)) <= 7


def test_predicted_over_measured_has_every_row() -> None:
    points = [(1e-3, 2e-3, "lsu"), (5e-3, 4e-3, "fma & more"), (2e-3, 2e-3, "lsu")]
    drawn = figures.predicted_over_measured(points, "a < b")
    assert line(drawn, "points-lsu").get_xydata().tolist() == [[1e-3, 2e-3], [2e-3, 2e-3]]
    x, y = line(drawn, "equal").get_data()
    assert list(x) == list(y)
    figures.predicted_over_measured([(1.0, 1.0, "")])._repr_svg_()  # one point alone has a frame of its own
    with pytest.raises(UsageError, match="nothing to draw"):
        figures.predicted_over_measured([])


def test_colours_are_those_of_the_report() -> None:
    style = (ROOT / "src/drywarp/report/html/report.css").read_text(encoding="utf-8")
    for number, pair in enumerate(zip(LIGHT.data, DARK.data, strict=True)):
        assert f"--c{number}: light-dark({', '.join(pair)})" in style
    for name, pair in (("bg", (LIGHT.background, DARK.background)), ("text", (LIGHT.text, DARK.text))):
        assert re.search(rf"--{name}: light-dark\({pair[0]}, {pair[1]}\)", style)
    assert set(REASON_COLOURS.values()) <= {f"c{number}" for number in range(10)}


def _lightness(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_data_stand_out_from_the_background(theme: Any) -> None:
    def contrast(colour: str) -> float:
        low, high = sorted((_lightness(colour), _lightness(theme.background)))
        return (high + 0.05) / (low + 0.05)

    assert min(contrast(theme.text), contrast(theme.soft)) >= 4.5
    assert min(contrast(colour) for colour in theme.data) >= 2.5


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("pie", {}, "figure 'pie': expected one of occupancy, roofline"),
        ("stalls", {"theme": "blue"}, "theme 'blue': expected light or dark"),
        ("stalls", {"width": 0.1}, "width 0.1 inches"),
        ("profile", {"first": 0}, "first from 1"),
        ("profile", {"by": "row"}, "by 'row'"),
        ("profile", {"warps": [999]}, "none of the 4,000 events"),
    ],
)
def test_what_cannot_be_drawn(name: str, settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=re.escape(expected)):
        answer().figure(name, **settings)


def test_an_answer_without_what_is_needed_says_so() -> None:
    bare = replace(answer(), detail=None)
    for name in ("roofline", "instruction_roofline", "benefits", "overlap", "profile"):
        with pytest.raises(UsageError, match=f"figure {name}: .*detail"):
            bare.figure(name)
    detail = answer().detail
    assert detail is not None
    without = replace(answer(), detail=replace(detail, benefits={}, missing={"benefits": "no loads"}))
    with pytest.raises(UsageError, match="figure benefits: no loads"):
        without.figure("benefits")
    silent = Prediction("volkov", 1.0, 1.0, "latency", ())
    nothing = replace(answer(), predictions={"volkov": silent}, model="volkov", detail=None)
    for name in ("stalls", "utilization", "occupancy"):
        with pytest.raises(UsageError, match=f"figure {name}"):
            nothing.figure(name)


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"figures need Matplotlib: pip install 'drywarp\[plot\]'"):
        answer().figure("occupancy")
    with pytest.raises(UsageError, match="pip install"):
        figures.bars([figures.Bar("a", 1.0)])


# ---- GPUPerf's benefits of several kernels and of a space


@cache
def two_kernels() -> Any:
    ladder = ROOT / "examples" / "ladders" / "reduction"
    return drywarp.benefits([ladder / "k1_strided.cu", ladder / "k6_many_a_thread.cu"], grid=512, args={"n": 262144})


def test_several_kernels_stand_in_one_chart() -> None:
    drawn = two_kernels().figure()
    for number, kernel in enumerate(two_kernels().kernels):
        c = kernel.cycles
        exposed = c["t_mem"] - c["t_overlap"]
        assert line(drawn, f"kernel-{number}").get_xydata().tolist() == [[exposed, c["t_comp"]]]
        ideal = [min(exposed, c["t_mem_min"]), c["t_fp"]]
        assert line(drawn, f"way-{number}").get_xydata().tolist() == [
            [exposed, c["t_comp"]],
            [exposed, c["t_fp"]],
            ideal,
        ]
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["k1_strided", "k6_many_a_thread"]
    assert drawn.axes[0].get_xscale() == "linear"
    small = replace(two_kernels().kernels[1], cycles={k: v / 100 for k, v in two_kernels().kernels[1].cycles.items()})
    assert replace(two_kernels(), kernels=(two_kernels().kernels[0], small)).figure().axes[0].get_xscale() == "symlog"
    none = replace(two_kernels().kernels[0], cycles={}, not_applicable="no loads")
    with pytest.raises(UsageError, match="nothing to draw: no loads"):
        replace(two_kernels(), kernels=(none,)).figure()


def test_kernels_as_bars_over_the_first() -> None:
    drawn = two_kernels().figure("bars")
    first, second = two_kernels().kernels
    for model in ("pipeline", "gpuperf"):
        (bar,) = named(drawn, f"{model}-1")
        assert bar.get_height() == pytest.approx(first.times[model] / second.times[model])
    bottom = 0.0
    for benefit in ("b_itilp", "b_memlp", "b_fp", "b_serial"):
        (bar,) = named(drawn, f"{benefit}-1")
        assert bar.get_height() == pytest.approx(max(0.0, second.cycles[benefit]) / first.cycles["t_exec"])
        assert bar.get_y() == pytest.approx(bottom)
        bottom += bar.get_height()


@cache
def swept() -> Any:
    return drywarp.sweep(
        {
            "kernel": str(ROOT / "examples" / "saxpy.cu"),
            "configurations": [{"bx": bx, "n": n} for bx in (256, 64, 128) for n in (16384, 32768)],
            "macros": [],
            "grid": "cdiv(n,bx)",
            "block": "bx",
            "args": {"n": "n", "a": 2.0, "x": "f32[n]:random", "y": "f32[n]:random"},
            "models": ["gpuperf", "mwp_cwp"],
            "optimisations": {"small": {"set": {"bx": 64}, "benefits": ["b_memlp"]}, "long": {"set": {"n": 32768}}},
            "steps": ["small", "long"],
        },
        jobs=0,
        benefits=True,
    )


def test_the_charts_of_a_space() -> None:
    (study,) = swept().studies
    base = study.baseline
    steps = swept().figure("steps")
    for at, kernel in enumerate([base, *(step.after for step in study.steps)]):
        (bar,) = named(steps, f"gpuperf-{at}")
        assert bar.get_height() == pytest.approx(base.time_s / kernel.time_s)
        (part,) = named(steps, f"b_memlp-{at}")
        assert part.get_height() == pytest.approx(kernel.cycles["b_memlp"] / base.cycles["t_exec"])
    alone = swept().figure("alone", theme="dark")
    assert [text.get_text() for text in alone.axes[0].get_xticklabels()] == ["small", "long"]
    variants = swept().figure("variants")
    assert len([p for p in variants.axes[0].patches if str(p.get_gid()).startswith("mwp_cwp-")]) == 6
    one = swept().figure("small")
    order = sorted(study.applied["small"], key=lambda step: -step.saved)
    for at, step in enumerate(order):
        assert named(one, f"saved-{at}")[0].get_height() == pytest.approx(step.saved)
        assert named(one, f"b_memlp-{at}")[0].get_height() == pytest.approx(step.before.share("b_memlp"))
    with pytest.raises(UsageError, match="'pie': expected one of steps, variants, alone, small, long"):
        swept().figure("pie")
