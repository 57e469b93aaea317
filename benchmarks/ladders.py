"""Optimisation ladders on GPUs that need not be there: is each rung faster, and is it advised on the rung before?

    python -m benchmarks.ladders                            # all of examples/ladders on an A100
    python -m benchmarks.ladders reduction --gpu h100
    python -m benchmarks.ladders sgemm nbody --gpu a100 --gpu h100 --gpu rtx4090
    python -m benchmarks.ladders reduction/modulo
    python -m benchmarks.ladders sgemm --plot sgemm.svg     # its rungs as bars, too

For one GPU a table a ladder: predicted time, speed-up over the rung before, what limits it, the finding that would gain
most, and whether that is what the next rung does. For several GPUs a column each, without findings.
docs/ladders.md describes the ladders' files. Exit status 1 where a rung is slower than the one before and its file does
not say why, or where, on an A100, the findings are not those that the files say.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

import drywarp
from drywarp.analysis.prepare import prepare_kernel
from drywarp.analysis.result import Analysis
from drywarp.errors import DrywarpError, InputFileError, UsageError
from drywarp.frontends.loaded import LaunchEntry
from drywarp.models import get_model
from drywarp.report import figures

FOLDER = Path(__file__).parents[1] / "examples" / "ladders"
SPACE = "space.toml"
"""A space of variants beside a ladder, for `drywarp sweep`."""
USUAL = "a100"
"""The GPU for which the ladders' files say what is found."""


class Rung(LaunchEntry, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A launch of a ladder: the keys of a launches file, and where the rung stands.

    `fixes` are rules: what this rung does about the one before. The top finding there is one of them, unless
    `elsewhere` says why it is not. `slower` says who found that this rung does not pay.
    """

    name: str
    title: str
    file: str
    kernel: str
    fixes: tuple[str, ...] = ()
    elsewhere: str | None = None
    slower: str | None = None


class Ladder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a ladder's file holds; speed-ups are over the rung before, or all over the first."""

    title: str
    source: str
    rung: Annotated[tuple[Rung, ...], msgspec.Meta(min_length=2)]
    against: Literal["before", "first"] = "before"


def ladder_files() -> list[str]:
    """All ladders by name, such as ``reduction`` and ``reduction/modulo``."""
    files = sorted(path for path in FOLDER.glob("*/*.toml") if path.name != SPACE)
    return sorted(path.relative_to(FOLDER).with_suffix("").as_posix().removesuffix("/ladder") for path in files)


def read_ladder(name: str) -> Ladder:
    """Raises InputFileError naming the file and what was expected."""
    path = FOLDER / (name if "/" in name else f"{name}/ladder")
    path = path.with_suffix(".toml")
    if not path.is_file():
        raise InputFileError(f"{name}: no such ladder; expected one of {', '.join(ladder_files())}")
    try:
        return msgspec.convert(tomllib.loads(path.read_text()), Ladder)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InputFileError(f"{path}: {error}") from None


def _launch(name: str, rung: Rung, gpu: str) -> dict[str, Any]:
    return {
        "source": FOLDER / name.split("/")[0] / rung.file,
        "gpu": gpu,
        "entry": rung.kernel,
        "grid": rung.grid,
        "block": rung.block,
        "args": rung.args,
        "shared": rung.shared,
        "constants": rung.constants,
        "defines": {key: str(value) for key, value in rung.defines.items()},
    }


def predict(name: str, rung: Rung, gpu: str = USUAL) -> Analysis:
    """The answer for one rung of the ladder `name`, at its own occupancy alone, with findings."""
    return drywarp.analyze(**_launch(name, rung, gpu), occupancies=range(0))


def time_s(name: str, rung: Rung, gpu: str = USUAL) -> float:
    """The time of that answer alone, sooner."""
    bound = prepare_kernel(**_launch(name, rung, gpu)).costed
    return get_model("pipeline").predict(bound, [bound.warps_per_sm]).time_s


def gains(ladder: Ladder, times: Sequence[float]) -> list[float]:
    """Speed-ups of the rungs after the first, as the ladder counts them."""
    bases = times if ladder.against == "before" else [times[0]] * len(times)
    return [base / time for base, time in zip(bases, times[1:], strict=False)]


def in_order(ladder: Ladder, times: Sequence[float]) -> bool:
    """Whether every rung is faster than the one before, but for those that are known not to be."""
    found = zip(ladder.rung[1:], gains(ladder, times), strict=True)
    return ladder.against == "first" or all(gain > 1 or rung.slower is not None for rung, gain in found)


def as_said(rules: Sequence[str], following: Rung) -> bool:
    """Whether the top one of these findings is what the next rung fixes, or is not where its file says so."""
    return (bool(rules) and rules[0] in following.fixes) == (following.elsewhere is None)


def one_gpu(name: str, gpu: str, plot: Path | None = None) -> bool:
    """Print a ladder with its findings, and draw it where told; whether all is as its file says."""
    ladder = read_ladder(name)
    steps = ladder.against == "before"
    print(f"\n{ladder.title}, {gpu}\n")
    print(
        f"| rung | what is new | predicted time | over the {'one before' if steps else 'first'} | limited by ", end=""
    )
    print("| top finding | the next rung's |" if steps else "| top finding |")
    print("|---" * (7 if steps else 6) + "|")
    times: list[float] = []
    bars: list[figures.Bar] = []
    right = True
    notes = []
    for number, rung in enumerate(ladder.rung):
        answer = predict(name, rung, gpu)
        times.append(answer.time_s)
        gain = gains(ladder, times)[-1] if number else 1.0
        top = [f"{finding.rule} {finding.gain:.2f}" for finding in answer.findings[:1]]
        cells = [rung.name, rung.title, f"{answer.time_s * 1e6:.1f} µs", f"{gain:.2f}" if number else ""]
        cells += [answer.limiter, *(top or ["none"])]
        bars.append(figures.Bar(rung.name, answer.time_s, note=answer.limiter))
        if steps and number + 1 < len(ladder.rung):
            following = ladder.rung[number + 1]
            rules = [finding.rule for finding in answer.findings]
            cells.append("yes" if rules and rules[0] in following.fixes else _later(rules, following))
            right &= as_said(rules, following)
            if following.elsewhere:
                notes.append(f"{rung.name}: {following.elsewhere}.")
        elif steps:
            cells.append("")
        print("| " + " | ".join(cells) + " |", flush=True)
    if gpu == USUAL:
        print(*["", *notes], sep="\n")
    if plot:
        figures.write(figures.bars(bars, f"{ladder.title}, {gpu}"), plot, "--plot")
    return in_order(ladder, times) and (right or gpu != USUAL)


def _later(rules: Sequence[str], following: Rung) -> str:
    places = [number for number, rule in enumerate(rules, 1) if rule in following.fixes]
    return f"no, {places[0]} of {len(rules)}" if places else "no"


def several_gpus(name: str, gpus: Sequence[str]) -> bool:
    """Print the times on each GPU; whether each has the rungs in order."""
    ladder = read_ladder(name)
    print(f"\n{ladder.title}: predicted µs, and speed-up over the {ladder.against.replace('before', 'one before')}\n")
    print("| rung | " + " | ".join(gpus) + " |\n" + "|---" * (1 + len(gpus)) + "|")
    times: dict[str, list[float]] = {gpu: [] for gpu in gpus}
    for rung in ladder.rung:
        cells = []
        for gpu, so_far in times.items():
            so_far.append(time_s(name, rung, gpu))
            over = f", {gains(ladder, so_far)[-1]:.2f}" if len(so_far) > 1 else ""
            cells.append(f"{so_far[-1] * 1e6:.1f}{over}")
        print("| " + " | ".join([rung.name, *cells]) + " |", flush=True)
    return all(in_order(ladder, found) for found in times.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ladders", nargs="*", help="all unless named: " + ", ".join(ladder_files()))
    parser.add_argument("--gpu", action="append", help=f"a GPU's name or file, {USUAL} unless told; may be repeated")
    parser.add_argument("--plot", type=Path, help="draw one ladder on one GPU: FILE.svg or FILE.png")
    asked = parser.parse_args()
    gpus = asked.gpu or [USUAL]
    names = asked.ladders or ladder_files()
    try:
        if asked.plot:
            if len(names) > 1 or len(gpus) > 1:
                raise UsageError(f"--plot {asked.plot}: expected one ladder and one GPU")
            figures.check_place(asked.plot, "--plot")
        done = [several_gpus(name, gpus) if len(gpus) > 1 else one_gpu(name, gpus[0], asked.plot) for name in names]
    except DrywarpError as error:
        print(error, file=sys.stderr)
        return 2
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
