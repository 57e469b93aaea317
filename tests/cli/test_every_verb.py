"""Every verb in every format: exit status, what stands where, and the same figures in text and JSON.

The command line runs in this process. A verb that `drywarp --help` lists and that is not here fails a test.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from drywarp.analysis.result import SCHEMA_VERSION
from drywarp.cli import main
from drywarp.cli.main import VERBS, command_of, run, whole_app
from drywarp.errors import ToolError
from drywarp.experiments.corpus.result import CorpusReport
from drywarp.experiments.corpus.result import Row as CorpusRow
from drywarp.experiments.reproduce import Row
from drywarp.hardware import gpu_names, load_gpu
from drywarp.report.text import json_text
from drywarp.support.folders import packaged_rows

from ..frontends.profiler_reports import WIDE
from ..report.reading import NUMBER, TIME, found, read, says
from ..report.test_golden import answer
from ..sweep.spaces import FILE

ROOT = Path(__file__).parents[2]
SAXPY = ROOT / "examples" / "saxpy.cu"
SMALL = f"{SAXPY} --grid 2000 --occupancy 64"


@dataclass(frozen=True)
class Said:
    """What a command line left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object that standard output holds."""
        told = json.loads(self.out)
        assert isinstance(told, dict)
        return told


def say(line: str) -> Said:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "400")
        status = run(shlex.split(line))
    return Said(status, out.getvalue(), err.getvalue())


# Verb -> a line that works, with the formats it has beside text; in them FOLDER is a folder with what they need.
WORKING = {
    "analyze": f"analyze {SMALL}",
    "analyze --list-loops": f"analyze {SAXPY.parent}/collatz.cu --gpu h100 --static --list-loops",
    "list": f"list {SAXPY} --gpu h100",
    "gpus": "gpus",
    "gpus NAME": "gpus h100",
    "doctor": "doctor",
    "cache": "cache",
    "models": "models papers/example --gpu papers/example --occupancy 1-12",
    "profile": "profile papers/example --warps 10 --policy oldest_first",
    "counts": f"counts {SAXPY} --grid 2000",
    "import-ncu": "import-ncu FOLDER/ncu.csv",
    "workloads": "workloads",
    "workloads NAME": "workloads papers/alpha-mix",
    "cusp": "cusp --alpha 8,16,49",
    "explain": "explain",
    "explain NAME": "explain tail-effect",
    "compare": "compare FOLDER/base.json FOLDER/slower.json",
    "benefits": f"benefits {SAXPY} '{SAXPY} --block 128 --grid 4000' --gpu h100 --grid 2000",
    "rank": f"rank {SAXPY} --gpu a100,t4 --grid 2000 --price t4=0.3",
}
# These start processes, need a card or wait for a browser: what they refuse is here, what they do beside their rooms.
ELSEWHERE = {"reproduce", "corpus", "validate", "measure", "serve", "calibrate", "sweep", "run"}
# Verb -> bad input, and what the one line says of it.
REFUSED = {
    "analyze": ("FOLDER/none.cu", "FOLDER/none.cu: no such file"),
    "list": ("FOLDER/none.cu", "FOLDER/none.cu: no such file"),
    "gpus": ("a1000", "unknown GPU 'a1000'"),
    "doctor": ("--jsn", "--jsn"),
    "cache": ("burn", "burn"),
    "models": ("papers/nothing", "papers/nothing"),
    "profile": ("papers/example --warps 99", "--warps 99: expected a multiple of 1 (the warps of one block) up to 64"),
    "counts": (f"{SAXPY} --arg n=many", "argument n (int): got 'many', expected a number"),
    "import-ncu": ("FOLDER/empty.csv", "FOLDER/empty.csv"),
    "workloads": ("papers/nothing", "papers/nothing"),
    "cusp": ("--alpha 8-1", "--alpha '8-1': expected a range of positive numbers"),
    "explain": ("no-such-rule", "no-such-rule"),
    "compare": ("FOLDER/base.json FOLDER/broken.json", "FOLDER/broken.json"),
    "rank": (f"{SAXPY} --gpu a100 --price a100=cheap", "--price a100=cheap: expected a number"),
    "benefits": (f"{SAXPY} FOLDER/none.cu --grid 2000", "FOLDER/none.cu: no such file"),
    "reproduce": ("--json --markdown", "--json and --markdown: expected only one of them"),
    "corpus": ("FOLDER/none", "FOLDER/none"),
    "validate": ("FOLDER/none.csv --kernel none.cu", "FOLDER/none.csv"),
    "measure": ("FOLDER/none --out FOLDER/rows.csv --simulated a100", "FOLDER/none"),
    "serve": ("--port 99999999", "port"),
    "calibrate": ("-o FOLDER/mine.csv", "-o FOLDER/mine.csv: expected a file name that ends in .toml"),
    "sweep": ("FOLDER/broken.toml", "(at line 2, "),
    "run": ("--json FOLDER/none/run.json -- true", "none/run.json: its folder does not exist"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("said")
    base = json.loads(json_text(answer("saxpy", "a100").to_dict()))
    for name, factor in (("base", 1.0), ("slower", 1.06), ("faster", 0.94)):
        told = {**base, "prediction": {**base["prediction"], "time_s": base["prediction"]["time_s"] * factor}}
        (made / f"{name}.json").write_text(json_text(told))
    (made / "broken.json").write_text('{"schema_version": 1}')
    (made / "broken.toml").write_text('kernel = "a.cu"\nparameters = \n')
    (made / "ncu.csv").write_text(WIDE)
    (made / "empty.csv").write_text("")
    return made


@pytest.fixture(scope="module")
def spoken(folder: Path) -> dict[tuple[str, str], Said]:
    """Every line that works, once as text and once with --json."""
    return {
        (name, form): say(f"{line.replace('FOLDER', str(folder))} {form}")
        for name, line in WORKING.items()
        for form in ("", "--json")
    }


def test_no_verb_is_forgotten() -> None:
    command = typer.main.get_command(whole_app())
    verbs = set(command.commands)  # type: ignore[attr-defined]
    assert verbs == set(VERBS)
    assert {name.split()[0] for name in WORKING} | ELSEWHERE == verbs
    assert set(REFUSED) == verbs


@pytest.mark.parametrize("verb", VERBS)
def test_the_list_of_verbs_shows_what_their_help_begins_with(verb: str) -> None:
    assert VERBS[verb]["help"] == (command_of(verb).__doc__ or "").split("\n")[0]


def test_every_line_on_options_belongs_to_a_verb() -> None:
    """One that no verb has is left over from an option that is gone."""
    path = Path(main.__file__).with_name("options.csv")
    helps = {one.help for command in typer.main.get_command(whole_app()).commands.values() for one in command.params}  # type: ignore[attr-defined]
    assert {row["help"] for row in packaged_rows(path)} - helps == {"Print the version and exit."}


@pytest.mark.parametrize("verb", VERBS)
def test_no_help_text_loses_brackets_as_markup(verb: str) -> None:
    command = typer.main.get_command(whole_app()).commands[verb]  # type: ignore[attr-defined]
    assert not [one.name for one in command.params if re.search(r"\[[a-z#/@]", getattr(one, "help", None) or "")]


@pytest.mark.parametrize("name", WORKING)
def test_what_works_ends_with_0_and_complains_of_nothing(name: str, spoken: dict[tuple[str, str], Said]) -> None:
    for form in ("", "--json"):
        said = spoken[name, form]
        assert (said.status, said.err) == (0, "")
    text, told = spoken[name, ""].out, spoken[name, "--json"].json
    assert text.strip()
    assert not text.startswith("{")
    assert told["schema_version"] == SCHEMA_VERSION
    assert told["versions"]["drywarp"]


@pytest.mark.parametrize("verb", REFUSED)
def test_bad_input_ends_with_2_and_one_line(verb: str, folder: Path) -> None:
    line, expected = (part.replace("FOLDER", str(folder)) for part in REFUSED[verb])
    has_json = "--json" in say(f"{verb} --help").out
    assert has_json or verb in ("serve", "measure", "calibrate")
    for form in ("", "--json") if has_json and "--json" not in line else ("",):
        said = say(f"{verb} {line} {form}")
        assert (said.status, said.out) == (2, ""), said
        assert len(said.err.splitlines()) == 1
        assert said.err.startswith("drywarp: ")
        assert expected in said.err
        assert "Traceback" not in said.err


def test_a_sweep_predicts_rows_that_failed_again_only_if_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = tmp_path / "space.toml"
    space.write_text(FILE)
    line = f"sweep {space} --gpu a100 --jobs 1 --out {tmp_path}/rows.jsonl --json"
    asked = 0

    def failing(task: object, rows: list[tuple[int, object]], *_: object) -> Iterator[tuple[int, str, float]]:
        nonlocal asked
        asked += len(rows)
        yield from ((number, "it takes too long", 0.1) for number, _ in rows)

    monkeypatch.setattr("drywarp.experiments.sweep.run_rows", failing)
    all_of_them = int(say(f"sweep {space} --gpu a100 --count").out)
    for flag, in_all in (("", 1), ("", 1), ("--retry-failed", 2), ("", 2)):
        said = say(f"{line} {flag}")
        assert (said.status, said.err) == (0, "")
        assert said.json["configurations"] == {"total": all_of_them, "predicted": 0}
        assert asked == in_all * all_of_them


# ---- The gate


@pytest.mark.parametrize("form", ["", "--json", "--markdown"])
@pytest.mark.parametrize(("old", "new", "allowed", "status"), [
    ("base", "slower", "--fail-above 5%", 1), ("base", "slower", "--fail-above 7%", 0), ("base", "slower", "", 0),
    ("base", "base", "--fail-above 0%", 0), ("base", "faster", "--fail-above 0%", 0),
    ("faster", "base", "--fail-above 6%", 1),
])  # fmt: skip
def test_the_gate_is_the_exit_status_in_every_format(
    form: str, old: str, new: str, allowed: str, status: int, folder: Path
) -> None:
    said = say(f"compare {folder}/{old}.json {folder}/{new}.json {allowed} {form}")
    assert (said.status, said.err) == (status, "")
    factors = {"base": 1.0, "slower": 1.06, "faster": 0.94}
    change = factors[new] / factors[old] - 1
    if form == "--json":
        (gpu,) = said.json["gpus"]
        assert said.json["regressed"] == gpu["regressed"] == bool(status)
        assert gpu["change"] == pytest.approx(change)
        assert gpu["ratio"] == pytest.approx(1 + change)
        assert said.json["fail_above"] == (float(allowed.split()[1][:-1]) / 100 if allowed else None)
        return
    head = said.out.splitlines()[0]
    if form == "--markdown":
        assert head.startswith("### " + ("🔴" if status else "🟢" if allowed else "⚪"))
        assert ("limit" in head) == bool(allowed)
    else:
        assert ("more than the" in head) == bool(status)
        assert ("within the" in head) == bool(allowed and not status)
        assert head.endswith("allowed" if allowed else "on a100"), "one GPU is not named twice"
    if change:
        shown, word = found(r"(\d+\.\d%) (slower|faster) on", head).groups()
        assert says(shown, abs(change))
        assert word == ("slower" if change > 0 else "faster")


def test_a_comparison_shows_the_figures_of_its_json(spoken: dict[tuple[str, str], Said]) -> None:
    text, (gpu,) = spoken["compare", ""].out, spoken["compare", "--json"].json["gpus"]
    row = found(rf"^a100  ({TIME})  ({TIME})  (\+\S+%)  (.*?)  (\d+) \((\d+%)\)$", text)
    assert says(row[1], gpu["old"]["time_s"])
    assert says(row[2], gpu["new"]["time_s"])
    assert says(row[3], gpu["change"])
    assert int(row[5]) == gpu["new"]["occupancy"]["warps_per_sm"]
    assert says(row[6], gpu["new"]["occupancy"]["fraction"])
    assert sum(line["change_s"] for line in gpu["lines"]) == pytest.approx(gpu["new"]["time_s"] - gpu["old"]["time_s"])
    shown = re.findall(rf"^([-+])({TIME}) +(?:same|edited|added|removed)", text, re.MULTILINE)
    for (sign, time), line in zip(shown, gpu["lines"], strict=False):
        assert says(time, abs(line["change_s"]))
        assert sign == ("+" if line["change_s"] > 0 else "-")


# ---- Checks that fail


@pytest.fixture
def broken_disassembler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ToolError("nvdisasm cannot be run")

    monkeypatch.setattr("drywarp.cli.doctor.disassemble", fail)


@pytest.mark.usefixtures("broken_disassembler")
def test_a_broken_installation_ends_with_1_in_every_format() -> None:
    text, told = say("doctor"), say("doctor --json")
    assert (text.status, text.err, told.status, told.err) == (1, "", 1, "")
    assert not told.json["healthy"]
    assert found(r"^nvdisasm +broken .*nvdisasm cannot be run", text.out)


@pytest.mark.parametrize("form", ["", "--json", "--markdown"])
@pytest.mark.parametrize(("computed", "status"), [(25.0, 0), (26.0, 1)])
def test_a_number_that_is_not_reproduced_ends_with_1(
    form: str, computed: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Row("analysis", "Table 2", "cycles of one warp", 25.0, computed, 0.5, "failed" if status else "reproduced")
    monkeypatch.setattr("drywarp.experiments.reproduce.reproduce", lambda: [row])
    said = say(f"reproduce {form}")
    assert (said.status, said.err) == (status, "")
    if form == "--json":
        (told,) = said.json["rows"]
        assert (told["published"], told["computed"]) == (25.0, computed)
    else:
        assert f"{computed:g}" in said.out


@pytest.mark.parametrize("form", ["", "--json"])
@pytest.mark.parametrize("status", [0, 1])
def test_a_module_that_is_not_analysed_ends_with_1(
    form: str, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = (CorpusRow(file="a.cu", status="failed" if status else "analysed", stage="emulate", reason="no"),)
    monkeypatch.setattr(
        "drywarp.experiments.corpus.run_corpus", lambda *_, **__: CorpusReport("a", "a100", "0", rows, 1.0)
    )
    said = say(f"corpus {tmp_path} {form}")
    assert (said.status, said.err) == (status, "")
    assert said.json["rows"] if form else "1 modules for a100" in said.out


# ---- The same figures in text and JSON


def test_a_ranking_in_its_units(spoken: dict[tuple[str, str], Said]) -> None:
    text, told = spoken["rank", ""].out, spoken["rank", "--json"].json
    best = told["gpus"][0]
    for gpu in told["gpus"]:
        row = found(
            rf"^{gpu['gpu']} +({TIME})  ({TIME}) to ({TIME})  (\S+) +(.*?)  +"
            r"(\d+) \((\d+%)\) +(\d+) W +(\S+ \S*J) +(\S+)$",
            text,
        )
        for shown, value in (
            (row[1], gpu["time_s"]), (row[2], gpu["low_s"]), (row[3], gpu["high_s"]), (row[7], gpu["occupancy"]),
            (row[4], gpu["time_s"] / best["time_s"]), (row[9], gpu["energy_at_tdp_j"]),
        ):  # fmt: skip
            assert says(shown, value), (shown, value)
        assert (int(row[6]), float(row[8])) == (gpu["warps_per_sm"], gpu["tdp_w"])
        assert gpu["energy_at_tdp_j"] == pytest.approx(gpu["tdp_w"] * gpu["time_s"])
        assert (gpu["time_s"] - gpu["start_s"]) * gpu["clock_hz"] == pytest.approx(gpu["cycles"])
        assert gpu["low_s"] <= gpu["time_s"] <= gpu["high_s"]
        assert (gpu["cost"] is None) == (row[10] == "–") == (gpu["gpu"] != "t4")
        if gpu["cost"] is not None:  # per hour: 3600 s; shown for a million runs
            assert gpu["cost"] == pytest.approx(gpu["price_per_hour"] / 3600 * gpu["time_s"])
            assert says(row[10], gpu["cost"] * 1e6)
    assert says(found(rf"fastest on .*, ({TIME})$", text)[1], best["time_s"])


def test_counts_digit_by_digit(spoken: dict[tuple[str, str], Said]) -> None:
    text, told = spoken["counts", ""].out, spoken["counts", "--json"].json
    shown = dict(re.findall(rf"^([a-z][\w.]+) +({NUMBER})$", text, re.MULTILINE))
    metrics = told["counts"]
    assert set(shown) == {name for name, value in metrics.items() if value or name == "smsp__inst_executed.sum"}
    assert all(says(text, metrics[name]) for name, text in shown.items())
    assert all(("." in text) == isinstance(metrics[name], float) for name, text in shown.items())
    # 2,000 blocks of 256 threads; x and y are read, y is written: 8 sectors of each for the 4 · 32 = 128 bytes.
    warps = 2000 * 256 // 32
    assert metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == warps * 8
    assert metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == warps * 4


def test_an_import_in_base_units(spoken: dict[tuple[str, str], Said]) -> None:
    text, told = spoken["import-ncu", ""].out, spoken["import-ncu", "--json"].json
    times = re.findall(TIME, text)
    measured = [kernel["metrics"].get("gpu__time_duration.sum") for kernel in told["kernels"]]
    assert measured[0] == pytest.approx(456.7e-6)  # the export prints 456.70 in a column of µs
    assert len(times) == len(measured)
    assert all(says(shown, time) for shown, time in zip(times, measured, strict=True))
    assert f": {len(told['kernels'])} launches" in text.splitlines()[0]


def test_gpus_and_their_numbers(spoken: dict[tuple[str, str], Said]) -> None:
    text, told = spoken["gpus", ""].out, spoken["gpus", "--json"].json
    listed, _, also = text.partition("\n\nAliases\n")
    assert [gpu["name"] for gpu in told["gpus"]] == gpu_names() == [line.split()[0] for line in listed.splitlines()[1:]]
    for gpu in told["gpus"]:
        assert (f"\n  {gpu['name']}: {', '.join(gpu['aliases'])}\n" in f"\n{also}") is bool(gpu["aliases"])
    for gpu in map(load_gpu, gpu_names()):
        if not gpu.abstract_only:
            row = found(rf"^{gpu.name} .*  (\S+) +(\d+) +(\d+) MHz +(\S+) GB/s$", text)
            facts = (gpu.device.sm_count, gpu.device.boost_clock_mhz, gpu.memory.dram.peak_gbs)
            assert tuple(map(float, row.groups()[1:])) == facts
            assert row[1] == (gpu.arch if gpu.is_amd else gpu.compute_capability)
    text, facts_of = spoken["gpus NAME", ""].out, spoken["gpus NAME", "--json"].json["facts"]
    for key, fact in facts_of.items():
        value = fact["value"]
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        number = re.escape(f"{shown} {fact['unit']}".strip())
        assert found(rf"^{re.escape(key)} +{number} +{fact['kind']} +{fact['source']}$", text)


def test_curves_of_an_abstract_kernel(spoken: dict[tuple[str, str], Said]) -> None:
    text, told = spoken["models", ""].out, spoken["models", "--json"].json
    shown = [int(warps) for warps in found(r"^ +model +(.*?) +bound +time at 12$", text)[1].split()]
    said = [(name, points) for name, points in told["models"].items() if points]
    assert len(said) > 10
    for name, points in said:
        *cells, time = re.split(r"  +", found(rf"^.  {name} +(.*)$", text)[1])
        by_warps = {point["occupancy_warps"]: point for point in points}
        for warps, cell in zip(shown, cells, strict=False):
            point = by_warps.get(warps)
            assert cell == "–" if point is None else float(cell) == pytest.approx(point["warps_per_cycle"], rel=1e-3)
        # Twelve warps at once at 1000 MHz: a nanosecond a cycle.
        last = by_warps[12]
        assert says(time, 12 / last["warps_per_cycle"] * 1e-9)
        if last["cycles_per_run"] is not None:
            assert last["cycles_per_run"] == pytest.approx(12 / last["warps_per_cycle"])
    for name, reason in told["not_applicable"].items():
        assert found(rf"^{name} +{re.escape(reason)}$", text)


def test_needed_occupancy(spoken: dict[tuple[str, str], Said]) -> None:
    text, told = spoken["cusp", ""].out, spoken["cusp", "--json"].json
    line = found(r"^cusp at α = (\S+): (\S+) warps per SM of (\d+)", text)
    assert says(line[1], told["cusp"]["alpha"])
    assert says(line[2], told["cusp"]["needed_warps"])
    assert int(line[3]) == told["max_warps"]
    heads = found(r"^α +bound +(.*)$", text)[1].split()
    assert heads == list(told["models"])
    for index, alpha in enumerate((8, 16, 49)):
        cells = found(rf"^{alpha} +(\S+) +(.*)$", text)
        points = [points[index] for points in told["models"].values()]
        assert {point["alpha"] for point in points} == {alpha}
        assert {point["bound"] for point in points} == {cells[1]}
        for shown, point in zip(cells[2].split(), points, strict=True):
            assert shown == "–" if point["needed_warps"] is None else says(shown, point["needed_warps"])


def test_the_kernels_of_a_file(spoken: dict[tuple[str, str], Said]) -> None:
    text, (one,) = spoken["list", ""].out, spoken["list", "--json"].json["kernels"]
    row = found(r"^saxpy +(\d+) +(\S+ B) +(\S+ B) +launch comment$", text)
    assert int(row[1]) == one["registers"]
    assert (read(row[2])[0], read(row[3])[0]) == (one["shared_bytes"], one["spill_bytes"])
    assert found(r"^saxpy\((.*)\)$", text)[1] == one["signature"]
    assert f"    {one['command']}\n" in text
    assert one["placeholders"] == []


def test_lists_name_the_same_things(spoken: dict[tuple[str, str], Said]) -> None:
    explained = ("rules", "stall_reasons", "limiters")
    for verb, keys in (("workloads", ("workloads",)), ("explain", explained), ("doctor", ("parts",))):
        text, told = spoken[verb, ""].out, spoken[verb, "--json"].json
        names = [entry["name"] for key in keys for entry in told[key]]
        assert len(names) > 5
        shown = [line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith(" ")]
        assert [name for name in shown if name in names] == names, verb
    text, told = spoken["cache", ""].out, spoken["cache", "--json"].json
    line = found(r"^(.*): holds (\d+) kernels, (\S+ \S*B) with", text)
    # Other tests fill the same cache meanwhile.
    assert line[1] == told["folder"]
    assert 0 < int(line[2]) <= told["entries"]
    assert 0 < read(line[3])[0] <= told["bytes"] * 1.02


@pytest.fixture(autouse=True)
def _no_leftovers(folder: Path) -> Iterator[None]:
    before = sorted(folder.iterdir())
    yield
    assert sorted(folder.iterdir()) == before
