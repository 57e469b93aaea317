"""`drywarp calibrate`: a GPU file from measurements on a GPU, or on drywarp's own simulation of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import UsageError
from .output import print_json, print_text
from .progress import counter

if TYPE_CHECKING:
    from ..experiments.calibrate import Calibration
    from ..experiments.calibrate.device import Device


def calibrate_command(
    *,
    output: str | None = None,
    simulated: str | None = None,
    only: str | None = None,
    seed: int = 0,
    repeats: int = 15,
    device: int = 0,
    journal: str | None = None,
    list_: bool = False,
    json: bool = False,
) -> None:
    """Measure a GPU's λ, Λ, bandwidths and latencies with micro-benchmarks, and write them to a GPU file."""
    from ..experiments.calibrate import calibrate, experiment_names

    if list_:
        typer.echo("\n".join(experiment_names()))
        return
    if output is None:
        raise UsageError("missing option -o: expected the GPU file to write, as in -o mygpu.toml")
    target = Path(output)
    if target.suffix != ".toml":
        raise UsageError(f"-o {output}: expected a file name that ends in .toml")
    if not target.parent.is_dir():
        raise UsageError(f"-o {output}: the folder {target.parent} does not exist")
    names = [name for name in (only or "").split(",") if name]
    card = _device(simulated, seed, device)
    with counter() as tell:
        found = calibrate(
            card,
            only=names,
            journal=Path(journal) if journal else target.with_suffix(".journal.jsonl"),
            settings={"seed": seed} if simulated else {},
            repeats=repeats,
            tell=tell,
        )
    _write(found, target)
    _show(found, target, json)


def _device(simulated: str | None, seed: int, number: int) -> Device:
    if simulated is not None:
        from ..experiments.calibrate.card import SimulatedCard

        return SimulatedCard(simulated, seed)
    from ..experiments.calibrate.card import Card

    return Card(number)


def _write(found: Calibration, target: Path) -> None:
    from ..report.html.calibration import calibration_page
    from ..report.text import json_text

    texts = {
        target.with_suffix(".html"): calibration_page(found),
        target.with_suffix(".calibration.json"): json_text(found.to_dict()),
    }
    if found.gpu_file:
        texts[target] = found.gpu_file
    for path, text in texts.items():
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    if found.gpu_file:
        from ..hardware import load_gpu

        load_gpu(str(target))


def _show(found: Calibration, target: Path, json: bool) -> None:
    if json:
        print_json(found.to_dict())
        return
    from rich.console import Console

    from ..report.html.calibration import notes, render_calibration

    Console(highlight=False).print(render_calibration(found))
    for line in notes(found):
        print_text(line)
    if found.gpu_file:
        print_text(f"wrote {target}, along with the report (.html) and the curves (.calibration.json)")
        print_text(f"next: drywarp analyze KERNEL --gpu {target}")
    else:
        lacking = ", ".join(key.partition(":")[0] for key in found.inherited)
        print_text(f"no GPU file written: {lacking} not measured (also run the dram experiment)")
