"""`drywarp measure`: time a suite of kernels on a GPU, over block sizes and occupancies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from . import options as take
from .progress import rated, resumable

if TYPE_CHECKING:
    from ..experiments.measure import Measured, MeasuredLaunch, Runner


def measure_command(
    suite: Annotated[str, typer.Argument(help="Folder with TOML files that describe kernels, or one such file.")],
    *,
    out: Annotated[
        str,
        typer.Option("--out", "-o", help="Append each row when it is done (.csv); skip existing rows.", metavar="FILE"),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Measure only these kernels, or TOML files without .toml; * matches anything. Repeatable.",
            metavar="NAME",
        ),
    ] = None,
    device: take.DeviceIndex = 0,
    simulated: Annotated[
        str | None,
        typer.Option(help="Instead of a real GPU: drywarp's prediction for this GPU, with noise.", metavar="NAME|FILE"),
    ] = None,
    seed: Annotated[int, typer.Option(help="With --simulated: random seed for the noise.")] = 0,
    small: Annotated[
        bool, typer.Option("--small", help="Use the suite's small problem sizes, for a quick try.")
    ] = False,
    occupancies: Annotated[int, typer.Option(help="Maximum number of occupancies per block size.", min=1)] = 8,
    samples: Annotated[int, typer.Option(help="Samples per launch; the median is reported.", min=1)] = 15,
    counters: Annotated[
        bool, typer.Option("--counters/--no-counters", help="Also collect hardware counters if ncu is installed.")
    ] = True,
) -> int:
    """Measure a suite of kernels on a GPU, as a table for `drywarp validate`. No GPU setting is changed.

    Exit status 1 if a kernel's output differs from NumPy's.
    """
    from ..experiments.measure import Counters, find_ncu, measure

    with _runner(device, simulated, seed, samples, small) as runner, rated() as shown, resumable(shown, out) as tell:
        ncu = find_ncu() if counters and simulated is None else None
        profile = Counters(ncu, device, small) if ncu else None

        def on_row(row: MeasuredLaunch, done: int, of: int) -> None:
            tell(_line(row), done, of)

        found = measure(
            suite, out, runner, only=only or (), small=small, points=occupancies, profile=profile, on_row=on_row
        )
    return _show(found, out, runner, profile.note if profile else "" if simulated else "no counters: ncu not found")


def _runner(device: int, simulated: str | None, seed: int, samples: int, small: bool) -> _Held:
    if simulated is None and seed:
        raise UsageError("--seed requires --simulated")
    return _Held(device, simulated, seed, samples, small)


class _Held:
    """A context manager for the runner and the GPU that it has open."""

    def __init__(self, device: int, simulated: str | None, seed: int, samples: int, small: bool) -> None:
        from ..experiments.device import open_card
        from ..experiments.measure import CardRunner, SimulatedRunner

        self._card = open_card(device) if simulated is None else None
        self._runner: Runner = (
            CardRunner(self._card, samples)
            if self._card is not None
            else SimulatedRunner(str(simulated), samples, seed, whole=small)
        )

    def __enter__(self) -> Runner:
        return self._runner

    def __exit__(self, *_: object) -> None:
        if self._card is not None:
            self._card.close()


def _line(row: MeasuredLaunch) -> str:
    what = f"{row.kernel} {row.variant}".strip()
    if row.median_us is None:
        return f"{what}: failed: {row.reason}"
    return f"{what}, {row.resident_warps} warps: {row.median_us:.4g} µs" + ("" if row.ok else f", {row.reason}")


def _show(found: Measured, out: str, runner: Runner, note: str) -> int:
    from ..experiments.measure import FAILED, WRONG

    new = len(found.rows) - found.before
    print(f"{out}: {len(found.rows)} rows of {runner.device}, {runner.driver}; {new} new")
    for row in found.rows:
        if not row.ok:
            print(f"{row.status}: {row.kernel} {row.variant}: {row.reason}")
    compared = sum(row.off_by is not None for row in found.rows)
    wrong, failed = found.count(WRONG), found.count(FAILED)
    print(f"outputs compared with NumPy's in {compared} rows; {wrong} wrong, {failed} could not be measured")
    if note:
        print(note)
    print(f"next: drywarp validate {out} --gpu NAME")
    return 1 if wrong else 0
