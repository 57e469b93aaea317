"""`drywarp measure`: a suite of kernels on a GPU, over block sizes and occupancies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from .progress import rated

if TYPE_CHECKING:
    from ..measuring import Measured, MeasuredLaunch, Runner


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="measure")(command)


def command(
    suite: Annotated[str, typer.Argument(help="Folder with TOML files that name kernels, or one such file.")],
    out: Annotated[
        str, typer.Option("--out", "-o", help="Append rows as they are done (.csv); skip those there.", metavar="FILE")
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(help="Kernels, or TOML files without .toml; * is anything. Repeatable.", metavar="NAME"),
    ] = None,
    device: Annotated[int, typer.Option(help="The GPU's number, as the driver counts.", min=0)] = 0,
    simulated: Annotated[
        str | None,
        typer.Option(help="In place of a card: drywarp's prediction for this GPU, with noise.", metavar="NAME|FILE"),
    ] = None,
    seed: Annotated[int, typer.Option(help="With --simulated: the seed of the noise.")] = 0,
    small: Annotated[bool, typer.Option("--small", help="The suite's small sizes, to try things.")] = False,
    occupancies: Annotated[int, typer.Option(help="Occupancies of each block size, at most.", min=1)] = 8,
    samples: Annotated[int, typer.Option(help="Samples of each launch; their median counts.", min=1)] = 15,
    counters: Annotated[
        bool, typer.Option("--counters/--no-counters", help="Hardware counters too, where ncu is installed.")
    ] = True,
) -> int:
    """Measure a suite of kernels on a GPU. `drywarp validate` reads the table. No setting of the card is changed.

    Exit status 1 where a kernel computed something else than NumPy.
    """
    from ..measuring import Counters, find_ncu, measure

    with _runner(device, simulated, seed, samples, small) as runner, rated() as tell:
        ncu = find_ncu() if counters and simulated is None else None
        profile = Counters(ncu, device, small) if ncu else None

        def on_row(row: MeasuredLaunch, done: int, of: int) -> None:
            tell(_line(row), done, of)

        found = measure(
            suite, out, runner, only=only or (), small=small, points=occupancies, profile=profile, on_row=on_row
        )
    return _show(found, out, runner, profile.note if profile else "" if simulated else "no counters: ncu is not there")


def _runner(device: int, simulated: str | None, seed: int, samples: int, small: bool) -> _Held:
    if simulated is None and seed:
        raise UsageError("--seed is for --simulated")
    return _Held(device, simulated, seed, samples, small)


class _Held:
    """The runner, and the card that it holds, as a context."""

    def __init__(self, device: int, simulated: str | None, seed: int, samples: int, small: bool) -> None:
        from ..device import open_card
        from ..measuring import CardRunner, SimulatedRunner

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
    from ..measuring import FAILED, WRONG

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
