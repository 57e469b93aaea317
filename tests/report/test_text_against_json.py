"""Laws of finished answers: the text shows the JSON object's figures in its units, parts add up, the verdict follows.

The answers are those of the golden reports, so that nothing is analysed twice.
"""

from __future__ import annotations

import html
import io
import itertools
import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

import drywarp
from drywarp.analysis.result import Timing, limit_words, unit_words
from drywarp.report import terminal
from drywarp.report.html.page import html_page
from drywarp.report.text import json_text

from .html_answers import answer as detailed
from .reading import NUMBER, RANGE, TIME, ends, found, read, says
from .test_golden import CASES, answer

WIDE = 400
each = pytest.mark.parametrize(("example", "gpu"), CASES)


def text_of(result: drywarp.Analysis, full: bool = True) -> str:
    out = io.StringIO()
    terminal.print_analysis(result, Console(file=out, width=WIDE, highlight=False), full=full)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def json_of(result: drywarp.Analysis) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(json_text(result.to_dict()))
    return told


def table(text: str, heading: str) -> list[str]:
    """The lines under a heading, up to the next empty one."""
    lines = text[found(f"^{heading}", text).start() :].splitlines()[1:]
    return lines[: lines.index("")]


@each
def test_headline_band_and_assumptions(example: str, gpu: str) -> None:
    text, told = text_of(answer(example, gpu)), json_of(answer(example, gpu))
    assert says(found(rf"\A({TIME})  predicted on", text)[1], told["prediction"]["time_s"])
    assert told["prediction"]["verdict"] in text
    band, clock = told["band"], told["assumptions"]["clock_hz"]
    line = found(rf"^(\d+%) interval ({RANGE})", text)
    low, high = ends(line[2])
    assert says(low, band["at_clock"]["low_s"])
    assert says(high, band["at_clock"]["high_s"])
    assert says(line[1], band["level"])
    # Where both ranges read the same, one is said.
    over = found(rf"({RANGE}) at (\d+)–(\d+) MHz; largest contributor: (.*)", text)
    low, high = ends(over[1])
    assert says(low, band["low_s"])
    assert says(high, band["high_s"])
    assert [float(over[2]) * 1e6, float(over[3]) * 1e6] == band["clock_hz"]
    assert over[4] == band["parts"][0]["name"]
    assumed = r"for the kernel start, at (\d+ MHz), (\w+) L2, ([\w ]+) scheduling; (\d+) blocks emulated"
    at = found(rf"Duration as a profiler reports it, including ({TIME}) {assumed}", text)
    assert says(at[1], told["prediction"]["start_s"])
    assert says(at[2], clock)
    assert at[3] == told["assumptions"]["l2"]
    assert at[4].replace(" ", "_") == told["assumptions"]["scheduler"]
    assert int(at[5]) == told["launch"]["sampled_blocks"]


def test_its_own_time_is_told_stage_by_stage() -> None:
    timing = Timing(1.25, 2.5, 3.75, 4.125)
    text, told = text_of(replace(answer(*CASES[0]), timing=timing)), timing
    stages = found(r"Took (\S+ s) to compile, (\S+) to emulate, (\S+) for memory, (\S+) to simulate", text)
    shown = (told.compile_s, told.emulate_s, told.memory_s, told.simulate_s)
    assert all(says(own, value) for own, value in zip(stages.groups(), shown, strict=True))
    kept = json_of(replace(answer(*CASES[0]), timing=timing))["timing"]
    assert list(kept.values()) == list(shown)


@each
def test_occupancy_resources_instructions_and_memory(example: str, gpu: str) -> None:
    text, told = text_of(answer(example, gpu)), json_of(answer(example, gpu))
    occupancy, memory, counts = told["occupancy"], told["memory"], told["instructions"]
    line = found(r"^Occupancy +(\d+) warps per SM \((\d+%)\), (\d+) blocks, limited by (.*); achieved (.*)$", text)
    assert float(line[5]) == pytest.approx(occupancy["achieved_warps_per_sm"], abs=0.05)
    assert (int(line[1]), int(line[3])) == (occupancy["warps_per_sm"], occupancy["blocks_per_sm"])
    assert says(line[2], occupancy["fraction"])
    assert line[4].replace(" ", "_") == occupancy["limited_by"]
    each_limit = found(r"allowed by each: (.*)$", text)[1].split(", ")
    said = {part.rpartition(" ")[0].replace(" ", "_"): part.rpartition(" ")[2] for part in each_limit}
    assert said == {name: "unlimited" if most is None else str(most) for name, most in occupancy["limits"].items()}
    resources = found(r"^Resources +(\d+) registers per thread, (\S+ \S*B) shared, (\d+ B) spilled", text)
    assert int(resources[1]) == told["resources"]["registers"]
    assert says(resources[2], told["resources"]["shared_bytes"])
    assert says(resources[3], told["resources"]["spill_bytes"])
    assert says(found(r"^Waves +(\S+) waves", text)[1], told["launch"]["waves"])
    mix = found(rf"^Instructions +({NUMBER}(?: [kMG])?) warp instructions: (.*)$", text)
    assert says(mix[1], counts["warp_instructions"])
    shares = [value / counts["warp_instructions"] for value in counts["by_class"].values()]
    for part in mix[2].split(", "):
        class_, _, percent = part.rpartition(" ")
        assert says(percent, counts["by_class"][class_] / counts["warp_instructions"])
        assert sum(share > read(percent)[0] + 0.005 for share in shares) < 5, "the largest are shown"
    line = found(rf"^Memory +(\S+ \S*B) DRAM, ({NUMBER}(?: [kMG])?) sectors loaded, ({NUMBER}(?: [kMG])?) stored", text)
    assert says(line[1], memory["dram_bytes"])
    assert says(line[2], memory["global_load_sectors"])
    assert says(line[3], memory["global_store_sectors"])
    rates = found(r"hit rates: L1 (\S+), L2 (\S+); (.*)$", text)
    for shown, rate in ((rates[1], memory["l1_hit_rate"]), (rates[2], memory["l2_hit_rate"])):
        assert shown == "–" if rate is None else says(shown, rate)
    degree = memory["shared_conflict_degree"]
    assert rates[3] == "no shared accesses" if degree is None else says(rates[3].rpartition(" ")[2], degree)


@each
def test_rates(example: str, gpu: str) -> None:
    """Of operations and bytes, over the whole duration; in short and in full the same."""
    result, told = answer(example, gpu), json_of(answer(example, gpu))
    time, device = told["prediction"]["time_s"], drywarp.load_gpu(gpu)
    rates = {rate["name"]: rate for rate in told["throughput"]}
    assert rates["dram"]["achieved"] == pytest.approx(told["memory"]["dram_bytes"] / time, rel=1e-6)
    assert rates["dram"]["peak"] == 1e9 * device.memory.dram.peak_gbs
    if example == "tiled_matmul":
        flops = 2 * 1024**3
        assert rates["fp32"]["achieved"] == pytest.approx(flops / time, rel=1e-6)
        # Two operations in each of the 64 or 128 lanes of an SM and cycle.
        lanes = 64 if gpu == "a100" else 128
        assert rates["fp32"]["peak"] == 2 * lanes * device.device.sm_count * told["assumptions"]["clock_hz"]
    for full in (False, True):
        shown = found(r"^Throughput +(.*)$", text_of(result, full))[1]
        part_of = rf"(DRAM |L2 )?({NUMBER}) ([kMGT]?)(B|FLOP|OP)/s ?([\w ]*?)? \((\d+(?:\.\d)?%)(?: of peak)?\)"
        parts = [found(f"^{part_of}$", part).groups("") for part in shown.split(", ")]
        assert any(part[0] == "DRAM " for part in parts)
        for memory, number, prefix, _, kind, share in parts:
            rate = rates[memory.strip().lower() or kind]
            scale = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[prefix]
            assert says(number, rate["achieved"] / scale)
            assert says(share, rate["achieved"] / rate["peak"])
        most = max((rate for rate in told["throughput"] if rate["unit"] != "B"), key=lambda rate: rate["achieved"])
        assert (parts[0][4] == most["name"]) == (most["unit"] == "FLOP" or most["achieved"] >= 0.3 * most["peak"])


@each
def test_the_curve(example: str, gpu: str) -> None:
    text, told = text_of(answer(example, gpu)), json_of(answer(example, gpu))
    rows = table(text, "Occupancy curve")[1:]
    points = told["curve"][told["prediction"]["model"]]
    most = max(point["warps_per_cycle"] for point in points)
    covered = []
    for row in rows:
        line = re.fullmatch(rf"\s*(▸?)\s*(\d+)(?:–(\d+))?  ([█▏▎▍▌▋▊▉]*)\s+({NUMBER})  +({TIME})", row)
        assert line, row
        merged = [p for p in points if int(line[2]) <= p["occupancy_warps"] <= int(line[3] or line[2])]
        covered += merged
        assert bool(line[1]) == (told["occupancy"]["warps_per_sm"] in [p["occupancy_warps"] for p in merged])
        assert all(says(line[6], point["time_s"]) for point in merged)
        assert all(float(line[5]) == pytest.approx(point["warps_per_cycle"], rel=5e-3) for point in merged)
        # 28 cells, the last of them in eighths.
        eighths = sum(8 if cell == "█" else "▏▎▍▌▋▊▉".index(cell) + 1 for cell in line[4])
        assert eighths == pytest.approx(28 * 8 * merged[-1]["warps_per_cycle"] / most, abs=0.5)
    assert covered == points
    read_as = [row.replace("▸", " ").split()[-3:] for row in rows]
    assert all(one != other for one, other in itertools.pairwise(read_as))


@each
def test_other_models(example: str, gpu: str) -> None:
    text, told = text_of(answer(example, gpu)), json_of(answer(example, gpu))
    rows = table(text, "Other models")
    others = {name: model for name, model in told["models"].items() if name != told["prediction"]["model"]}
    for row, (name, model) in zip(rows, others.items(), strict=True):
        line = re.fullmatch(rf"{name} +({TIME})  (\S+×)  .*; limited by (.*)", row)
        assert line, row
        assert says(line[1], model["time_s"])
        assert says(line[2], model["time_s"] / told["prediction"]["time_s"])
        assert line[3] == limit_words(model["limiter"])
    assert "Other models" not in text_of(answer(example, gpu), full=False)


@each
def test_use_of_each_part(example: str, gpu: str) -> None:
    text, told = text_of(answer(example, gpu)), json_of(answer(example, gpu))
    use, alone = told["prediction"]["utilization"], told["prediction"]["cycles_if_only_limit"]
    names = {unit_words(name): name for name in use}
    rows = table(text, "Utilization of each part of the GPU")[1:]
    shown = {}
    for row in rows:
        line = re.fullmatch(rf"(.*?) +(\d+\.\d%)\s+([█▏▎▍▌▋▊▉]*)\s*({TIME})?", row)
        assert line, row
        name = names[line[1]]
        shown[name] = use[name]
        assert says(line[2], use[name])
        assert says(line[4], alone[name] / told["assumptions"]["clock_hz"])
        eighths = sum(8 if cell == "█" else "▏▎▍▌▋▊▉".index(cell) + 1 for cell in line[3])
        assert eighths == pytest.approx(28 * 8 * use[name], abs=0.5)
    assert list(shown.values()) == sorted(shown.values(), reverse=True)
    assert all(share < 0.0005 for name, share in use.items() if name not in shown)
    assert not any(name in shown for name, share in use.items() if share < 0.0005)


@each
def test_where_the_cycles_go(example: str, gpu: str) -> None:
    text, told = text_of(answer(example, gpu)), json_of(answer(example, gpu))
    total = sum(told["stalls"].values())
    reasons = found(r"^Where the cycles go: (.*)$", text)[1].split(", ")
    for part in reasons:
        reason, percent = part.split()
        assert says(percent, told["stalls"][reason] / total)
    assert [part.split()[0] for part in reasons] == [
        reason for reason, cycles in sorted(told["stalls"].items(), key=lambda item: -item[1]) if cycles >= 0.02 * total
    ]
    rows = table(text, "Where the cycles go")
    costly = [cost for cost in told["lines"] if cost["share"] >= 0.02]
    assert len(rows) == min(6, len(costly))
    for row, cost in zip(rows, costly, strict=False):
        line = re.fullmatch(r"\s*(\d+%)  (\S+)\s+(\d+)  (.*)", row)
        assert line, row
        assert says(line[1], cost["share"])
        assert (line[2], int(line[3]), line[4].strip()) == (cost["stall"], cost["line"], cost["text"].strip())


@each
def test_what_would_pay(example: str, gpu: str) -> None:
    text, told = text_of(answer(example, gpu)), json_of(answer(example, gpu))
    rows = re.findall(r"^ *(\d+(?:\.\d+)?×)  (\S+), (.*?): (.*)$", text, re.MULTILINE)
    assert len(rows) == min(6, len(told["findings"]))
    for (gain, rule, places, remedy), finding in zip(rows, told["findings"], strict=False):
        assert says(gain, finding["gain"])
        assert (rule, remedy) == (finding["rule"], finding["remedy"])
        assert [int(n) for n in re.findall(r"\d+", places)] == [place["line"] for place in finding["places"]][:4]
    if not rows:
        assert found(r"^What would help: none of the fixes that drywarp simulates gains 2%$", text)
    gains = [finding["gain"] for finding in told["findings"]]
    assert gains == sorted(gains, reverse=True)
    assert all(gain > 1 for gain in gains)


@each
def test_parts_add_up(example: str, gpu: str) -> None:
    result, told = answer(example, gpu), json_of(answer(example, gpu))
    prediction, clock, device = told["prediction"], told["assumptions"]["clock_hz"], drywarp.load_gpu(gpu)
    start = prediction["start_s"]
    assert (prediction["time_s"] - start) * clock == pytest.approx(prediction["cycles"], rel=1e-9)
    for name, model in told["models"].items():
        assert (model["time_s"] - start) * clock == pytest.approx(model["cycles"], rel=1e-9)
        here = [p for p in told["curve"][name] if p["occupancy_warps"] == told["occupancy"]["warps_per_sm"]]
        assert [point["time_s"] for point in here] == pytest.approx([model["time_s"]], rel=1e-9)
    assert told["models"][prediction["model"]]["limiter"] == prediction["limiter"]
    # Shares of the lines are of all warp-cycles, which the stall reasons divide too.
    cycles = sum(cost["cycles"] for cost in told["lines"])
    assert cycles == pytest.approx(sum(told["stalls"].values()), rel=1e-9)
    assert sum(cost["share"] for cost in told["lines"]) == pytest.approx(1, rel=1e-9)
    assert all(cost["share"] == pytest.approx(cost["cycles"] / cycles, rel=1e-9) for cost in told["lines"])
    counts, memory, launch = told["instructions"], told["memory"], told["launch"]
    assert sum(counts["by_class"].values()) == pytest.approx(counts["warp_instructions"], rel=1e-9)
    assert memory["dram_bytes"] == memory["dram_read_bytes"] + memory["dram_write_bytes"]
    occupancy = told["occupancy"]
    assert occupancy["warps_per_sm"] == occupancy["blocks_per_sm"] * launch["warps_per_block"]
    assert occupancy["fraction"] == occupancy["warps_per_sm"] / device.occupancy.max_warps_per_sm
    few = min(most for most in occupancy["limits"].values() if most is not None)
    assert occupancy["blocks_per_sm"] == occupancy["limits"][occupancy["limited_by"]] == few
    assert launch["warps_per_block"] == math.ceil(math.prod(launch["block"]) / 32)
    slots = device.device.sm_count * occupancy["blocks_per_sm"]
    assert launch["waves"] == pytest.approx(math.prod(launch["grid"]) / slots)
    resources = told["resources"]
    assert resources["shared_bytes"] == resources["static_shared_bytes"] + launch["dynamic_shared_bytes"]
    assert told["sampling"]["of"] == math.prod(launch["grid"])
    assert told["sampling"]["blocks"] == launch["sampled_blocks"]
    assert told["sampling"]["low"] <= told["sampling"]["estimate"] <= told["sampling"]["high"]
    assert result.time_s == prediction["time_s"]


@each
def test_the_verdict_follows_from_the_figures(example: str, gpu: str) -> None:
    told = json_of(answer(example, gpu))["prediction"]
    only = {name: cycles for name, cycles in told["cycles_if_only_limit"].items() if name != "latency"}
    limiter = told["limiter"]
    assert limiter == max(only, key=lambda name: only[name])
    said = found(
        r"\ALimited by (.*?): in use (\d+%) of the time; the next limit, (.*?), would allow (\S+)× the speed",
        told["verdict"],
    )
    assert said[1] == limit_words(limiter)
    assert says(said[2], told["utilization"][limiter])
    following = max((name for name in only if name != limiter), key=lambda name: only[name])
    assert said[3] == limit_words(following)
    assert says(said[4], told["cycles"] / only[following])


@each
def test_fractions_and_bounds(example: str, gpu: str) -> None:
    told = json_of(answer(example, gpu))
    band, time = told["band"], told["prediction"]["time_s"]
    fractions = [
        *told["prediction"]["utilization"].values(), *(cost["share"] for cost in told["lines"]), band["level"],
        told["occupancy"]["fraction"], told["memory"]["l1_hit_rate"], told["memory"]["l2_hit_rate"],
        told["sampling"]["confidence"],
    ]  # fmt: skip
    assert all(0 <= share <= 1 for share in fractions if share is not None)
    assert band["low_s"] <= band["at_clock"]["low_s"] <= time <= band["at_clock"]["high_s"] <= band["high_s"]
    low, high = band["clock_hz"]
    assert low <= told["assumptions"]["clock_hz"] <= high
    widths = [part["high"] / part["low"] for part in band["parts"]]
    assert widths == sorted(widths, reverse=True)
    assert all(part["low"] <= 1 <= part["high"] for part in band["parts"])
    # No part of the machine is in use longer than the kernel runs, nor the whole shorter than it needs.
    assert all(cycles <= told["prediction"]["cycles"] for cycles in told["prediction"]["cycles_if_only_limit"].values())


def test_the_page_shows_the_figures_of_the_text() -> None:
    result = detailed()
    page, told = html_page(result), json_of(result)
    visible = re.sub(r"<[^>]+>", " ", re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL))
    times = re.findall(TIME, visible)
    assert any(says(text, told["prediction"]["time_s"]) for text in times)
    assert any(says(text, told["band"]["at_clock"]["high_s"]) for text in times)
    assert told["prediction"]["verdict"] in html.unescape(visible)


@each
def test_a_notebook_shows_the_same_figures(example: str, gpu: str) -> None:
    result, told = answer(example, gpu), json_of(answer(example, gpu))
    page = result._repr_html_()
    cells = [html.unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", page)]
    text = "\n".join(html.unescape(line) for line in re.sub(r"<[^>]+>", "\n", page).splitlines() if line.strip())
    head = found(rf"^({TIME})\n \((\d+%) interval ({RANGE})\)$", text)
    band, prediction = told["band"], told["prediction"]
    wanted = (prediction["time_s"], band["level"], band["at_clock"]["low_s"], band["at_clock"]["high_s"])
    assert all(says(shown, value) for shown, value in zip((head[1], head[2], *ends(head[3])), wanted, strict=True))
    assert prediction["verdict"] in text
    extents = [" × ".join(map(str, told["launch"][name])) for name in ("grid", "block")]
    assert f"grid {extents[0]}, block {extents[1]}" in text
    facts = dict(zip(cells[::2], cells[1::2], strict=False))
    line = found(r"\A(\d+) warps per SM \((\d+%)\), limited by (.*)\Z", facts["Occupancy"])
    assert (int(line[1]), line[3].replace(" ", "_")) == (
        told["occupancy"]["warps_per_sm"],
        told["occupancy"]["limited_by"],
    )
    assert says(line[2], told["occupancy"]["fraction"])
    line = found(r"\A(\d+ MHz), (\w+) L2\Z", facts["Clock"])
    assert says(line[1], told["assumptions"]["clock_hz"])
    assert line[2] == told["assumptions"]["l2"]
    line = found(r"\A(\S+ \S*B) DRAM; hit rates L1 (\S+), L2 (\S+)\Z", facts["Memory"])
    assert says(line[1], told["memory"]["dram_bytes"])
    for shown, rate in ((line[2], told["memory"]["l1_hit_rate"]), (line[3], told["memory"]["l2_hit_rate"])):
        assert shown == "–" if rate is None else says(shown, rate)
    line = found(rf"\A({NUMBER}(?: [kMG])?) warp instructions, (\S+) waves\Z", facts["Work"])
    assert says(line[1], told["instructions"]["warp_instructions"])
    assert says(line[2], told["launch"]["waves"])
    for finding in told["findings"][:3]:
        gain = cells[cells.index(f"{finding['rule']}: {finding['remedy']}") - 1]  # two may have the same gain
        assert says(gain, finding["gain"])
    # Two tables of bars, six rows at most, the largest first, each bar as wide as its share.
    total = sum(told["stalls"].values())
    stalls = {name: cycles / total for name, cycles in told["stalls"].items()}
    rows = re.findall(
        r"<td [^>]*>([^<]+)</td><td [^>]*>(\d+\.\d%)</td><td[^>]*><div style=\"height:0.7em;width:(\S+?%)", page
    )
    expected = [sorted(shares.items(), key=lambda item: -item[1])[:6] for shares in (prediction["utilization"], stalls)]
    assert [row[0] for row in rows] == [name for shares in expected for name, _ in shares]
    for (_, shown, width), (_, share) in zip(rows, [pair for shares in expected for pair in shares], strict=True):
        assert says(shown, share)
        assert says(width, share)
