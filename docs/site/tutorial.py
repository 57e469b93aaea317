"""The figures of docs/tutorial.md: every step's prediction, and what advice promises of the next one.

    python -m docs.site.tutorial            # asks all advice on every step, minutes; writes the page
    python -m docs.site.tutorial 4 5        # those steps alone; the page keeps what it says of the others

Between a pair of comments, such as `<!-- step 4 -->` and `<!-- /step 4 -->`, the page belongs to this program.
"""

from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import asdict, dataclass

from rich.console import Console

import drywarp
from drywarp.analysis.result import Analysis
from drywarp.report.terminal import print_analysis
from drywarp.support.text import time_text

from .links import ROOT

PAGE = ROOT / "docs" / "tutorial.md"
FIGURES = ROOT / "examples" / "tutorial" / "figures.json"
GPU = "a100"
FIRST_IN_FULL = 4
FOLLOWED = ("uncoalesced-access", "redundant-loads", "redundant-loads", "occupancy-registers", "barrier-waits", "")
"""Which finding of a step the next one follows; the last follows none of them, as the page says."""
_SHOWN = (*(r"^\S+ [µmn]?s  predicted", r"^Limited by", r"^Latency-bound", r"^Time by line", r"^What would help"),)
"""Which paragraphs of what `drywarp analyze` prints."""


@dataclass(frozen=True)
class Step:
    """A kernel and what was predicted of it. `findings` are (rule, gain), most first; `text` is what was printed."""

    file: str
    time_s: float
    limiter: str
    warps: int
    findings: tuple[tuple[str, float], ...]
    text: str = ""


def files() -> list[str]:
    """The kernels in their order."""
    return [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "examples" / "tutorial").glob("step*.cu"))]


def in_full(file: str) -> bool:
    """Gains of the later steps are small: a what-if that simulates a part of the run would be off by as much."""
    return files().index(file) + 1 >= FIRST_IN_FULL


def command(file: str) -> str:
    """What the page says that a reader types."""
    return f"drywarp analyze {file} --gpu {GPU} --advice{' --full-simulation' if in_full(file) else ''}"


def ask(file: str, advice: bool = True) -> Step:
    """Predict a step; without `advice` with the findings that need no other build."""
    answer = drywarp.analyze(str(ROOT / file), gpu=GPU, advice=advice, full_simulation=in_full(file))
    found = tuple((finding.rule, finding.gain) for finding in answer.findings)
    return Step(file, answer.time_s, answer.limiter, answer.occupancy.warps_per_sm, found, shown(answer))


def shown(answer: Analysis) -> str:
    """The parts of the printed answer that the page shows."""
    stream = io.StringIO()
    print_analysis(answer, Console(file=stream, width=100, highlight=False))
    kept = []
    for paragraph in stream.getvalue().split("\n\n"):
        lines = [line.rstrip() for line in paragraph.splitlines()]
        if lines and any(re.match(pattern, lines[0]) for pattern in _SHOWN):
            kept.append("\n".join(_part(lines)))
    return "\n\n".join(kept)


def _part(lines: list[str]) -> list[str]:
    """Of a paragraph what matters here."""
    if "predicted" in lines[0]:
        return lines[:1]
    if lines[0].startswith("What would help"):
        third = [number for number, line in enumerate(lines) if re.match(r" *\d+\.\d+×", line)][2:3]
        return lines[: third[0] if third else len(lines)]
    return lines


def known() -> list[Step]:
    """What the page says now, from the file beside the kernels."""
    rows = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else []
    return [Step(**{**row, "findings": tuple((rule, gain) for rule, gain in row["findings"])}) for row in rows]


def summary(steps: list[Step]) -> str:
    """The table of all steps: what advice promised of each, and what came."""
    rows = [
        "| step | predicted time | over previous | promised | over the first | limited by |",
        "|---|---|---|---|---|---|",
    ]
    for number, (before, step) in enumerate(zip([None, *steps], steps, strict=False), 1):
        gain = f"{before.time_s / step.time_s:.2f}" if before else ""
        rule = FOLLOWED[number - 2] if before else ""
        promise = f"{dict(before.findings)[rule]:.2f} (`{rule}`)" if before and rule else ""
        over = f"{steps[0].time_s / step.time_s:.1f}"
        name = f"[{number}](#step-{number})"
        rows.append(f"| {name} | {time_text(step.time_s)} | {gain} | {promise} | {over} | {step.limiter} |")
    return "\n".join(rows)


def block(step: Step) -> str:
    """Kernel, command and answer of a step."""
    source = (ROOT / step.file).read_text(encoding="utf-8")
    body = source.partition("\n\n")[2].rstrip()
    excuse = "<!-- not run: it takes a minute; tests/docs/test_tutorial.py checks the figures -->"
    run = f"{excuse}\n\n    {command(step.file)}"
    return f"[{step.file}](../{step.file})\n\n```cuda\n{body}\n```\n\n{run}\n\n```text\n{step.text}\n```"


def placed(page: str, name: str, text: str) -> str:
    """The page with `text` between the comments of `name`."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{PAGE}: expected <!-- {name} --> and <!-- /{name} -->")
    return pattern.sub(lambda found: f"{found[1]}\n{text}\n{found[2]}", page)


def written(page: str, steps: list[Step]) -> str:
    """The page with all figures."""
    page = placed(page, "summary", summary(steps))
    for number, step in enumerate(steps, 1):
        page = placed(page, f"step {number}", block(step))
    return page


def main(arguments: list[str]) -> None:
    """Ask, and write."""
    old = {step.file: step for step in known()}
    for number, file in enumerate(files(), 1):
        if not arguments or str(number) in arguments or file not in old:
            old[file] = ask(file)
            print(f"{file}: {time_text(old[file].time_s)}", flush=True)
    steps = [old[file] for file in files()]
    text = json.dumps([asdict(step) for step in steps], indent=1, ensure_ascii=False)
    FIGURES.write_text(f"{text}\n", encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), steps), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
