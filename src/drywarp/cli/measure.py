"""Times and counters: `drywarp measure` times kernels on a GPU, `counts` predicts counters, `import-ncu` reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from .groups import LaunchOptions
from .output import print_json, print_text, show
from .progress import rated, resumable, stages
from .values import kernel_source, parse_blocks, parse_clock

if TYPE_CHECKING:
    from ..experiments.measure import Measured
    from ..experiments.measure.row import MeasuredLaunch
    from ..experiments.measure.simulated import Runner


def measure_command(
    suite: str,
    *,
    out: str,
    only: list[str] | None = None,
    device: int = 0,
    simulated: str | None = None,
    seed: int = 0,
    small: bool = False,
    occupancies: int = 8,
    samples: int = 15,
    counters: bool = True,
) -> int:
    """Measure a suite of kernels on a GPU, as a table for `drywarp validate`. No GPU setting is changed.

    Exit status 1 if a kernel's output differs from NumPy's.
    """
    from ..experiments.measure import measure
    from ..experiments.measure.on_card import Counters, find_ncu

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
        from ..experiments.measure.on_card import CardRunner
        from ..experiments.measure.simulated import SimulatedRunner

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
    from ..experiments.measure.row import FAILED, WRONG

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


# `drywarp counts`: what a profiler would count.


def counts_command(
    kernel: str,
    *,
    gpu: str = "a100",
    launch: LaunchOptions,
    clock: str | None = None,
    warm_l2: bool = False,
    blocks: str | None = None,
    seconds: float | None = None,
    jobs: int | None = None,
    explain: bool = False,
    json: bool = False,
) -> None:
    """Compute Nsight Compute's metrics for the whole grid by emulation."""
    from ..analysis.counters.count import count
    from ..analysis.request import Options

    with stages() as on_stage:
        options = Options(clock_mhz=parse_clock(clock), warm_l2=warm_l2, blocks=parse_blocks(blocks), on_stage=on_stage)
        result = count(kernel_source(kernel), gpu=gpu, **launch.given(), options=options)
    from ..report.text import render_counts, render_meanings

    show(json, result.to_dict, lambda: render_meanings(result) if explain else render_counts(result))


# `drywarp import-ncu`: convert a profiler's export to drywarp's profile format.


def import_ncu_command(report: str, output: str | None = None, json: bool = False) -> None:
    """Read a profiler's export: launches, times and metrics in base units."""
    from ..frontends.profiles import read_measured, write_measured

    imported = read_measured(Path(report))
    if output is not None:
        write_measured(imported, Path(output))
    from ..report.advice import imported_dict, render_imported

    if json:
        print_json(imported_dict(imported))
    else:
        print_text(render_imported(imported))
        print_text(f"next: drywarp analyze KERNEL --profile {report if output is None else output}")
