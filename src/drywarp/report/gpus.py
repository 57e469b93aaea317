"""GPUs as text and JSON: the list, one GPU with the source of every number, and several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from ..analysis.result import headed
from ..hardware import Fact, Gpu
from ..support.text import json_of
from .tables import aligned


def gpu_list_dict(gpus: Sequence[Gpu], own: Sequence[str] = ()) -> dict[str, Any]:
    """Name, title, aliases, compute capability and file hash of each; `own` are names of the user's own."""
    rows = [
        {
            **json_of(gpu, "name title aliases file_hash"),
            "compute_capability": gpu.compute_capability or None,
            "arch": gpu.arch or None,
            "own": gpu.name in own,
        }
        for gpu in gpus
    ]
    return {**headed(), "gpus": rows}


def gpu_dict(gpu: Gpu) -> dict[str, Any]:
    """Everything in the GPU file, including inherited values."""
    return {**headed(), **gpu.to_dict()}


def gpu_removed_dict(name: str) -> dict[str, Any]:
    """The name of a GPU of the user's own that has been removed."""
    return {**headed(), "removed": name}


def render_gpu_list(gpus: Sequence[Gpu], own: Sequence[str] = ()) -> Text:
    """One row per GPU; `own` are names of the user's own."""
    rows = [["name", "GPU", "CC", "SMs", "clock", "DRAM"]]
    for gpu in gpus:
        if gpu.abstract_only:
            takes = f"abstract workloads and {gpu.code_arch} code" if gpu.code_arch else "abstract workloads only"
            rows.append([gpu.name, gpu.title, "", "", "", takes])
            continue
        device, dram = gpu.device, gpu.memory.dram
        clock, bandwidth = f"{device.boost_clock_mhz:g} MHz", f"{dram.peak_gbs:g} GB/s"
        rows.append([gpu.name, gpu.title, gpu.compute_capability or gpu.arch, str(device.sm_count), clock, bandwidth])
    mine = f" Your own: {', '.join(own)}." if own else ""
    spelt = "--gpu takes a name, a title or an alias in any spelling: rtx2080ti, 'RTX 2080 Ti', A100-SXM4-80GB."
    also = [f"  {gpu.name}: {', '.join(gpu.aliases)}" for gpu in gpus if gpu.aliases]
    known = ["", "Aliases", *also] if also else []
    return Text(
        "\n".join([*aligned(rows), *known, "", spelt, f"drywarp gpus NAME shows every number with its source.{mine}"])
    )


def render_gpu(gpu: Gpu) -> Text:
    """Every number of a GPU: value, kind and source, with its note below; then the full sources."""
    capability = f", compute capability {gpu.compute_capability}" if gpu.compute_capability else ""
    facts = list(gpu.facts())
    rows = [["key", "value", "kind", "source"]]
    for key, fact in facts:
        value = ", ".join(map(str, fact.value)) if isinstance(fact.value, tuple) else str(fact.value)
        rows.append([key, f"{value} {fact.unit}".strip(), fact.kind, fact.source])
    lines = aligned(rows)
    also = f"\nalso known as {', '.join(gpu.aliases)}" if gpu.aliases else ""
    text = Text.assemble((f"{gpu.name}: {gpu.title}{capability}", "bold"), also, "\n\n", (lines[0], "dim"), "\n")
    for line, (_, fact) in zip(lines[1:], facts, strict=True):
        text.append(line + "\n")
        if fact.note:
            text.append(f"    {fact.note}\n", style="dim")
    text.append("\nSources\n", style="bold")
    used = {fact.source for _, fact in facts}
    text.append("\n".join(aligned([[key, full] for key, full in gpu.sources.items() if key in used])))
    return text


# Several GPUs side by side.


def gpu_comparison_dict(gpus: Sequence[Gpu]) -> dict[str, Any]:
    """Every key that some GPU gives: the facts by GPU (null: it gives none), and whether all values are the same."""
    each = {gpu.name: gpu.to_dict() for gpu in gpus}
    told = ("title", "compute_capability", "arch", "file_hash", "sources")
    return {
        **headed(),
        "gpus": [{"name": name, **{key: gpu[key] for key in told}} for name, gpu in each.items()],
        "facts": {
            key: {"same": _same(facts), "by_gpu": {name: gpu["facts"].get(key) for name, gpu in each.items()}}
            for key, facts in _side_by_side(gpus).items()
        },
    }


def render_gpu_comparison(gpus: Sequence[Gpu]) -> Text:
    """Values side by side, each with its kind and source: those that differ first, then the others; then sources."""
    rows = _side_by_side(gpus)
    text = Text()
    for gpu in gpus:
        text.append(f"{gpu.name}: {gpu.title}\n", style="bold")
    for head, same in (("Different", False), ("The same", True)):
        keys = [key for key, facts in rows.items() if _same(facts) == same]
        text.append(f"\n{head} ({len(keys)})\n", style="bold")
        text.append("\n".join(_compared({key: rows[key] for key in keys}, gpus, ratio=not same)) + "\n")
    text.append("\nSources\n", style="bold")
    known: dict[tuple[str, str], list[str]] = {}
    for gpu in gpus:
        used = {fact.source for _, fact in gpu.facts()}
        for key, full in gpu.sources.items():
            if key in used:
                known.setdefault((key, full), []).append(gpu.name)
    sources = [[key, full, "" if len(who) == len(gpus) else ", ".join(who)] for (key, full), who in known.items()]
    text.append("\n".join(aligned([[key, who, full] for key, full, who in sources])))
    return text


def _side_by_side(gpus: Sequence[Gpu]) -> dict[str, list[Fact | None]]:
    """By key, each GPU's fact; in the order of the sections, so that a key stands where its section does."""
    keys = list(dict.fromkeys(key for gpu in gpus for key, _ in gpu.facts()))
    sections = list(dict.fromkeys(key.partition(".")[0] for key in keys))
    keys.sort(key=lambda key: sections.index(key.partition(".")[0]))
    return {key: [gpu.known.get(key) for gpu in gpus] for key in keys}


def _same(facts: Sequence[Fact | None]) -> bool:
    return len({None if fact is None else fact.value for fact in facts}) == 1


def _compared(facts: dict[str, list[Fact | None]], gpus: Sequence[Gpu], ratio: bool) -> list[str]:
    """A row each: value, kind and source of every GPU. Of two GPUs, `ratio` is the second's value over the first's."""
    ratio = ratio and len(gpus) == 2
    rows = [["key", *(cell for gpu in gpus for cell in (gpu.name, "kind", "source")), *(["ratio"] if ratio else [])]]
    for key, found in facts.items():
        cells = [cell for f in found for cell in (("–", "", "") if f is None else (str(f), f.kind, f.source))]
        rows.append([key, *cells, *([_ratio(found)] if ratio else [])])
    return aligned(rows)


def _ratio(facts: Sequence[Fact | None]) -> str:
    old, new = (fact.value if fact else None for fact in facts)
    if not (isinstance(old, int | float) and isinstance(new, int | float)) or isinstance(old, bool) or not old:
        return ""
    return f"{new / old:.3g}"
