"""`drywarp cusp`: how many warps hide latency, over arithmetic intensity."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..errors import UsageError


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command(name="cusp")(command)


def command(
    gpu: Annotated[
        str, typer.Option(help="A GPU that `drywarp gpus` lists, or a GPU file (.toml).")
    ] = "papers/volkov-maxwell",
    with_: Annotated[str, typer.Option("--with", help="What adds are mixed with: memory, sfu or shared.")] = "memory",
    alpha: Annotated[
        str | None,
        typer.Option(help="Adds per other instruction: a range in steps of √2, such as 1-512, or numbers 8,16,49."),
    ] = None,
    share: Annotated[float, typer.Option(help="Fraction of the peak to attain; the thesis plots 0.9.")] = 1.0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
) -> None:
    """Needed occupancy over arithmetic intensity, by every model that defines it (Volkov's cusp)."""
    from ..cusp import cusp
    from ..report.cusp import cusp_dict, render_cusp
    from ..report.json_text import json_text

    result = cusp(gpu, partner=with_, alphas=parse_alphas(alpha) if alpha else None, share=share)
    if json:
        sys.stdout.write(json_text(cusp_dict(result)))
        return
    from rich.console import Console

    Console(highlight=False).print(render_cusp(result), soft_wrap=True)


def parse_alphas(text: str) -> list[float]:
    """``1-512`` as a geometric range in steps of √2, both ends included; ``8,16,49`` as given."""
    low, dash, high = text.partition("-")
    try:
        if not dash:
            return [float(part) for part in text.split(",")]
        first, last = float(low), float(high)
    except ValueError:
        raise UsageError(f"--alpha {text!r}: expected a range such as 1-512, or numbers such as 8,16,49") from None
    if not 0 < first <= last < 1e9:
        raise UsageError(f"--alpha {text!r}: expected a range of positive numbers, the smaller first")
    found = [first]
    while found[-1] * 2**0.5 < last * (1 - 1e-9):
        found.append(found[-1] * 2**0.5)
    return found if first == last else [*found, last]
